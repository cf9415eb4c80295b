"""Topic names and filters: section 4.7."""

from tests.conformance import wire as w
from tests.conformance.statements import states


@states("Wildcards stand in filters, never in names.", v311="4.7.1-1", v5="4.7.0-1")
def test_no_wildcards_in_names(scene, version):
    for bad in (scene.topic("+"), scene.topic("#"), "+/x"):
        client = scene.connect(version)
        client.send(w.publish(version, bad, b"x", 1, 1))
        client.refused(0x81, 0x82, 0x90)
    said = scene.greet(version, will=w.Will(scene.topic("#"))).ended()
    assert all(got.kind == w.CONNACK and got.code for got in said)


def refuse_filters(scene, version, filters):
    for bad in filters:
        for packet in (w.subscribe(version, 1, [(bad, 0)]), w.unsubscribe(version, 1, [bad])):
            client = scene.connect(version)
            client.send(packet)
            client.refused(0x81, 0x82, 0x8F)


@states("`#` stands alone or after a `/`, and last.", v311="4.7.1-2", v5="4.7.1-1")
def test_the_place_of_the_multi_level_wildcard(scene, version):
    refuse_filters(scene, version, ("a#", "a/b#", "a/#/b", "##", "#/"))
    client = scene.listen(version, scene.topic("a", "#"))
    sender = scene.connect(version)
    for name in ("a", "a/", "a/b", "a/b/c", "ab", "b/a"):
        sender.publish(scene.topic(name), b"x", 1)
    got = [one.topic for one in client.messages()]
    assert got == [scene.topic(name) for name in ("a", "a/", "a/b", "a/b/c")]


@states("`+` takes a whole level, any.", v311="4.7.1-3", v5="4.7.1-2")
def test_the_place_of_the_single_level_wildcard(scene, version):
    refuse_filters(scene, version, ("a+", "+a", "a/b+/c", "++"))
    cases = {"+/b": ["/b", "a/b"], "a/+": ["a/", "a/b"], "+/+": ["/b", "a/", "a/b", "b/a"]}
    clients = {item: scene.listen(version, scene.topic(item)) for item in cases}
    sender = scene.connect(version)
    for name in ("a", "/b", "a/", "a/b", "a/b/c", "b/a"):
        sender.publish(scene.topic(name), b"x", 1)
    for item, names in cases.items():
        got = [one.topic for one in clients[item].messages()]
        assert got == [scene.topic(name) for name in names], item


@states(
    "A filter that begins with a wildcard matches no name that begins with `$`.",
    v311="4.7.2-1",
    v5="4.7.2-1",
)
def test_wildcards_do_not_match_dollar_topics(scene, version):
    """Clients may not publish to such a topic in every server: this one says it itself."""
    topic = f"$x{scene.name}/a"
    plain = scene.listen(version, topic, f"$x{scene.name}/+")
    wild = scene.listen(version, "#", "+/a", "+/+", "+/#")
    scene.peer.say(topic, b"x")
    assert {got.topic for got in plain.messages()} == {topic}
    assert [got for got in wild.messages() if got.topic.startswith("$")] == []


@states("Names and filters have at least one character.", v311="4.7.3-1", v5="4.7.3-1")
def test_no_empty_names(scene, version):
    for bad in (
        w.publish(version, "", b"x"),
        w.subscribe(version, 1, [("", 0)]),
        w.unsubscribe(version, 1, [""]),
    ):
        client = scene.connect(version)
        client.send(bad)
        client.refused(0x81, 0x82, 0x8F, 0x90)


@states("Names and filters hold no U+0000.", v311="4.7.3-2", v5="4.7.3-2")
def test_no_nul_in_names(scene, version):
    for bad in (
        w.publish(version, "a\0b", b"x"),
        w.subscribe(version, 1, [("a\0b", 0)]),
        w.unsubscribe(version, 1, ["\0"]),
    ):
        client = scene.connect(version)
        client.send(bad)
        client.refused(0x81, 0x8F, 0x90)


@states(
    "Names are compared as they are written: nothing is normalised or replaced.",
    v311="4.7.3-4",
    v5="4.7.3-4",
)
def test_names_are_not_normalised(scene, version):
    names = (
        "\u00e9",
        "e\u0301",
        "E\u0301",
        "a b",
        "ab",
        "\U0001f40c",
        "\u200bz",
        "z",
        "%20",
        "/",
        "",
    )
    clients = [scene.listen(version, scene.topic(name)) for name in names]
    sender = scene.connect(version)
    for name in names:
        sender.publish(scene.topic(name), name.encode(), 1)
    assert [client.payloads() for client in clients] == [[name.encode()] for name in names]

"""PUBLISH: its flags and topic in both standards, sections 3.3.1 to 3.3.2, and who gets it."""

from tests.conformance import wire as w
from tests.conformance.statements import states


@states("A message that is sent again bears DUP.", v311="3.3.1-1", v5="3.3.1-1")
def test_a_repetition_bears_dup(scene, version):
    topic = scene.topic()
    client = scene.keep(version)
    client.subscribe(topic, qos=1)
    scene.connect(version).publish(topic, b"x", qos=1)
    first = client.take()
    scene.lose(client)
    again = scene.keep(version, client.client_id).take()
    assert (first.dup, again.dup) == (False, True)
    assert (again.pid, again.payload) == (first.pid, b"x")


@states("A message of QoS 0 never bears DUP.", v311="3.3.1-2", v5="3.3.1-2")
def test_qos_0_with_dup_is_refused(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic, qos=1)
    client = scene.connect(version)
    client.send(w.publish(version, topic, b"x", dup=True))
    client.refused(0x81)
    listener.nothing()
    scene.connect(version).publish(topic, b"y", qos=0)
    scene.peer.settle()
    assert [got.dup for got in listener.messages()] == [False]


@states("DUP of what comes in says nothing of DUP of what goes out.", v311="3.3.1-3", v5="3.3.1-3")
def test_dup_is_not_passed_on(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic, qos=1)
    scene.connect(version).publish(topic, b"x", qos=1, dup=True)
    assert [got.dup for got in listener.messages()] == [False]


@states("Both QoS bits set close the connection.", v311="3.3.1-4", v5="3.3.1-4")
def test_qos_3_closes(scene, version):
    client = scene.connect(version)
    client.send(w.packet(w.PUBLISH, w.binary("a") + w.u16(1) + w.held(version, ()), 6))
    client.refused(0x81)


@states(
    "A message with RETAIN is stored with its QoS, instead of the topic's last.",
    v311="3.3.1-5",
    v5="3.3.1-5",
    within="past `retained_messages_max` or `retained_bytes_max` it goes to subscribers and is not "
    "stored; an MQTT 5 publisher is told (151)",
)
def test_retain_stores_the_message_and_its_qos(scene, version):
    topic = scene.topic()
    sender = scene.connect(version)
    for payload, qos in ((b"a", 0), (b"b", 1), (b"c", 0)):
        sender.publish(topic, payload, qos, retain=True)
        sender.ping()
        got = scene.listen(version, topic, qos=1).messages()
        assert [(one.payload, one.qos) for one in got] == [(payload, qos)]


@states(
    "A new subscription gets the last retained message of every topic that it matches.",
    v311="3.3.1-6",
)
def test_a_new_subscription_gets_what_is_retained(scene, version):
    sender = scene.connect(version)
    for name in ("a", "b", "c/d"):
        sender.publish(scene.topic(name), b"old", 1, retain=True)
        sender.publish(scene.topic(name), name.encode(), 1, retain=True)
    got = scene.listen(version, scene.topic("#")).payloads()
    assert sorted(got) == [b"a", b"b", b"c/d"]


@states("A message of QoS 0 with RETAIN discards what its topic had retained.", v311="3.3.1-7")
def test_qos_0_replaces_what_is_retained(scene, version):
    """It should be stored itself, and is."""
    topic = scene.topic()
    sender = scene.connect(version)
    sender.publish(topic, b"firm", 1, retain=True)
    sender.publish(topic, b"loose", 0, retain=True)
    sender.ping()
    assert scene.listen(version, topic).payloads() == [b"loose"]


@states("What is sent for a new subscription bears RETAIN.", v311="3.3.1-8")
def test_a_retained_message_bears_retain(scene, version):
    topic = scene.topic()
    scene.connect(version).publish(topic, b"x", 1, retain=True)
    assert [got.retain for got in scene.listen(version, topic).messages()] == [True]


@states("What matches a subscription that stands does not bear RETAIN.", v311="3.3.1-9")
def test_a_live_message_does_not_bear_retain(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic)
    scene.connect(version).publish(topic, b"x", 1, retain=True)
    assert [got.retain for got in listener.messages()] == [False]


@states(
    "An empty message with RETAIN is passed on, and what the topic had retained is removed.",
    v311="3.3.1-10",
    v5="3.3.1-6",
)
def test_an_empty_retained_message_removes(scene, version):
    topic = scene.topic()
    sender = scene.connect(version)
    sender.publish(topic, b"x", 1, retain=True)
    listener = scene.listen(version, topic)
    sender.publish(topic, b"", 1, retain=True)
    assert listener.payloads() == [b"x", b""]
    scene.listen(version, topic).nothing()


@states("An empty message is never retained.", v311="3.3.1-11", v5="3.3.1-7")
def test_an_empty_message_is_not_stored(scene, version):
    topic = scene.topic()
    scene.connect(version).publish(topic, b"", 1, retain=True)
    scene.listen(version, topic).nothing()


@states(
    "A message without RETAIN neither is stored nor removes what is.",
    v311="3.3.1-12",
    v5="3.3.1-8",
)
def test_without_retain_nothing_changes(scene, version):
    topic = scene.topic()
    sender = scene.connect(version)
    sender.publish(topic, b"x", 1)
    scene.listen(version, topic).nothing()
    sender.publish(topic, b"kept", 1, retain=True)
    sender.publish(topic, b"passing", 1)
    sender.publish(topic, b"", 1)
    assert scene.listen(version, topic).payloads() == [b"kept"]


@states("Retain handling 0: all matching retained messages are sent.", v5="3.3.1-9")
def test_retain_handling_0(scene, version):
    sender = scene.connect(version)
    for name in ("a", "b"):
        sender.publish(scene.topic(name), name.encode(), 1, retain=True)
    listener = scene.listen(version, scene.topic("+"))
    assert sorted(listener.payloads()) == [b"a", b"b"]
    listener.subscribe(scene.topic("+"))
    assert sorted(listener.payloads()) == [b"a", b"b"]


@states("Retain handling 1: they are sent where the subscription is new.", v5="3.3.1-10")
def test_retain_handling_1(scene, version):
    topic = scene.topic()
    scene.connect(version).publish(topic, b"x", 1, retain=True)
    listener = scene.connect(version)
    listener.subscribe(topic, options=0x10)
    assert listener.payloads() == [b"x"]
    listener.subscribe(topic, options=0x10)
    listener.nothing()


@states("Retain handling 2: none are sent.", v5="3.3.1-11")
def test_retain_handling_2(scene, version):
    topic = scene.topic()
    scene.connect(version).publish(topic, b"x", 1, retain=True)
    listener = scene.connect(version)
    listener.subscribe(topic, options=0x20)
    listener.nothing()


@states("Without retain as published, RETAIN is 0 on what is passed on.", v5="3.3.1-12")
def test_retain_as_published_0(scene, version):
    topic = scene.topic()
    listener = scene.connect(version)
    listener.subscribe(topic)
    sender = scene.connect(version)
    sender.publish(topic, b"x", 1, retain=True)
    sender.publish(topic, b"y", 1)
    assert [got.retain for got in listener.messages()] == [False, False]


@states("With retain as published, RETAIN is as it was published.", v5="3.3.1-13")
def test_retain_as_published_1(scene, version):
    topic = scene.topic()
    listener = scene.connect(version)
    listener.subscribe(topic, options=8)
    sender = scene.connect(version)
    sender.publish(topic, b"x", 1, retain=True)
    sender.publish(topic, b"y", 1)
    assert [got.retain for got in listener.messages()] == [True, False]


@states("The topic name comes first and is well-formed UTF-8.", v311="3.3.2-1", v5="3.3.2-1")
def test_the_topic_is_there_and_well_formed(scene, version):
    for body in (b"", b"\x00", b"\x00\x05ab", w.binary(b"\xff") + w.held(version, ())):
        client = scene.connect(version)
        client.send(w.packet(w.PUBLISH, body))
        client.refused(0x81, 0x82, 0x90)


@states("A topic name holds no wildcards.", v311="3.3.2-2", v5="3.3.2-2")
def test_a_topic_with_wildcards_closes(scene, version):
    for bad in ("+", "#", scene.topic("+"), scene.topic("a#"), scene.topic("a+b")):
        client = scene.connect(version)
        client.send(w.publish(version, bad, b"x"))
        client.refused(0x81, 0x82, 0x90)


@states("What a subscriber gets has a topic that its filter matches.", v311="3.3.2-3", v5="3.3.2-3")
def test_subscribers_get_what_they_asked_for(scene, version):
    sender = scene.connect(version)
    names = ("a", "a/b", "a/b/c", "b", "b/b", "ab")
    cases = {
        "a": {"a"},
        "a/#": {"a", "a/b", "a/b/c"},
        "+/b": {"a/b", "b/b"},
        "+": {"a", "b", "ab"},
        "+/+/#": {"a/b", "a/b/c", "b/b"},
        "#": set(names),
    }
    listeners = {item: scene.listen(version, scene.topic(item)) for item in cases}
    for name in names:
        sender.publish(scene.topic(name), b"x", 1)
    for item, expected in cases.items():
        got = [one.topic for one in listeners[item].messages()]
        assert sorted(got) == sorted(map(scene.topic, expected)), item


@states(
    "A PUBLISH is answered as its QoS asks: not, by PUBACK, or by PUBREC.",
    v311="3.3.4-1",
    v5="3.3.4-1",
)
def test_a_publish_is_answered_as_its_qos_asks(scene, version):
    client = scene.connect(version)
    client.send(w.publish(version, scene.topic(), b"x"))
    client.nothing()
    client.send(w.publish(version, scene.topic(), b"x", 1, 9))
    assert client.expect(w.PUBACK).pid == 9
    scene.needs_qos_2(client)
    client.send(w.publish(version, scene.topic(), b"x", 2, 9))
    assert client.expect(w.PUBREC).pid == 9


@states(
    "Where several subscriptions of a client match, the message comes at the highest QoS of them.",
    v311="3.3.5-1",
    v5="3.3.4-2",
)
def test_overlapping_subscriptions_give_the_highest_qos(scene, version):
    listener = scene.connect(version)
    assert listener.subscribe(scene.topic("#")) == [0]
    assert listener.subscribe(scene.topic("+"), qos=1) == [1]
    assert listener.subscribe(scene.topic("a/#")) == [0]
    scene.connect(version).publish(scene.topic("a"), b"x", 1)
    assert max(got.qos for got in listener.messages()) == 1


@states(
    "A PUBLISH that is not allowed is acknowledged all the same, or the connection closed.",
    v311="3.3.5-2",
)
def test_a_publish_that_is_not_allowed(scene, version):
    """Topics that begin with `$SYS` are the server's."""
    listener = scene.listen(version, f"$SYS/{scene.name}")
    client = scene.connect(version)
    client.send(w.publish(version, f"$SYS/{scene.name}", b"x", 1, 5), w.disconnect())
    assert [(got.kind, got.pid) for got in client.ended()] in ([], [(w.PUBACK, 5)])
    listener.nothing()

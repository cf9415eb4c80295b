"""SUBSCRIBE, UNSUBSCRIBE and their answers: sections 3.8 to 3.11."""

from tests.conformance import wire as w
from tests.conformance.statements import states


@states(
    "The flags of SUBSCRIBE are 0010; others close the connection.", v311="3.8.1-1", v5="3.8.1-1"
)
def test_the_flags_of_subscribe(scene, version):
    body = w.subscribe(version, 1, [(scene.topic(), 0)])[2:]
    for flags in (0, 1, 3, 6, 10, 15):
        client = scene.connect(version)
        client.send(w.packet(w.SUBSCRIBE, body, flags))
        client.refused(0x81)


@states("Topic filters of SUBSCRIBE are well-formed UTF-8.", v311="3.8.3-1", v5="3.8.3-1")
def test_filters_are_checked(scene, version):
    for bad in (b"\xff", b"a\0b", b"\xed\xa0\x80"):
        client = scene.connect(version)
        client.send(w.subscribe(version, 1, [(bad, 0)]))
        client.refused(0x81, 0x8F)


@states(
    "A server that has no wildcards refuses filters with them; this one has them.", v311="3.8.3-2"
)
def test_filters_may_hold_wildcards(scene, version):
    client = scene.connect(version)
    assert client.subscribe(scene.topic("#"), scene.topic("+"), "+/+") == [0, 0, 0]


@states("A SUBSCRIBE has at least one filter.", v311="3.8.3-3", v5="3.8.3-2")
def test_a_subscribe_without_filters_closes(scene, version):
    client = scene.connect(version)
    client.send(w.subscribe(version, 1, []))
    client.refused(0x81, 0x82)


@states(
    "Reserved bits beside a filter, and a QoS of 3, close the connection.",
    v311="3.8.3-4",
    v5="3.8.3-5",
)
def test_reserved_bits_of_a_filter_close(scene, version):
    for options in (0x40, 0x80, 3, *((4, 8, 0x10, 0x20) if version == w.V311 else ())):
        client = scene.connect(version)
        client.send(w.subscribe(version, 1, [(scene.topic(), options)]))
        client.refused(0x81, 0x82)


@states("With no local, a client does not get what it published itself.", v5="3.8.3-3")
def test_no_local(scene, version):
    topic = scene.topic()
    client = scene.connect(version)
    client.subscribe(topic, options=4)
    client.publish(topic, b"own", 1)
    scene.connect(version).publish(topic, b"other", 1)
    assert client.payloads() == [b"other"]


@states("No local on a shared subscription closes the connection.", v5="3.8.3-4")
def test_no_local_on_a_shared_subscription_closes(scene, version):
    client = scene.connect(version)
    client.send(w.subscribe(version, 1, [(f"$share/g/{scene.topic()}", 4)]))
    client.refused(0x82)


@states("A SUBSCRIBE is answered by SUBACK.", v311="3.8.4-1", v5="3.8.4-1")
def test_subscribe_is_answered(scene, version):
    client = scene.connect(version)
    client.send(w.subscribe(version, 5, [(scene.topic(), 0)]))
    client.expect(w.SUBACK)
    client.nothing()


@states("The SUBACK has the SUBSCRIBE's identifier.", v311="3.8.4-2", v5="3.8.4-2")
def test_suback_has_the_identifier(scene, version):
    client = scene.connect(version)
    for pid in (9, 5, 65_535):
        client.send(w.subscribe(version, pid, [(scene.topic(), 0)]))
    assert [client.expect(w.SUBACK).pid for _ in range(3)] == [9, 5, 65_535]


@states(
    "The same filter again replaces the subscription and sends what is retained again.",
    v311="3.8.4-3",
)
def test_the_same_filter_again_replaces(scene, version):
    topic = scene.topic()
    sender = scene.connect(version)
    sender.publish(topic, b"kept", 1, retain=True)
    client = scene.listen(version, topic)
    assert client.subscribe(topic, qos=1) == [1]
    sender.publish(topic, b"new", 1)
    got = [(one.payload, one.qos, one.retain) for one in client.messages()]
    assert got == [(b"kept", 0, True), (b"kept", 1, True), (b"new", 1, False)]


@states("The same filter again replaces the subscription.", v5="3.8.4-3")
def test_the_same_filter_again_replaces_all_of_it(scene, version):
    topic = scene.topic()
    client = scene.connect(version)
    client.subscribe(topic, qos=1, options=4, props=[(w.SUBSCRIPTION_ID, 3)])
    client.subscribe(topic, qos=0)
    client.publish(topic, b"x", 1)
    (got,) = client.messages()
    assert (got.qos, got.all_of(w.SUBSCRIPTION_ID)) == (0, [])


@states(
    "A replaced subscription with retain handling 0 gets what is retained again and loses nothing.",
    v5="3.8.4-4",
)
def test_replacing_loses_nothing(scene, version):
    topic = scene.topic()
    sender = scene.connect(version)
    sender.publish(topic, b"kept", 1, retain=True)
    client = scene.listen(version, topic, qos=1)
    sender.publish(topic, b"1", 1)
    client.subscribe(topic, qos=1)
    sender.publish(topic, b"2", 1)
    got = client.payloads()
    assert got.count(b"kept") == 2
    assert [one for one in got if one != b"kept"] == [b"1", b"2"]


@states(
    "A SUBSCRIBE with several filters is as one for each, but for the one SUBACK.",
    v311="3.8.4-4",
    v5="3.8.4-5",
)
def test_many_filters_are_as_many_subscribes(scene, version):
    names = [scene.topic(name) for name in "abc"]
    sender = scene.connect(version)
    sender.publish(names[1], b"kept", 1, retain=True)
    client = scene.connect(version)
    client.send(w.subscribe(version, 1, [(names[0], 0), (names[1], 0), (names[0], 1)]))
    assert client.answer(w.SUBACK).codes == (0, 0, 1)  # of one filter the last holds
    assert client.payloads() == [b"kept"]
    for name in names:
        sender.publish(name, b"x", 1)
    got = [(one.topic, one.qos) for one in client.messages()]
    assert got == [(names[0], 1), (names[1], 0)]


@states(
    "A SUBACK has for each filter the QoS that is granted, or that it failed.",
    v311="3.8.4-5",
    v5="3.8.4-7",
)
def test_suback_tells_the_granted_qos(scene, version):
    client = scene.connect(version)
    client.send(w.subscribe(version, 1, [(scene.topic(str(qos)), qos) for qos in (0, 1, 2)]))
    got = client.expect(w.SUBACK)
    assert len(got.codes) == 3
    assert got.codes[:2] == (0, 1)
    assert got.codes[2] in {1, 2}


@states("A SUBACK has a code for each filter.", v5="3.8.4-6")
def test_suback_has_a_code_for_each_filter(scene, version):
    client = scene.connect(version)
    for count in (1, 2, 50):
        assert len(client.subscribe(*[scene.topic(str(n)) for n in range(count)])) == count


@states(
    "A message comes at the lower of its QoS and the QoS granted.", v311="3.8.4-6", v5="3.8.4-8"
)
def test_the_lower_qos_holds(scene, version):
    sender = scene.connect(version)
    highest = sender.connack.of(w.MAX_QOS, 2)
    listener = scene.connect(version)
    granted = [listener.subscribe(scene.topic(str(asked)), qos=asked)[0] for asked in (0, 1, 2)]
    for qos in range(highest + 1):
        for asked in (0, 1, 2):
            sender.publish(scene.topic(str(asked)), b"x", qos)
        sender.ping()
        got = [(one.topic, one.qos) for one in listener.messages()]
        expected = [(scene.topic(str(asked)), min(qos, granted[asked])) for asked in (0, 1, 2)]
        assert sorted(got) == expected


@states("The codes of a SUBACK are in the order of the filters.", v311="3.9.3-1", v5="3.9.3-1")
def test_subacks_codes_are_in_order(scene, version):
    client = scene.connect(version)
    wanted = [1, 0, 0, 1, 1, 0, 1]
    filters = [(scene.topic(str(at)), qos) for at, qos in enumerate(wanted)]
    client.send(w.subscribe(version, 1, filters))
    assert list(client.expect(w.SUBACK).codes) == wanted


@states("A SUBACK has no codes but those that the standard lists.", v311="3.9.3-2", v5="3.9.3-2")
def test_subacks_codes_are_listed(scene, version):
    listed = {0, 1, 2, 0x80}
    if version == w.V5:
        listed |= {0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2}
    client = scene.connect(version)
    codes = client.subscribe(scene.topic(), "$share/g/a", scene.topic("#"), "$SYS/x", qos=2)
    assert set(codes) <= listed


@states(
    "The flags of UNSUBSCRIBE are 0010; others close the connection.",
    v311="3.10.1-1",
    v5="3.10.1-1",
)
def test_the_flags_of_unsubscribe(scene, version):
    body = w.unsubscribe(version, 1, [scene.topic()])[2:]
    for flags in (0, 1, 3, 6, 10, 15):
        client = scene.connect(version)
        client.send(w.packet(w.UNSUBSCRIBE, body, flags))
        client.refused(0x81)


@states("Topic filters of UNSUBSCRIBE are well-formed UTF-8.", v311="3.10.3-1", v5="3.10.3-1")
def test_filters_of_unsubscribe_are_checked(scene, version):
    for bad in (b"\xff", b"a\0b"):
        client = scene.connect(version)
        client.send(w.unsubscribe(version, 1, [scene.topic(), bad]))
        client.refused(0x81, 0x8F)


@states("An UNSUBSCRIBE has at least one filter.", v311="3.10.3-2", v5="3.10.3-2")
def test_an_unsubscribe_without_filters_closes(scene, version):
    client = scene.connect(version)
    client.send(w.unsubscribe(version, 1, []))
    client.refused(0x81, 0x82)


@states(
    "UNSUBSCRIBE takes away the subscription whose filter is the same, character by character.",
    v311="3.10.4-1",
    v5="3.10.4-1",
)
def test_unsubscribe_needs_the_same_filter(scene, version):
    client = scene.listen(version, scene.topic("+"))
    sender = scene.connect(version)
    client.unsubscribe(scene.topic("a"), scene.topic("#"), scene.topic("+").upper())
    sender.publish(scene.topic("a"), b"1", 1)
    assert client.payloads() == [b"1"]
    client.unsubscribe(scene.topic("+"))
    sender.publish(scene.topic("a"), b"2", 1)
    client.nothing()


@states("After UNSUBSCRIBE no new message is added.", v311="3.10.4-2", v5="3.10.4-2")
def test_nothing_new_after_unsubscribe(scene, version):
    topic = scene.topic()
    client = scene.listen(version, topic, qos=1)
    client.unsubscribe(topic)
    sender = scene.connect(version)
    for qos in (0, 1):
        sender.publish(topic, b"x", qos)
    sender.ping()
    client.nothing()


@states(
    "What was on its way before UNSUBSCRIBE is still brought to its end.",
    v311="3.10.4-3",
    v5="3.10.4-3",
)
def test_what_was_on_its_way_is_completed(scene, version):
    topic = scene.topic()
    client = scene.keep(version)
    scene.subscribe(client, topic, qos=1)
    scene.connect(version).publish(topic, b"x", 1)
    first = client.take()
    client.unsubscribe(topic)
    scene.lose(client)
    again = scene.keep(version, client.client_id)
    got = again.take()
    assert (got.pid, got.payload, got.dup) == (first.pid, b"x", True)


@states(
    "An UNSUBSCRIBE is answered by UNSUBACK, in 3.1.1 told with its identifier.",
    v311="3.10.4-4",
    v5="3.10.4-4",
)
def test_unsubscribe_is_answered(scene, version):
    client = scene.listen(version, scene.topic())
    client.send(w.unsubscribe(version, 4321, [scene.topic()]))
    assert client.expect(w.UNSUBACK).pid == 4321
    client.nothing()


@states(
    "It is answered also where no subscription went, with its identifier.",
    v311="3.10.4-5",
    v5="3.10.4-5",
)
def test_unsubscribe_of_nothing_is_answered(scene, version):
    client = scene.connect(version)
    client.send(w.unsubscribe(version, 77, [scene.topic("none")]))
    got = client.expect(w.UNSUBACK)
    assert (got.pid, got.codes) == (77, (0x11,) if version == w.V5 else ())


@states(
    "An UNSUBSCRIBE with several filters is as one for each, but for the one UNSUBACK.",
    v311="3.10.4-6",
    v5="3.10.4-6",
)
def test_many_filters_are_as_many_unsubscribes(scene, version):
    names = [scene.topic(name) for name in "abc"]
    client = scene.listen(version, *names)
    client.unsubscribe(names[0], "none", names[2])
    sender = scene.connect(version)
    for name in names:
        sender.publish(name, b"x", 1)
    assert [got.topic for got in client.messages()] == [names[1]]


@states("The codes of an UNSUBACK are in the order of the filters.", v5="3.11.3-1")
def test_unsubacks_codes_are_in_order(scene, version):
    client = scene.listen(version, scene.topic("a"), scene.topic("b"))
    names = [scene.topic(name) for name in ("x", "a", "y", "b", "a")]
    assert client.unsubscribe(*names) == [0x11, 0, 0x11, 0, 0x11]


@states("An UNSUBACK has no codes but those that the standard lists.", v5="3.11.3-2")
def test_unsubacks_codes_are_listed(scene, version):
    client = scene.listen(version, scene.topic())
    codes = client.unsubscribe(scene.topic(), "$SYS/#", "$share/g/a", "#")
    assert len(codes) == 4
    assert set(codes) <= {0, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91}

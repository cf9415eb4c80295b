"""Acknowledgements and their codes, and the three ways of delivery: 3.4 to 3.7, 4.3 and 4.4."""

from tests.conformance import wire as w
from tests.conformance.statements import states

PUBLISH_CODES = {0, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}


def listener_2(scene, version, topic, **parts):
    """A client that gets QoS 2, kept."""
    client = scene.keep(version, **parts)
    scene.subscribe(client, topic, qos=2)
    return client


def sender_2(scene, version, client_id=None):
    """A client that may publish at QoS 2, kept."""
    client = scene.keep(version, client_id)
    scene.needs_qos_2(client)
    return client


@states("A PUBACK has one of the listed reason codes.", v5="3.4.2-1")
def test_puback_codes_are_listed(scene, version):
    client = scene.connect(version)
    scene.listen(version, scene.topic())
    for topic in (scene.topic(), scene.topic("nobody")):
        assert client.publish(topic, b"x", 1).code in PUBLISH_CODES


@states("A PUBREC has one of the listed reason codes.", v5="3.5.2-1")
def test_pubrec_codes_are_listed(scene, version):
    client = sender_2(scene, version)
    scene.listen(version, scene.topic())
    for topic in (scene.topic(), scene.topic("nobody")):
        assert client.publish(topic, b"x", 2).code in PUBLISH_CODES


@states("The flags of PUBREL are 0010; others close the connection.", v311="3.6.1-1", v5="3.6.1-1")
def test_the_flags_of_pubrel(scene, version):
    for flags in (0, 1, 3, 6, 10):
        client = scene.connect(version)
        client.send(w.packet(w.PUBREL, w.u16(1), flags))
        client.refused(0x81)


@states("A PUBREL has one of the listed reason codes.", v5="3.6.2-1")
def test_pubrel_codes_are_listed(scene, version):
    topic = scene.topic()
    client = listener_2(scene, version, topic)
    sender_2(scene, version).publish(topic, b"x", 2)
    client.send(w.ack(w.PUBREC, client.take().pid))
    assert client.expect(w.PUBREL).code in {0, 0x92}
    client.send(w.ack(w.PUBREC, 999))  # there is no such message
    assert client.expect(w.PUBREL).code in {0, 0x92}


@states("A PUBCOMP has one of the listed reason codes.", v5="3.7.2-1")
def test_pubcomp_codes_are_listed(scene, version):
    client = sender_2(scene, version)
    client.send(w.ack(w.PUBREL, 999))  # there is no such message
    assert client.expect(w.PUBCOMP).code in {0, 0x92}
    client.send(w.publish(version, scene.topic(), b"x", 2, 5))
    client.expect(w.PUBREC)
    client.send(w.ack(w.PUBREL, 5))
    assert client.expect(w.PUBCOMP).code == 0


@states("QoS 0: a PUBLISH of QoS 0 without DUP.", v311="4.3.1-1", v5="4.3.1-1")
def test_qos_0_is_sent_once_without_dup(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic, qos=1)
    sender = scene.connect(version)
    sender.publish(topic, b"x")
    sender.ping()
    assert [(got.qos, got.dup) for got in listener.messages()] == [(0, False)]


@states(
    "QoS 1, sender: an identifier that is not in use, no DUP, unfinished until its PUBACK.",
    v311="4.3.2-1",
)
def test_qos_1_sending(scene, version):
    sending_at_qos_1(scene, version)


@states("QoS 1, sender: each message has an identifier that is not in use.", v5="4.3.2-1")
def test_qos_1_identifiers(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic, qos=1)
    sender = scene.connect(version)
    for _ in range(5):
        sender.publish(topic, b"x", 1)
    first = [got.pid for got in listener.rest()]
    assert len(set(first)) == 5
    listener.send(w.ack(w.PUBACK, first[2]))
    for _ in range(5):
        sender.publish(topic, b"x", 1)
    more = [got.pid for got in listener.rest()]
    assert len(set(more)) == 5
    assert not set(more) & (set(first) - {first[2]})


@states("QoS 1, sender: a new message goes out at QoS 1 without DUP.", v5="4.3.2-2")
def test_qos_1_is_sent_without_dup(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic, qos=1)
    scene.connect(version).publish(topic, b"x", 1)
    assert [(got.qos, got.dup) for got in listener.messages()] == [(1, False)]


@states("QoS 1, sender: a message is unfinished until its PUBACK.", v5="4.3.2-3")
def test_qos_1_is_unfinished_until_puback(scene, version):
    sending_at_qos_1(scene, version)


def sending_at_qos_1(scene, version):
    topic = scene.topic()
    client = scene.keep(version)
    scene.subscribe(client, topic, qos=1)
    sender = scene.connect(version)
    sender.publish(topic, b"a", 1)
    sender.publish(topic, b"b", 1)
    first, second = client.take(), client.take()
    assert first.pid != second.pid
    assert not (first.dup)
    assert not (second.dup)
    client.send(w.ack(w.PUBACK, second.pid))
    client.nothing()
    scene.lose(client)
    client = scene.keep(version, client.client_id)
    assert [(got.payload, got.pid) for got in client.messages()] == [(b"a", first.pid)]
    client.nothing()
    scene.lose(client)
    scene.keep(version, client.client_id).nothing()


@states(
    "QoS 1, receiver: a PUBACK with the PUBLISH's identifier, after which that is a new message's.",
    v311="4.3.2-2",
)
def test_qos_1_receiving(scene, version):
    receiving_at_qos_1(scene, version, dup=False)
    receiving_at_qos_1(scene, version, dup=True)


@states("QoS 1, receiver: a PUBACK with the PUBLISH's identifier.", v5="4.3.2-4")
def test_qos_1_is_acknowledged(scene, version):
    client = scene.connect(version)
    client.send(*[w.publish(version, scene.topic(), b"x", 1, pid) for pid in (7, 3, 65_535)])
    assert [client.expect(w.PUBACK).pid for _ in range(3)] == [7, 3, 65_535]


@states(
    "QoS 1, receiver: after PUBACK the identifier is a new message's, DUP or not.", v5="4.3.2-5"
)
def test_qos_1_identifiers_may_be_used_again(scene, version):
    receiving_at_qos_1(scene, version, dup=False)
    receiving_at_qos_1(scene, version, dup=True)


def receiving_at_qos_1(scene, version, *, dup):
    topic = scene.topic("again", str(dup))
    listener = scene.listen(version, topic)
    client = scene.connect(version)
    for payload in (b"1", b"2"):
        client.send(w.publish(version, topic, payload, 1, 5, dup=dup))
        assert client.expect(w.PUBACK).pid == 5
    assert listener.payloads() == [b"1", b"2"]


@states(
    "QoS 2, sender: one identifier from PUBLISH to PUBREL to PUBCOMP; each of the first two is "
    "repeated until its answer, and the PUBLISH not after the PUBREL.",
    v311="4.3.3-1",
)
def test_qos_2_sending(scene, version):
    topic = scene.topic()
    client = listener_2(scene, version, topic)
    scene.connect(version).publish(topic, b"x", 2)
    first = client.take()
    assert (first.qos, first.dup) == (2, False)
    scene.lose(client)
    client = scene.keep(version, client.client_id)
    again = client.take()
    assert (again.pid, again.dup) == (first.pid, True)
    client.send(w.ack(w.PUBREC, first.pid))
    assert client.expect(w.PUBREL).pid == first.pid
    scene.lose(client)
    client = scene.keep(version, client.client_id)
    assert [(got.kind, got.pid) for got in client.rest()] == [(w.PUBREL, first.pid)]
    client.send(w.ack(w.PUBCOMP, first.pid))
    scene.lose(client)
    scene.keep(version, client.client_id).nothing()


@states("QoS 2, sender: each message has an identifier that is not in use.", v5="4.3.3-1")
def test_qos_2_identifiers(scene, version):
    topic = scene.topic()
    client = listener_2(scene, version, topic)
    sender = sender_2(scene, version)
    for _ in range(5):
        sender.publish(topic, b"x", 2)
    pids = [got.pid for got in client.rest()]
    assert len(set(pids)) == 5
    client.send(w.ack(w.PUBREC, pids[0]))
    client.expect(w.PUBREL)  # not complete: still in use
    for _ in range(5):
        sender.publish(topic, b"x", 2)
    assert not {got.pid for got in client.rest()} & set(pids)


@states("QoS 2, sender: a new message goes out at QoS 2 without DUP.", v5="4.3.3-2")
def test_qos_2_is_sent_without_dup(scene, version):
    topic = scene.topic()
    client = listener_2(scene, version, topic)
    sender_2(scene, version).publish(topic, b"x", 2)
    got = client.take()
    assert (got.qos, got.dup) == (2, False)


@states("QoS 2, sender: a message is unfinished until its PUBREC.", v5="4.3.3-3")
def test_qos_2_is_unfinished_until_pubrec(scene, version):
    topic = scene.topic()
    client = listener_2(scene, version, topic)
    sender_2(scene, version).publish(topic, b"x", 2)
    first = client.take()
    scene.lose(client)
    again = scene.keep(version, client.client_id).take()
    assert (again.pid, again.dup, again.payload) == (first.pid, True, b"x")


@states("QoS 2, sender: a good PUBREC is answered by PUBREL with the identifier.", v5="4.3.3-4")
def test_qos_2_pubrec_is_answered_by_pubrel(scene, version):
    topic = scene.topic()
    client = listener_2(scene, version, topic)
    sender_2(scene, version).publish(topic, b"x", 2)
    pid = client.take().pid
    client.send(w.ack(w.PUBREC, pid, 0))
    got = client.expect(w.PUBREL)
    assert (got.pid, got.code) == (pid, 0)


@states("QoS 2, sender: a PUBREL is unfinished until its PUBCOMP.", v5="4.3.3-5")
def test_qos_2_pubrel_is_repeated(scene, version):
    client, pid = released(scene, version)
    assert [(got.kind, got.pid) for got in client.rest()] == [(w.PUBREL, pid)]
    client.send(w.ack(w.PUBCOMP, pid))
    client.nothing()
    scene.lose(client)
    scene.keep(version, client.client_id).nothing()


@states("QoS 2, sender: a PUBLISH is not repeated after its PUBREL.", v5="4.3.3-6")
def test_qos_2_publish_is_not_repeated_after_pubrel(scene, version):
    client, _ = released(scene, version)
    assert w.PUBLISH not in [got.kind for got in client.rest()]


def released(scene, version):
    """A client that is back after the PUBREL of a message to it was lost, and its identifier."""
    topic = scene.topic()
    client = listener_2(scene, version, topic)
    sender_2(scene, version).publish(topic, b"x", 2)
    pid = client.take().pid
    client.send(w.ack(w.PUBREC, pid))
    client.expect(w.PUBREL)
    scene.lose(client)
    return scene.keep(version, client.client_id), pid


@states("QoS 2, sender: what was sent does not expire any more.", v5="4.3.3-7")
def test_qos_2_does_not_expire_on_its_way(scene, version):
    topic = scene.topic()
    client = listener_2(scene, version, topic)
    sender_2(scene, version).publish(topic, b"x", 2, props=[(w.MESSAGE_EXPIRY, 1)])
    first = client.take()
    scene.lose(client)
    scene.pass_time(2)
    client = scene.keep(version, client.client_id)
    assert client.take().pid == first.pid
    client.send(w.ack(w.PUBREC, first.pid))
    assert client.expect(w.PUBREL).pid == first.pid


@states(
    "QoS 2, receiver: PUBREC, and PUBCOMP after PUBREL; until then the identifier is the same "
    "message's, which goes on once, and after it a new one's.",
    v311="4.3.3-2",
)
def test_qos_2_receiving(scene, version):
    receiving_at_qos_2(scene, version)


def receiving_at_qos_2(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic)
    client = sender_2(scene, version)
    for dup in (False, True, False):
        client.send(w.publish(version, topic, b"once", 2, 5, dup=dup))
        assert client.expect(w.PUBREC).pid == 5
    scene.lose(client)
    client = sender_2(scene, version, client.client_id)
    client.send(w.publish(version, topic, b"once", 2, 5, dup=True))
    assert client.expect(w.PUBREC).pid == 5
    for _ in range(2):
        client.send(w.ack(w.PUBREL, 5))
        assert client.expect(w.PUBCOMP).pid == 5
    client.send(w.publish(version, topic, b"new", 2, 5))
    assert client.expect(w.PUBREC).pid == 5
    client.send(w.ack(w.PUBREL, 5))
    assert client.expect(w.PUBCOMP).pid == 5
    assert listener.payloads() == [b"once", b"new"]


@states("QoS 2, receiver: a PUBREC with the PUBLISH's identifier.", v5="4.3.3-8")
def test_qos_2_is_answered_by_pubrec(scene, version):
    client = sender_2(scene, version)
    client.send(*[w.publish(version, scene.topic(), b"x", 2, pid) for pid in (7, 3, 65_535)])
    assert [client.expect(w.PUBREC).pid for _ in range(3)] == [7, 3, 65_535]


@states(
    "QoS 2, receiver: after a PUBREC that refuses, the identifier is a new message's.", v5="4.3.3-9"
)
def test_qos_2_after_a_refusal_the_identifier_is_free(scene, version):
    """Not every server refuses a message by PUBREC: then the first goes on as any other."""
    client = sender_2(scene, version)
    listener = scene.listen(version, scene.topic())
    client.send(w.publish(version, f"$SYS/{scene.name}", b"x", 2, 5))
    got = client.expect(w.PUBREC)
    if got.code < 0x80:
        client.send(w.ack(w.PUBREL, 5))
        client.expect(w.PUBCOMP)
    client.send(w.publish(version, scene.topic(), b"new", 2, 5))
    assert client.expect(w.PUBREC).code == 0
    client.send(w.ack(w.PUBREL, 5))
    assert client.expect(w.PUBCOMP).code == 0
    assert listener.payloads() == [b"new"]


@states(
    "QoS 2, receiver: until PUBREL the same identifier gets PUBREC again, and nothing goes on "
    "twice.",
    v5="4.3.3-10",
)
def test_qos_2_goes_on_once(scene, version):
    receiving_at_qos_2(scene, version)


@states("QoS 2, receiver: PUBREL is answered by PUBCOMP with its identifier.", v5="4.3.3-11")
def test_qos_2_pubrel_is_answered_by_pubcomp(scene, version):
    client = sender_2(scene, version)
    for pid in (9, 65_535):
        client.send(w.publish(version, scene.topic(), b"x", 2, pid))
        client.expect(w.PUBREC)
        client.send(w.ack(w.PUBREL, pid))
        assert client.expect(w.PUBCOMP).pid == pid


@states("QoS 2, receiver: after PUBCOMP the identifier is a new message's.", v5="4.3.3-12")
def test_qos_2_after_pubcomp_the_identifier_is_free(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic)
    client = sender_2(scene, version)
    for payload in (b"1", b"2"):
        client.send(w.publish(version, topic, payload, 2, 5, dup=payload == b"2"))
        assert client.expect(w.PUBREC).code == 0
        client.send(w.ack(w.PUBREL, 5))
        client.expect(w.PUBCOMP)
    assert listener.payloads() == [b"1", b"2"]


@states("QoS 2, receiver: the answers go on though the message has expired.", v5="4.3.3-13")
def test_qos_2_answers_go_on_after_expiry(scene, version):
    client = sender_2(scene, version)
    client.send(w.publish(version, scene.topic(), b"x", 2, 5, props=[(w.MESSAGE_EXPIRY, 1)]))
    client.expect(w.PUBREC)
    scene.pass_time(2)
    client.send(w.ack(w.PUBREL, 5))
    got = client.expect(w.PUBCOMP)
    assert (got.pid, got.code) == (5, 0)


@states(
    "A client that is back in its session gets what it did not acknowledge, under the same "
    "identifier, and nothing is repeated at any other time.",
    v311="4.4.0-1",
    v5="4.4.0-1",
)
def test_unacknowledged_messages_are_repeated(scene, version):
    topic = scene.topic()
    client = scene.keep(version)
    scene.subscribe(client, topic, qos=1)
    sender = scene.connect(version)
    for number in range(5):
        sender.publish(topic, b"%d" % number, 1)
    first = client.rest()
    client.send(w.ack(w.PUBACK, first[1].pid))
    scene.pass_time(60 if scene.peer.turns_time else 0)
    client.nothing()
    scene.lose(client)
    again = scene.keep(version, client.client_id).rest()
    expected = [(got.pid, got.payload) for at, got in enumerate(first) if at != 1]
    assert [(got.pid, got.payload) for got in again] == expected
    assert all(got.dup for got in again)


@states("A message that its receiver refused by a code is not repeated.", v5="4.4.0-2")
def test_a_refused_message_is_not_repeated(scene, version):
    topic = scene.topic()
    client = scene.keep(version)
    scene.subscribe(client, topic, qos=1)
    scene.connect(version).publish(topic, b"x", 1)
    client.send(w.ack(w.PUBACK, client.take().pid, 0x83))
    client.nothing()
    scene.lose(client)
    scene.keep(version, client.client_id).nothing()

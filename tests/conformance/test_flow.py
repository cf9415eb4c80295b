"""Pings, DISCONNECT, AUTH, shared subscriptions, quota and faults: 3.12 to 3.15, 4.8 to 4.13."""

from itertools import chain

from tests.conformance import wire as w
from tests.conformance.statements import states


@states("A PINGREQ is answered by PINGRESP.", v311="3.12.4-1", v5="3.12.4-1")
def test_pings_are_answered(scene, version):
    client = scene.connect(version)
    client.send(w.packet(w.PINGREQ) * 3 + w.subscribe(version, 1, [(scene.topic(), 0)]))
    assert [client.next().kind for _ in range(4)] == [w.PINGRESP] * 3 + [w.SUBACK]


@states("The server sends no DISCONNECT before a CONNACK that accepts.", v5="3.14.0-1")
def test_no_disconnect_before_a_good_connack(scene, version):
    for first in (b"\x00\x00", w.packet(w.PINGREQ), w.packet(w.CONNECT, b"\x00")):
        said = scene.socket(version).send(first).ended()
        assert w.DISCONNECT not in [got.kind for got in said]
    said = scene.greet(version, props=[(w.AUTH_METHOD, "none")]).ended()
    assert [got.kind for got in said] == [w.CONNACK]
    login = w.Login(version, scene.client_id(), props=((w.SESSION_EXPIRY, 60),)).encode()
    said = scene.socket(version).send(login + b"\x00\x00").ended()  # in one breath
    assert [got.kind for got in said] in ([], [w.CONNACK], [w.CONNACK, w.DISCONNECT])


@states("The flags of DISCONNECT are 0; others are malformed.", v311="3.14.1-1", v5="3.14.1-1")
def test_the_flags_of_disconnect(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic)
    for flags in (1, 2, 8):
        client = scene.connect(version, will=w.Will(topic, b"x"))
        client.send(w.packet(w.DISCONNECT, flags=flags))
        client.refused(0x81)
    assert listener.payloads() == [b"x"] * 3  # it was no DISCONNECT


@states("A DISCONNECT has one of the listed reason codes.", v5="3.14.2-1")
def test_disconnect_codes_are_listed(scene, version):
    for bad in (b"\x00\x00", w.subscribe(version, 1, []), w.packet(w.CONNACK, b"\0\0\0")):
        client = scene.connect(version)
        client.send(bad)
        code = client.refused()
        assert code is None or code in {*range(0x80, 0x84), 0x87, 0x89, 0x8B, *range(0x8D, 0xA3)}
    client = scene.connect(version)
    client.send(w.disconnect(0x42))  # and the client's are checked
    client.refused(0x81, 0x82)


@states("The server's DISCONNECT bears no session expiry.", v5="3.14.2-2")
def test_the_servers_disconnect_bears_no_session_expiry(scene, version):
    client = scene.keep(version)
    scene.keep(version, client.client_id)
    said = client.ended()
    assert [got.of(w.SESSION_EXPIRY) for got in said] == [None] * len(said)


@states("After a client's DISCONNECT its connection is closed.", v311="3.14.4-1", v5="3.14.4-2")
def test_disconnect_ends_the_connection(scene, version):
    client = scene.connect(version)
    client.send(w.disconnect())
    assert client.ended() == []
    if version == w.V5:  # and the server closes after its own
        client = scene.connect(version)
        client.send(b"\x00\x00")
        assert [got.kind for got in client.ended()] in ([], [w.DISCONNECT])


@states("Nothing after a DISCONNECT counts.", v311="3.14.4-2", v5="3.14.4-1")
def test_nothing_after_disconnect_counts(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic)
    client = scene.connect(version)
    client.send(w.disconnect() + w.publish(version, topic, b"x") + w.packet(w.PINGREQ))
    assert client.ended() == []
    listener.nothing()
    if version == w.V5:  # neither does the server say anything after its own
        client = scene.connect(version)
        client.send(b"\x00\x00" + w.packet(w.PINGREQ) + w.publish(version, topic, b"x", 1, 1))
        assert len(client.ended()) <= 1
        listener.nothing()


@states("The flags of AUTH are 0; others close the connection.", v5="3.15.1-1")
def test_the_flags_of_auth(scene, version):
    for flags in (1, 2, 8):
        client = scene.connect(version)
        client.send(w.packet(w.AUTH, flags=flags))
        client.refused(0x81, 0x82)


# --- shared subscriptions ---------------------------------------------------------------------


def refuse_shares(scene, version, filters):
    """A refusal is a code of 0x80 or more, or the end of the connection."""
    for bad in filters:
        client = scene.connect(version)
        client.send(w.subscribe(version, 1, [(bad, 1)]), w.disconnect())
        said = client.ended()
        assert len(said) <= 1
        for got in said:
            assert got.code >= 0x80 if got.kind == w.DISCONNECT else got.codes[0] >= 0x80, bad


@states("A shared filter begins with `$share/` and a name of one character or more.", v5="4.8.2-1")
def test_a_share_has_a_name(scene, version):
    refuse_shares(scene, version, ["$share//a", "$share//"])
    topic = scene.topic()
    clients = [scene.listen(version, f"$share/g/{topic}", qos=1) for _ in range(2)]
    sender = scene.connect(version)
    for number in range(6):
        sender.publish(topic, b"%d" % number, 1)
    got = [client.payloads() for client in clients]
    assert sorted(chain(*got)) == [b"%d" % number for number in range(6)]


@states("The name holds no `/`, `+` or `#`, and a `/` with a filter follows.", v5="4.8.2-2")
def test_a_share_has_a_filter(scene, version):
    refuse_shares(scene, version, ["$share/g", "$share/g/", "$share/g+/a", "$share/#/a"])


@states("Of a shared subscription too, the QoS granted holds.", v5="4.8.2-3")
def test_a_share_respects_the_granted_qos(scene, version):
    topic = scene.topic()
    loose = scene.listen(version, f"$share/loose/{topic}", qos=0)
    firm = scene.listen(version, f"$share/firm/{topic}", qos=1)
    sender = scene.connect(version)
    sender.publish(topic, b"1", 1)
    sender.publish(topic, b"0", 0)
    sender.ping()
    assert [got.qos for got in loose.messages()] == [0, 0]
    assert [got.qos for got in firm.messages()] == [1, 0]


def sharing_2(scene, version):
    """A member with an unfinished QoS 2 message, another, the message, and their filter."""
    topic = scene.topic()
    shared = f"$share/g/{topic}"
    sender = scene.connect(version)
    members = [scene.keep(version) for _ in range(2)]
    for member in members:
        scene.subscribe(member, shared, qos=2)
    scene.needs_qos_2(sender)
    sender.publish(topic, b"x", 2)
    said = [member.rest() for member in members]
    assert sorted(map(len, said)) == [0, 1]
    chosen = 0 if said[0] else 1
    return members[chosen], members[1 - chosen], said[chosen][0]


@states("A QoS 2 message to a member that goes is completed when it is back.", v5="4.8.2-4")
def test_a_share_completes_qos_2(scene, version):
    chosen, other, first = sharing_2(scene, version)
    scene.lose(chosen)
    other.nothing()
    again = scene.keep(version, chosen.client_id).take()
    assert (again.pid, again.payload, again.dup) == (first.pid, b"x", True)


@states("Where its session ends instead, no other member gets the message.", v5="4.8.2-5")
def test_a_share_does_not_pass_qos_2_on(scene, version):
    chosen, other, _ = sharing_2(scene, version)
    scene.lose(chosen)
    scene.connect(version, chosen.client_id, clean=True)
    other.nothing()


@states("A message that a member refuses by a code goes to no other.", v5="4.8.2-6")
def test_a_share_does_not_pass_on_what_was_refused(scene, version):
    topic = scene.topic()
    members = [scene.listen(version, f"$share/g/{topic}", qos=1) for _ in range(2)]
    scene.connect(version).publish(topic, b"x", 1)
    said = [member.rest() for member in members]
    assert sorted(map(len, said)) == [0, 1]
    chosen = 0 if said[0] else 1
    members[chosen].send(w.ack(w.PUBACK, said[chosen][0].pid, 0x80))
    members[chosen].nothing()
    members[1 - chosen].nothing()
    scene.lose(members[chosen])
    members[1 - chosen].nothing()


# --- the send quota ---------------------------------------------------------------------------


@states("The first send quota is above 0 and not above the receive maximum.", v5="4.9.0-1")
def test_the_first_send_quota(scene, version):
    topic = scene.topic()
    for most in (1, 3):
        client = scene.connect(version, props=[(w.RECEIVE_MAX, most)])
        scene.subscribe(client, topic, qos=1)
        sender = scene.connect(version)
        for _ in range(5):
            sender.publish(topic, b"x", 1)
        assert 1 <= len(client.rest()) <= most


@states("At a quota of 0 nothing above QoS 0 is sent; an acknowledgement gives some.", v5="4.9.0-2")
def test_the_quota_is_given_back(scene, version):
    topic = scene.topic()
    client = scene.connect(version, props=[(w.RECEIVE_MAX, 1)])
    scene.subscribe(client, topic, qos=1)
    sender = scene.connect(version)
    for number in range(4):
        sender.publish(topic, b"%d" % number, 1)
    for number in range(4):
        (got,) = client.rest()
        assert got.payload == b"%d" % number
        client.send(w.ack(w.PUBACK, got.pid))
    client.nothing()


@states("At a quota of 0 all other packets are still processed.", v5="4.9.0-3")
def test_others_are_processed_without_a_quota(scene, version):
    topic = scene.topic()
    client = scene.connect(version, props=[(w.RECEIVE_MAX, 1)])
    scene.subscribe(client, topic, qos=1)
    sender = scene.connect(version)
    sender.publish(topic, b"one", 1)
    sender.publish(topic, b"two", 1)
    client.take()
    client.ping()
    assert client.subscribe(scene.topic("b"), qos=1) == [1]
    assert client.unsubscribe(scene.topic("b")) == [0]
    assert client.publish(scene.topic("c"), b"x", 1).kind == w.PUBACK


# --- authentication and faults ----------------------------------------------------------------


@states("An authentication method that is not known closes the connection.", v5="4.12.0-1")
def test_an_unknown_method_is_refused(scene, version):
    said = scene.greet(version, props=[(w.AUTH_METHOD, "no-such-method")]).ended()
    assert [got.kind for got in said] in ([], [w.CONNACK])
    assert all(got.code in {0x8C, 0x87} for got in said)


@states(
    "Without a method in CONNECT, the server sends neither AUTH nor a method in CONNACK.",
    v5="4.12.0-6",
)
def test_no_auth_unasked(scene, version):
    client = scene.connect(version)
    assert client.connack.of(w.AUTH_METHOD) is None
    client.nothing()


@states("Without a method in CONNECT, an AUTH of the client's is a fault.", v5="4.12.0-7")
def test_an_unasked_auth_closes(scene, version):
    for code in (0x18, 0x19):
        client = scene.connect(version)
        props = w.properties([(w.AUTH_METHOD, "m")])
        client.send(w.packet(w.AUTH, bytes((code,)) + props))
        client.refused(0x82, 0x8C)


FAULTS = {
    "a reserved packet type": b"\x00\x00",
    "a length of five bytes": b"\x30\xff\xff\xff\xff\x01",
    "a packet that only servers send": b"\xd0\x00",
    "a field beyond the packet's end": b"\x82\x03\x00\x01\x00",
}


@states("A fault closes the connection on which it came.", v311="4.8.0-1", v5="4.13.1-1")
def test_a_fault_closes_its_connection(scene, version):
    good = scene.connect(version)
    for fault in FAULTS.values():
        client = scene.connect(version)
        client.send(fault)
        client.refused(0x81, 0x82)
    good.ping()


@states(
    "What cannot be taken in for want of room closes its connection, and no other.", v311="4.8.0-2"
)
def test_want_of_room_closes_the_connection(scene, version):
    """A packet of the greatest length that MQTT can say has no room here."""
    if not scene.peer.bounded:
        scene.not_spoken("it takes whatever comes")
    good = scene.connect(version)
    client = scene.connect(version)
    client.send(bytes((w.PUBLISH << 4,)) + w.varint(268_435_455))
    assert client.ended() == []
    good.ping()


@states(
    "A reason code of 0x80 or more in CONNACK or DISCONNECT ends with the connection closed.",
    v5="4.13.2-1",
)
def test_a_refusing_code_closes(scene, version):
    client = scene.connect(version)
    client.send(FAULTS["a reserved packet type"])
    assert [got.code >= 0x80 for got in client.ended()] in ([], [True])
    said = scene.greet(version, props=[(w.AUTH_METHOD, "none")]).ended()
    assert [(got.kind, got.code >= 0x80) for got in said] in ([], [(w.CONNACK, True)])


# --- the client's maximum packet size ---------------------------------------------------------


@states("The server sends nothing larger than the client's maximum packet size.", v5="3.1.2-24")
def test_the_clients_maximum_packet_size_holds(scene, version):
    topic = scene.topic()
    client = scene.connect(version, props=[(w.MAX_PACKET, 100)])
    client.subscribe(topic)
    sender = scene.connect(version)
    for size in range(60, 140):
        sender.publish(topic, b"x" * size, 1)
    got = client.messages()
    assert all(one.size <= 100 for one in got)
    assert max(one.size for one in got) == 100


@states("What is too large for a client is dropped as if it had been delivered.", v5="3.1.2-25")
def test_what_is_too_large_counts_as_delivered(scene, version):
    topic = scene.topic()
    client = scene.connect(version, props=[(w.MAX_PACKET, 100), (w.RECEIVE_MAX, 1)])
    scene.subscribe(client, topic, qos=1)
    sender = scene.connect(version)
    for payload in (b"1", b"x" * 200, b"2"):
        assert sender.publish(topic, payload, 1).code == 0
    first = client.take()
    client.nothing()
    client.finish(first)
    assert first.payload == b"1"
    assert client.payloads() == [b"2"]


def answer_fits(scene, version, kind, ask):
    """The answer to a packet stays within the client's maximum, whatever it might have to add."""
    for most in (40, 200):
        client = scene.connect(version, "c" * 5 + scene.client_id(), props=[(w.MAX_PACKET, most)])
        client.send(ask)
        got = client.expect(kind)
        assert got.size <= most
        client.disconnect()


@states("A reason string is left out where PUBACK would grow too large.", v5="3.4.2-2")
def test_puback_fits(scene, version):
    answer_fits(scene, version, w.PUBACK, w.publish(version, scene.topic(), b"x", 1, 1))


@states("A reason string is left out where SUBACK would grow too large.", v5="3.9.2-1")
def test_suback_fits(scene, version):
    answer_fits(scene, version, w.SUBACK, w.subscribe(version, 1, [(scene.topic(), 0)]))


@states("A reason string is left out where UNSUBACK would grow too large.", v5="3.11.2-1")
def test_unsuback_fits(scene, version):
    answer_fits(scene, version, w.UNSUBACK, w.unsubscribe(version, 1, [scene.topic()]))


@states("A reason string is left out where DISCONNECT would grow too large.", v5="3.14.2-3")
def test_disconnect_fits(scene, version):
    client = scene.connect(version, props=[(w.MAX_PACKET, 40)])
    client.send(b"\x00\x00")
    assert all(got.size <= 40 for got in client.ended())


@states("The server's topic aliases are not above the client's maximum.", v5="3.1.2-26")
def test_the_clients_alias_maximum_holds(scene, version):
    topic = scene.topic()
    client = scene.connect(version, props=[(w.ALIAS_MAX, 1)])
    client.subscribe(f"{topic}/#")
    sender = scene.connect(version)
    for name in "abab":
        sender.publish(f"{topic}/{name}", b"x", 1)
    names = {}
    topics = []
    for got in client.messages():
        alias = got.of(w.ALIAS)
        assert alias in {None, 1}
        if alias is not None and got.topic:
            names[alias] = got.topic
        topics.append(got.topic or names[alias])
    assert topics == [f"{topic}/{name}" for name in "abab"]


@states("Without that maximum, or with 0, the server sends no topic alias.", v5="3.1.2-27")
def test_no_aliases_unasked(scene, version):
    topic = scene.topic()
    sender = scene.connect(version)
    for props in ((), ((w.ALIAS_MAX, 0),)):
        client = scene.connect(version, props=props)
        client.subscribe(topic)
        for _ in range(3):
            sender.publish(topic, b"x", 1)
        assert [(got.topic, got.of(w.ALIAS)) for got in client.messages()] == [(topic, None)] * 3

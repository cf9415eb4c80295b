"""Texts, numbers, fixed headers and packet identifiers: chapters 1 and 2 of both standards."""

import pytest

from tests.conformance import wire as w
from tests.conformance.clients import ClosedError
from tests.conformance.statements import states

SURROGATE = b"\xed\xa0\x80"  # U+D800 as UTF-8 would write it


@states(
    "A text that is not well-formed UTF-8, a surrogate half among them, closes the connection.",
    v311="1.4.0-1",
    v5="1.5.4-1",
)
def test_ill_formed_text_closes(scene, version):
    for bad in (SURROGATE, b"\xff", b"\xc0\xaf", b"\xf5\x80\x80\x80"):
        client = scene.connect(version)
        client.send(w.publish(version, scene.topic().encode() + bad))
        client.refused(0x81, 0x90)


@states("A text that holds U+0000 closes the connection.", v311="1.4.0-2", v5="1.5.4-2")
def test_nul_in_a_text_closes(scene, version):
    client = scene.connect(version)
    client.send(w.publish(version, scene.topic() + "a\0b"))
    client.refused(0x81, 0x90)


@states(
    "The bytes EF BB BF are the character U+FEFF wherever they stand, and are kept.",
    v311="1.4.0-3",
    v5="1.5.4-3",
)
def test_a_byte_order_mark_is_kept(scene, version):
    marked = "\ufeff" + scene.topic("\ufeffa")
    listener = scene.listen(version, marked)
    plain = scene.listen(version, scene.topic("a"))
    scene.connect(version).publish(marked, b"x", qos=1)
    assert [got.topic for got in listener.messages()] == [marked]
    plain.nothing()


@states("A variable byte integer is written in as few bytes as it needs.", v5="1.5.5-1")
def test_a_number_longer_than_needed_is_refused(scene, version):
    client = scene.connect(version)
    body = w.binary(scene.topic()) + b"\x80\x00" + b"payload"  # a property length of 0 in two bytes
    client.send(w.packet(w.PUBLISH, body))
    client.refused(0x81)


@states("Both texts of a user property are well-formed.", v5="1.5.7-1")
def test_both_texts_of_a_pair_are_checked(scene, version):
    for pair in ((b"\xff", b"v"), (b"k", b"\xff"), (b"k", b"a\0b")):
        client = scene.connect(version)
        client.send(w.publish(version, scene.topic(), props=[(w.USER, pair)]))
        client.refused(0x81)


@states("Reserved flags of a fixed header have the value that is fixed for them.", v311="2.2.2-1")
def test_the_server_sets_reserved_flags_as_fixed(scene, version):
    """`wire.read` refuses any other value: here is one packet of each kind that a server sends."""
    client = scene.connect(version)
    kinds = {client.connack.kind}
    client.send(
        w.subscribe(version, 1, [(scene.topic(), 1)]),
        w.publish(version, scene.topic(), b"x", 1, 2),
        w.packet(w.PINGREQ),
        w.unsubscribe(version, 3, [scene.topic()]),
    )
    while w.UNSUBACK not in kinds:
        kinds.add(client.next().kind)
    assert kinds == {w.CONNACK, w.SUBACK, w.PUBLISH, w.PUBACK, w.PINGRESP, w.UNSUBACK}


def bad_flags(version):
    """Packets that would be good but for the reserved flags of their first byte."""
    props = w.held(version, ())
    bodies = {
        w.PUBACK: w.u16(1),
        w.PUBREC: w.u16(1),
        w.PUBREL: w.u16(1),
        w.PUBCOMP: w.u16(1),
        w.SUBSCRIBE: w.u16(1) + props + w.binary("a") + b"\0",
        w.UNSUBSCRIBE: w.u16(1) + props + w.binary("a"),
        w.PINGREQ: b"",
        w.DISCONNECT: b"",
    }
    for kind, body in bodies.items():
        yield w.packet(kind, body, 0 if kind in w.FLAGS else 2)


@states(
    "Whoever gets reserved flags of another value closes the connection.",
    v311="2.2.2-2",
    v5="2.1.3-1",
)
def test_other_reserved_flags_close(scene, version):
    for bad in bad_flags(version):
        client = scene.connect(version)
        client.send(bad)
        client.refused(0x81)


@states(
    "SUBSCRIBE, UNSUBSCRIBE and a PUBLISH above QoS 0 bear a packet identifier that is not 0.",
    v311="2.3.1-1",
    v5="2.2.1-3",
)
def test_packet_identifier_0_closes(scene, version):
    topic = scene.topic()
    for bad in (
        w.subscribe(version, 0, [(topic, 0)]),
        w.unsubscribe(version, 0, [topic]),
        w.publish(version, topic, b"x", 1, 0),
    ):
        client = scene.connect(version)
        client.send(bad)
        client.refused(0x81, 0x82)


@states(
    "Each new PUBLISH of the server's above QoS 0 has an identifier that is not in use.",
    v311="2.3.1-4",
    v5="2.2.1-4",
)
def test_identifiers_in_flight_differ(scene, version):
    listener = scene.listen(version, scene.topic(), qos=1)
    sender = scene.connect(version)
    for number in range(20):
        sender.publish(scene.topic(), b"%d" % number, qos=1)
    pids = [got.pid for got in listener.rest()]
    assert 0 not in pids
    assert len(set(pids)) == len(pids) == 20


@states("A PUBLISH at QoS 0 has no packet identifier.", v311="2.3.1-5", v5="2.2.1-2")
def test_qos_0_has_no_identifier(scene, version):
    listener = scene.listen(version, scene.topic(), qos=1)
    sender = scene.connect(version)
    sender.send(w.publish(version, scene.topic(), b"\x00\x01payload"))
    sender.ping()
    (got,) = listener.messages()
    assert (got.qos, got.payload) == (0, b"\x00\x01payload")


@states(
    "PUBACK, PUBREC and PUBCOMP bear the identifier of the PUBLISH.",
    v311="2.3.1-6",
    v5="2.2.1-5",
)
def test_acknowledgements_bear_the_publishs_identifier(scene, version):
    client = scene.connect(version)
    for pid in (1, 77, 65_535):
        client.send(w.publish(version, scene.topic(), b"x", 1, pid))
        assert client.expect(w.PUBACK).pid == pid
        scene.needs_qos_2(client)
        client.send(w.publish(version, scene.topic(), b"x", 2, pid))
        assert client.expect(w.PUBREC).pid == pid
        client.send(w.ack(w.PUBREL, pid))
        assert client.expect(w.PUBCOMP).pid == pid


@states(
    "SUBACK and UNSUBACK bear the identifier of the packet that they answer.",
    v311="2.3.1-7",
    v5="2.2.1-6",
)
def test_answers_bear_the_requests_identifier(scene, version):
    client = scene.connect(version)
    for pid in (1, 300, 65_535):
        client.send(w.subscribe(version, pid, [(scene.topic(), 0)]))
        assert client.expect(w.SUBACK).pid == pid
        client.send(w.unsubscribe(version, pid, [scene.topic()]))
        assert client.expect(w.UNSUBACK).pid == pid


@states(
    "A packet without properties says so with a property length of 0; without the length it is "
    "malformed.",
    v5="2.2.2-1",
)
def test_the_length_of_no_properties_is_0(scene, version):
    """The server is read strictly; a SUBSCRIBE without that length is no SUBSCRIBE."""
    listener = scene.listen(version, scene.topic())
    scene.connect(version).publish(scene.topic(), b"x", qos=1)
    (got,) = listener.messages()
    assert got.props == []
    assert got.payload == b"x"
    client = scene.connect(version)
    client.send(w.packet(w.SUBSCRIBE, w.u16(1)))
    client.refused(0x81, 0x82)


def test_a_client_of_these_tests_sees_when_it_is_closed(scene):
    client = scene.connect(w.V5)
    client.send(b"\x00\x00")
    client.ended()
    with pytest.raises(ClosedError):
        client.next()

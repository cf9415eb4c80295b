"""The codec: what is written is read back, however the bytes are split; faults are refused."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.decoder import Decoder, TopicNames, encode
from broker.mqtt.codec.properties import TABLE
from broker.mqtt.codec.reasons import ProtocolError, Reason
from broker.mqtt.codec.wire import varint
from broker.mqtt.limits import MqttLimits
from tests.broker.mqtt.packet_cases import packets
from tests.broker.mqtt.world import VERSIONS

LIMITS = MqttLimits()


def decoder(version=p.V5, limits=LIMITS):
    return Decoder(limits, TopicNames(limits), version)


def decode_all(one, chunks):
    """Every packet that comes out of the chunks."""
    found = []
    for chunk in chunks:
        got = one.decode(chunk)
        found += got
        while one.more:
            got = one.decode()
            found += got
    return found


def error_of(one, chunks):
    """The error that the chunks end in, if any; whatever else is raised fails the test."""
    try:
        decode_all(one, chunks)
    except ProtocolError as error:
        return error
    return None


def split(data, cuts):
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


@VERSIONS
@given(data=st.data())
def test_what_is_encoded_decodes_to_the_same_packet(version, data):
    packet = data.draw(packets(version))
    assert decode_all(decoder(version), [encode(packet, version)]) == [packet]


@VERSIONS
@given(data=st.data())
def test_packets_come_out_alike_however_their_bytes_are_split(version, data):
    sent = data.draw(st.lists(packets(version), min_size=1, max_size=5))
    stream = b"".join(encode(packet, version) for packet in sent)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8))
    assert decode_all(decoder(version), split(stream, cuts)) == sent
    assert decode_all(decoder(version), [bytes((byte,)) for byte in stream]) == sent


@VERSIONS
@given(data=st.data())
def test_a_changed_byte_gives_packets_or_a_protocol_error_and_nothing_else(version, data):
    packet = encode(data.draw(packets(version)), version)
    at = data.draw(st.integers(0, len(packet) - 1))
    changed = packet[:at] + bytes((data.draw(st.integers(0, 255)),)) + packet[at + 1 :]
    error = error_of(decoder(version), [changed, packet])
    assert error is None or (error.reason >= Reason.UNSPECIFIED_ERROR and error.text)


@pytest.mark.parametrize("version", [0, p.V311, p.V5])
@given(chunks=st.lists(st.binary(max_size=200), max_size=10))
def test_random_bytes_give_packets_or_a_protocol_error_and_hold_little(version, chunks):
    one = decoder(version, MqttLimits(packet_bytes_max=300, connect_bytes_max=300))
    try:
        for chunk in chunks:
            decode_all(one, [chunk])
            assert len(one.held) <= 300
    except ProtocolError:
        pass


@VERSIONS
def test_a_packet_larger_than_allowed_is_refused_from_its_header_alone(version):
    one = decoder(version, MqttLimits(packet_bytes_max=1000))
    with pytest.raises(ProtocolError) as caught:
        one.decode(b"\x30" + varint(998))
    assert caught.value.reason is Reason.PACKET_TOO_LARGE
    assert len(one.held) <= 10
    assert decoder(version, MqttLimits(packet_bytes_max=1000)).decode(b"\x30" + varint(997)) == []


def test_a_stranger_may_send_less_than_a_client():
    one = decoder(0, MqttLimits(connect_bytes_max=100))
    with pytest.raises(ProtocolError, match="larger than 100 bytes"):
        one.decode(b"\x10" + varint(200))


def test_holding_a_large_packet_in_many_reads_costs_in_proportion_to_its_size():
    """No chunk is copied again for each that follows: only the whole packet is joined."""
    packet = encode(p.Publish("a", bytes(900_000)), p.V5)
    one = decoder()
    for at in range(0, len(packet) - 100, 100):
        assert one.decode(packet[at : at + 100]) == []
        assert len(one.held) <= len(packet)
    (found,) = one.decode(packet[len(one.held) :])
    assert found == p.Publish("a", bytes(900_000))
    assert len(one.held) == 0


@VERSIONS
def test_good_packets_before_a_faulty_one_are_given_first(version):
    good = encode(p.Publish("a", b"x"), version)
    one = decoder(version)
    assert one.decode(good + good + b"\x00\x00" + good) == [p.Publish("a", b"x")] * 2
    assert one.more
    with pytest.raises(ProtocolError):
        one.decode()


def test_decoding_stops_at_a_connect_so_that_the_version_is_known_for_what_follows():
    connect = p.Connect(p.V5, "c")
    publish = p.Publish("a", b"x", properties=p.Properties(content_type="t"))
    one = decoder(0)
    assert one.decode(encode(connect, p.V5) + encode(publish, p.V5)) == [connect]
    assert one.more
    assert one.version == p.V5
    assert one.decode() == [publish]
    assert not one.more


@pytest.mark.parametrize("first", [b"\x30\x03\x00\x01a", b"\xc0\x00", b"GET / HTTP/1.1", b"\x00"])
def test_the_first_packet_has_to_be_a_connect(first):
    """MQTT-3.1.0-1; refused before the packet is whole."""
    with pytest.raises(ProtocolError):
        decoder(0).decode(first)


NO_UTF8 = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"a\0b", b"\xf8\x88\x80\x80\x80"]


@VERSIONS
@pytest.mark.parametrize("raw", NO_UTF8)
def test_a_topic_that_is_not_strict_utf8_or_holds_nul_is_malformed(version, raw):
    """MQTT-1.5.4-1 and -2: overlong forms, surrogates and U+0000 are refused."""
    body = len(raw).to_bytes(2, "big") + raw + (b"\0" if version == p.V5 else b"")
    with pytest.raises(ProtocolError) as caught:
        decoder(version).decode(bytes((0x30, len(body))) + body)
    assert caught.value.reason is Reason.MALFORMED_PACKET


def test_a_byte_order_mark_is_kept_as_a_character():
    """MQTT-1.5.4-3."""
    topic = "\ufeffa"
    assert decoder().decode(encode(p.Publish(topic, b""), p.V5)) == [p.Publish(topic, b"")]


MALFORMED = {
    "type 0": b"\x00\x00",
    "PUBLISH with QoS 3": b"\x36\x05\x00\x01a\x00\x01",
    "PUBLISH of QoS 0 with DUP": b"\x38\x03\x00\x01a",
    "PUBLISH of QoS 1 with identifier 0": b"\x32\x05\x00\x01a\x00\x00",
    "PUBLISH with a topic past its end": b"\x30\x03\x00\x09a",
    "PUBLISH of QoS 1 without identifier": b"\x32\x03\x00\x01a",
    "PUBACK with flags": b"\x41\x02\x00\x01",
    "PUBACK too short": b"\x40\x01\x00",
    "PUBACK with identifier 0": b"\x40\x02\x00\x00",
    "PUBREL without its flags": b"\x60\x02\x00\x01",
    "SUBSCRIBE without its flags": b"\x80\x06\x00\x01\x00\x01a\x00",
    "SUBSCRIBE without filters": b"\x82\x02\x00\x01",
    "UNSUBSCRIBE without its flags": b"\xa0\x05\x00\x01\x00\x01a",
    "UNSUBSCRIBE without filters": b"\xa2\x02\x00\x01",
    "PINGREQ with flags": b"\xc1\x00",
    "PINGREQ with a body": b"\xc0\x01\x00",
    "DISCONNECT with flags": b"\xe1\x00",
    "AUTH": b"\xf0\x00",
    "remaining length of five bytes": b"\x30\x80\x80\x80\x80\x01",
    "remaining length longer than needed": b"\x30\x83\x00\x00\x01a",
    "DISCONNECT with a body": b"\xe0\x01\x00",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_311_packets_are_refused(name):
    """Reserved flags, lengths and identifiers: MQTT-2.2.2-1, -2, 2.3.1-1, 3.3.1-2, 3.3.1-4."""
    with pytest.raises(ProtocolError) as caught:
        decoder(p.V311).decode(MALFORMED[name])
    assert caught.value.reason in {Reason.MALFORMED_PACKET, Reason.PROTOCOL_ERROR}


def connect_311(flags, rest=b"", name=b"\0\x04MQTT", level=4):
    body = name + bytes((level, flags)) + b"\0\0" + b"\0\x01c" + rest
    return bytes((0x10, len(body))) + body


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (connect_311(0x01), Reason.MALFORMED_PACKET),
        (connect_311(0x08), Reason.MALFORMED_PACKET),
        (connect_311(0x20), Reason.MALFORMED_PACKET),
        (connect_311(0x1C, b"\0\x01t\0\0"), Reason.MALFORMED_PACKET),
        (connect_311(0x40, b"\0\x01p"), Reason.MALFORMED_PACKET),
        (connect_311(0x00, b"extra"), Reason.MALFORMED_PACKET),
        (connect_311(0x80), Reason.MALFORMED_PACKET),
        (connect_311(0x00, level=3), Reason.UNSUPPORTED_PROTOCOL_VERSION),
        (connect_311(0x00, level=6), Reason.UNSUPPORTED_PROTOCOL_VERSION),
        (connect_311(0x00, name=b"\0\x06MQIsdp", level=3), Reason.UNSUPPORTED_PROTOCOL_VERSION),
        (connect_311(0x00, name=b"\0\x04HTTP"), Reason.UNSUPPORTED_PROTOCOL_VERSION),
        (connect_311(0x04, b"\0\x01#\0\0"), Reason.TOPIC_NAME_INVALID),
    ],
)
def test_connects_that_contradict_themselves_are_refused(packet, reason):
    """MQTT-3.1.2-1 to -3, -11 to -15, -22."""
    with pytest.raises(ProtocolError) as caught:
        decoder(0).decode(packet)
    assert caught.value.reason is reason


PROPERTY_FAULTS = {
    "unknown": (b"\x7f\x00", Reason.MALFORMED_PACKET),
    "of another packet": (b"\x21\x00\x01", Reason.MALFORMED_PACKET),
    "twice": (b"\x01\x00\x01\x00", Reason.PROTOCOL_ERROR),
    "out of range": (b"\x01\x02", Reason.PROTOCOL_ERROR),
    "cut off": (b"\x02\x00", Reason.MALFORMED_PACKET),
    "alias 0": (b"\x23\x00\x00", Reason.TOPIC_ALIAS_INVALID),
    "subscription identifier 0": (b"\x0b\x00", Reason.PROTOCOL_ERROR),
    "response topic with a wildcard": (b"\x08\x00\x01#", Reason.TOPIC_NAME_INVALID),
    "text that is no UTF-8": (b"\x03\x00\x01\xff", Reason.MALFORMED_PACKET),
    "too many user properties": (b"\x26\x00\x00\x00\x00" * 65, Reason.PACKET_TOO_LARGE),
}


@pytest.mark.parametrize("name", PROPERTY_FAULTS)
def test_a_faulty_property_is_refused_with_its_reason(name):
    """MQTT 5, section 2.2.2.2 and 3.3.2.3."""
    block, reason = PROPERTY_FAULTS[name]
    body = b"\0\x01a" + varint(len(block)) + block
    with pytest.raises(ProtocolError) as caught:
        decoder().decode(b"\x30" + varint(len(body)) + body)
    assert caught.value.reason is reason


def test_properties_past_the_end_of_their_packet_are_malformed():
    with pytest.raises(ProtocolError):
        decoder().decode(b"\x30\x04\x00\x01a\x05" + bytes(20))


def test_a_second_subscription_identifier_is_a_protocol_error():
    """MQTT-3.8.2.1.2."""
    packet = p.Subscribe(1, (p.Filter("a"),), p.Properties(subscription_identifier=(1, 2)))
    with pytest.raises(ProtocolError):
        decoder().decode(encode(packet, p.V5))


@pytest.mark.parametrize(
    ("options", "version", "reason"),
    [
        (0x03, 4, Reason.PROTOCOL_ERROR),
        (0x04, 4, Reason.MALFORMED_PACKET),
        (0x03, 5, Reason.PROTOCOL_ERROR),
        (0x40, 5, Reason.MALFORMED_PACKET),
        (0x30, 5, Reason.PROTOCOL_ERROR),
    ],
)
def test_reserved_subscription_options_are_refused(options, version, reason):
    """MQTT-3.8.3-4 of 3.1.1; section 3.8.3.1 and MQTT-3.8.3-5 of MQTT 5."""
    middle = b"\0" if version == p.V5 else b""
    body = b"\0\x01" + middle + b"\0\x01a" + bytes((options,))
    with pytest.raises(ProtocolError) as caught:
        decoder(version).decode(bytes((0x82, len(body))) + body)
    assert caught.value.reason is reason


def test_no_local_on_a_shared_subscription_is_a_protocol_error():
    """MQTT-3.8.3-4."""
    packet = p.Subscribe(1, (p.Filter("$share/g/a", no_local=True),))
    with pytest.raises(ProtocolError) as caught:
        decoder().decode(encode(packet, p.V5))
    assert caught.value.reason is Reason.PROTOCOL_ERROR


@VERSIONS
@pytest.mark.parametrize("topic", ["a/+", "#", "a#", "", "/" * 64])
def test_names_that_are_no_topics_are_refused_when_published(version, topic):
    """MQTT-3.3.2-2 and 4.7.3-1, and the limit of levels."""
    with pytest.raises(ProtocolError):
        decoder(version).decode(encode(p.Publish(topic, b""), version))


@VERSIONS
@pytest.mark.parametrize(
    "topic_filter", ["a/#/b", "a#", "#a", "a+", "+a/b", "a/b+/c", "", "/" * 64]
)
def test_filters_with_misplaced_wildcards_are_refused(version, topic_filter):
    """MQTT-4.7.1-1 to -3."""
    for packet in (p.Subscribe(1, (p.Filter(topic_filter),)), p.Unsubscribe(1, (topic_filter,))):
        with pytest.raises(ProtocolError) as caught:
            decoder(version).decode(encode(packet, version))
        assert caught.value.reason is Reason.TOPIC_FILTER_INVALID


def test_topic_names_are_remembered_within_a_bound():
    names = TopicNames(MqttLimits(topics_cached_max=10))
    for number in range(1000):
        assert names[b"t%d" % number] == f"t{number}"
        assert len(names) <= 10


def test_every_property_of_the_standard_is_in_the_table_once():
    """MQTT 5, table 2-4."""
    known = [1, 2, 3, 8, 9, 11, *range(17, 20), *range(21, 27), 28, 31, *range(33, 43)]
    assert sorted(row.identifier for row in TABLE) == known
    assert {row.name for row in TABLE} == set(p.Properties.__struct_fields__)

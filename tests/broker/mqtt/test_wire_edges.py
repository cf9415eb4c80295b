"""The ends of what the wire can say: lengths of one, two, three and four bytes, and limits."""

import pytest

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.decoder import Decoder, TopicNames
from broker.mqtt.codec.encoder import encode
from broker.mqtt.codec.reasons import ProtocolError, Reason
from broker.mqtt.codec.wire import VARINT_MAX, WireReader, varint
from broker.mqtt.limits import MqttLimits

LENGTHS = (0, 0x7F, 0x3FFF, 0x1FFFFF, VARINT_MAX)
NEAR = sorted({length + more for length in LENGTHS for more in (-1, 0, 1, 2)})
VALUES = [value for value in NEAR if 0 <= value <= VARINT_MAX]


@pytest.mark.parametrize("value", VALUES)
def test_a_length_is_written_in_the_fewest_bytes_and_read_again(value):
    data = varint(value)
    assert len(data) == sum(value > most for most in LENGTHS[1:4]) + 1
    assert all(byte & 0x80 for byte in data[:-1])
    assert data[-1] < 0x80
    reader = WireReader(data)
    assert reader.varint() == value
    assert reader.left() == 0


@pytest.mark.parametrize("value", [value for value in VALUES if value < 0x200000])
def test_a_length_in_more_bytes_than_it_needs_is_malformed(value):
    data = varint(value)
    longer = bytes((*data[:-1], data[-1] | 0x80, 0))
    with pytest.raises(ProtocolError, match="longer than it needs"):
        WireReader(longer).varint()


def test_a_length_past_the_last_is_neither_written_nor_read():
    with pytest.raises(ValueError, match="does not fit"):
        varint(VARINT_MAX + 1)
    with pytest.raises(ProtocolError, match="more than four"):
        WireReader(b"\xff\xff\xff\xff\x01").varint()


@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("version", [p.V311, p.V5])
@pytest.mark.parametrize("many", [False, True])
def test_a_packet_as_large_as_allowed_is_read_and_a_larger_one_refused(version, qos, many):
    """Whether it comes alone or among others, and whichever way of the decoder it takes."""

    def sized(size):
        for fill in range(size):
            data = encode(p.Publish("a/b", b"x" * fill, qos, False, False, 7 * qos), version)
            if len(data) == size:
                return data
        raise AssertionError(size)

    for most in (60, 128, 131, 150):
        limits = MqttLimits(packet_bytes_max=most, connect_bytes_max=most)
        before = sized(20) if many else b""
        one = Decoder(limits, TopicNames(limits), version)
        assert len(one.decode(before + sized(most))) == 1 + many
        found = one.decode(before + sized(most + 1)) if many else []
        assert len(found) == many
        with pytest.raises(ProtocolError) as caught:
            one.decode(b"" if many else sized(most + 1))
        assert caught.value.reason is Reason.PACKET_TOO_LARGE

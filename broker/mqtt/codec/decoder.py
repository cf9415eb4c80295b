"""The incremental decoder: bytes as a socket gives them to whole packets, many per call.

Owns the framing and the short way for PUBACK and PUBLISH without properties, which are nearly all
of the traffic. Must not know sessions. Invariant: the same bytes give the same packets however
they are split, and what it holds between calls is less than one packet of the allowed size.
"""

import struct

from broker.mqtt.codec.bodies import Context, check_name, decode_body
from broker.mqtt.codec.encoder import encode
from broker.mqtt.codec.packets import V5, Connect, Packet, Puback, Publish
from broker.mqtt.codec.reasons import ProtocolError, Reason, malformed, violation
from broker.mqtt.codec.wire import WireReader
from broker.mqtt.limits import MqttLimits

_HEAD = struct.Struct(">BBBB").unpack_from

__all__ = ["Decoder", "TopicNames", "encode"]


class TopicNames(dict[bytes, str]):
    """Topic names that were checked, by their bytes; shared by all decoders of one face.

    One text object per name makes every later look-up by it a comparison of identities.
    """

    __slots__ = ("limits",)

    def __init__(self, limits: MqttLimits) -> None:
        super().__init__()
        self.limits = limits

    def __missing__(self, raw: bytes) -> str:
        """Check a name that is not known yet and remember it."""
        if not raw:
            raise violation("a PUBLISH has no topic")
        topic = check_name(raw, self.limits)
        if len(self) >= self.limits.topics_cached_max:
            self.clear()
        self[raw] = topic
        return topic


class Decoder:
    """Decodes one direction of one connection.

    A server begins with version 0: nothing but CONNECT is understood, which sets the version. A
    client's decoder is made with the version that it asked for.
    """

    __slots__ = (
        "_context",
        "_last_head",
        "_last_name",
        "_need",
        "_open",
        "_prefix",
        "_topics",
        "held",
        "more",
        "packet_bytes_max",
    )

    def __init__(self, limits: MqttLimits, topics: TopicNames, version: int = 0) -> None:
        self._context = Context(limits, version)
        self._open = version != 0  # whether anything but CONNECT is understood
        self._prefix = 1 if version == V5 else 0  # the length of no properties
        self._topics = topics
        self._last_head = b""  # the topic, with its length, of a PUBLISH that came alone
        self._last_name = ""
        self.held = bytearray()  # what is kept for the next call
        self._need = 0  # no whole packet can be there before so many bytes are held
        self.more = False  # decoding stopped at a CONNECT or before a fault: call `decode` again
        self.packet_bytes_max = limits.packet_bytes_max if version else limits.connect_bytes_max

    @property
    def version(self) -> int:
        """The protocol level spoken, 0 before CONNECT."""
        return self._context.version

    def hold(self, data: bytes) -> None:
        """Keep bytes for later, at most as many as a stranger may make the broker hold."""
        if len(self.held) + len(data) > self._context.limits.connect_bytes_max:
            raise ProtocolError(Reason.PACKET_TOO_LARGE, "too much comes before the CONNACK")
        self.held += data

    def _gathered(self, data: bytes) -> bytes:
        """All that was held, with `data`; empty where that cannot hold a whole packet yet."""
        self.held += data
        if len(self.held) < self._need:
            return b""
        data = bytes(self.held)
        self.held.clear()
        self._need = 0
        self.more = False
        return data

    def decode(self, data: bytes = b"") -> list[Packet]:
        """The whole packets in what was held and `data`, up to and including a CONNECT.

        Before a faulty one the good ones are returned; the next call raises ProtocolError.
        """
        if self.held or self.more:
            data = self._gathered(data)
            if not data:
                return []
        elif self._open:
            packet = self._alone(data)
            if packet is not None:
                return [packet]
        elif data and data[0] >> 4 != 1:
            raise violation("the first packet is not a CONNECT")
        return self._packets(data)

    def _packets(self, data: bytes) -> list[Packet]:  # noqa: C901, PLR0912, PLR0915
        packets: list[Packet] = []
        append, topics = packets.append, self._topics
        bytes_max, prefix = self.packet_bytes_max, self._prefix
        position = 0
        end = len(data)
        try:
            while position + 2 <= end:
                # The short way: PUBACK, or a PUBLISH of less than 16 KiB. One loop, as a call for
                # each would double its cost; what is not as it should be goes the long way.
                if position + 5 <= end:
                    first, length, third, fourth = _HEAD(data, position)
                    if length < 0x80:
                        topic = position + 4
                        stop = position + 2 + length
                        cut = topic + (third << 8 | fourth)
                    else:
                        topic = position + 5
                        stop = position + 3 + (length & 0x7F | third << 7)
                        cut = topic + (fourth << 8 | data[position + 4])
                        if not 0 < third < 0x80:
                            stop = end + 1
                    if stop <= end and stop - position <= bytes_max:
                        if first == 0x30:
                            start = cut + prefix
                            if start <= stop and not (prefix and data[cut]):
                                name = topics[data[topic:cut]]
                                append(Publish(name, data[start:stop]))
                                if stop == end and not position:
                                    self._last_name, self._last_head = name, data[topic - 2 : cut]
                                position = stop
                                continue
                        elif first == 0x32:
                            start = cut + 2 + prefix
                            if start <= stop and not (prefix and data[cut + 2]):
                                packet_id = data[cut] << 8 | data[cut + 1] or _no_packet_id()
                                name = topics[data[topic:cut]]
                                append(Publish(name, data[start:stop], 1, False, False, packet_id))
                                if stop == end and not position:
                                    self._last_name, self._last_head = name, data[topic - 2 : cut]
                                position = stop
                                continue
                        elif first == 0x40 and length == 2:
                            append(Puback(third << 8 | fourth or _no_packet_id()))
                            position = stop
                            continue
                stop = self._long_way(data, position, packets)
                if stop < 0:
                    break
                position = stop
                if self.more:
                    break
        except ProtocolError:
            if not packets:
                raise
            self.more = True
        if position < end:
            self.held += data[position:]
        return packets

    def _alone(self, data: bytes) -> Publish | Puback | None:  # noqa: PLR0911
        """Decode what came in one read: a PUBACK, or a PUBLISH with the topic of the one before.

        A sensor publishes to one topic, one message at a time: nothing need be looked up. None:
        it is something else.
        """
        size = len(data)
        if size < 5 or size > self.packet_bytes_max or not self._last_head:
            if size == 4 and data[0] == 0x40 and data[1] == 2:
                return Puback(data[2] << 8 | data[3] or _no_packet_id())
            return None
        if data[1] < 0x80:
            start = 2
            if size != 2 + data[1]:
                return None
        else:
            start = 3
            if not 0 < data[2] < 0x80 or size != 3 + (data[1] & 0x7F | data[2] << 7):
                return None
        if not data.startswith(self._last_head, start):
            return None
        start += len(self._last_head)
        if data[0] == 0x30:
            if self._prefix:
                if start == size or data[start]:
                    return None
                start += 1
            return Publish(self._last_name, data[start:])
        if data[0] == 0x32 and start + 2 + self._prefix <= size:
            packet_id = data[start] << 8 | data[start + 1]
            start += 2
            if packet_id and not (self._prefix and data[start]):
                payload = data[start + self._prefix :]
                return Publish(self._last_name, payload, 1, False, False, packet_id)
        return None

    def _long_way(self, data: bytes, position: int, packets: list[Packet]) -> int:
        """Append any packet; where it ends, or -1 where it is not whole."""
        length, body = self._length(data, position)
        stop = body + length
        if stop > len(data):
            self._need = stop - position
            return -1
        if data[position] == 0x40 and length == 2:
            packets.append(Puback(data[body] << 8 | data[body + 1] or _no_packet_id()))
            return stop
        packet = decode_body(data[position], WireReader(data, body, stop), self._context)
        packets.append(packet)
        if isinstance(packet, Connect):
            self.packet_bytes_max = self._context.limits.packet_bytes_max
            self._prefix = 1 if packet.version == V5 else 0
            self._open = True
            self.more = True
        return stop

    def _length(self, data: bytes, position: int) -> tuple[int, int]:
        """The remaining length of the packet at `position`, and where its body begins.

        Where the length itself is not there yet it is one byte more than there are.
        """
        end = min(len(data), position + 5)
        length = shift = 0
        for index in range(position + 1, end):
            byte = data[index]
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                if byte == 0 and shift > 7:
                    raise malformed("a remaining length is longer than it needs to be")
                if index + 1 + length - position > self.packet_bytes_max:
                    raise ProtocolError(
                        Reason.PACKET_TOO_LARGE,
                        f"a packet is larger than {self.packet_bytes_max} bytes",
                    )
                return length, index + 1
        if shift == 28:
            raise malformed("a remaining length has more than four bytes")
        return len(data) + 1 - end, end


def _no_packet_id() -> int:
    raise malformed("a packet identifier is 0")

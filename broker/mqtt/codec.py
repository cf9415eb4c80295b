"""The incremental decoder: bytes as a socket gives them to whole packets, many per call.

Owns the framing and the short way for PUBACK and PUBLISH without properties, which are nearly all
of the traffic. Must not know sessions. Invariant: the same bytes give the same packets however
they are split, and what it holds between calls is less than one packet of the allowed size.
"""

from broker.mqtt.decode import Context, check_name, decode_body
from broker.mqtt.encode import encode
from broker.mqtt.limits import Limits
from broker.mqtt.packets import V5, Connect, Packet, Puback, Publish
from broker.mqtt.reasons import ProtocolError, Reason, malformed, violation
from broker.mqtt.wire import Reader

__all__ = ["Decoder", "TopicNames", "encode"]


class TopicNames(dict[bytes, str]):
    """Topic names that were checked, by their bytes; shared by all decoders of one face.

    One text object per name makes every later look-up by it a comparison of identities.
    """

    __slots__ = ("limits",)

    def __init__(self, limits: Limits) -> None:
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

    __slots__ = ("_context", "_need", "_topics", "held", "more", "packet_bytes_max")

    def __init__(self, limits: Limits, topics: TopicNames, version: int = 0) -> None:
        self._context = Context(limits, version)
        self._topics = topics
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

    def decode(self, data: bytes = b"") -> list[Packet]:  # noqa: C901, PLR0915 - see below
        """The whole packets in what was held and `data`, up to and including a CONNECT.

        Where a faulty packet follows good ones, these are returned and the next call raises
        `ProtocolError`; after it the decoder is of no further use. Empty: nothing whole is there.
        """
        if self.held:
            self.held += data
            if len(self.held) < self._need:
                return []
            data = bytes(self.held)
            self.held.clear()
        self._need = 0
        self.more = False
        # One loop for all: a call per packet would double what a packet costs.
        packets: list[Packet] = []
        append = packets.append
        topics = self._topics
        prefix = 1 if self._context.version == V5 else 0  # the length of no properties
        position = 0
        last = len(data) - 1
        try:
            if not self._context.version and data and data[0] >> 4 != 1:
                raise violation("the first packet is not a CONNECT")
            while position < last:
                first = data[position]
                length = data[position + 1]
                body = position + 2
                if length > 0x7D:  # of more than 127 bytes in all, or with a longer length
                    length, body = self._long(data, position)
                stop = body + length
                if stop > last + 1:
                    self._need = stop - position
                    break
                if first == 0x30 and length > 2:  # PUBLISH, QoS 0
                    start = (at := body + 2 + (data[body] << 8 | data[body + 1])) + prefix
                    if start <= stop and not (prefix and data[at]):
                        append(Publish(topics[data[body + 2 : at]], data[start:stop]))
                        position = stop
                        continue
                elif first == 0x32 and length > 4:  # PUBLISH, QoS 1
                    start = (at := body + 2 + (data[body] << 8 | data[body + 1])) + 2 + prefix
                    if start <= stop and not (prefix and data[at + 2]):
                        packet_id = data[at] << 8 | data[at + 1] or self._no_packet_id()
                        topic = topics[data[body + 2 : at]]
                        append(Publish(topic, data[start:stop], 1, False, False, packet_id))
                        position = stop
                        continue
                elif first == 0x40 and length == 2:  # PUBACK
                    packet_id = data[body] << 8 | data[body + 1] or self._no_packet_id()
                    append(Puback(packet_id))
                    position = stop
                    continue
                packet = decode_body(first, Reader(data, body, stop), self._context)
                append(packet)
                position = stop
                if type(packet) is Connect:
                    self.packet_bytes_max = self._context.limits.packet_bytes_max
                    self.more = True
                    break
        except ProtocolError:
            if not packets:
                raise
            self.more = True
        if position <= last:
            self.held += data[position:]
        return packets

    def _long(self, data: bytes, position: int) -> tuple[int, int]:
        """The remaining length of the packet at `position`, and where its body begins.

        Where the length itself is not there yet it is one byte more than there are.
        """
        end = min(len(data), position + 5)
        length = shift = 0
        for at in range(position + 1, end):
            byte = data[at]
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                if byte == 0 and shift > 7:
                    raise malformed("a remaining length is longer than it needs to be")
                if at + 1 + length - position > self.packet_bytes_max:
                    raise ProtocolError(
                        Reason.PACKET_TOO_LARGE,
                        f"a packet is larger than {self.packet_bytes_max} bytes",
                    )
                return length, at + 1
        if shift == 28:
            raise malformed("a remaining length has more than four bytes")
        return len(data) + 1 - end, end

    @staticmethod
    def _no_packet_id() -> int:
        raise malformed("a packet identifier is 0")

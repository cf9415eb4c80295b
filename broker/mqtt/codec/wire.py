"""The primitive types of the MQTT wire: integers, texts, binary data, variable-length integers.

Owns their encoding and the bounded reader. Must not know packets.
Invariant: a read never passes the end of its packet; what is short or wrong is a `ProtocolError`.
"""

from broker.mqtt.codec.reasons import malformed

VARINT_MAX = 268_435_455


def varint(value: int) -> bytes:
    """A variable byte integer (section 1.5.5 of MQTT 5), in 0..268,435,455."""
    if value < 0x80:
        return bytes((value,))
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x200000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    if value <= VARINT_MAX:
        return bytes(
            (value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14 & 0x7F | 0x80, value >> 21)
        )
    raise ValueError(f"{value} does not fit a variable byte integer")


def u16(value: int) -> bytes:
    """Two bytes, big end first."""
    return value.to_bytes(2, "big")


def u32(value: int) -> bytes:
    """Four bytes, big end first."""
    return value.to_bytes(4, "big")


def binary(value: bytes) -> bytes:
    """Binary data with its two-byte length; ValueError past 65,535 bytes."""
    if len(value) > 0xFFFF:
        raise ValueError(f"{len(value)} bytes do not fit a field of at most 65535")
    return len(value).to_bytes(2, "big") + value


def text(value: str) -> bytes:
    """A text with its two-byte length; ValueError for what a reader would refuse."""
    if "\0" in value:
        raise ValueError("a text of MQTT must not hold U+0000")
    return binary(value.encode("utf-8"))


def decode_text(data: bytes) -> str:
    """The text that these bytes are: strict UTF-8 without U+0000 (MQTT-1.5.4-1, -2)."""
    try:
        value = data.decode("utf-8")
    except UnicodeDecodeError:
        raise malformed("a text is not UTF-8") from None
    if "\0" in value:
        raise malformed("a text holds U+0000")
    return value


class WireReader:
    """Reads the body of one packet, from `position` to `end` of `data`."""

    __slots__ = ("data", "end", "position")

    def __init__(self, data: bytes, position: int = 0, end: int | None = None) -> None:
        self.data = data
        self.position = position
        self.end = len(data) if end is None else end

    def left(self) -> int:
        """Bytes not yet read."""
        return self.end - self.position

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        start = self.position
        stop = start + count
        if stop > self.end:
            raise malformed("a field reaches past the end of its packet")
        self.position = stop
        return self.data[start:stop]

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(self.end - self.position)

    def u8(self) -> int:
        """One byte."""
        position = self.position
        if position >= self.end:
            raise malformed("a field reaches past the end of its packet")
        self.position = position + 1
        return self.data[position]

    def u16(self) -> int:
        """Two bytes."""
        return int.from_bytes(self.take(2), "big")

    def u32(self) -> int:
        """Four bytes."""
        return int.from_bytes(self.take(4), "big")

    def packet_id(self) -> int:
        """A packet identifier, which is never 0 (MQTT-2.2.1-3)."""
        value = self.u16()
        if value == 0:
            raise malformed("a packet identifier is 0")
        return value

    def varint(self) -> int:
        """A variable byte integer of at most four bytes in its shortest form (MQTT-1.5.5-1)."""
        value = shift = 0
        while True:
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if byte == 0 and shift:
                    raise malformed("a variable byte integer is longer than it needs to be")
                return value
            shift += 7
            if shift > 21:
                raise malformed("a variable byte integer has more than four bytes")

    def binary(self) -> bytes:
        """Binary data with its length before it."""
        return self.take(self.u16())

    def text(self) -> str:
        """A text with its length before it."""
        return decode_text(self.take(self.u16()))

    def finish(self) -> None:
        """Refuse bytes after the last field."""
        if self.position != self.end:
            raise malformed("bytes follow the last field of a packet")

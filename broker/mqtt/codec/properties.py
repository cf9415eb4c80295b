"""MQTT 5 properties: which exist, their types and in which packets they may stand.

Owns the table of section 2.2.2.2. Must not know packets' other fields.
Invariant: what is decoded stands where the standard allows it, at most once, with a legal value.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from broker.mqtt.codec.packets import Properties
from broker.mqtt.codec.reasons import ProtocolError, Reason, malformed, violation
from broker.mqtt.codec.wire import VARINT_MAX, WireReader, binary, text, u16, u32, varint

ACKS = "puback pubrec pubrel pubcomp suback unsuback"
MESSAGE = "publish will"


class Property(NamedTuple):
    """One property: identifier, name of its field, type, least and greatest number, packets."""

    identifier: int
    name: str
    kind: str
    least: int
    most: int
    packets: frozenset[str]


def _row(
    identifier: int, name: str, kind: str, packets: str, bounds: tuple[int, int] | None = None
) -> Property:
    largest = {"u8": 0xFF, "u16": 0xFFFF, "u32": 0xFFFFFFFF, "varint": VARINT_MAX}.get(kind, 0)
    low, high = bounds or (0, largest)
    return Property(identifier, name, kind, low, high, frozenset(packets.split()))


FLAG = (0, 1)

TABLE = (
    _row(0x01, "payload_format_indicator", "u8", MESSAGE, FLAG),
    _row(0x02, "message_expiry_interval", "u32", MESSAGE),
    _row(0x03, "content_type", "text", MESSAGE),
    _row(0x08, "response_topic", "text", MESSAGE),
    _row(0x09, "correlation_data", "binary", MESSAGE),
    _row(0x0B, "subscription_identifier", "varint", "publish subscribe", (1, VARINT_MAX)),
    _row(0x11, "session_expiry_interval", "u32", "connect connack disconnect"),
    _row(0x12, "assigned_client_identifier", "text", "connack"),
    _row(0x13, "server_keep_alive", "u16", "connack"),
    _row(0x15, "authentication_method", "text", "connect connack auth"),
    _row(0x16, "authentication_data", "binary", "connect connack auth"),
    _row(0x17, "request_problem_information", "u8", "connect", FLAG),
    _row(0x18, "will_delay_interval", "u32", "will"),
    _row(0x19, "request_response_information", "u8", "connect", FLAG),
    _row(0x1A, "response_information", "text", "connack"),
    _row(0x1C, "server_reference", "text", "connack disconnect"),
    _row(0x1F, "reason_string", "text", f"connack {ACKS} disconnect auth"),
    _row(0x21, "receive_maximum", "u16", "connect connack", (1, 0xFFFF)),
    _row(0x22, "topic_alias_maximum", "u16", "connect connack"),
    _row(0x23, "topic_alias", "u16", "publish"),
    _row(0x24, "maximum_qos", "u8", "connack", FLAG),
    _row(0x25, "retain_available", "u8", "connack", FLAG),
    _row(
        0x26,
        "user_property",
        "pair",
        f"connect connack {MESSAGE} {ACKS} subscribe unsubscribe disconnect auth",
    ),
    _row(0x27, "maximum_packet_size", "u32", "connect connack", (1, 0xFFFFFFFF)),
    _row(0x28, "wildcard_subscription_available", "u8", "connack", FLAG),
    _row(0x29, "subscription_identifier_available", "u8", "connack", FLAG),
    _row(0x2A, "shared_subscription_available", "u8", "connack", FLAG),
)
BY_IDENTIFIER = {row.identifier: row for row in TABLE}
_REPEATED = {"user_property", "subscription_identifier"}

_READ: dict[str, Callable[[WireReader], Any]] = {
    "u8": WireReader.u8,
    "u16": WireReader.u16,
    "u32": WireReader.u32,
    "varint": WireReader.varint,
    "text": WireReader.text,
    "binary": WireReader.binary,
    "pair": lambda reader: (reader.text(), reader.text()),
}
_WRITE: dict[str, Callable[[Any], bytes]] = {
    "u8": lambda value: bytes((value,)),
    "u16": u16,
    "u32": u32,
    "varint": varint,
    "text": text,
    "binary": binary,
    "pair": lambda value: text(value[0]) + text(value[1]),
}


def decode_properties(reader: WireReader, packet: str, user_max: int) -> Properties | None:
    """The properties of a `packet` (its name in lower case), or None where there are none.

    More than `user_max` user properties are refused as too large.
    """
    length = reader.varint()
    if length == 0:
        return None
    stop = reader.position + length
    if stop > reader.end:
        raise malformed("properties reach past the end of their packet")
    block = WireReader(reader.data, reader.position, stop)
    reader.position = stop
    values: dict[str, Any] = {}
    while block.position < stop:
        row = BY_IDENTIFIER.get(block.varint())
        if row is None:
            raise malformed("a property is unknown")
        if packet not in row.packets:
            raise malformed(f"property {row.name} must not stand in {packet.upper()}")
        value = _READ[row.kind](block)
        if row.most and not row.least <= value <= row.most:
            raise violation(f"property {row.name} is {value}")
        if row.name in _REPEATED:
            _repeat(values, row, value, user_max)
        elif row.name in values:
            raise violation(f"property {row.name} stands twice")
        else:
            values[row.name] = value
    if packet == "subscribe" and len(values.get("subscription_identifier", ())) > 1:
        raise violation("property subscription_identifier stands twice")
    return Properties(**values)


def _repeat(values: dict[str, Any], row: Property, value: object, most: int) -> None:
    seen = (*values.get(row.name, ()), value)
    if len(seen) > most:
        raise ProtocolError(Reason.PACKET_TOO_LARGE, f"more than {most} of property {row.name}")
    values[row.name] = seen


def encode_properties(properties: Properties | None) -> bytes:
    """The properties with their length before them, in the order of their identifiers."""
    if properties is None:
        return b"\0"
    body = encode_fields(properties)
    return varint(len(body)) + body


def encode_fields(properties: Properties) -> bytes:
    """The properties without their length."""
    parts: list[bytes] = []
    for row in TABLE:
        value = getattr(properties, row.name)
        if value is None or value == ():
            continue
        values = value if row.name in _REPEATED else (value,)
        head = bytes((row.identifier,))
        parts.extend(head + _WRITE[row.kind](item) for item in values)
    return b"".join(parts)

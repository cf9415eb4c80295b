"""The bodies of MQTT packets: bytes of one whole packet to a typed value, both versions.

Owns the layout of each packet but the commonest PUBLISH (`decoder` reads that itself). Must not
know streams, sessions or what a topic is for. Invariant: every byte is accounted for, reserved
flags are checked, and what is wrong is a `ProtocolError`.
"""

from collections.abc import Callable
from typing import TypeAlias

from broker.mqtt.codec.packets import (
    V5,
    V311,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Filter,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Will,
)
from broker.mqtt.codec.properties import decode_properties
from broker.mqtt.codec.reasons import ProtocolError, Reason, malformed, violation
from broker.mqtt.codec.topics import check_filter, check_topic
from broker.mqtt.codec.wire import WireReader, decode_text
from broker.mqtt.limits import MqttLimits

_PINGREQ = Pingreq()
_PINGRESP = Pingresp()


class Context:
    """Hold what decoding a body depends on: the connection's version and the limits."""

    __slots__ = ("limits", "version")

    def __init__(self, limits: MqttLimits, version: int) -> None:
        self.limits = limits
        self.version = version


Body: TypeAlias = Callable[[WireReader, int, Context], Packet]


def decode_body(first: int, reader: WireReader, context: Context) -> Packet:
    """The packet whose first byte is `first` and whose body the reader holds."""
    packet = _BODIES[first >> 4](reader, first & 0x0F, context)
    reader.finish()
    return packet


def _flags(name: str, flags: int, expected: int = 0) -> None:
    if flags != expected:
        raise malformed(f"reserved flags of {name} are {flags:#06b}")


def _reserved(_reader: WireReader, _flags: int, _context: Context) -> Packet:
    raise malformed("packet type 0 is reserved")


def _connect(reader: WireReader, flags: int, context: Context) -> Connect:
    _flags("CONNECT", flags)
    name = reader.text()
    if name not in {"MQTT", "MQIsdp"}:
        raise ProtocolError(Reason.UNSUPPORTED_PROTOCOL_VERSION, "the protocol's name is not MQTT")
    version = reader.u8()
    if name != "MQTT" or version not in {V311, V5}:
        raise ProtocolError(
            Reason.UNSUPPORTED_PROTOCOL_VERSION, f"{name} version {version} is not spoken here"
        )
    context.version = version
    bits = reader.u8()
    if bits & 0x01:
        raise malformed("the reserved connect flag is set")
    if bits & 0x18 == 0x18 or (not bits & 0x04 and bits & 0x38):
        raise malformed("the will flags contradict each other")
    if version == V311 and bits & 0xC0 == 0x40:
        raise malformed("a password comes without a user name")
    keep_alive_s = reader.u16()
    user_max = context.limits.user_properties_max
    properties = decode_properties(reader, "connect", user_max) if version == V5 else None
    if (
        properties is not None
        and properties.authentication_data is not None
        and properties.authentication_method is None
    ):
        raise violation("authentication data comes without its method")
    client_id = _client_id(reader, context)
    will = _will(reader, bits, context) if bits & 0x04 else None
    username = reader.text() if bits & 0x80 else None
    password = reader.binary() if bits & 0x40 else None
    return Connect(
        version, client_id, bool(bits & 0x02), keep_alive_s, will, username, password, properties
    )


def _client_id(reader: WireReader, context: Context) -> str:
    client_id = reader.text()
    if len(client_id.encode()) > context.limits.client_id_bytes_max:
        raise ProtocolError(
            Reason.CLIENT_IDENTIFIER_NOT_VALID,
            f"a client identifier is longer than {context.limits.client_id_bytes_max} bytes",
        )
    return client_id


def _will(reader: WireReader, bits: int, context: Context) -> Will:
    user_max = context.limits.user_properties_max
    properties = decode_properties(reader, "will", user_max) if context.version == V5 else None
    topic = check_name(reader.binary(), context.limits)
    _check_response_topic(
        properties.response_topic if properties is not None else None, context.limits
    )
    return Will(topic, reader.binary(), bits >> 3 & 3, bool(bits & 0x20), properties)


def check_name(raw: bytes, limits: MqttLimits) -> str:
    """The topic name that these bytes are, checked."""
    if len(raw) > limits.topic_bytes_max:
        raise ProtocolError(
            Reason.TOPIC_NAME_INVALID, f"a topic is longer than {limits.topic_bytes_max} bytes"
        )
    topic = decode_text(raw)
    check_topic(topic, limits.topic_levels_max)
    return topic


def _read_filter(reader: WireReader, limits: MqttLimits) -> str:
    raw = reader.binary()
    if len(raw) > limits.topic_bytes_max:
        raise ProtocolError(
            Reason.TOPIC_FILTER_INVALID, f"a filter is longer than {limits.topic_bytes_max} bytes"
        )
    topic_filter = decode_text(raw)
    check_filter(topic_filter, limits.topic_levels_max)
    return topic_filter


def _check_response_topic(topic: str | None, limits: MqttLimits) -> None:
    if topic is not None:
        if len(topic.encode()) > limits.topic_bytes_max:
            raise ProtocolError(Reason.TOPIC_NAME_INVALID, "a response topic is too long")
        check_topic(topic, limits.topic_levels_max)


def _connack(reader: WireReader, flags: int, context: Context) -> Connack:
    _flags("CONNACK", flags)
    bits = reader.u8()
    if bits > 1:
        raise malformed("reserved flags of CONNACK are set")
    code = reader.u8()
    user_max = context.limits.user_properties_max
    v5 = context.version == V5
    properties = decode_properties(reader, "connack", user_max) if v5 else None
    return Connack(bool(bits), code, properties)


def _publish(reader: WireReader, flags: int, context: Context) -> Publish:
    qos = flags >> 1 & 3
    dup = bool(flags & 8)
    if qos == 3:
        raise malformed("a PUBLISH has QoS 3")
    if dup and qos == 0:
        raise malformed("a PUBLISH of QoS 0 is marked as a duplicate")
    limits = context.limits
    raw = reader.binary()
    packet_id = reader.packet_id() if qos else 0
    properties = None
    if context.version == V5:
        properties = decode_properties(reader, "publish", limits.user_properties_max)
    alias = properties.topic_alias if properties is not None else None
    if alias == 0:
        raise ProtocolError(Reason.TOPIC_ALIAS_INVALID, "a topic alias is 0")
    if properties is not None:
        _check_response_topic(properties.response_topic, limits)
    if raw:
        topic = check_name(raw, limits)
    elif alias is None:
        raise violation("a PUBLISH has no topic")
    else:
        topic = ""
    return Publish(topic, reader.rest(), qos, bool(flags & 1), dup, packet_id, properties)


Ack: TypeAlias = type[Puback] | type[Pubrec] | type[Pubrel] | type[Pubcomp]
_SIMPLE_CODES = frozenset({0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99})
_RELEASE_CODES = frozenset({0x00, 0x92})
_ACK_CODES = {
    Puback: _SIMPLE_CODES,
    Pubrec: _SIMPLE_CODES,
    Pubrel: _RELEASE_CODES,
    Pubcomp: _RELEASE_CODES,
}


def _ack(kind: Ack) -> Body:
    name = kind.__name__.lower()
    codes = _ACK_CODES[kind]
    expected = 2 if kind is Pubrel else 0

    def body(reader: WireReader, flags: int, context: Context) -> Packet:
        _flags(name.upper(), flags, expected)
        packet_id = reader.packet_id()
        if context.version == V311 or not reader.left():
            return kind(packet_id)
        code = reader.u8()
        if code not in codes:
            raise violation(f"{name.upper()} has reason code {code:#04x}")
        if not reader.left():
            return kind(packet_id, code)
        user_max = context.limits.user_properties_max
        return kind(packet_id, code, decode_properties(reader, name, user_max))

    return body


def _subscribe(reader: WireReader, flags: int, context: Context) -> Subscribe:
    _flags("SUBSCRIBE", flags, 2)
    limits = context.limits
    packet_id = reader.packet_id()
    v5 = context.version == V5
    properties = decode_properties(reader, "subscribe", limits.user_properties_max) if v5 else None
    filters: list[Filter] = []
    while reader.left():
        topic_filter = _read_filter(reader, limits)
        options = reader.u8()
        if options & (0xC0 if v5 else 0xFC):
            raise malformed("subscription options hold a reserved bit")
        if options & 3 == 3 or options >> 4 & 3 == 3:
            raise violation("a QoS or retain handling that is asked for is 3")
        no_local = bool(options & 4)
        if no_local and topic_filter.startswith("$share/"):
            raise violation("no local stands on a shared subscription")
        as_published = bool(options & 8)
        filters.append(Filter(topic_filter, options & 3, no_local, as_published, options >> 4))
        _count(filters, limits)
    if not filters:
        raise violation("a SUBSCRIBE has no filter")
    return Subscribe(packet_id, tuple(filters), properties)


def _count(filters: list[Filter] | list[str], limits: MqttLimits) -> None:
    if len(filters) > limits.filters_per_packet_max:
        raise ProtocolError(
            Reason.PACKET_TOO_LARGE,
            f"a packet has more than {limits.filters_per_packet_max} filters",
        )


def _unsubscribe(reader: WireReader, flags: int, context: Context) -> Unsubscribe:
    _flags("UNSUBSCRIBE", flags, 2)
    limits = context.limits
    packet_id = reader.packet_id()
    v5 = context.version == V5
    user_max = limits.user_properties_max
    properties = decode_properties(reader, "unsubscribe", user_max) if v5 else None
    filters: list[str] = []
    while reader.left():
        filters.append(_read_filter(reader, limits))
        _count(filters, limits)
    if not filters:
        raise violation("an UNSUBSCRIBE has no filter")
    return Unsubscribe(packet_id, tuple(filters), properties)


def _suback(reader: WireReader, flags: int, context: Context) -> Suback:
    _flags("SUBACK", flags)
    packet_id = reader.packet_id()
    user_max = context.limits.user_properties_max
    v5 = context.version == V5
    properties = decode_properties(reader, "suback", user_max) if v5 else None
    codes = tuple(reader.rest())
    if not codes:
        raise violation("a SUBACK has no code")
    return Suback(packet_id, codes, properties)


def _unsuback(reader: WireReader, flags: int, context: Context) -> Unsuback:
    _flags("UNSUBACK", flags)
    packet_id = reader.packet_id()
    if context.version == V311:
        return Unsuback(packet_id)
    properties = decode_properties(reader, "unsuback", context.limits.user_properties_max)
    codes = tuple(reader.rest())
    if not codes:
        raise violation("an UNSUBACK has no code")
    return Unsuback(packet_id, codes, properties)


def _pingreq(_reader: WireReader, flags: int, _context: Context) -> Pingreq:
    _flags("PINGREQ", flags)
    return _PINGREQ


def _pingresp(_reader: WireReader, flags: int, _context: Context) -> Pingresp:
    _flags("PINGRESP", flags)
    return _PINGRESP


def _disconnect(reader: WireReader, flags: int, context: Context) -> Disconnect:
    _flags("DISCONNECT", flags)
    if context.version == V311 or not reader.left():
        return Disconnect()
    code = reader.u8()
    if not reader.left():
        return Disconnect(code)
    user_max = context.limits.user_properties_max
    return Disconnect(code, decode_properties(reader, "disconnect", user_max))


def _auth(reader: WireReader, flags: int, context: Context) -> Auth:
    if context.version == V311:
        raise malformed("packet type 15 is reserved")
    _flags("AUTH", flags)
    if not reader.left():
        return Auth()
    code = reader.u8()
    if code not in {0x00, 0x18, 0x19}:
        raise violation(f"AUTH has reason code {code:#04x}")
    if not reader.left():
        return Auth(code)
    return Auth(code, decode_properties(reader, "auth", context.limits.user_properties_max))


_BODIES: tuple[Body, ...] = (
    _reserved,
    _connect,
    _connack,
    _publish,
    _ack(Puback),
    _ack(Pubrec),
    _ack(Pubrel),
    _ack(Pubcomp),
    _subscribe,
    _suback,
    _unsubscribe,
    _unsuback,
    _pingreq,
    _pingresp,
    _disconnect,
    _auth,
)

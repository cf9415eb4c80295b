"""MQTT packets to bytes, both versions.

Owns the layout of what is sent. Must not know sessions. Invariant: what it writes, `decoder` reads
back as the same value; a value that cannot be written is a ValueError of the caller's.
"""

from collections.abc import Callable
from typing import Any

from broker.mqtt.codec.packets import (
    V5,
    V311,
    Auth,
    Connack,
    Connect,
    Disconnect,
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
)
from broker.mqtt.codec.properties import encode_properties
from broker.mqtt.codec.wire import VARINT_MAX, binary, text, u16, varint

PINGRESP = b"\xd0\x00"


def frame(first: int, body: bytes) -> bytes:
    """A packet of this first byte and body; ValueError where the body is too long."""
    if len(body) > VARINT_MAX:
        raise ValueError(f"a packet of {len(body)} bytes cannot be written")
    return bytes((first,)) + varint(len(body)) + body


def encode(packet: Packet, version: int) -> bytes:
    """The bytes of a packet in this version (`V311` or `V5`)."""
    encoder = _ENCODERS[type(packet)]
    return encoder(packet, version)


def _properties(packet: Any, version: int) -> bytes:
    return encode_properties(packet.properties) if version == V5 else b""


def _connect(packet: Connect, version: int) -> bytes:
    will = packet.will
    bits = packet.clean_start << 1
    payload = text(packet.client_id)
    if will is not None:
        bits |= 0x04 | will.qos << 3 | will.retain << 5
        payload += _properties(will, version) + text(will.topic) + binary(will.payload)
    if packet.username is not None:
        bits |= 0x80
        payload += text(packet.username)
    if packet.password is not None:
        bits |= 0x40
        payload += binary(packet.password)
    head = text("MQTT") + bytes((packet.version, bits)) + u16(packet.keep_alive_s)
    return frame(0x10, head + _properties(packet, version) + payload)


def _connack(packet: Connack, version: int) -> bytes:
    head = bytes((packet.session_present, packet.code))
    return frame(0x20, head + _properties(packet, version))


def _publish(packet: Publish, version: int) -> bytes:
    first = 0x30 | packet.dup << 3 | packet.qos << 1 | packet.retain
    head = text(packet.topic) + (u16(packet.packet_id) if packet.qos else b"")
    return frame(first, head + _properties(packet, version) + packet.payload)


def _ack(first: int) -> Callable[[Any, int], bytes]:
    def encoder(packet: Puback | Pubrec | Pubrel | Pubcomp, version: int) -> bytes:
        if version == V311 or (packet.code == 0 and packet.properties is None):
            return frame(first, u16(packet.packet_id))
        body = u16(packet.packet_id) + bytes((packet.code,))
        if packet.properties is not None:
            body += encode_properties(packet.properties)
        return frame(first, body)

    return encoder


def _subscribe(packet: Subscribe, version: int) -> bytes:
    body = u16(packet.packet_id) + _properties(packet, version)
    for item in packet.filters:
        options = (
            item.qos
            | item.no_local << 2
            | item.retain_as_published << 3
            | item.retain_handling << 4
        )
        body += text(item.topic_filter) + bytes((options if version == V5 else item.qos,))
    return frame(0x82, body)


def _unsubscribe(packet: Unsubscribe, version: int) -> bytes:
    body = u16(packet.packet_id) + _properties(packet, version)
    return frame(0xA2, body + b"".join(map(text, packet.filters)))


def _suback(packet: Suback, version: int) -> bytes:
    body = u16(packet.packet_id) + _properties(packet, version)
    return frame(0x90, body + bytes(packet.codes))


def _unsuback(packet: Unsuback, version: int) -> bytes:
    if version == V311:
        return frame(0xB0, u16(packet.packet_id))
    body = u16(packet.packet_id) + _properties(packet, version)
    return frame(0xB0, body + bytes(packet.codes))


def _code(first: int) -> Callable[[Any, int], bytes]:
    def encoder(packet: Disconnect | Auth, version: int) -> bytes:
        if version == V311 or (packet.code == 0 and packet.properties is None):
            return bytes((first, 0))
        if packet.properties is None:
            return bytes((first, 1, packet.code))
        return frame(first, bytes((packet.code,)) + encode_properties(packet.properties))

    return encoder


_ENCODERS: dict[type, Callable[[Any, int], bytes]] = {
    Connect: _connect,
    Connack: _connack,
    Publish: _publish,
    Puback: _ack(0x40),
    Pubrec: _ack(0x50),
    Pubrel: _ack(0x62),
    Pubcomp: _ack(0x70),
    Subscribe: _subscribe,
    Suback: _suback,
    Unsubscribe: _unsubscribe,
    Unsuback: _unsuback,
    Pingreq: lambda _packet, _version: b"\xc0\x00",
    Pingresp: lambda _packet, _version: PINGRESP,
    Disconnect: _code(0xE0),
    Auth: _code(0xF0),
}

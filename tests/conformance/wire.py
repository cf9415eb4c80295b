"""MQTT on the wire, written a second time: only tests use it, and nothing of `broker.mqtt`.

Packets are made from their parts without any check, so that a test can send what no library would;
what a server sends is read strictly, and a `MalformedError` says what is wrong with it.
"""

import struct
from dataclasses import dataclass, field

V311, V5 = 4, 5
NAMES = {V311: "3.1.1", V5: "5"}

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = range(1, 8)
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, DISCONNECT, AUTH = range(8, 16)
_ACKS = ("CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP")
_REST = ("SUBSCRIBE", "SUBACK", "UNSUBSCRIBE", "UNSUBACK", "PINGREQ", "PINGRESP", "DISCONNECT")
KINDS = ("reserved", *_ACKS, *_REST, "AUTH")
FLAGS = {SUBSCRIBE: 2, UNSUBSCRIBE: 2, PUBREL: 2}

# Properties of MQTT 5 by the name that the tests use.
PAYLOAD_FORMAT, MESSAGE_EXPIRY, CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION = 1, 2, 3, 8, 9
SUBSCRIPTION_ID, SESSION_EXPIRY, ASSIGNED_ID, SERVER_KEEP_ALIVE = 0x0B, 0x11, 0x12, 0x13
AUTH_METHOD, AUTH_DATA, PROBLEM_INFO, WILL_DELAY, RESPONSE_WANTED = 0x15, 0x16, 0x17, 0x18, 0x19
RESPONSE_INFO, SERVER_REFERENCE, REASON_STRING, RECEIVE_MAX = 0x1A, 0x1C, 0x1F, 0x21
ALIAS_MAX, ALIAS, MAX_QOS, RETAIN_AVAILABLE, USER, MAX_PACKET = 0x22, 0x23, 0x24, 0x25, 0x26, 0x27
WILDCARDS_AVAILABLE, IDS_AVAILABLE, SHARED_AVAILABLE = 0x28, 0x29, 0x2A

_FLAGS_OF_CONNACK = (MAX_QOS, RETAIN_AVAILABLE, WILDCARDS_AVAILABLE, IDS_AVAILABLE)
_NAMES_OF_CONNACK = (ASSIGNED_ID, RESPONSE_INFO, SERVER_REFERENCE)
_KINDS = {
    "u8": (PAYLOAD_FORMAT, PROBLEM_INFO, RESPONSE_WANTED, SHARED_AVAILABLE, *_FLAGS_OF_CONNACK),
    "u16": (SERVER_KEEP_ALIVE, RECEIVE_MAX, ALIAS_MAX, ALIAS),
    "u32": (MESSAGE_EXPIRY, SESSION_EXPIRY, WILL_DELAY, MAX_PACKET),
    "varint": (SUBSCRIPTION_ID,),
    "text": (CONTENT_TYPE, RESPONSE_TOPIC, AUTH_METHOD, REASON_STRING, *_NAMES_OF_CONNACK),
    "binary": (CORRELATION, AUTH_DATA),
    "pair": (USER,),
}
KIND_OF = {identifier: kind for kind, many in _KINDS.items() for identifier in many}


class MalformedError(AssertionError):
    """The server sent what MQTT does not know."""


def varint(value):
    data = bytearray()
    while True:
        value, low = divmod(value, 128)
        data.append(low | (0x80 if value else 0))
        if not value:
            return bytes(data)


def binary(value):
    value = value.encode() if isinstance(value, str) else value
    return struct.pack(">H", len(value)) + value


def u16(value):
    return struct.pack(">H", value)


def packet(kind, body=b"", flags=None):
    flags = FLAGS.get(kind, 0) if flags is None else flags
    return bytes((kind << 4 | flags,)) + varint(len(body)) + body


def properties(pairs):
    """`pairs`: identifier and value, in the order in which they are to be written."""
    body = b""
    for identifier, value in pairs:
        kind = KIND_OF[identifier]
        body += varint(identifier)
        if kind == "pair":
            body += binary(value[0]) + binary(value[1])
        elif kind in {"text", "binary"}:
            body += binary(value)
        elif kind == "varint":
            body += varint(value)
        else:
            body += value.to_bytes(int(kind[1:]) // 8, "big")
    return varint(len(body)) + body


def held(version, pairs):
    return properties(pairs) if version == V5 else b""


@dataclass
class Will:
    topic: str | bytes
    payload: bytes = b"gone"
    qos: int = 0
    retain: bool = False
    props: tuple = ()


@dataclass
class Login:
    """The parts of a CONNECT; `bits` are set in the flags beside those that the parts ask for."""

    version: int
    client_id: str | bytes = ""
    clean: bool = True
    keep_alive_s: int = 0
    will: Will | None = None
    user: str | bytes | None = None
    password: bytes | None = None
    props: tuple = ()
    name: bytes = b"MQTT"
    bits: int = 0
    level: int | None = None

    def encode(self):
        bits, will = self.bits | self.clean << 1, self.will
        payload = binary(self.client_id)
        if will is not None:
            bits |= 4 | will.qos << 3 | will.retain << 5
            payload += held(self.version, will.props) + binary(will.topic) + binary(will.payload)
        if self.user is not None:
            bits |= 0x80
            payload += binary(self.user)
        if self.password is not None:
            bits |= 0x40
            payload += binary(self.password)
        level = self.version if self.level is None else self.level
        head = binary(self.name) + bytes((level, bits)) + u16(self.keep_alive_s)
        return packet(CONNECT, head + held(self.version, self.props) + payload)


def publish(version, topic, payload=b"", qos=0, pid=0, retain=False, dup=False, props=()):
    body = binary(topic) + (u16(pid) if qos else b"") + held(version, props)
    return packet(PUBLISH, body + payload, dup << 3 | qos << 1 | retain)


def subscribe(version, pid, filters, props=()):
    """`filters`: filter and options byte."""
    body = u16(pid) + held(version, props)
    return packet(SUBSCRIBE, body + b"".join(binary(f) + bytes((o,)) for f, o in filters))


def unsubscribe(version, pid, filters, props=()):
    return packet(UNSUBSCRIBE, u16(pid) + held(version, props) + b"".join(map(binary, filters)))


def ack(kind, pid, code=None, props=None):
    body = u16(pid) + (b"" if code is None else bytes((code,)))
    return packet(kind, body + (b"" if props is None else properties(props)))


def disconnect(code=None, props=None):
    body = b"" if code is None else bytes((code,))
    return packet(DISCONNECT, body + (b"" if props is None else properties(props)))


# --- reading ----------------------------------------------------------------------------------


@dataclass
class Got:
    """A packet of the server's."""

    kind: int
    flags: int
    size: int
    pid: int = 0
    code: int = 0
    codes: tuple = ()
    topic: str = ""
    payload: bytes = b""
    props: list = field(default_factory=list)
    present: bool = False  # the session, in CONNACK
    bits: int = 0  # all acknowledge flags of CONNACK

    @property
    def qos(self):
        return self.flags >> 1 & 3

    @property
    def retain(self):
        return bool(self.flags & 1)

    @property
    def dup(self):
        return bool(self.flags & 8)

    def of(self, identifier, default=None):
        """The value of a property that stands at most once."""
        found = self.all_of(identifier)
        if len(found) > 1:
            raise MalformedError(f"property {identifier:#x} stands {len(found)} times")
        return found[0] if found else default

    def all_of(self, identifier):
        return [value for name, value in self.props if name == identifier]

    def __str__(self):
        return f"{KINDS[self.kind]} pid {self.pid} code {self.code:#x} {self.topic!r}"


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise MalformedError("a field reaches past the end of its packet")
        self.at += count
        return self.data[self.at - count : self.at]

    def left(self):
        return len(self.data) - self.at

    def number(self, count):
        return int.from_bytes(self.take(count), "big")

    def varint(self):
        value = 0
        for shift in (0, 7, 14, 21):
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if shift and not byte:
                    raise MalformedError("a number is longer than it needs to be")
                return value
        raise MalformedError("a number has more than four bytes")

    def text(self):
        try:
            value = self.take(self.number(2)).decode("utf-8")
        except UnicodeDecodeError:
            raise MalformedError("a text is not UTF-8") from None
        if "\0" in value:
            raise MalformedError("a text holds U+0000")
        return value

    def properties(self):
        block = Cursor(self.take(self.varint()))
        found = []
        while block.left():
            identifier = block.varint()
            kind = KIND_OF.get(identifier)
            if kind is None:
                raise MalformedError(f"property {identifier:#x} is unknown")
            if kind == "pair":
                value = (block.text(), block.text())
            elif kind == "text":
                value = block.text()
            elif kind == "binary":
                value = block.take(block.number(2))
            elif kind == "varint":
                value = block.varint()
            else:
                value = block.number(int(kind[1:]) // 8)
            found.append((identifier, value))
        return found


def split(buffer):
    """First byte, body and whole size of the packet at the front; None where more must come."""
    length = shift = 0
    for at in range(1, 5):
        if at >= len(buffer):
            return None
        length |= (buffer[at] & 0x7F) << shift
        if buffer[at] < 0x80:
            whole = at + 1 + length
            return (
                (buffer[0], bytes(buffer[at + 1 : whole]), whole) if len(buffer) >= whole else None
            )
        shift += 7
    raise MalformedError("a remaining length has more than four bytes")


def read(version, first, body, size):
    """A packet as a server of this version may send it."""
    kind, flags = first >> 4, first & 15
    got, cursor, v5 = Got(kind, flags, size), Cursor(body), version == V5
    if kind not in {CONNACK, PUBLISH, SUBACK, UNSUBACK, PINGRESP, *range(4, 8)} and not (
        v5 and kind in {DISCONNECT, AUTH}
    ):
        raise MalformedError(f"a server must not send {KINDS[kind]}")
    if kind != PUBLISH and flags != FLAGS.get(kind, 0):
        raise MalformedError(f"the flags of {KINDS[kind]} are {flags:#x}")
    if kind == CONNACK:
        got.bits, got.code = cursor.number(1), cursor.number(1)
        got.present = bool(got.bits & 1)
        got.props = cursor.properties() if v5 and cursor.left() else []
    elif kind == PUBLISH:
        if got.qos == 3:
            raise MalformedError("PUBLISH has QoS 3")
        got.topic = cursor.text()
        got.pid = cursor.number(2) if got.qos else 0
        got.props = cursor.properties() if v5 else []
        got.payload = cursor.take(cursor.left())
    elif kind in {SUBACK, UNSUBACK}:
        got.pid = cursor.number(2)
        got.props = cursor.properties() if v5 else []
        got.codes = tuple(cursor.take(cursor.left()))
    elif kind != PINGRESP:
        got.pid = 0 if kind in {DISCONNECT, AUTH} else cursor.number(2)
        got.code = cursor.number(1) if v5 and cursor.left() else 0
        got.props = cursor.properties() if v5 and cursor.left() else []
    if cursor.left():
        raise MalformedError(f"bytes follow the last field of {KINDS[kind]}")
    return got

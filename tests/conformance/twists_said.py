"""Faults in what the face says: its packets are changed on their way to the sockets.

Owns these faults. Must not know the tests. Invariant: each fault is in one thing only.
"""

from broker.mqtt.sessions.connection import Connection
from tests.conformance import wire as w

ACKS = (w.PUBACK, w.PUBREC, w.PUBREL, w.PUBCOMP, w.SUBACK, w.UNSUBACK)


SAID = []


def packets_of(data):
    """Kind, first byte and body of each packet."""
    while data:
        first, body, size = w.split(data)
        yield first >> 4, first, body
        data = data[size:]


def say(twist):
    """A fault in what is said: `twist(kind, first, body, version)` gives the bytes instead."""

    def plant(monkeypatch):
        true = Connection.flush

        def flush(self):
            data = true(self)
            if self.version not in w.NAMES:
                return data
            return b"".join(
                twist(kind, first, body, self.version) for kind, first, body in packets_of(data)
            )

        monkeypatch.setattr(Connection, "flush", flush)

    plant.__name__ = twist.__name__
    SAID.append(plant)
    return plant


def whole(first, body):
    return bytes((first,)) + w.varint(len(body)) + body


def parts(first, body, version):
    """A PUBLISH apart: topic, identifier, properties with their length, payload."""
    cursor = w.Cursor(body)
    topic = cursor.take(2 + int.from_bytes(body[:2], "big"))
    pid = cursor.take(2) if first & 6 else b""
    start = cursor.at
    if version == w.V5:
        cursor.properties()
    return topic, pid, body[start : cursor.at], cursor.take(cursor.left())


@say
def dup_is_lost(kind, first, body, _version):
    return whole(first & ~8 if kind == w.PUBLISH else first, body)


@say
def dup_always(kind, first, body, _version):
    return whole(first | 8 if kind == w.PUBLISH else first, body)


@say
def retain_is_lost(kind, first, body, _version):
    return whole(first & ~1 if kind == w.PUBLISH else first, body)


@say
def retain_always(kind, first, body, _version):
    return whole(first | 1 if kind == w.PUBLISH else first, body)


@say
def session_present_is_wrong(kind, first, body, _version):
    return whole(first, bytes((body[0] ^ 1,)) + body[1:] if kind == w.CONNACK else body)


@say
def acknowledge_flags_are_set(kind, first, body, _version):
    return whole(first, bytes((body[0] | 0x80,)) + body[1:] if kind == w.CONNACK else body)


@say
def refusals_say_yes(kind, first, body, _version):
    return whole(first, body[:1] + b"\0" + body[2:] if kind == w.CONNACK else body)


@say
def acceptance_says_no(kind, first, body, _version):
    return whole(first, body[:1] + b"\x05" + body[2:] if kind == w.CONNACK else body)


@say
def pings_are_answered_twice(kind, first, body, _version):
    return whole(first, body) * (2 if kind == w.PINGRESP else 1)


@say
def identifiers_are_others(kind, first, body, _version):
    if kind in ACKS:
        body = ((int.from_bytes(body[:2], "big") + 1) & 0xFFFF).to_bytes(2, "big") + body[2:]
    return whole(first, body)


@say
def identifiers_are_all_1(kind, first, body, version):
    if kind == w.PUBLISH and first & 6:
        topic, _, props, payload = parts(first, body, version)
        body = topic + b"\0\1" + props + payload
    return whole(first, body)


@say
def codes_are_reversed(kind, first, body, version):
    if kind in {w.SUBACK, w.UNSUBACK}:
        start = 3 if version == w.V5 else 2
        body = body[:start] + body[start:][::-1]
    return whole(first, body)


@say
def codes_are_one_too_few(kind, first, body, version):
    start = 3 if version == w.V5 else 2
    if kind in {w.SUBACK, w.UNSUBACK} and len(body) > start:
        body = body[:-1]
    return whole(first, body)


@say
def codes_are_unknown(kind, first, body, version):
    if kind in {w.SUBACK, w.UNSUBACK} and len(body) > (3 if version == w.V5 else 2):
        body = body[:-1] + b"\x7f"
    elif kind in {w.PUBACK, w.PUBREC, w.PUBREL, w.PUBCOMP} and version == w.V5:
        body = body[:2] + b"\x7f"
    elif kind == w.DISCONNECT:
        body = b"\xef" + body[1:]
    return whole(first, body)


@say
def messages_come_twice(kind, first, body, _version):
    return whole(first, body) * (2 if kind == w.PUBLISH else 1)


@say
def messages_are_lost(kind, first, body, _version):
    return b"" if kind == w.PUBLISH else whole(first, body)


@say
def messages_come_at_qos_0(kind, first, body, version):
    if kind == w.PUBLISH and first & 6:
        topic, _, props, payload = parts(first, body, version)
        return whole(first & ~0x0E, topic + props + payload)
    return whole(first, body)


@say
def messages_come_at_qos_1(kind, first, body, version):
    if kind == w.PUBLISH and not first & 6:
        topic, _, props, payload = parts(first, body, version)
        return whole(first | 2, topic + b"\x7f\xff" + props + payload)
    return whole(first, body)


@say
def messages_are_backward(kind, first, body, version):
    if kind == w.PUBLISH:
        topic, pid, props, payload = parts(first, body, version)
        body = topic + pid + props + payload[::-1]
    return whole(first, body)


@say
def topics_are_in_lower_case(kind, first, body, version):
    if kind == w.PUBLISH:
        topic, pid, props, payload = parts(first, body, version)
        body = w.binary(topic[2:].lower().replace(b"/", b".")) + pid + props + payload
    return whole(first, body)


@say
def properties_are_lost(kind, first, body, version):
    if kind == w.PUBLISH and version == w.V5:
        topic, pid, _, payload = parts(first, body, version)
        body = topic + pid + b"\0" + payload
    elif kind == w.CONNACK and version == w.V5:
        body = body[:2] + b"\0"
    return whole(first, body)


@say
def properties_are_reversed(kind, first, body, version):
    if kind == w.PUBLISH and version == w.V5:
        topic, pid, props, payload = parts(first, body, version)
        pairs = w.Cursor(props).properties()
        body = topic + pid + w.properties(pairs[::-1]) + payload
    return whole(first, body)


@say
def aliases_are_used_unasked(kind, first, body, version):
    if kind == w.PUBLISH and version == w.V5:
        topic, pid, props, payload = parts(first, body, version)
        pairs = [*w.Cursor(props).properties(), (w.ALIAS, 9)]
        body = topic + pid + w.properties(pairs) + payload
    return whole(first, body)


@say
def answers_bear_a_long_reason(kind, first, body, version):
    if version != w.V5:
        return whole(first, body)
    reason = [(w.REASON_STRING, "x" * 300), (w.SESSION_EXPIRY, 5)]
    if kind in {w.SUBACK, w.UNSUBACK}:
        body = body[:2] + w.properties(reason[:1]) + body[3:]
    elif kind == w.PUBACK:
        body = body[:2] + (body[2:3] or b"\0") + w.properties(reason[:1])
    elif kind == w.DISCONNECT:
        body = body[:1] + w.properties(reason)
    elif kind == w.CONNACK:
        body = body[:2] + w.properties(
            [*w.Cursor(body[2:]).properties(), (w.RESPONSE_INFO, "x"), (w.AUTH_METHOD, "m")]
        )
    return whole(first, body)


@say
def all_is_answered_at_qos_1(kind, first, body, version):
    if kind == w.PUBREC:
        first = w.PUBACK << 4
    return whole(first, body)


@say
def pubrel_and_pubcomp_are_unsaid(kind, first, body, _version):
    return b"" if kind in {w.PUBREL, w.PUBCOMP} else whole(first, body)

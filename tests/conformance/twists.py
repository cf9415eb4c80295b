"""Servers with one fault each: to show of every test that it can fail.

A fault is planted in what the face says, in what it takes its clients to have said, or in its time.
Owns the faults. Must not know the tests. Invariant: each fault is in one thing only.
"""

from msgspec.structs import replace

from broker.mqtt import packets as p
from broker.mqtt.codec import Decoder
from broker.mqtt.connection import Connection
from broker.mqtt.hub import Hub
from tests.conformance import wire as w

ACKS = (w.PUBACK, w.PUBREC, w.PUBREL, w.PUBCOMP, w.SUBACK, w.UNSUBACK)


FAULTS = []


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
    FAULTS.append(plant)
    return plant


def hear(twist):
    """A fault in what is heard: `twist(packet)` gives the packet instead, or None for nothing."""

    def plant(monkeypatch):
        true = Decoder.decode

        def decode(self, data=b""):
            return [one for one in map(twist, true(self, data)) if one is not None]

        monkeypatch.setattr(Decoder, "decode", decode)

    plant.__name__ = twist.__name__
    FAULTS.append(plant)
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


# --- what is said -----------------------------------------------------------------------------


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


# --- what is heard ----------------------------------------------------------------------------


def changed(packet, kind, **fields):
    """The packet with other fields, if it is one of that kind."""
    return replace(packet, **fields) if isinstance(packet, kind) else packet


def without(packet, kind, **none):
    """The packet without some of its properties."""
    if isinstance(packet, kind) and packet.properties is not None:
        return replace(packet, properties=replace(packet.properties, **none))
    return packet


def with_filters(packet, change):
    """A SUBSCRIBE with other filters."""
    if isinstance(packet, p.Subscribe):
        return replace(packet, filters=tuple(map(change, packet.filters)))
    return packet


@hear
def every_start_is_clean(packet):
    return changed(packet, p.Connect, clean_start=True)


@hear
def no_start_is_clean(packet):
    if isinstance(packet, p.Connect) and packet.client_id:
        return replace(packet, clean_start=False)
    return packet


@hear
def keep_alives_are_ignored(packet):
    return changed(packet, p.Connect, keep_alive_s=0)


@hear
def receive_maxima_are_ignored(packet):
    return without(packet, p.Connect, receive_maximum=None)


@hear
def maximum_packet_sizes_are_ignored(packet):
    return without(packet, p.Connect, maximum_packet_size=None)


@hear
def session_expiries_are_ignored(packet):
    return without(packet, p.Connect, session_expiry_interval=None)


@hear
def sessions_never_expire(packet):
    return without(packet, p.Connect, session_expiry_interval=80_000)


@hear
def methods_are_ignored(packet):
    return without(packet, p.Connect, authentication_method=None)


@hear
def wills_are_ignored(packet):
    return changed(packet, p.Connect, will=None)


def with_will(packet, **fields):
    if isinstance(packet, p.Connect) and packet.will is not None:
        return replace(packet, will=replace(packet.will, **fields))
    return packet


@hear
def everybody_has_a_will(packet):
    if isinstance(packet, p.Connect) and packet.will is None and packet.client_id:
        return replace(packet, will=p.Will(packet.client_id, b"x"))
    return packet


@hear
def empty_messages_get_a_byte(packet):
    if isinstance(packet, p.Publish) and not packet.payload:
        return replace(packet, payload=b"\0")
    return packet


@hear
def wills_are_all_retained(packet):
    return with_will(packet, retain=True)


@hear
def wills_are_never_retained(packet):
    return with_will(packet, retain=False)


@hear
def wills_are_at_qos_0(packet):
    return with_will(packet, qos=0)


@hear
def will_properties_are_ignored(packet):
    return with_will(packet, properties=None)


@hear
def identifiers_of_clients_are_cut(packet):
    if isinstance(packet, p.Connect) and packet.client_id:
        return replace(packet, client_id=packet.client_id[:2])
    return packet


@hear
def every_client_has_a_name(packet):
    if isinstance(packet, p.Connect) and not packet.client_id:
        return replace(packet, client_id="same")
    return packet


@hear
def disconnects_leave_a_will(packet):
    return changed(packet, p.Disconnect, code=4)


@hear
def disconnects_are_not_heard(packet):
    return None if isinstance(packet, p.Disconnect) else packet


@hear
def retain_is_not_heard(packet):
    return changed(packet, p.Publish, retain=False)


@hear
def all_is_retained(packet):
    return changed(packet, p.Publish, retain=True)


@hear
def expiries_are_ignored(packet):
    return without(packet, p.Publish, message_expiry_interval=None)


@hear
def aliases_are_ignored(packet):
    return without(packet, p.Publish, topic_alias=None)


@hear
def published_identifiers_are_ignored(packet):
    return without(packet, p.Publish, subscription_identifier=())


@hear
def topics_are_in_capitals(packet):
    return changed(packet, p.Publish, topic=getattr(packet, "topic", "").upper())


@hear
def everything_is_at_qos_1(packet):
    if isinstance(packet, p.Publish) and packet.qos == 2:
        return replace(packet, qos=1)
    return packet


@hear
def wildcards_match_all(packet):
    return with_filters(
        packet,
        lambda one: (
            replace(one, topic_filter=one.topic_filter.partition("+")[0] + "#")
            if "+" in one.topic_filter and "$" not in one.topic_filter
            else one
        ),
    )


@hear
def shares_are_not_shared(packet):
    def plain(one):
        _, share, rest = one.topic_filter.partition("$share/")
        return replace(one, topic_filter=rest.partition("/")[2] or "x") if share else one

    return with_filters(packet, plain)


@hear
def subscriptions_are_all_at_qos_0(packet):
    return with_filters(packet, lambda one: replace(one, qos=0))


@hear
def subscriptions_are_all_at_qos_2(packet):
    return with_filters(packet, lambda one: replace(one, qos=2))


@hear
def no_local_is_ignored(packet):
    return with_filters(packet, lambda one: replace(one, no_local=False))


@hear
def retain_handling_is_always_0(packet):
    return with_filters(packet, lambda one: replace(one, retain_handling=0))


@hear
def retain_handling_is_always_1(packet):
    return with_filters(packet, lambda one: replace(one, retain_handling=1))


@hear
def retain_handling_is_always_2(packet):
    return with_filters(packet, lambda one: replace(one, retain_handling=2))


@hear
def retain_is_always_as_published(packet):
    return with_filters(packet, lambda one: replace(one, retain_as_published=True))


@hear
def retain_is_never_as_published(packet):
    return with_filters(packet, lambda one: replace(one, retain_as_published=False))


@hear
def subscription_identifiers_are_ignored(packet):
    return without(packet, p.Subscribe, subscription_identifier=())


@hear
def only_the_last_filter_is_heard(packet):
    if isinstance(packet, p.Subscribe | p.Unsubscribe):
        return replace(packet, filters=packet.filters[-1:])
    return packet


@hear
def unsubscribes_take_nothing_away(packet):
    if isinstance(packet, p.Unsubscribe):
        return replace(packet, filters=tuple("none/such" for _ in packet.filters))
    return packet


@hear
def pubacks_are_not_heard(packet):
    return None if isinstance(packet, p.Puback) else packet


@hear
def pubrecs_are_not_heard(packet):
    return None if isinstance(packet, p.Pubrec) else packet


@hear
def pubcomps_are_not_heard(packet):
    return None if isinstance(packet, p.Pubcomp) else packet


# --- what is decided --------------------------------------------------------------------------


def faults_are_passed_over(monkeypatch):
    """Whoever does wrong stays connected; what it did wrong is not done."""
    monkeypatch.setattr(Hub, "_fail", lambda *_: None)


def time_stands_still(monkeypatch):
    monkeypatch.setattr(Hub, "wake", lambda *_: None)


def connections_are_not_taken_over(monkeypatch):
    monkeypatch.setattr(Hub, "take_over", lambda *_: None)


FAULTS += (faults_are_passed_over, time_stands_still, connections_are_not_taken_over)

"""Faults in what the face takes its clients to have said, and in its time and its judgement.

Owns these faults. Must not know the tests. Invariant: each fault is in one thing only.
"""

from msgspec.structs import replace

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.decoder import Decoder
from broker.mqtt.hub import Hub

HEARD = []


def hear(twist):
    """A fault in what is heard: `twist(packet)` gives the packet instead, or None for nothing."""

    def plant(monkeypatch):
        true = Decoder.decode

        def decode(self, data=b""):
            return [one for one in map(twist, true(self, data)) if one is not None]

        monkeypatch.setattr(Decoder, "decode", decode)

    plant.__name__ = twist.__name__
    HEARD.append(plant)
    return plant


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


HEARD += (faults_are_passed_over, time_stands_still, connections_are_not_taken_over)

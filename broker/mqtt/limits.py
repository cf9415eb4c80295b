"""Every bound of the MQTT face, each with its value and its reason.

Owns the numbers. Must not know who enforces them. Invariant: nothing that a client can make grow
is without a line here; each overflow has a stated policy and is counted (`broker.mqtt.counters`).
"""

from dataclasses import dataclass, field, fields
from typing import NamedTuple


class LimitText(NamedTuple):
    """One limit as the documentation and the command line show it."""

    name: str
    value: int
    reason: str


def _limit(value: int, reason: str) -> int:
    # The declared type is that of the attribute, not of the field object, as dataclasses want it.
    result: int = field(default=value, metadata={"reason": reason})
    return result


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one MQTT face. All are inclusive maxima; a negative value is refused."""

    connections_max: int = _limit(
        1_000, "one broker serves one site; more are closed at once, before they are read"
    )
    connect_timeout_ms: int = _limit(
        10_000, "a socket that says nothing must not hold a place; CONNECT is due within this"
    )
    connect_bytes_max: int = _limit(
        150_000, "a stranger may make the broker hold this much: a will of 64 KiB and its names"
    )
    packet_bytes_max: int = _limit(
        1_048_576, "a batch of 5,000 events fits; told to MQTT 5 clients as Maximum Packet Size"
    )
    topic_bytes_max: int = _limit(1_024, "longer names are mistakes; keeps caches of topics small")
    topic_levels_max: int = _limit(64, "bounds the depth of the subscription and retained trees")
    client_id_bytes_max: int = _limit(256, "the standard asks for 23; it is a key and a log field")
    user_properties_max: int = _limit(64, "MQTT 5 user properties of one packet; each is an object")
    filters_per_packet_max: int = _limit(1_000, "bounds the work of one SUBSCRIBE packet")
    subscriptions_per_client_max: int = _limit(1_000, "more: SUBACK tells quota exceeded")
    subscriptions_max: int = _limit(100_000, "about 60 MB of tree; more: quota exceeded")
    sessions_max: int = _limit(
        2_000, "kept sessions, with or without a connection; the longest absent one makes room"
    )
    session_expiry_s_max: int = _limit(
        86_400, "a client away for a day has to subscribe anew; MQTT 5 clients are told"
    )
    will_delay_s_max: int = _limit(3_600, "a later will tells nobody anything of use")
    receive_max: int = _limit(
        500, "unacknowledged QoS 1 publishes of one client towards the broker; then it must wait"
    )
    pending_bytes_per_client_max: int = _limit(
        4_194_304, "payload bytes of one client awaiting the journal; past it, it is not read"
    )
    pending_bytes_max: int = _limit(
        33_554_432, "the same over all clients; a Raspberry Pi has to live with it"
    )
    inflight_max: int = _limit(
        1_000, "unacknowledged QoS 1 messages towards one client, if it allows as many itself"
    )
    queue_messages_max: int = _limit(
        10_000, "per client and QoS; QoS 0 beyond is dropped and counted, QoS 1 ends the session"
    )
    queue_bytes_max: int = _limit(4_194_304, "the same in bytes, payload and overhead")
    queue_bytes_total_max: int = _limit(
        67_108_864, "all clients' queues together; what would pass it meets the same policy"
    )
    unsent_bytes_max: int = _limit(
        262_144, "bytes given to one socket that its peer did not take yet; then queues fill"
    )
    retained_messages_max: int = _limit(
        10_000, "a retained message beyond is routed but not retained, and the publisher is told"
    )
    retained_bytes_max: int = _limit(16_777_216, "the same in bytes of topic and payload")
    topic_alias_max: int = _limit(32, "MQTT 5 topic aliases a client may set: one per sensor topic")
    topics_cached_max: int = _limit(
        10_000, "topic names whose checks and matches are remembered; past it the cache is emptied"
    )
    password_checks_max: int = _limit(
        2, "at once: each takes 16 MiB and up to a tenth of a second of CPU; the others wait"
    )
    close_timeout_ms: int = _limit(
        2_000, "a closing connection may take this long to empty its socket; then it is cut"
    )

    def __post_init__(self) -> None:
        """Refuse a bound that cannot be one."""
        for item in self.texts():
            if item.value < 0:
                raise ValueError(f"limit {item.name} is {item.value}: it must not be negative")
        if not 1 <= self.receive_max <= 65_535 or not 1 <= self.inflight_max <= 65_535:
            raise ValueError("receive_max and inflight_max must lie in 1..65535")

    def texts(self) -> tuple[LimitText, ...]:
        """Name, value and reason of each, in the order of declaration."""
        return tuple(
            LimitText(item.name, getattr(self, item.name), item.metadata["reason"])
            for item in fields(self)
        )

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


def _limit(value: int, reason: str, least: int = 0, most: int = 2**53) -> int:
    # The declared type is that of the attribute, not of the field object, as dataclasses want it.
    metadata = {"reason": reason, "least": least, "most": most}
    result: int = field(default=value, metadata=metadata)
    return result


@dataclass(frozen=True, slots=True)
class MqttLimits:
    """The bounds of one MQTT face, all inclusive maxima. ValueError for one that cannot work."""

    connections_max: int = _limit(
        1_000, "one broker serves one site; more are closed at once, before they are read", least=1
    )
    connect_timeout_ms: int = _limit(
        10_000,
        "a socket that says nothing must not hold a place; CONNECT is due within this",
        least=1,
    )
    connect_bytes_max: int = _limit(
        150_000,
        "a stranger may make the broker hold this much: a will of 64 KiB and its names",
        least=1,
    )
    keep_alive_s_max: int = _limit(
        0,
        "an MQTT 5 client that asks for none or for longer is told this one; 0: as it asks",
        most=65_535,
    )
    packet_bytes_max: int = _limit(
        4_194_304,
        "beyond what a payload may be, which is refused with its reason up to this size",
        least=1,
        most=268_435_460,
    )
    partial_bytes_max: int = _limit(
        33_554_432, "packets of all clients that are not whole yet; who would pass it is closed"
    )
    topic_bytes_max: int = _limit(
        1_024, "longer names are mistakes; keeps caches of topics small", least=1, most=65_535
    )
    topic_levels_max: int = _limit(
        64, "bounds the depth of the subscription and retained trees", least=1
    )
    client_id_bytes_max: int = _limit(
        256, "the standard asks for 23; it is a key and a log field", least=1
    )
    user_properties_max: int = _limit(64, "MQTT 5 user properties of one packet; each is an object")
    filters_per_packet_max: int = _limit(1_000, "bounds the work of one SUBSCRIBE packet", least=1)
    subscriptions_per_client_max: int = _limit(1_000, "more: SUBACK tells quota exceeded")
    subscriptions_max: int = _limit(100_000, "about 60 MB of tree; more: quota exceeded")
    sessions_max: int = _limit(
        2_000,
        "kept sessions, with or without a connection; the longest absent one makes room",
        least=1,
    )
    session_expiry_s_max: int = _limit(
        86_400, "a client away for a day has to subscribe anew; MQTT 5 clients are told"
    )
    will_delay_s_max: int = _limit(3_600, "a later will tells nobody anything of use")
    receive_max: int = _limit(
        500,
        "QoS 1 and 2 publishes of one client that are not answered yet; then it must wait",
        least=1,
        most=65_535,
    )
    pending_bytes_per_client_max: int = _limit(
        4_194_304, "payload bytes of one client awaiting the journal; past it, it is not read"
    )
    pending_bytes_max: int = _limit(
        33_554_432, "the same over all clients; a Raspberry Pi has to live with it"
    )
    unkept_bytes_max: int = _limit(
        8_388_608, "what waits to be written to disk; past it, who publishes is not read"
    )
    inflight_max: int = _limit(
        1_000,
        "QoS 1 and 2 messages towards one client under way, if it allows as many itself",
        least=1,
        most=65_535,
    )
    queue_messages_max: int = _limit(
        10_000, "per client and QoS; QoS 0 beyond is dropped and counted, QoS 1 ends the session"
    )
    slow_publisher_ms: int = _limit(
        5_000,
        "from half a full queue on, who publishes for it is not read, at most so long at a time",
    )
    queue_bytes_max: int = _limit(
        4_194_304, "the same in bytes, payload and overhead; one message alone may be larger"
    )
    queue_bytes_total_max: int = _limit(
        67_108_864, "all clients' queues together; what would pass it meets the same policy"
    )
    unsent_bytes_max: int = _limit(
        262_144,
        "bytes given to one socket that its peer did not take yet; then queues fill",
        least=1,
    )
    retained_messages_max: int = _limit(
        10_000, "a retained message beyond is routed but not retained, and the publisher is told"
    )
    retained_bytes_max: int = _limit(16_777_216, "the same in bytes of topic and payload")
    topic_alias_max: int = _limit(
        32, "MQTT 5 topic aliases a client may set: one per sensor topic", most=65_535
    )
    sent_aliases_max: int = _limit(
        32,
        "topic aliases that the broker sets for an MQTT 5 client which takes as many; the first "
        "topics sent to it get them",
        most=65_535,
    )
    topics_cached_max: int = _limit(
        10_000,
        "topic names whose checks and matches are remembered; past it the cache is emptied",
        least=1,
    )
    password_checks_max: int = _limit(
        2,
        "at once: each takes 16 MiB and up to a tenth of a second of CPU; the others wait",
        least=1,
    )
    login_failures_max: int = _limit(
        10,
        "of one address within login_window_ms; then only logins that were good before pass there",
        least=1,
    )
    login_window_ms: int = _limit(
        60_000, "how long failed logins of an address are held against it", least=1
    )
    login_addresses_max: int = _limit(
        10_000, "addresses with failed logins that are remembered; the oldest makes room", least=1
    )
    close_timeout_ms: int = _limit(
        2_000, "a closing connection may take this long to empty its socket; then it is cut"
    )
    linger_bytes_max: int = _limit(
        16_777_216,
        "what a client still writes after its connection was closed is read so far, and discarded: "
        "else it would be reset and never read why",
    )

    def __post_init__(self) -> None:
        """Refuse a bound that cannot be one."""
        for item in fields(self):
            value, smallest, largest = getattr(self, item.name), *self._range(item.name)
            if not smallest <= value <= largest:
                raise ValueError(f"{item.name} is {value}: it must lie in {smallest}..{largest}")

    @classmethod
    def _range(cls, name: str) -> tuple[int, int]:
        metadata = cls.__dataclass_fields__[name].metadata
        return metadata["least"], metadata["most"]

    def texts(self) -> tuple[LimitText, ...]:
        """Name, value and reason of each, in the order of declaration."""
        return tuple(
            LimitText(item.name, getattr(self, item.name), item.metadata["reason"])
            for item in fields(self)
        )

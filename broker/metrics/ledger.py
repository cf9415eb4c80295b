"""All that a broker counts, as one scrape sees it, and the table of its metrics.

Owns the shape of the account and each metric's name, kind and meaning. Must not count anything
itself, nor know the text form. Invariant: each field of the account stands in the table once; a
counter's labels come from a closed list or are bounded by a limit.
"""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from broker.metrics.histogram import Histogram


class MetricsLedger(msgspec.Struct, frozen=True, kw_only=True):
    """The core's account of events as it stands, and what the faces add.

    The counters are those of `broker.engine.ledger`, under the same names: received = out +
    filtered + held + Σ dropped between any two messages. `detected` are the events that
    definitions made, `results` what subscriptions were told, `notes` what happened to events
    without ending them.
    """

    received: int = 0
    out: int = 0
    filtered: int = 0
    held: int = 0
    dropped: Mapping[str, int] = {}
    detected: int = 0
    detected_filtered: int = 0
    detected_dropped: Mapping[str, int] = {}
    results: int = 0
    notes: Mapping[str, int] = {}
    subscriptions: int = 0
    suspended: int = 0
    mqtt_clients: int = 0
    joins: Mapping[str, int] = {}
    join_messages: Mapping[str, int] = {}
    log_results: Mapping[str, int] = {}
    journal_bytes: Mapping[str, int] = {}
    disk_bytes: Mapping[str, int] = {}
    certificate_ends: Mapping[str, int] = {}
    links: Mapping[str, int] = {}
    link_events: Mapping[str, int] = {}
    link_messages: Mapping[str, int] = {}
    link_bytes: Mapping[str, int] = {}
    network: Mapping[str, int] = {}
    limits_broken: Mapping[str, int] = {}
    capacity: Mapping[str, int] = {}
    waited_for: Mapping[str, int] = {}
    stand_in: Mapping[str, int] = {}
    stand_in_behind: Mapping[str, int] = {}
    stands_in_for: Mapping[str, int] = {}
    intake_held: int = 0
    clock_jumps: int = 0
    clock_gap_s: float = 0
    clock_ahead_s: float = 0
    detection_s: Histogram = msgspec.field(default_factory=Histogram)
    journal_s: Histogram = msgspec.field(default_factory=Histogram)
    lag_s: Mapping[tuple[str, str], float] = {}


Kind = Literal["counter", "gauge", "histogram"]


class Family(msgspec.Struct, frozen=True):
    """One metric: its name in the ledger and in Prometheus, and its meaning.

    A metric with `labels` has a value for each key of a mapping: a text, or one for each label.
    The name of a counter gets `_total` at its end when it is written.
    """

    field: str
    name: str
    meaning: str
    labels: tuple[str, ...] = ()
    kind: Kind = "counter"


FAMILIES: Final = (
    Family("received", "headwater_events_received", "Events that came in, whatever became of them"),
    Family("out", "headwater_events_out", "Events that at least one task wanted"),
    Family("filtered", "headwater_events_filtered", "Events that no task wanted"),
    Family("dropped", "headwater_events_dropped", "Events refused or lost, by reason", ("reason",)),
    Family("held", "headwater_events_held", "Events on their way to the filterer", kind="gauge"),
    Family("detected", "headwater_detected", "Events that definitions detected"),
    Family("detected_filtered", "headwater_detected_filtered", "Of these, wanted by no task"),
    Family(
        "detected_dropped", "headwater_detected_dropped", "Of these, lost, by reason", ("reason",)
    ),
    Family("results", "headwater_results", "Results that subscriptions were told"),
    Family("notes", "headwater_notes", "What happened to events without ending them", ("note",)),
    Family("subscriptions", "headwater_subscriptions", "Subscriptions installed", kind="gauge"),
    Family(
        "suspended",
        "headwater_subscriptions_suspended",
        "Of these, suspended: a step would have taken too much work",
        kind="gauge",
    ),
    Family("mqtt_clients", "headwater_mqtt_clients", "MQTT clients connected", kind="gauge"),
    Family(
        "joins",
        "headwater_join_up",
        "1 while a joined MQTT server is connected, else 0",
        ("join",),
        kind="gauge",
    ),
    Family(
        "join_messages",
        "headwater_join_messages",
        "What joined servers' messages came to",
        ("what",),
    ),
    Family(
        "log_results",
        "headwater_log_results",
        "Results of the log that retention took, those unread, and repeats",
        ("what",),
    ),
    Family(
        "journal_bytes",
        "headwater_journal_bytes",
        "What the journal takes on disk, what waits for it, and its last snapshot",
        ("what",),
        kind="gauge",
    ),
    Family(
        "disk_bytes",
        "headwater_disk_bytes",
        "The disk of the data directory: `free`, and `size` in all",
        ("what",),
        kind="gauge",
    ),
    Family(
        "certificate_ends",
        "headwater_certificate_end_seconds",
        "When the certificate for `mqtt`, that for `links` and its authority's end, in Unix time",
        ("what",),
        kind="gauge",
    ),
    Family(
        "links",
        "headwater_link_up",
        "1 while the link to a broker is up, else 0",
        ("peer",),
        kind="gauge",
    ),
    Family("link_events", "headwater_link_events", "Events sent to a broker's link", ("peer",)),
    Family("link_messages", "headwater_link_messages", "Messages sent over links", ("kind",)),
    Family("link_bytes", "headwater_link_bytes", "Bytes of these, without their frames", ("kind",)),
    Family("network", "headwater_network", "What happened among brokers", ("what",)),
    Family(
        "waited_for",
        "headwater_waited_for",
        "1 while subscriptions here wait for a broker that is away, 0 while its promise holds",
        ("broker",),
        kind="gauge",
    ),
    Family(
        "stand_in",
        "headwater_stand_in_following",
        "1 while the stand-in of this broker follows it, else 0; `*` while there is no neighbour",
        ("broker",),
        kind="gauge",
    ),
    Family(
        "stand_in_behind",
        "headwater_stand_in_behind",
        "Changes of this broker that its stand-in is not known to have",
        ("broker",),
        kind="gauge",
    ),
    Family(
        "stands_in_for",
        "headwater_stands_in_for",
        "Subscriptions of another broker of which this one has a copy",
        ("broker",),
        kind="gauge",
    ),
    Family(
        "limits_broken",
        "headwater_plan_limits_broken",
        "1 for each limit of a broker that the plan breaks, whichever broker is asked",
        ("limit",),
        kind="gauge",
    ),
    Family(
        "capacity",
        "headwater_capacity_bytes_per_second",
        "Most that the tasks here may take in, by how it is known: configured or measured",
        ("how",),
        kind="gauge",
    ),
    Family(
        "intake_held",
        "headwater_intake_held",
        "1 while intake is held, as the disk fails or is behind, else 0",
        kind="gauge",
    ),
    Family("clock_jumps", "headwater_clock_jumps", "Jumps of the wall clock that were noticed"),
    Family(
        "clock_gap_s",
        "headwater_clock_gap_seconds",
        "How far the wall clock has jumped and is not yet believed, else 0",
        kind="gauge",
    ),
    Family(
        "clock_ahead_s",
        "headwater_clock_ahead_seconds",
        "How far the time of day is ahead of the steady clock, by jumps that were believed",
        kind="gauge",
    ),
    Family(
        "detection_s",
        "headwater_detection_latency_seconds",
        "From the end of what a result was made of until the result was given out",
        kind="histogram",
    ),
    Family(
        "journal_s",
        "headwater_journal_wait_seconds",
        "From when a group of records was handed to the journal until it was on the disk",
        kind="histogram",
    ),
    Family(
        "lag_s",
        "headwater_lag_seconds",
        "How far an origin's promise for what a task needs lies behind the time of day",
        ("origin", "task"),
        kind="gauge",
    ),
)

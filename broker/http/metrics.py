"""The ledger in Prometheus' text form.

Owns the names of the metrics; each stands here once, with its meaning. Must not count anything
itself. Invariant: a counter's name ends in `_total`, and its labels come from a closed list.
"""

from collections.abc import Callable, Iterable

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector, CollectorRegistry

from broker.http.facade import Ledger


class Family(msgspec.Struct, frozen=True):
    """One metric: its name in the ledger and in Prometheus, and its meaning.

    A metric with a `label` has a value for each key of a mapping; `counter` is False for a gauge.
    """

    field: str
    name: str
    meaning: str
    label: str = ""
    counter: bool = True


FAMILIES = (
    Family("received", "headwater_events_received", "Events that came in, whatever became of them"),
    Family("out", "headwater_events_out", "Events that at least one task wanted"),
    Family("filtered", "headwater_events_filtered", "Events that no task wanted"),
    Family("dropped", "headwater_events_dropped", "Events refused or lost, by reason", "reason"),
    Family("held", "headwater_events_held", "Events on their way to the filterer", counter=False),
    Family("detected", "headwater_detected", "Events that definitions detected"),
    Family("detected_filtered", "headwater_detected_filtered", "Of these, wanted by no task"),
    Family("detected_dropped", "headwater_detected_dropped", "Of these, lost, by reason", "reason"),
    Family("results", "headwater_results", "Results that subscriptions were told"),
    Family("notes", "headwater_notes", "What happened to events without ending them", "note"),
    Family("subscriptions", "headwater_subscriptions", "Subscriptions installed", counter=False),
    Family(
        "suspended",
        "headwater_subscriptions_suspended",
        "Of these, suspended: a step would have taken too much work",
        counter=False,
    ),
    Family("mqtt_clients", "headwater_mqtt_clients", "MQTT clients connected", counter=False),
    Family(
        "joins",
        "headwater_join_up",
        "1 while a joined MQTT server is connected, else 0",
        "join",
        counter=False,
    ),
    Family(
        "join_messages", "headwater_join_messages", "What joined servers' messages came to", "what"
    ),
    Family(
        "log_results",
        "headwater_log_results",
        "Results of the log that retention took, those unread, and repeats",
        "what",
    ),
    Family(
        "journal_bytes",
        "headwater_journal_bytes",
        "What the journal takes on disk, what waits for it, and its last snapshot",
        "what",
        counter=False,
    ),
    Family(
        "links",
        "headwater_link_up",
        "1 while the link to a broker is up, else 0",
        "peer",
        counter=False,
    ),
    Family("link_events", "headwater_link_events", "Events sent to a broker's link", "peer"),
    Family("network", "headwater_network", "What happened among brokers", "what"),
    Family(
        "waited_for",
        "headwater_waited_for",
        "1 while subscriptions here wait for a broker that is away, 0 while its promise holds",
        "broker",
        counter=False,
    ),
    Family(
        "limits_broken",
        "headwater_plan_limits_broken",
        "1 for each limit of a broker that the plan breaks, whichever broker is asked",
        "limit",
        counter=False,
    ),
    Family(
        "intake_held",
        "headwater_intake_held",
        "1 while intake is held, as the disk fails or is behind, else 0",
        counter=False,
    ),
    Family("clock_jumps", "headwater_clock_jumps", "Jumps of the wall clock that were noticed"),
    Family(
        "clock_gap_s",
        "headwater_clock_gap_seconds",
        "How far the wall clock has jumped and is not yet believed, else 0",
        counter=False,
    ),
    Family(
        "clock_ahead_s",
        "headwater_clock_ahead_seconds",
        "How far the time of day is ahead of the steady clock, by jumps that were believed",
        counter=False,
    ),
)


class LedgerCollector(Collector):
    """Reads the ledger anew for each scrape."""

    def __init__(self, ledger: Callable[[], Ledger], version: str) -> None:
        self._ledger = ledger
        self._version = version

    def collect(self) -> Iterable[Metric]:
        """One family for each row of the table, zeros included, and the build."""
        ledger = self._ledger()
        for row in FAMILIES:
            value = getattr(ledger, row.field)
            if row.label:
                family = CounterMetricFamily if row.counter else GaugeMetricFamily
                labelled = family(row.name, row.meaning, labels=[row.label])
                for key, count in value.items():
                    labelled.add_metric([key], count)
                yield labelled
            elif row.counter:
                yield CounterMetricFamily(row.name, row.meaning, value=value)
            else:
                yield GaugeMetricFamily(row.name, row.meaning, value=value)
        build = GaugeMetricFamily("headwater_build_info", "Always 1", labels=["version"])
        build.add_metric([self._version], 1)
        yield build


def exposition(ledger: Callable[[], Ledger], version: str) -> tuple[Callable[[], bytes], str]:
    """A function that renders the metrics of now, and their content type."""
    registry = CollectorRegistry()
    registry.register(LedgerCollector(ledger, version))
    ProcessCollector(registry=registry)
    return lambda: generate_latest(registry), CONTENT_TYPE_LATEST

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
    """One metric: its name in the ledger and in Prometheus, and its meaning."""

    field: str
    name: str
    meaning: str
    counter: bool = True


FAMILIES = (
    Family("received", "headwater_events_received", "Events that came in, whatever became of them"),
    Family("out", "headwater_events_out", "Events that took part in matching and were let go"),
    Family("filtered", "headwater_events_filtered", "Events that interested no task"),
    Family("dropped", "headwater_events_dropped", "Events refused or lost, by reason"),
    Family("held", "headwater_events_held", "Events still kept for tasks", counter=False),
    Family("results", "headwater_results", "Results that subscriptions were told"),
    Family("subscriptions", "headwater_subscriptions", "Subscriptions installed", counter=False),
    Family("mqtt_clients", "headwater_mqtt_clients", "MQTT clients connected", counter=False),
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
            if row.field == "dropped":
                dropped = CounterMetricFamily(row.name, row.meaning, labels=["reason"])
                for reason, count in value.items():
                    dropped.add_metric([reason], count)
                yield dropped
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

"""The ledger in Prometheus' text form.

Owns the translation. Must not count anything itself, nor know any metric. Invariant: each row of
the table of families is written, zeros included; a counter's name ends in `_total`.
"""

from collections.abc import Callable, Iterable
from math import inf
from typing import Any, Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector, CollectorRegistry

from broker.metrics.histogram import Histogram
from broker.metrics.ledger import FAMILIES, Family, Kind, MetricsLedger

_SIMPLE: Final[dict[Kind, type[CounterMetricFamily | GaugeMetricFamily]]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
}


class LedgerCollector(Collector):
    """Reads the ledger anew for each scrape."""

    def __init__(self, ledger: Callable[[], MetricsLedger], version: str) -> None:
        self._ledger = ledger
        self._version = version

    def collect(self) -> Iterable[Metric]:
        """One family for each row of the table, zeros included, and the build."""
        ledger = self._ledger()
        for row in FAMILIES:
            yield _written(row, getattr(ledger, row.field))
        build = GaugeMetricFamily("headwater_build_info", "Always 1", labels=["version"])
        build.add_metric([self._version], 1)
        yield build


def _written(row: Family, value: Any) -> Metric:
    """Return one family with its `value`, or a value for each key of its mapping."""
    if row.kind == "histogram":
        histogram: Histogram = value
        buckets = [(_bound(bound), total) for bound, total in histogram.cumulative()]
        return HistogramMetricFamily(row.name, row.meaning, buckets, histogram.sum)
    family = _SIMPLE[row.kind]
    if not row.labels:
        return family(row.name, row.meaning, value=value)
    labelled = family(row.name, row.meaning, labels=row.labels)
    for key, count in value.items():
        labelled.add_metric([key] if isinstance(key, str) else list(key), count)
    return labelled


def _bound(bound: float) -> str:
    return "+Inf" if bound == inf else str(bound)


def exposition(
    ledger: Callable[[], MetricsLedger], version: str
) -> tuple[Callable[[], bytes], str]:
    """A function that renders the metrics of now, and their content type."""
    registry = CollectorRegistry()
    registry.register(LedgerCollector(ledger, version))
    ProcessCollector(registry=registry)
    return lambda: generate_latest(registry), CONTENT_TYPE_LATEST

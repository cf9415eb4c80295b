"""What a broker counts and measures, as Prometheus reads it.

Problem: counters grow in many rooms (the core's ledger, the journal, links, MQTT), and a program
that scrapes wants all of them under stable names, with distributions where a mean would hide what
matters. Yet counting must cost next to nothing for an event.

    core, journal, links ── counters ─────────▶ ledger (one struct, made for a scrape)
    results that leave, records that are durable ─▶ histogram (fixed buckets)      │
                                                       └───────────────────────────┤
                                        families (one table: name, meaning, kind)  ▼
                                                             exposition ──▶ GET /metrics

Owns the names and meanings of metrics, the buckets, and the text form. Must not know what is
counted or how a scrape comes in. Invariant: each name stands in the table of families once; a
histogram's counts never fall; nothing here is done for each event: observations come a batch at a
time, and all else is read when somebody scrapes.

The way: `broker.site.facade` fills a `MetricsLedger`, and `exposition` renders it.
"""

from broker.metrics.histogram import Histogram
from broker.metrics.ledger import MetricsLedger

__all__ = ["Histogram", "MetricsLedger"]

"""docs/metrics.md, written from the table of families.

Owns the page's words about what all metrics share. Must not know a scrape. Invariant: each family
has one row, under the name that a scrape has.
"""

from broker.metrics.histogram import LATENCY_S
from broker.metrics.ledger import FAMILIES, Family

HEAD = """\
# Metrics

<!-- Written by `make docs` from the table in broker/metrics/ledger.py; edit that. -->

`GET /metrics` of a broker is in Prometheus' text form. Where a broker has users, a scrape needs the
right `look`: a [token](rights.md) for Prometheus has no other.

Counters begin at 0 with each start of the process and end in `_total`. A histogram has the series
`_bucket`, `_sum` and `_count`; its buckets end at {bounds} s, and have no upper end at the last.
`headwater_build_info` is always 1 and has the label `version`; the process itself is under
`process_`. Which alarms rest on them is told in [Monitoring](monitoring.md).

| metric | kind | labels | meaning |
|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    head = HEAD.format(bounds=", ".join(f"{bound:g}" for bound in LATENCY_S))
    return head + "".join(_row(family) for family in FAMILIES)


def _row(family: Family) -> str:
    name = family.name + "_total" * (family.kind == "counter")
    labels = ", ".join(f"`{label}`" for label in family.labels)
    return f"| `{name}` | {family.kind} | {labels} | {family.meaning} |\n"

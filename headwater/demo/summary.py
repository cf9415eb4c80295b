"""The demonstration's outcome in figures and in lines.

Owns what is told at the end. Must not judge it. Invariant: the lines say nothing that the figures
do not hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwater.demo.layout import LinkLoad
from headwater.demo.material import DemoMaterial
from headwater.demo.tally import ResultTally, quantile_ms


def figures(
    material: DemoMaterial,
    tally: ResultTally,
    account: Mapping[str, int],
    played_s: float,
    began_s: float,
) -> dict[str, Any]:
    """Everything that was counted and measured, for programs."""
    every = [latency for latencies_s in tally.latencies_s.values() for latency in latencies_s]
    first_s = None if tally.first_s is None else round(tally.first_s - began_s, 3)
    return {
        "events": material.readings_count,
        "stations": sum(len(recording.stations) for recording in material.recordings),
        "played_s": round(played_s, 3),
        "events_per_s": round(material.readings_count / played_s, 1),
        "results": tally.total,
        "first_result_s": first_s,
        "latency_ms": {"p50": _rounded(every, 0.5), "p99": _rounded(every, 0.99)},
        "subscriptions": {
            name: {
                "results": count,
                "expected": tally.expected[name],
                "latency_ms": {
                    "p50": _rounded(tally.latencies_s[name], 0.5),
                    "p99": _rounded(tally.latencies_s[name], 0.99),
                },
            }
            for name, count in tally.counts.items()
        },
        "broker": dict(account),
        "dropped": sum(count for key, count in account.items() if key.startswith("dropped")),
        "complaints": tally.complaints,
    }


def link(one: LinkLoad) -> dict[str, Any]:
    """One link for programs: events that went over it, and what a central server would need."""
    return {
        "link": f"{one.child} – {one.parent}",
        "messages": one.events,
        "central": one.central,
    }


def lines(told: Mapping[str, Any], left_out: int) -> list[str]:
    """The same for people; `left_out` results were not shown."""
    rows = [["subscription", "results", "expected", "p50 ms", "p99 ms"]]
    for name, row in told["subscriptions"].items():
        latency = row["latency_ms"]
        texts = [f"{row['results']:,}", f"{row['expected']:,}"]
        rows.append([name, *texts, _shown(latency["p50"]), _shown(latency["p99"])])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    table = [
        "  ".join(
            [row[0].ljust(widths[0])]
            + [text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)]
        )
        for row in rows
    ]
    first = "none" if told["first_result_s"] is None else f"after {told['first_result_s']:.1f} s"
    latency = told["latency_ms"]
    counts = ", ".join(
        f"{key} {count:,}" for key, count in told["broker"].items() if "dropped" not in key
    )
    sampled = [f"({left_out:,} results were left out above; --json shows all)"] if left_out else []
    events = (
        f"{told['events']:,} events of {told['stations']} stations in {told['played_s']:.1f} s: "
        f"{told['events_per_s']:,.0f} events/s, by MQTT at QoS 1"
    )
    results = (
        f"{told['results']:,} results, the first {first}; detection latency "
        f"p50 {_shown(latency['p50'])} ms, p99 {_shown(latency['p99'])} ms"
    )
    meaning = (
        "  from the publication of the reading that completes a result, or closes its window, "
        "to the result's arrival"
    )
    broker = f"brokers: {counts}, dropped {told['dropped']:,}"
    return [*sampled, "", *table, "", events, results, meaning, broker, "", *_links(told["links"])]


def _links(links: Sequence[Mapping[str, Any]]) -> list[str]:
    """List what went over each link beside what a server at the root would have had sent there."""
    total = {
        "link": "all links",
        "messages": sum(carried["messages"] for carried in links),
        "central": sum(carried["central"] for carried in links),
    }
    cells = [
        [carried["link"], f"{carried['messages']:,}", f"{carried['central']:,}"]
        for carried in [*links, total]
    ]
    rows = [["link", "messages", "central server"], *cells]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        "  ".join([row[0].ljust(widths[0]), row[1].rjust(widths[1]), row[2].rjust(widths[2])])
        for row in rows
    ]


def _rounded(latencies_s: list[float], share: float) -> float | None:
    latency_ms = quantile_ms(latencies_s, share)
    return None if latency_ms is None else round(latency_ms, 2)


def _shown(latency_ms: float | None) -> str:
    return "-" if latency_ms is None else f"{latency_ms:.1f}"

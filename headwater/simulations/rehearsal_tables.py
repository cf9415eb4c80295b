"""What a rehearsal came to: as a document, and as tables for people.

Owns the words and columns. Must not know how the figures came about. Invariant: the tables say
nothing that the document does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker.network.overlay.kinds import table_of
from simulation.rehearsal.compare import Compared, RehearsalComparison
from simulation.rehearsal.faults import NetworkFault, told
from simulation.rehearsal.links import RehearsalTraffic
from simulation.rehearsal.material import Material
from simulation.rehearsal.run import RehearsalOutcome, Worked

Document = dict[str, Any]


def report(
    material: Material,
    faults: Sequence[NetworkFault],
    outcome: RehearsalOutcome,
    comparison: RehearsalComparison,
) -> Document:
    """The document; units stand in the names."""
    return {
        "brokers": len(material.network.brokers),
        "events": len(material.events),
        "from": told(material.first_ms),
        "to": told(material.last_ms),
        "faults": [_fault(fault) for fault in faults],
        "equal": comparison.equal,
        "subscriptions": {
            "/".join(key): {"home": results.broker, **_compared(results)}
            for key, results in comparison.subscriptions.items()
        },
        "actors": {
            f"{actor}@{broker}": _compared(results)
            for (actor, broker), results in comparison.actors.items()
        },
        "links": {f"{a} -> {b}": _carried(link) for (a, b), link in outcome.links.items()},
        "kinds": table_of([carried.kinds for carried in outcome.links.values()]),
        "withdrawal": outcome.withdrawal,
        "per_broker": {name: _worked(worked) for name, worked in outcome.brokers.items()},
        "unsettled": outcome.unsettled,
    }


def _fault(one: NetworkFault) -> Document:
    document: Document = {"kind": one.kind, "brokers": list(one.brokers)}
    document |= {"from": told(one.at_ms), "to": told(one.over_ms)}
    return document | ({"by_ms": one.by_ms} if one.kind == "slow" else {})


def _compared(one: Compared) -> Document:
    document: Document = {
        "expected": one.expected,
        "found": one.found_count,
        "equal": one.equal,
        "missing": one.missing_count,
        "surplus": one.surplus_count,
        "twice": one.twice,
    }
    if one.missing:
        document["missing_ids"] = one.missing
    if one.surplus:
        document["surplus_ids"] = one.surplus
    if one.later is not None:
        document |= {
            "later": one.later.count,
            "later_median_ms": one.later.median_ms,
            "later_most_ms": one.later.most_ms,
        }
    return document


def _carried(one: RehearsalTraffic) -> Document:
    return {
        "messages": one.messages,
        "bytes": one.size_bytes,
        "events": one.events,
        "events_bytes": one.events_bytes,
        "results": one.results,
        "results_bytes": one.results_bytes,
        "refused": one.refused,
    }


def _worked(one: Worked) -> Document:
    return {
        "received": one.received,
        "processed": one.processed,
        "late": one.late,
        "rejected": one.rejected,
        "held_most": one.held_most,
        "state_bytes_most": one.state_bytes_most,
        "retained_most": one.retained_most,
        "ends": one.ends,
        "notes": one.notes,
    }


# --- for people ---------------------------------------------------------------------------------


def table(document: Document) -> list[str]:
    """The report as lines of text."""
    when = f"from {document['from']} to {document['to']}"
    lines = [f"{document['events']:,} events {when}, {document['brokers']} brokers"]
    lines += [_sentence(fault) for fault in document["faults"]]
    lines += ["", *_results("subscription", document["subscriptions"])]
    if document["actors"]:
        lines += ["", *_results("actor elsewhere", document["actors"])]
    heads = ["link", "messages", "bytes", "events", "of events", "of results"]
    rows = [
        [
            name,
            f"{link['messages']:,}",
            f"{link['bytes']:,}",
            f"{link['events']:,}",
            f"{link['events_bytes']:,}",
            f"{link['results_bytes']:,}",
        ]
        for name, link in document["links"].items()
    ]
    lines += ["", *columns(heads, rows)]
    heads = ["for", "messages", "bytes"]
    rows = [
        [kind, f"{traffic['messages']:,}", f"{traffic['bytes']:,}"]
        for kind, traffic in document["kinds"].items()
    ]
    lines += ["", *columns(heads, rows), *_withdrawal(document["withdrawal"])]
    heads = ["broker", "received", "processed", "late", "held", "state, bytes", "kept for others"]
    rows = [
        [
            name,
            f"{broker['received']:,}",
            f"{broker['processed']:,}",
            f"{broker['late']:,}",
            f"{broker['held_most']:,}",
            f"{broker['state_bytes_most']:,}",
            f"{broker['retained_most']:,}",
        ]
        for name, broker in document["per_broker"].items()
    ]
    lines += ["", *columns(heads, rows), ""]
    if "energy" in document:
        lines += [*_energy(document["energy"]), ""]
    late = {
        name: broker["late"] for name, broker in document["per_broker"].items() if broker["late"]
    }
    if late:
        where = ", ".join(f"{count:,} at {name}" for name, count in late.items())
        lines.append(f"events that came too late: {where}; see --lateness and --idle")
    return [*lines, _verdict(document)]


def _withdrawal(kinds: Document) -> list[str]:
    messages, size_bytes = (
        sum(row[key] for row in kinds.values()) for key in ("messages", "bytes")
    )
    text = f"to withdraw all sources in the end: {messages:,} messages, {size_bytes:,} bytes more"
    return [text] if messages else []


def _energy(document: Document) -> list[str]:
    parts = ("transmit_j", "receive_j", "listen_j", "compute_j", "total_j")
    heads = ["broker", "transmit, J", "receive, J", "listen, J", "compute, J", "together, J"]
    nodes = {**document["brokers"], "all": document}
    rows = [[name, *(f"{energy[part]:,.3f}" for part in parts)] for name, energy in nodes.items()]
    return columns(heads, rows)


def _sentence(one: Document) -> str:
    where = "-".join(one["brokers"])
    what = {"cut": "is cut", "end": "ends", "slow": f"takes {one.get('by_ms')} ms more"}
    return f"{where} {what[one['kind']]} from {one['from']} to {one['to']}"


def _results(head: str, some: Document) -> list[str]:
    delayed = any("later" in results for results in some.values())
    heads = [head, "expected", "found", "missing", "surplus", "twice"]
    heads += ["later", "median", "most"] if delayed else []
    rows = []
    for name, results in some.items():
        row = [name, *(f"{results[key]:,}" for key in ("expected", "found"))]
        row += [f"{results[key]:,}" for key in ("missing", "surplus", "twice")]
        if delayed:
            row += [f"{results['later']:,}", _seconds(results["later_median_ms"])]
            row.append(_seconds(results["later_most_ms"]))
        rows.append(row)
    return columns(heads, rows)


def _seconds(time_ms: int) -> str:
    return f"{time_ms / 1000:,.1f} s" if time_ms else ""


def _verdict(document: Document) -> str:
    if document["unsettled"]:
        return f"not at rest in the end: {', '.join(document['unsettled'])}"
    if document["equal"]:
        what = "with these faults" if document["faults"] else "without faults"
        twice = sum(actor["twice"] for actor in document["actors"].values())
        more = f"; {twice:,} twice to an actor elsewhere, as QoS 1 allows" if twice else ""
        return f"every result came {what}, once{more}"
    return "the results differ from those of one engine"


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell, numbers to the right."""
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        return "  ".join(
            [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        ).rstrip()

    return [line(heads), *map(line, rows)]

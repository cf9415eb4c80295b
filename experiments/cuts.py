"""Rows that a program of the least flow lacks: found where its relaxation breaks them.

Owns what is sent from the partials of an aggregate to its header. Must not know the solver.
Invariant: every plan keeps every row.

Where a partial is at one of some brokers and the header at one of some others, something goes from
the ones to the others. There are too many such pairs of sets to write them all down; the one that
is broken most, by a partial and the header of a relaxation, is a least cut of a network in which
the partial's places are sources, and the header's are sinks.
"""

from collections.abc import Sequence
from typing import Any

from planner.program import Formulation, Meeting

BROKEN_MIN = 0.01  # what is broken less is not worth a row
FINE = 1_000_000  # cuts are sought in whole numbers of these parts

Row = tuple[list[tuple[int, float]], float]
"""Terms, and what their sum is at least."""


def broken(formulation: Formulation, values: Sequence[float]) -> list[Row]:
    """Rows that a relaxation's solution breaks; one for each partial at most."""
    found = []
    for meeting in formulation.meetings:
        for piece in meeting.aggregate.partials:
            row = _least_cut(formulation, meeting, piece, values)
            if row is not None:
                found.append(row)
    return found


def _least_cut(
    formulation: Formulation, meeting: Meeting, piece: int, values: Sequence[float]
) -> Row | None:
    import networkx as nx  # takes long to import, and only the exact method needs it here

    partial, header = formulation.at[piece], formulation.at[meeting.aggregate.header]
    graph: Any = nx.DiGraph()
    graph.add_nodes_from(("source", "sink"))
    for host, column in partial.items():
        _join(graph, "source", ("partial", host), values[column])
    for node, column in header.items():
        _join(graph, ("header", node), "sink", values[column])
    for (host, node), column in meeting.columns.items():
        if host in partial:
            _join(graph, ("partial", host), ("header", node), values[column])
    through, (near, _) = nx.minimum_cut(graph, "source", "sink")
    if through >= (1 - BROKEN_MIN) * FINE:
        return None
    hosts = [host for host in partial if ("partial", host) in near]
    nodes = [node for node in header if ("header", node) not in near]
    terms = [(meeting.columns[host, node], 1.0) for host in hosts for node in nodes]
    terms += [(partial[host], -1.0) for host in hosts]
    terms += [(header[node], -1.0) for node in nodes]
    return terms, -1.0


def _join(graph: Any, a: object, b: object, value: float) -> None:
    if value > 0:
        graph.add_edge(a, b, capacity=round(value * FINE))

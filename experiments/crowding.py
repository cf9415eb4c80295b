"""Rows that keep parts of pieces from standing where there is room for parts of them alone.

Owns these rows, which all plans keep. Must not know the solver. Invariant: every plan keeps every
row.

Of those that want a stream, no more are at a broker than fit, if it comes there or begins there:
the limit of the broker's work times whether the stream is there, and what follows as pieces are
whole (Chvátal and Gomory). Else parts of all pieces would fit where parts of the stream are.
"""

from collections.abc import Iterator, Sequence
from math import floor, inf

from experiments.fillings import Row
from planner.flow import ROOM_RELATIVE
from planner.layout import Stream
from planner.program import Formulation

COUNTED_MAX = 1e12  # units that are told from one more of them


def rows(formulation: Formulation) -> Iterator[Row]:
    """Yield the rows of all streams over links, each with what its sum is at least."""
    for stream in formulation.layout.streams:
        if (used := formulation.carries.get(stream.name)) is not None:
            for node in range(len(formulation.net.names)):
                if node != stream.origin:
                    yield from _at_broker(formulation, stream, node, used)


def _at_broker(
    formulation: Formulation, stream: Stream, node: int, used: Sequence[int]
) -> Iterator[Row]:
    limit = formulation.layout.problem.nodes[node].capacity
    columns, pieces = formulation.at, formulation.layout.pieces
    room = inf if limit is None else limit * (1 + ROOM_RELATIVE)
    wanting = [piece for piece in dict.fromkeys(stream.consumers) if node in columns[piece]]
    hosted = [(columns[piece][node], float(pieces[piece].cost)) for piece in wanting]
    hosted = [(column, cost) for column, cost in hosted if 0 < cost <= room]
    sender = {} if stream.piece is None else columns[stream.piece]
    beside = room - float(pieces[stream.piece].cost) if stream.piece is not None else room
    for unit in dict.fromkeys((0.0, *(cost for _, cost in hosted))):
        counts = [_units(cost, unit) for _, cost in hosted]
        if sum(counts) > COUNTED_MAX and unit:
            continue
        most = min(sum(counts), _units(room, unit))
        rest = min(sum(counts), _units(max(0.0, beside), unit))
        if most == sum(counts) and (node not in sender or rest == most):
            continue  # then each of them for itself says as much
        terms = [(column, -count) for (column, _), count in zip(hosted, counts, strict=True)]
        terms += [(used[number], most) for number in formulation.inward[node]]
        terms += [(sender[node], rest)] if node in sender else []
        yield [(column, count) for column, count in terms if count], 0.0


def _units(cost: float, unit: float) -> float:
    """Count the whole units that a cost has; without a unit, return the cost."""
    if not unit:
        return cost
    units = cost / unit * (1 + ROOM_RELATIVE)
    return floor(units) if units < inf else inf

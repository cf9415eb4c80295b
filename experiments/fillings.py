"""Rows by which a broker holds whole pieces: what it can hold together, and what that brings along.

Owns one broker's fillings. Must not know the solver's program beyond its columns. Invariant: every
plan keeps every row.

A relaxation puts a part of each piece of a cluster at a broker, and the same part of each stream
comes there, though the broker could never hold all of them. What is at a broker in a plan is one
*filling*: some pieces that fit together, what they want and do not get from one another comes in,
and what they send to others goes out. So what is at a broker in a relaxation must be a mixture of
fillings; where it is none, a row tells them apart. It is found by a linear program over the
fillings of the pieces that are there in part, and its right side is counted anew over all of these.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt

from planner.flow import ROOM_RELATIVE
from planner.layout import Stream
from planner.program import Formulation, Meeting, Terms

PART_MIN = 1e-4  # a smaller part of a piece is none
FILLINGS_MAX = 3000  # of the pieces with the greatest parts; with more, some are left out
BROKEN_MIN = 0.01  # what is broken less is not worth a row
FINE = 1e-6  # what coefficients are rounded to
SPARE = 1e-7

Row = tuple[Terms, float]
Matrix = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Mixture = Callable[[Matrix, Matrix, Matrix], tuple[Matrix, Matrix] | None]
"""From the pieces and needs of fillings and what a relaxation has of both: what a piece is worth,
and what a need costs, where no mixture of fillings is as much."""


@dataclass
class Need:
    """What must come or go if a filling says so: columns whose sum is then at least one."""

    columns: list[int]
    by: Flags
    """By filling: whether it must."""


def broken(
    formulation: Formulation,
    values: Sequence[float],
    mixture: Mixture,
    late: Callable[[], bool] = lambda: False,
) -> list[Row]:
    """Rows that a relaxation's solution breaks; one for each broker at most, until it is late."""
    found = []
    for node in range(len(formulation.net.names)):
        if late():
            break
        row = _Broker(formulation, node, values).row(mixture)
        if row is not None:
            found.append(row)
    return found


class _Broker:
    """One broker, the pieces that are there in part, and their fillings."""

    def __init__(self, formulation: Formulation, node: int, values: Sequence[float]) -> None:
        self.formulation, self.node, self.values = formulation, node, values
        layout = formulation.layout
        limit = layout.problem.nodes[node].capacity
        self.room = inf if limit is None else limit * (1 + ROOM_RELATIVE)
        there = [
            (values[at[node]], -piece)
            for piece, at in enumerate(formulation.at)
            if node in at and values[at[node]] > PART_MIN and layout.pieces[piece].cost <= self.room
        ]
        self.pieces = [-piece for _, piece in sorted(there, reverse=True)]
        """Those with the greatest parts; the others count as elsewhere, or relieve a need."""

    def row(self, mixture: Mixture) -> Row | None:
        """A row that all fillings keep and the relaxation breaks; None where there is none."""
        if sum(self._cost(piece) for piece in self.pieces) <= self.room:
            return None
        held = self._fillings()
        needs = self._needs(held)
        columns = [self.formulation.at[piece][self.node] for piece in self.pieces]
        parts = np.array([self.values[column] for column in columns])
        must = np.array([need.by for need in needs], dtype=np.float64).reshape(-1, len(held)).T
        has = np.array([sum(self.values[c] for c in need.columns) for need in needs])
        found = mixture(held.astype(np.float64), must, np.concatenate([parts, has]))
        if found is None:
            return None
        worth, price = (np.round(np.maximum(some, 0.0) / FINE) * FINE for some in found)
        most = float((held @ worth - must @ price).max()) + SPARE
        if parts @ worth - has @ price <= most + BROKEN_MIN:
            return None
        terms: dict[int, float] = {}
        for column, value in zip(columns, worth.tolist(), strict=True):
            terms[column] = terms.get(column, 0.0) - value
        for need, value in zip(needs, price.tolist(), strict=True):
            for column in need.columns:
                terms[column] = terms.get(column, 0.0) + value
        return [(column, value) for column, value in terms.items() if value], -most

    def _cost(self, piece: int) -> float:
        return float(self.formulation.layout.pieces[piece].cost)

    def _fillings(self) -> Flags:
        """All sets of pieces that fit together, a row each; pieces that make too many are left."""
        sets: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
        for number, piece in enumerate(self.pieces):
            cost = self._cost(piece)
            more = [(work + cost, (*held, number)) for work, held in sets]
            more = [(work, held) for work, held in more if work <= self.room]
            if len(sets) + len(more) > FILLINGS_MAX:
                self.pieces = self.pieces[:number]
                break
            sets += more
        found = np.zeros((len(sets), len(self.pieces)), dtype=bool)
        for row, (_, held) in enumerate(sets):
            found[row, list(held)] = True
        return found

    def _needs(self, held: Flags) -> list[Need]:
        """What the fillings need that these pieces want and send."""
        formulation = self.formulation
        place = {piece: number for number, piece in enumerate(self.pieces)}
        found = []
        for stream in formulation.layout.streams:
            if (used := formulation.carries.get(stream.name)) is not None:
                inward = [used[number] for number in formulation.inward[self.node]]
                outward = [used[number] for number in formulation.outward[self.node]]
                found.append(self._comes(stream, held, place, inward))
                found.append(self._goes(stream, held, place, outward))
        for meeting in formulation.meetings:
            found += self._meets(meeting, held, place)
        return [need for need in found if need is not None and need.by.any()]

    def _comes(
        self,
        stream: Stream,
        held: Flags,
        place: dict[int, int],
        columns: list[int],
    ) -> Need | None:
        """A stream comes where a piece wants it, unless it begins there."""
        wanting = [place[piece] for piece in stream.consumers if piece in place]
        if stream.origin == self.node or not wanting:
            return None
        by: Flags = np.asarray(held[:, wanting].any(axis=1))
        return self._unless(by, stream.piece, held, place, columns)

    def _goes(
        self,
        stream: Stream,
        held: Flags,
        place: dict[int, int],
        columns: list[int],
    ) -> Need | None:
        """A stream goes on where it begins, unless all that want it are there."""
        if stream.piece not in place:
            return None
        begins: Flags = held[:, place[stream.piece]]
        if any(node != self.node for node in stream.destinations):
            return Need(columns, begins)
        return self._unless_all(begins, stream.consumers, held, place, columns)

    def _meets(self, meeting: Meeting, held: Flags, place: dict[int, int]) -> list[Need | None]:
        """Where a partial is without the header, it sends; a header gets what is not with it."""
        aggregate, node = meeting.aggregate, self.node
        goes = [c for (host, at), c in meeting.columns.items() if host == node != at]
        comes = [c for (host, at), c in meeting.columns.items() if at == node != host]
        found: list[Need | None] = []
        partials = [place[piece] for piece in aggregate.partials if piece in place]
        if partials:
            some: Flags = np.asarray(held[:, partials].any(axis=1))
            found.append(self._unless(some, aggregate.header, held, place, goes))
        if aggregate.header in place:
            merges: Flags = held[:, place[aggregate.header]]
            found.append(self._unless_all(merges, aggregate.partials, held, place, comes))
        return found

    def _unless(
        self,
        by: Flags,
        other: int | None,
        held: Flags,
        place: dict[int, int],
        columns: list[int],
    ) -> Need:
        """A need that there is not where a piece is at the broker too."""
        if other in place:
            return Need(columns, by & ~held[:, place[other]])
        if other is not None and (column := self.formulation.at[other].get(self.node)) is not None:
            return Need([*columns, column], by)
        return Need(columns, by)

    def _unless_all(
        self,
        by: Flags,
        others: Sequence[int],
        held: Flags,
        place: dict[int, int],
        columns: list[int],
    ) -> Need:
        """A need that there is not where all of some pieces are at the broker too."""
        away = [piece for piece in others if piece not in place]
        if away:  # one of them is enough to be relieved
            return self._unless(by, away[0], held, place, columns)
        return Need(columns, by & ~held[:, [place[piece] for piece in others]].all(axis=1))

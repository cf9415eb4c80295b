"""Whether what a neighbour has been asked for covers what would be asked of it now (paper 002,
section V.B, "set filtering").

Owns the boxes of one class of operators, those that may cover each other: the same keys, mandatory
and optional alike, and the same distances. Must not know operators: who compares them maps each to
a box. Invariant: an answer depends on the boxes held and the order in which they came, on nothing
else; "covered" is right unless the check is the sampling one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from operator import gt
from typing import TYPE_CHECKING

from broker.network.routing.covering.boxes import Box
from broker.network.routing.covering.covering_exact import BUDGET, Verdict, search
from broker.network.routing.covering.covering_table import Table, sides_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.network.routing.covering.covering_table import Row


class Check(Enum):
    """Choose how covering is decided."""

    NONE = "none"
    """Nothing is covered but what is empty."""
    PAIRWISE = "pairwise"
    """By one other box."""
    EXACT = "exact"
    """By other boxes together."""
    SAMPLED = "sampled"
    """By other boxes together, as a sampler tells that whoever asks brings along."""


Sampler = Callable[[Box, "list[Row]", int], bool]
"""Tells by a seed whether rows that all meet a box seem to cover it together."""


@dataclass(slots=True)
class Counts:
    """Count what an index was asked so far.

    `parts` is the work of the exact checks, see `search`.
    """

    checks: int = 0  # questions asked
    covered: int = 0  # those answered with yes
    parts: int = 0
    over_budget: int = 0  # answers that may be a false no


def covered(box: Box, boxes: Sequence[Box], budget: int = BUDGET) -> bool:
    """Tell whether these boxes together cover the box; exact up to the budget, beyond it False."""
    return decide(box, boxes, budget).covered


def decide(box: Box, boxes: Sequence[Box], budget: int = BUDGET) -> Verdict:
    """The same with what it took, and which boxes it needed."""
    table = Table(box.axes)
    for place, each in enumerate(boxes):
        table.add(str(place), each.inner())
    return search(box, table.meeting(box), budget)  # rows are numbered as they are added


def pairwise(box: Box, boxes: Sequence[Box]) -> bool:
    """Tell whether one of these boxes covers the box."""
    return box.empty or any(each.inner().surrounds(box) for each in boxes)


class CoverIndex:
    """The boxes of one class of operators under their names."""

    def __init__(
        self,
        axes: int,
        check: Check = Check.EXACT,
        *,
        budget: int = BUDGET,
        sampler: Sampler | None = None,
    ) -> None:
        self._check = check  # fixed: answers by different checks cannot be mixed
        self._budget = budget  # parts of one exact search
        self._sampler = sampler
        self._table = Table(axes)  # of the boxes as they surely are, never wider
        self.counts = Counts()  # for the benches; no answer depends on them

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, name: str) -> bool:
        return name in self._table

    def add(self, name: str, box: Box) -> None:
        """Hold a box. ValueError: the name is taken, or the axes are not those of the class."""
        self._table.add(name, box.inner())

    def remove(self, name: str) -> None:
        """Forget a box. KeyError: there is none of that name."""
        self._table.remove(name)

    def covers(self, box: Box, seed: int = 0) -> bool:
        """Tell whether what is held covers the box; `seed` is what a sampling check draws from."""
        return self.covered_by(box, seed) is not None

    def covered_by(self, box: Box, seed: int = 0) -> tuple[str, ...] | None:
        """The names of boxes that together cover this one, oldest first; None: not covered.

        As long as these are held the box stays covered, whatever else comes and goes. They are not
        always the fewest. A sampling check cannot tell which are needed: it names all that meet it.
        """
        names = self._decide(box, seed)
        self.counts.checks += 1
        self.counts.covered += names is not None
        return names

    def _decide(self, box: Box, seed: int) -> tuple[str, ...] | None:
        if box.empty:
            return ()
        if self._check is Check.NONE or not len(self._table):
            return None
        rows = self._table.meeting(box)
        if self._check is Check.PAIRWISE:
            sides = sides_of(box)
            around = [row[-1] for row in rows if not any(map(gt, row, sides))]
            return (self._table.name(min(around)),) if around else None
        if self._check is Check.SAMPLED:
            return self._sample(box, rows, seed)
        found = search(box, rows, self._budget)
        self.counts.parts += found.parts
        self.counts.over_budget += found.over_budget
        return tuple(map(self._table.name, found.places)) if found.covered else None

    def _sample(self, box: Box, rows: list[Row], seed: int) -> tuple[str, ...] | None:
        if self._sampler is None or not self._sampler(box, rows, seed):
            return None
        return tuple(self._table.name(number) for number in sorted(row[-1] for row in rows))

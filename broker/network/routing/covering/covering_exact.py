"""Whether boxes together cover a box: exactly, by subtraction.

Owns the search alone. Must not know whose boxes they are, nor how they are kept. Invariant: the
answer "covered" is never wrong; "not covered" is wrong only where the search ran over its budget,
and then it says so.

The conflict table is that of the paper's companion on subsumption (its reference 15): for each box
a row, and in it an entry for each of its sides that lies inside the asked box. A point outside of
all boxes fulfils one entry of every row; two entries conflict if no point fulfils both.

Rows are those of `covering_table`: a side lies inside of a part if it is greater than the part's,
and the side across from side `s` is at the other end of its axis.
"""

from __future__ import annotations

from math import inf, isfinite, prod
from operator import add, gt, truediv
from sys import float_info
from typing import TYPE_CHECKING, NamedTuple

from broker.network.routing.covering.covering_table import limits_of, sides_of

if TYPE_CHECKING:
    from broker.network.routing.covering.boxes import Box
    from broker.network.routing.covering.covering_table import Row

BUDGET = 3000
"""Parts of a box that one search may look at; searches need some ten, sets made to be hard a few
hundred. Beyond it the box counts as not covered: that costs a message, never an event."""

NARROW = 96
"""Rows of a part that are examined side by side. Where more meet it the widest stand first, and
the rest are looked at once the part is small: 10,000 rows cost some 0.3 ms a part, not 30."""
REDUCTIONS_MAX = 8  # rounds over one table; what is left undone the parts' own tables make good
SLACK = 1e-9  # of the volume: far above what rounding can add up to, so that it never decides


class Verdict(NamedTuple):
    """The outcome of a search: the numbers of the boxes that it needed to cover all, ascending."""

    covered: bool  # False may be wrong where `over_budget`
    places: tuple[int, ...] = ()  # as long as these stay, the answer stays
    parts: int = 0  # the work that it took
    over_budget: bool = False  # it was given up


class Part(NamedTuple):
    """A part of the asked box by its own `sides`, and the rows that meet it, the widest first."""

    sides: Row  # low ends, then high ends negated
    rows: list[Row]  # those that share some volume with it

    @property
    def axes(self) -> int:
        """The number of ranges it is made of."""
        return len(self.sides) // 2

    def cut(self, side: int, end: float) -> Part:
        """Return the same with `side` moved in to `end`, and the rows that still meet it."""
        across = (side + self.axes) % len(self.sides)
        sides = (*self.sides[:side], end, *self.sides[side + 1 :])
        return Part(sides, [row for row in self.rows if row[across] < -end])

    def shares(self, rows: list[Row]) -> list[float]:
        """Return the part of the volume that each of `rows` covers, by itself."""
        axes, sides = self.axes, self.sides
        whole = tuple(map(add, sides[:axes], sides[axes:]))  # widths, negative as those below
        clipped = [tuple(map(max, row, sides)) for row in rows]
        return [prod(map(truediv, map(add, row[:axes], row[axes:]), whole)) for row in clipped]


def search(box: Box, rows: list[Row], budget: int = BUDGET) -> Verdict:
    """Return whether `rows`, all of which meet `box`, together cover it.

    At every part of it: a box that lacks one side only cuts that side off; an end of the part that
    lies in no box ends the search, as too little volume does; rows that cannot matter are dropped;
    else the widest box is taken out, and what is left around it are the next parts.
    """
    if box.empty:
        return Verdict(covered=True)
    used: set[int] = set()
    parts = 0
    open_parts = [first_part(box, rows)]
    while open_parts:
        parts += 1
        if parts > budget:
            return Verdict(covered=False, parts=parts, over_budget=True)
        left = _trimmed(open_parts.pop(), used)
        if left is None:
            continue
        if not _ends_covered(left):
            return Verdict(covered=False, parts=parts)
        if len(left.rows) <= NARROW:
            left = reduced(left)
            if left is None or not _enough(left):
                return Verdict(covered=False, parts=parts)
        open_parts.extend(_around_widest(left, used))
    return Verdict(covered=True, places=tuple(sorted(used)), parts=parts)


def first_part(box: Box, rows: list[Row]) -> Part:
    """Return the whole `box` with its rows widest first, where no end is infinite any more."""
    sides, rows = _measurable(sides_of(box), rows)
    if len(rows) > NARROW:
        rows = sorted(rows, key=lambda row: sum(map(gt, row, sides)))
    part = Part(sides, rows)
    head = rows[:NARROW]
    order = sorted(zip(part.shares(head), head, strict=True), key=lambda pair: -pair[0])
    return Part(sides, [row for _, row in order] + rows[NARROW:])


def _measurable(sides: Row, rows: list[Row]) -> tuple[Row, list[Row]]:
    """Return the same with finite ends in place of those without bounds, in the same order."""
    axes = len(sides) // 2
    bound = float_info.max
    columns: list[tuple[float, ...]] = []
    for axis in range(axes):
        if abs(sides[axis]) < bound and abs(sides[axis + axes]) < bound:
            continue
        columns = columns or list(zip(sides, *rows, strict=False))
        lows, highs = columns[axis], [-end for end in columns[axis + axes]]
        ends = [end for end in (*lows, *highs) if abs(end) < bound]
        least, most = (min(ends), max(ends)) if ends else (0.0, 1.0)
        width = max(most - least, abs(most), abs(least), 1.0)  # enough to differ when added
        if not isfinite(most + width) or not isfinite(least - 2 * width):
            continue  # ends so far out that only their order can be used
        # -inf lies below -bound: see ANYTHING
        finite = {-inf: least - 2 * width, -bound: least - width, inf: most + width}
        columns[axis] = tuple(finite.get(end, end) for end in lows)
        columns[axis + axes] = tuple(-finite.get(end, end) for end in highs)
    if not columns:
        return sides, rows
    sides, *ends_of_rows = zip(*columns, strict=True)
    return sides, [(*ends, row[-1]) for ends, row in zip(ends_of_rows, rows, strict=True)]


def _trimmed(part: Part, used: set[int]) -> Part | None:
    """Return the rest beside the boxes that lack at most one side of `part`; None: nothing."""
    while True:
        sides = part.sides
        widest: dict[int, Row] = {}  # by the one side that lies inside
        for row in part.rows[:NARROW]:
            lacking = sum(map(gt, row, sides))
            if lacking > 1:
                continue
            if not lacking:
                used.add(int(row[-1]))
                return None
            side = list(map(gt, row, sides)).index(True)  # there is just one
            if side not in widest or row[side] < widest[side][side]:
                widest[side] = row
        if not widest:
            return part
        for side in sorted(widest):
            row = widest[side]
            used.add(int(row[-1]))
            across = (side + part.axes) % len(sides)
            if -row[side] >= -part.sides[side]:
                return None  # what is left lies in it
            part = part.cut(across, -row[side])


def _ends_covered(part: Part) -> bool:
    """Return whether the lowest corner of `part` and the highest lie in a box each."""
    axes, sides = part.axes, part.sides
    low, high = sides[:axes], sides[axes:]
    return any(not any(map(gt, row, low)) for row in part.rows) and any(
        not any(map(gt, row[axes:-1], high)) for row in part.rows
    )


def reduced(part: Part) -> Part | None:
    """Return the same without boxes that cannot matter; None: surely something is not covered.

    A row with an entry that conflicts with no entry of the others, or with at least as many
    entries as there are rows, leaves a point wherever the others leave one.
    """
    sides = part.sides
    for _ in range(REDUCTIONS_MAX):
        rows = part.rows
        entries = [[s for s, end in enumerate(sides) if row[s] > end] for row in rows]
        if all(count > place for place, count in enumerate(sorted(map(len, entries)))):
            return None  # each row in turn has an entry that those before it leave free
        rivals = _least_two(part, entries)
        keep = [
            row
            for row, inside in zip(rows, entries, strict=True)
            if len(inside) < len(rows) and not _has_free(row, inside, rivals)
        ]
        if len(keep) == len(rows):
            return part
        part = part._replace(rows=keep)
        if not keep:
            return None
    return part


class _Rivals(NamedTuple):
    """The least end of one side among the entries of all rows, whose it is, and the next one."""

    least: float = inf
    number: float = -1
    second: float = inf


def _least_two(part: Part, entries: list[list[int]]) -> list[_Rivals]:
    """Return for each side the entries across from it that reach the furthest."""
    found = [_Rivals() for _ in part.sides]
    for row, inside in zip(part.rows, entries, strict=True):
        for side in inside:
            rivals = found[side]
            if row[side] < rivals.least:
                found[side] = _Rivals(row[side], row[-1], rivals.least)
            elif row[side] < rivals.second:
                found[side] = rivals._replace(second=row[side])
    return found[part.axes :] + found[: part.axes]


def _has_free(row: Row, inside: list[int], rivals: list[_Rivals]) -> bool:
    """Return whether one of the entries of `row` conflicts with none of the other rows."""
    for side in inside:
        across = rivals[side]
        if row[side] > -(across.second if across.number == row[-1] else across.least):
            return True
    return False


def _enough(part: Part) -> bool:
    """Return whether the boxes' volumes together reach that of `part`."""
    limits = limits_of(part.sides)
    if not all(isfinite(limit - side) for limit, side in zip(limits, part.sides, strict=True)):
        return True
    return sum(part.shares(part.rows)) >= 1.0 - SLACK


def _around_widest(part: Part, used: set[int]) -> list[Part]:
    """Return the parts that are left around the box of most volume, apart from each other."""
    head = part.rows[:NARROW]
    shares = part.shares(head)
    pivot = head[shares.index(max(shares))]
    used.add(int(pivot[-1]))
    found = []
    for side in range(len(part.sides)):
        end = pivot[side]
        if end > part.sides[side]:
            found.append(part.cut((side + part.axes) % len(part.sides), -end))
            part = part.cut(side, end)
    return found

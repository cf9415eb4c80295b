"""Boxes under names, and quickly those of them that meet another box.

Owns the orders in which boxes stand. Must not know what is asked about them. Invariant: of equal
ends the older box stands first; a box that was removed is found no more.

A box is a row of *sides*: its low ends, then its high ends negated, then its number. So a side that
lies inside of another box is the greater one, at both ends of every axis alike, and one comparison
serves for all of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import inf
from operator import neg
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.network.routing.covering.boxes import Box

Row = tuple[float, ...]


def sides_of(box: Box) -> Row:
    """Return the low ends of `box` and its negated high ends."""
    return (*box.lows, *map(neg, box.highs))


def limits_of(sides: Row) -> Row:
    """Return for each of `sides` the value below which another box meets this one."""
    axes = len(sides) // 2
    return tuple(map(neg, sides[axes:] + sides[:axes]))


class Table:
    """Rows under names, in an ascending order for each side."""

    def __init__(self, axes: int) -> None:
        self._axes = axes
        self._rows: dict[str, Row] = {}  # by name
        self._names: dict[int, str] = {}  # by number, which ascends
        self._added = 0
        self._orders: list[tuple[list[float], list[Row]]] = [([], []) for _ in range(2 * axes)]

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: str) -> bool:
        return name in self._rows

    def add(self, name: str, box: Box) -> None:
        """Hold `box` as `name`. ValueError: the name is taken, or the axes are others."""
        if name in self._rows:
            raise ValueError(f"there is a box {name} already")
        if box.axes != self._axes:
            raise ValueError(f"the box {name} has {box.axes} axes instead of {self._axes}")
        sides = (inf,) * (2 * self._axes) if box.empty else sides_of(box)  # inf meets nothing
        row = (*sides, self._added)
        self._rows[name] = row
        self._names[self._added] = name
        self._added += 1
        for side, (ends, rows) in enumerate(self._orders):
            place = bisect_right(ends, row[side])
            ends.insert(place, row[side])
            rows.insert(place, row)

    def remove(self, name: str) -> None:
        """Forget the box `name`. KeyError: there is none of that name."""
        row = self._rows.pop(name)
        del self._names[int(row[-1])]
        for side, (ends, rows) in enumerate(self._orders):
            place = rows.index(row, bisect_left(ends, row[side]))
            del ends[place], rows[place]

    def name(self, number: float) -> str:
        """Return the name under which the row of this `number` is held."""
        return self._names[int(number)]

    def meeting(self, box: Box) -> list[Row]:
        """Return the rows that have a point with `box` in common; equal boxes oldest first."""
        if not self._axes:
            return list(self._rows.values())
        limits = limits_of(sides_of(box))
        counts = [
            (bisect_left(ends, limit), side)
            for side, ((ends, _), limit) in enumerate(zip(self._orders, limits, strict=True))
        ]
        counts.sort()
        # The most selective side leaves the fewest rows for the comparisons with the others.
        count, first = counts[0]
        rows = self._orders[first][1][:count]
        for count, side in counts[1:]:
            if count < len(self._rows):
                limit = limits[side]
                rows = [row for row in rows if row[side] < limit]
        return rows

"""Boxes under names, and quickly those of them that meet another box.

Owns the arrays that boxes stand in. Must not know what is asked about them. Invariant: rows stand
in the order in which boxes came; a row that was left is found no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from broker.core.routing.boxes import Box

    Floats = NDArray[np.float64]

FIRST_ROWS = 16
SORTED_FROM = 256  # boxes; fewer are compared one by one as fast
STALE_PART = 8  # the orders are made anew once this part of the rows has come since


class _Order(NamedTuple):
    ends: Any  # ascending, as they were when the order was made
    rows: Any


class Table:
    """Rows of ends. numpy is loaded with the first box."""

    def __init__(self, axes: int) -> None:
        self._axes = axes
        self._rows: dict[str, int] = {}
        self._names: list[str | None] = []  # of the rows; None: it was left
        self._lows: Any = None
        self._highs: Any = None
        self._orders: list[tuple[_Order, _Order]] = []
        """For each axis the first `_ordered` rows by their low ends and by their high ends."""
        self._ordered = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: str) -> bool:
        return name in self._rows

    def add(self, name: str, box: Box) -> None:
        """Put a box into the next row. ValueError: the name is taken, or the axes are others."""
        import numpy as np

        if name in self._rows:
            raise ValueError(f"there is a box {name} already")
        if box.axes != self._axes:
            raise ValueError(f"the box {name} has {box.axes} axes instead of {self._axes}")
        row = len(self._names)
        if self._lows is None:
            self._lows, self._highs = (np.empty((0, self._axes)) for _ in range(2))
        if row == len(self._lows):
            more = np.empty((max(row, FIRST_ROWS), self._axes))
            self._lows = np.concatenate((self._lows, more))
            self._highs = np.concatenate((self._highs, more))
        self._lows[row], self._highs[row] = (np.inf, -np.inf) if box.empty else box
        self._names.append(name)
        self._rows[name] = row

    def remove(self, name: str) -> None:
        """Leave a box's row. KeyError: there is none of that name."""
        import numpy as np

        row = self._rows.pop(name)
        self._names[row] = None
        self._lows[row], self._highs[row] = np.inf, -np.inf  # meets nothing
        if len(self._names) > 2 * len(self._rows) + FIRST_ROWS:
            self._close_up()

    def meeting(self, box: Box) -> tuple[list[str], Floats, Floats]:
        """Names, lows and highs of the boxes that have a point with this one in common."""
        import numpy as np

        if not self._rows:
            none = np.empty((0, self._axes))
            return [], none, none
        low, high = np.array(box.lows), np.array(box.highs)
        if len(self._names) < SORTED_FROM or not self._axes:
            rows: Any = np.array(list(self._rows.values()))
        else:
            rows = self._near(low, high)
        for axis in range(self._axes):
            rows = rows[(self._lows[rows, axis] < high[axis])]
            rows = rows[(self._highs[rows, axis] > low[axis])]
        names = [self._names[row] or "" for row in rows.tolist()]
        return names, self._lows[rows], self._highs[rows]

    def _near(self, low: Floats, high: Floats) -> Any:
        """The rows that the one most selective end leaves, ascending, and all new ones."""
        import numpy as np

        count = len(self._names)
        if (count - self._ordered) * STALE_PART > count:
            self._order()
        best: Any = None
        for axis, (by_low, by_high) in enumerate(self._orders):
            upto = np.searchsorted(by_low.ends, high[axis], side="left")
            since = np.searchsorted(by_high.ends, low[axis], side="right")
            for rows in (by_low.rows[:upto], by_high.rows[since:]):
                if best is None or len(rows) < len(best):
                    best = rows
        return np.concatenate((np.sort(best), np.arange(self._ordered, count)))

    def _order(self) -> None:
        import numpy as np

        self._ordered = len(self._names)

        def order(ends: Any) -> _Order:
            rows = np.argsort(ends[: self._ordered], kind="stable")
            return _Order(ends[rows], rows)

        self._orders = [
            (order(self._lows[:, axis]), order(self._highs[:, axis])) for axis in range(self._axes)
        ]

    def _close_up(self) -> None:
        """Take out the rows that were left."""
        kept = list(self._rows.values())  # ascending, as names came in the order of rows
        self._lows, self._highs = self._lows[kept].copy(), self._highs[kept].copy()
        self._names = list(self._rows)
        self._rows = {name: row for row, name in enumerate(self._rows)}
        self._orders, self._ordered = [], 0

"""Rows in the cells of one term's values, each cell with the rows that may hold there.

Owns when one term is enough to find rows by, and these cells. Must not know hashes, other terms or
who wants a content. Invariant: of the contents given for an event the conditions hold, and of no
others that stand here.

Bits over several columns (`cells`) cost every event a walk over all rows, if by words. Where one
term alone leaves few rows to a value, as narrow ranges do, its cells hold these rows themselves:
one bisection, whatever the number of rows. A row that spans a cell and asks nothing else is given
without a test.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from broker.engine.filter.cells import reach_of, spread_edges
from broker.engine.filter.scale import reader_of

if TYPE_CHECKING:
    from broker.engine.event.event import Event
    from broker.engine.filter.conditions import Term
    from broker.engine.filter.content import Content
    from broker.engine.filter.contents import Row

OVERLAP_MAX = 48  # rows of a cell, in the middle: to test more takes longer than to intersect bits
MEAN_MAX = 192  # the same on average over all cells: what the fullest may take stays bounded
OVERLAP_SHARE = 8  # at most a part in so many of all rows: else bits, which use the other terms
ENTRIES_MAX = 16  # of a row on average: with 8 bytes each as much as its bits in 1,024 cells
CELLS_LEAST = 64  # cells, however few the rows


def chosen_term(rows: Sequence[Row]) -> tuple[str, int] | None:
    """Return the term that leaves the fewest rows to a value, and into how many cells to cut it.

    None where none leaves few enough. Costs a sort of the ends of each term that half of the rows
    bound.
    """
    best: tuple[int, str, int] | None = None
    for key, spans in _spans(rows).items():
        if 2 * len(spans) < len(rows):
            continue
        overlaps = _overlaps(spans)
        mean = sum(overlaps) / len(overlaps)
        # The median: thresholds at one end of the values overlap there, where few events fall.
        overlap = overlaps[len(overlaps) // 2]
        if mean <= MEAN_MAX and (best is None or overlap < best[0]):
            cells = min(len(rows) // 2, int(ENTRIES_MAX * len(rows) / max(mean, 1.0)))
            best = (overlap, key, max(CELLS_LEAST, cells))
    if best is None or best[0] > OVERLAP_MAX or best[0] * OVERLAP_SHARE > len(rows):
        return None
    return best[1:]


def _overlaps(spans: Sequence[tuple[Any, Any]]) -> list[int]:
    """Return how many spans each cell has, were it cut at every end; ascending."""
    lows = sorted(low for low, _ in spans if low is not None)
    highs = sorted(high for _, high in spans if high is not None)
    begun = len(spans) - len(lows)
    # Those that have begun at an end less those that are over there; before all ends what is open.
    counts = [begun]
    counts += [
        begun + bisect_right(lows, end) - bisect_right(highs, end)
        for end in sorted({*lows, *highs})
    ]
    return sorted(counts)


def _spans(rows: Sequence[Row]) -> dict[str, list[tuple[Any, Any]]]:
    spans: dict[str, list[tuple[Any, Any]]] = {}
    for row in rows:
        ranges = row.ranges
        for place in range(0, len(ranges), 3):
            spans.setdefault(ranges[place], []).append((ranges[place + 1], ranges[place + 2]))
    return spans


class ListedLayer:
    """The rows that bound one term."""

    __slots__ = ("_asked", "_cells", "_edges", "_key", "_read", "_settled", "rows")

    def __init__(self, rows: list[Row], term: Term, cells_max: int, *, settled: bool) -> None:
        """`settled`: nothing is left to test of a row whose ranges say all that it asks."""
        self._key = term.key
        self._read = reader_of(term)
        self._settled = settled
        ends = [end for row in rows for end in self._span(row) if end is not None]
        self._edges: list[Any] = spread_edges(ends, cells_max)
        cells: list[list[Content]] = [[] for _ in range(len(self._edges) + 1)]
        asked: list[list[Content]] = [[] for _ in cells]
        for slot, row in enumerate(rows):
            row.layer, row.slot = self, slot
            for place, sure in self._places(row):
                cells[place].append(row.content)
                if not sure:
                    asked[place].append(row.content)
        self._cells = [tuple(contents) for contents in cells]
        self._asked = [tuple(contents) for contents in asked]  # those of a cell that are tested
        self.rows = rows

    def _span(self, row: Row) -> tuple[Any, Any]:
        place = row.ranges[::3].index(self._key) * 3
        return row.ranges[place + 1], row.ranges[place + 2]

    def _places(self, row: Row) -> Iterator[tuple[int, bool]]:
        """Give the cells that a row reaches, and for each: it holds for all that falls into it."""
        low, high = self._span(row)
        first, last = reach_of(self._edges, low, high)
        all_said = self._settled and row.content.says_all and len(row.ranges) == 3
        for place in range(first, last + 1):
            begun = place > first or low is None or self._edges[place - 1] == low
            # The last cell of all has no edge behind it: only what is open reaches to its end.
            lasts = place < last or high is None or self._edges[place : place + 1] == [high]
            yield place, all_said and begun and lasts

    def covers(self, row: Row) -> bool:
        """Return whether the row bounds the term."""
        return self._key in row.ranges[::3]

    def has(self, row: Row) -> bool:
        """Return whether the row stands here."""
        return row.layer is self

    def append(self, row: Row) -> None:
        """Take a further row; the cells stay as they are cut."""
        row.layer, row.slot = self, len(self.rows)
        self.rows.append(row)
        for place, sure in self._places(row):
            self._cells[place] += (row.content,)
            if not sure:
                self._asked[place] += (row.content,)

    def remove(self, row: Row) -> None:
        """Let go a row of a content that goes as a whole."""
        row.layer = None
        for place, _ in self._places(row):
            for cells in (self._cells, self._asked):
                cells[place] = tuple([held for held in cells[place] if held is not row.content])

    def matched(self, event: Event) -> Sequence[Content]:
        """Return the contents whose conditions hold; one for each of its rows that may."""
        value = self._read(event)
        if value is None:
            return ()
        place = bisect_right(self._edges, value)
        holding = self._cells[place]
        asked = self._asked[place]
        if asked:
            failed = [each for each in asked if not each.test(event, *each.args)]
            if len(failed) == len(holding):
                return ()
            if failed:
                return [each for each in holding if each not in failed]
        return holding

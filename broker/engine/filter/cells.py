"""An index over ranges: which rows may hold, by bits, without looking at the rows.

Owns the cells. Must not know contents, conditions or events' meaning: a row is the ranges that it
needs. Invariant: every row whose ranges all hold for an event is among the bits found for it; where
cells are coarser than the ranges' ends, so may others be.

Each term that rows bound has a column: the ends of all ranges cut its values into cells, and each
cell has the set of rows that it may satisfy, as the bits of an integer. An event falls into one
cell per column; the intersection of those sets is what may hold. So the cost is that of a few
bisections and `and`s, whatever the number of rows (as in the bitset methods of content-based
publish/subscribe).

A `StepColumn` is exact whatever the number of its ends: between two sets that it has as they are,
the bits of the few rows that begin or end are turned over.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import iter_unpack
from typing import Any

from broker.engine.event.source import Constants, build
from broker.engine.filter.conditions import Term

COLUMNS_MAX = 12  # of one index; rows that bound none of its terms belong into another
COLUMN_SHARE = 64  # a term that fewer than one row in so many bounds is no column
CELLS_LEAST = 128  # of a column, however many columns there are
ROW_BITS = 2_048  # a row has a bit in each cell: 256 bytes over all columns, if these are few
WORDS_FROM = 1_024  # longer sets of bits are read word by word,
FEW_BITS = 12  # unless so few bits are in them
DENSE = 64  # from so many bits on they are set in a bytearray and not one by one
STEP = 8  # bits turned over between two sets that are kept; fewer cost memory, more time

# (key of a term, low, high), flattened: key, low, high, key, low, high, …; half open, None is open
Ranges = tuple[Any, ...]
Span = tuple[int, Any, Any]  # of one row: its slot, low, high


class StepColumn:
    """One term, exactly: `rows` gives the rows that a value satisfies, and no others."""

    __slots__ = ("_edges", "_null", "_steps")

    def __init__(self, spans: Sequence[Span], free: int) -> None:
        """Index one span a row; the rows without one are those of `free`."""
        ends = {end for _, low, high in spans for end in (low, high) if end is not None}
        self._edges: list[Any] = sorted(ends)
        self._null = free
        # One set for each end would be a square of the rows: of 10,000 rows 25 MB a column.
        self._steps: list[tuple[int, tuple[int, ...]]] = []
        kept = free
        turned: tuple[int, ...] = ()
        for opened, shut in _swept(self._edges, spans):
            turned += (*shut, *opened)
            if len(turned) > STEP:
                # What is shut was open, and what is opened was not, so both turn the same way.
                kept ^= _turned(turned)
                turned = ()
            self._steps.append((kept, turned))

    def rows(self, value: Any) -> int:
        """Return the rows that the value satisfies, as bits; None satisfies no span."""
        if value is None:
            return self._null
        bits, turned = self._steps[bisect_right(self._edges, value)]
        for slot in turned:
            bits ^= 1 << slot
        return bits


def _turned(slots: Sequence[int]) -> int:
    # A narrow range may open and shut within one stretch: turned twice is not turned.
    bits = 0
    for slot in slots:
        bits ^= 1 << slot
    return bits


def _swept(edges: list[Any], spans: Sequence[Span]) -> Iterator[tuple[list[int], list[int]]]:
    """Give for each cell the rows that open in it, and those that have shut before it."""
    # By sweeping over the edges: each row is set once and cleared once, instead of a bit in
    # every cell that it spans. Of 1,000 rows over 128 cells that is 2,000 steps and not 64,000.
    opened: list[list[int]] = [[] for _ in range(len(edges) + 1)]
    shut: list[list[int]] = [[] for _ in range(len(edges) + 2)]
    for slot, low, high in spans:
        first, last = reach_of(edges, low, high)
        if first <= last:
            opened[first].append(slot)
            shut[last + 1].append(slot)
    return zip(opened, shut, strict=False)


def reach_of(edges: list[Any], low: Any, high: Any) -> tuple[int, int]:
    """Return the first and the last cell of a range; of an empty one the last comes first."""
    first = 0 if low is None else bisect_right(edges, low)
    last = len(edges) if high is None else bisect_left(edges, high)
    return first, last


class Column:
    """One term: `edges` cut it, `cells[i]` are the rows of cell i, `cells[-1]` those of null."""

    __slots__ = ("cells", "edges", "key")

    def __init__(self, key: str, spans: Sequence[Span], free: int, cells_max: int) -> None:
        self.key = key
        ends = [end for _, low, high in spans for end in (low, high) if end is not None]
        self.edges = spread_edges(ends, cells_max)
        self.cells: list[int] = []
        current = free
        for opened, shut in _swept(self.edges, spans):
            current ^= bits_of(shut)
            current |= bits_of(opened)
            self.cells.append(current)
        # Null holds for no range, so only rows without one on this term remain.
        self.cells.append(free)

    def append(self, slot: int, span: tuple[Any, Any] | None) -> None:
        """Take a further row, with its range or without one."""
        bit = 1 << slot
        if span is None:
            self.cells[:] = [cell | bit for cell in self.cells]
            return
        first, last = reach_of(self.edges, *span)
        for place in range(first, last + 1):
            self.cells[place] |= bit

    def density(self) -> int:
        """Rows over all cells: the fewer, the earlier it should be asked."""
        return sum(cell.bit_count() for cell in self.cells)


def spread_edges(ends: Iterable[Any], cells_max: int) -> list[Any]:
    """Return the ends that cut a term's values into at most so many cells."""
    ends = sorted(ends)
    distinct = list(dict.fromkeys(ends))
    most = cells_max - 1
    if len(distinct) <= most:
        return distinct
    # Evenly over the ranges' ends; the last as well, so that nothing is sought beyond it.
    # Edges are spent where ranges end, not evenly over the values: ten thousand thresholds between
    # 20 and 25 degrees are told apart there, whatever the sensor's scale.
    most -= 1
    spread = [ends[place * len(ends) // most] for place in range(most)]
    return list(dict.fromkeys([*spread, ends[-1]]))


def bits_of(slots: Sequence[int]) -> int:
    """Return the slots as bits."""
    if len(slots) < DENSE:
        found = 0
        for slot in slots:
            found |= 1 << slot
        return found
    octets = bytearray((max(slots) >> 3) + 1)
    for slot in slots:
        octets[slot >> 3] |= 1 << (slot & 7)
    return int.from_bytes(octets, "little")


def slots_of(bits: int) -> list[int]:
    """The places of the bits, ascending."""
    found: list[int] = []
    if bits.bit_length() <= WORDS_FROM or bits.bit_count() <= FEW_BITS:
        while bits:
            # The isolated lowest bit; each is found in one step whatever lies between, unlike a
            # walk over all places.
            lowest = bits & -bits
            bits ^= lowest
            found.append(lowest.bit_length() - 1)
        return found
    count = (bits.bit_length() + 63) >> 6
    octets = bits.to_bytes(count << 3, "little")
    for place, (word,) in enumerate(iter_unpack("<Q", octets)):
        rest = word
        while rest:
            lowest = rest & -rest
            rest ^= lowest
            found.append((place << 6) + lowest.bit_length() - 1)
    return found


def columns_for(rows: Sequence[Ranges]) -> list[str]:
    """The terms that are worth a column, the most bounded first."""
    counts: dict[str, int] = {}
    for row in rows:
        for key in row[::3]:
            counts[key] = counts.get(key, 0) + 1
    least = max(1, len(rows) // COLUMN_SHARE)
    ranked = sorted(counts, key=lambda key: -counts[key])  # stable: then by first appearance
    return [key for key in ranked[:COLUMNS_MAX] if counts[key] >= least or key == ranked[0]]


class CellIndex:
    """The columns over a list of rows, and the function that finds rows by an event."""

    def __init__(
        self, rows: Sequence[Ranges], keys: Sequence[str], terms: dict[str, Term], cells_max: int
    ) -> None:
        spans: dict[str, list[Span]] = {key: [] for key in keys}
        for slot, row in enumerate(rows):
            for place in range(0, len(row), 3):
                if row[place] in spans:
                    spans[row[place]].append((slot, row[place + 1], row[place + 2]))
        everyone = (1 << len(rows)) - 1
        cells = min(cells_max, max(CELLS_LEAST, ROW_BITS // max(1, len(spans))))
        columns = [
            Column(key, own, everyone ^ bits_of([slot for slot, _, _ in own]), cells)
            for key, own in spans.items()
        ]
        # The most selective first: once no row is left, the other columns are not read.
        columns.sort(key=lambda column: column.density() / len(column.cells))
        self.columns = columns
        self.keys = frozenset(keys)
        self.lookup = _lookup(columns, terms)

    def covers(self, row: Ranges) -> bool:
        """Tell whether some column restricts the row."""
        return any(key in self.keys for key in row[::3])

    def append(self, slot: int, row: Ranges) -> None:
        """Take a further row; the columns keep their cells."""
        for column in self.columns:
            span = None
            for place in range(0, len(row), 3):
                if row[place] == column.key:
                    span = (row[place + 1], row[place + 2])
            column.append(slot, span)


def _lookup(columns: list[Column], terms: dict[str, Term]) -> Callable[[Any], int]:
    """A function of the event `e`: the bits of the rows that may hold."""
    constants = Constants()
    constants.helper("bisect", bisect_right)
    lines = ["def lookup(e):"]
    for place, column in enumerate(columns):
        constants.helper(f"edges{place}", column.edges)
        constants.helper(f"cells{place}", column.cells)
        pad = "    " * (place + 1)
        join = "&=" if place else "="
        cell = f"cells{place}[bisect(edges{place}, v) if v is not None else -1]"
        lines += [f"{pad}v = {terms[column.key].code(constants)}", f"{pad}m {join} {cell}"]
        if place < len(columns) - 1:
            lines.append(f"{pad}if m:")
    lines.append("    return m")
    return build("\n".join(lines) + "\n", "lookup", constants)

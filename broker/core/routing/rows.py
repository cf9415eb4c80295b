"""Which of many keys one event passes, as the bits of one integer.

Owns the index of the keys that stand at one place of operators of one shape. Must not know how
events are correlated. Invariant: a bit is set exactly if the event passes the key of that row; the
cost of an event does not grow with the rows but by the width of the integers.

Ranges are found by bisection in their sorted ends, with the rows of a whole stretch kept as one
integer; sources, locations and regions are asked once for each place that events come from. What
is new is asked row by row until it is worth building the columns anew.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from broker.core.routing.held import DEGREES, METRES, START, Held
from broker.core.routing.operator import Key, Region, Scalar
from broker.engine.event.geometry import region_test, under_path
from broker.engine.filter.cells import slots_of

STEP = 8  # rows between two integers that are kept of a column; fewer cost memory, more time
FRESH_MAX = 64  # rows asked one by one before the columns are built anew
PLACES_MAX = 4_096  # places whose answers are kept
GATES_MAX = (
    64  # so many are asked one by one of an event from a new place; beyond, boxes are ranges
)

Condition = Callable[[Any], bool]


class Gate(NamedTuple):
    """What a row asks of where an event comes from; None: nothing."""

    source: str | None
    location: str | None
    region: Region | None
    via: str | None  # the neighbour that it must have come from

    def test(self, held: Held) -> bool:
        """Whether an event passes."""
        event = held.event
        return (
            (self.source is None or event.source == self.source)
            and (self.via is None or held.via == self.via)
            and (self.location is None or under_path(event.location, self.location))
            and (self.region is None or _inside(self.region, event.position))
        )


def _inside(region: Region, position: Any) -> bool:
    # A region here says the same of itself as one that a text wrote.
    return position is not None and region_test(cast("Any", region))(position)


class Row(NamedTuple):
    """What one operator asks at one place."""

    key: Key
    gate: Gate
    since_ms: int | None = None
    condition: Condition | None = None  # for what the key's fields do not say

    def test(self, held: Held) -> bool:
        """Whether an event passes; the reference for the columns."""
        if self.since_ms is not None and held.start < self.since_ms:
            return False
        if not self.gate.test(held):
            return False
        for attribute, low, high, low_open, high_open in map(_ends, self.key.ranges):
            value = held.value(attribute)
            if not _is_number(value):
                return False
            if low is not None and not (value > low or (value == low and not low_open)):
                return False
            if high is not None and not (value < high or (value == high and not high_open)):
                return False
        if any(not _same(held.value(name), wanted) for name, wanted in self.key.equals):
            return False
        return self.condition is None or self.condition(held.event)


def row_of(
    key: Key,
    since_ms: int | None = None,
    via: str | None = None,
    condition: Condition | None = None,
) -> Row:
    """The row of a key."""
    return Row(key, Gate(key.source, key.location, key.region, via), since_ms, condition)


def _ends(one: Any) -> tuple[str, float | None, float | None, bool, bool]:
    return one.attribute, one.low, one.high, one.low_open, one.high_open


def _is_number(value: Any) -> bool:
    """Whether it lies in any range at all.

    An attribute that is a number to who asks may be text, or nothing, where the event enters.
    """
    kind = value.__class__
    return kind is int or (kind is float and value == value)  # noqa: PLR0124 - not so of NaN


def _same(value: Any, wanted: Scalar) -> bool:
    # Truth is no number, though Python takes True for 1.
    return bool(value == wanted) and isinstance(value, bool) == isinstance(wanted, bool)


class _Column:
    """The ranges of one attribute: which rows hold a value."""

    def __init__(self, ranges: list[tuple[int, Any]], others: int) -> None:
        """`ranges` are (bit, range) of the rows that ask; `others` are those that do not."""
        self._others = others
        lows: list[tuple[float, int]] = []
        highs: list[tuple[float, int]] = []
        # Rows that have an end, but not the value itself.
        self._open_lows: dict[float, int] = {}
        self._open_highs: dict[float, int] = {}
        unbounded = 0
        for bit, one in ranges:
            if one.low is None:
                unbounded |= bit
            else:
                lows.append((one.low, bit))
                if one.low_open:
                    self._open_lows[one.low] = self._open_lows.get(one.low, 0) | bit
            if one.high is not None:
                highs.append((one.high, bit))
                if one.high_open:
                    self._open_highs[one.high] = self._open_highs.get(one.high, 0) | bit
        lows.sort()
        highs.sort()
        self._low_ends = [end for end, _ in lows]
        self._low_bits = [bit for _, bit in lows]
        self._low_sums = _sums(self._low_bits, unbounded)
        self._high_ends = [end for end, _ in highs]
        self._high_bits = [bit for _, bit in highs]
        self._high_sums = _sums(self._high_bits, 0)

    def rows(self, value: Any) -> int:
        """The rows that a value passes."""
        if not _is_number(value):
            return self._others
        begun = _sum(self._low_sums, self._low_bits, bisect_right(self._low_ends, value))
        over = _sum(self._high_sums, self._high_bits, bisect_left(self._high_ends, value))
        if self._open_lows:
            over |= self._open_lows.get(value, 0)
        if self._open_highs:
            over |= self._open_highs.get(value, 0)
        return (begun & ~over) | self._others


def _sums(bits: list[int], first: int) -> list[int]:
    """The union of the bits before each `STEP`th."""
    sums = [first]
    for place in range(0, len(bits), STEP):
        union = sums[-1]
        for bit in bits[place : place + STEP]:
            union |= bit
        sums.append(union)
    return sums


def _sum(sums: list[int], bits: list[int], count: int) -> int:
    """The union of the first `count` bits."""
    whole = count // STEP
    union = sums[whole]
    for bit in bits[whole * STEP : count]:
        union |= bit
    return union


class _Values:
    """The equalities of one attribute: which rows hold a value."""

    def __init__(self, wanted: list[tuple[int, Scalar]], others: int) -> None:
        self._others = others
        self._of: dict[tuple[bool, Scalar], int] = {}
        for bit, value in wanted:
            key = (isinstance(value, bool), value)
            self._of[key] = self._of.get(key, 0) | bit

    def rows(self, value: Any) -> int:
        """The rows that a value passes."""
        return self._of.get((isinstance(value, bool), value), 0) | self._others


class RowIndex:
    """Rows by slot; `lookup` gives the slots whose row an event passes as set bits."""

    def __init__(self) -> None:
        self._rows: dict[int, Row] = {}
        self._fresh: dict[int, Row] = {}
        self._spent = 0  # fresh rows asked since the columns were built
        self._alive = 0
        self._columns: list[tuple[str, _Column | _Values]] = []
        self._gates: list[tuple[Gate, int]] = []
        self._open = 0  # rows that ask nothing of the place
        self._asking = 0  # rows with a condition of their own
        self._places: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, slot: int, row: Row) -> None:
        """Put a row into a slot that holds none."""
        self._rows[slot] = row
        self._fresh[slot] = row

    def remove(self, slot: int) -> None:
        """Take the row out of a slot."""
        del self._rows[slot]
        if self._fresh.pop(slot, None) is None:
            self._alive &= ~(1 << slot)

    def row(self, slot: int) -> Row:
        """The row of a slot."""
        return self._rows[slot]

    def items(self) -> list[tuple[int, Row]]:
        """The rows with their slots."""
        return list(self._rows.items())

    def lookup(self, held: Held) -> int:
        """The slots whose row the event passes."""
        fresh = self._fresh
        if fresh:
            self._spent += len(fresh)
            # Asking one by one may cost as much as building does, then building is paid for.
            if self._spent > len(self._rows) or len(fresh) > FRESH_MAX:
                self._build()
        bits = self._settled(held)
        for slot, row in self._fresh.items():
            if row.test(held):
                bits |= 1 << slot
        return bits

    def _settled(self, held: Held) -> int:
        if not self._alive:
            return 0
        bits = self._place(held) & self._alive
        for attribute, column in self._columns:
            if not bits:
                return 0
            bits &= column.rows(held.value(attribute))
        asking = bits & self._asking
        for slot in slots_of(asking):
            condition = self._rows[slot].condition
            if condition is not None and not condition(held.event):
                bits ^= 1 << slot
        return bits

    def _place(self, held: Held) -> int:
        if not self._gates:
            return self._open
        bits = self._places.get(held.spot)
        if bits is None:
            bits = self._open
            for gate, rows in self._gates:
                if gate.test(held):
                    bits |= rows
            if held.spot:
                if len(self._places) >= PLACES_MAX:
                    self._places.clear()
                self._places[held.spot] = bits
        return bits

    def _build(self) -> None:
        self._fresh = {}
        self._spent = 0
        self._places = {}
        self._alive = self._open = self._asking = 0
        gates: dict[Gate, int] = {}
        many = len({row.gate for row in self._rows.values()}) > GATES_MAX
        ranges: dict[str, list[tuple[int, Any]]] = {}
        equals: dict[str, list[tuple[int, Scalar]]] = {}
        for slot, row in self._rows.items():
            bit = 1 << slot
            self._alive |= bit
            gate = row.gate
            if many and gate.region is not None and gate.region.shape == "box":
                for name, side in _sides(gate.region):
                    ranges.setdefault(name, []).append((bit, side))
                gate = gate._replace(region=None)
            if gate == (None, None, None, None):
                self._open |= bit
            else:
                gates[gate] = gates.get(gate, 0) | bit
            if row.condition is not None:
                self._asking |= bit
            for one in row.key.ranges:
                ranges.setdefault(one.attribute, []).append((bit, one))
            for name, wanted in row.key.equals:
                equals.setdefault(name, []).append((bit, wanted))
            if row.since_ms is not None:
                ranges.setdefault(START, []).append((bit, _Ends(row.since_ms)))
        self._gates = list(gates.items())
        self._columns = [
            *((name, _Column(some, self._without(some))) for name, some in ranges.items()),
            *((name, _Values(some, self._without(some))) for name, some in equals.items()),
        ]

    def _without(self, asking: list[tuple[int, Any]]) -> int:
        rest = self._alive
        for bit, _ in asking:
            rest &= ~bit
        return rest


class _Ends(NamedTuple):
    """A range of what is no attribute."""

    low: float | None
    high: float | None = None
    low_open: bool = False
    high_open: bool = False


def _sides(region: Region) -> list[tuple[str, _Ends]]:
    """A box as ranges of an event's position."""
    a, b, c, d = region.numbers
    return [
        (METRES[0] if region.metric else DEGREES[0], _Ends(min(a, c), max(a, c))),
        (METRES[1] if region.metric else DEGREES[1], _Ends(min(b, d), max(b, d))),
    ]

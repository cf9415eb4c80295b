"""Events as a router holds them, and which of many keys one of them passes, as bits of an integer.

Owns what is held and for how long, and the index of the keys that stand at one place of operators
of one shape. Must not know how events are correlated. Invariant: an event is held once, in the
order of starts, until it is forgotten by its start; a bit is set exactly if the event passes the
key of that row; the cost of an event does not grow with the rows but by the width of the integers.

What is asked of attributes is found in the columns of the engine's filter (`filter.cells`), one for
each attribute and kind of value; sources, locations and regions are asked once for each place that
events come from, which events that are held say by a number (`Held.spot`). What is new is asked row
by row until it is worth building the columns anew.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from math import inf, isnan
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

from broker.engine.event.event import region_test, slot_of, under_path
from broker.engine.filter.cells import StepColumn, bits_of, slots_of
from broker.engine.filter.conditions import EXACT_FLOAT_MAX, after, past
from broker.network.routing.advertisement.operator import Key, Region, Scalar


class EventView(Protocol):
    """Offer what a router reads of an event; attributes are slots: `broker.engine.event.event`."""

    @property
    def id(self) -> str:
        """Names the event among those of its type and end."""

    @property
    def event_type(self) -> str:
        """The type's name."""

    @property
    def source(self) -> str | None:
        """Names who sent it."""

    @property
    def location(self) -> str | None:
        """A path of places."""

    @property
    def position(self) -> Any:
        """Its place, as `broker.engine.event.event.Position`."""

    @property
    def start(self) -> Any:
        """Milliseconds."""

    @property
    def end(self) -> Any:
        """Milliseconds."""


# In the place of an attribute's name: when the event began, and where it was. No attribute's name
# begins with a zero character.
START = "\0start"  # no attribute begins with NUL
METRES = ("\0x", "\0y")  # of the plane
DEGREES = ("\0latitude", "\0longitude")  # of the globe

SPOTS_MAX = 16_384  # places that events come from, told apart by a number; more are told anew


class Held:
    """One event at one broker; `sent` has a bit for each direction that has it.

    `spot` is the same number for events of one source and place that came the same way, where an
    index remembers what it found for them; 0: not told.
    """

    __slots__ = ("end", "event", "place", "sent", "spot", "start", "via")

    def __init__(self, event: EventView, via: str, spot: int = 0) -> None:
        self.event = event  # as it came: nobody else keeps it
        self.spot = spot
        self.via = via  # the neighbour it came from
        self.start: int = event.start  # read often, so taken once
        self.end: int = event.end  # in ms, as the start
        self.sent = 0  # bits of directions that have it, or were told of it
        self.place = place_of(event.position)  # None: it says no place

    def value(self, attribute: str) -> Any:
        """An attribute's value, None where it is missing."""
        if attribute[:1] == "\0":
            return self._own(attribute)
        return getattr(self.event, slot_of(attribute), None)

    def _own(self, name: str) -> Any:
        if name == START:
            return self.start
        position = self.event.position
        if name in METRES:
            return getattr(position, name[1:], None)
        return position[DEGREES.index(name)] if position.__class__ is list else None


def place_of(position: Any) -> Any:
    """A position as something hashable."""
    return tuple(position) if position.__class__ is list else position


EventKey: TypeAlias = tuple[str, str, int, str | None]
"""Type, id, end and source: two events that agree in these are one."""


class Store(dict[EventKey, Held]):
    """The events kept, by type in the order of their starts.

    Stores whose events the same indexes look up share the numbers of their `spots`.
    """

    def __init__(self, spots: Iterator[int] | None = None) -> None:
        super().__init__()
        self._types: dict[str, tuple[list[int], list[Held]]] = {}
        self._spots: dict[Any, int] = {}
        self.numbers = itertools.count(1) if spots is None else spots

    def add(
        self, event: EventView, via: str, among: dict[EventKey, Held] | None = None
    ) -> Held | None:
        """Keep an event, here or among others; None if it is there already."""
        among = self if among is None else among
        key = (event.event_type, event.id, event.end, event.source)
        if key in among:
            return None
        held = among[key] = Held(event, via)
        where = event.source, event.location, held.place, via
        spot = self._spots.get(where)
        if spot is None:
            if len(self._spots) >= SPOTS_MAX:
                self._spots.clear()
            spot = self._spots[where] = next(self.numbers)  # an index may remember those before
        held.spot = spot
        if among is self:
            starts, kept = self._types.setdefault(event.event_type, ([], []))
            insert(starts, kept, held.start, held)
        return held

    def of_type(self, type_name: str) -> list[Held]:
        """The events of a type, in the order of their starts."""
        return self._types.get(type_name, ((), []))[1]

    def everything(self) -> list[Held]:
        """All events, in the order in which they came."""
        return list(self.values())

    def expire(self, before_ms: int) -> None:
        """Forget what began before."""
        for type_name in list(self._types):
            starts, kept = self._types[type_name]
            count = bisect_left(starts, before_ms)
            if not count:
                continue
            for held in kept[:count]:
                event = held.event
                del self[event.event_type, event.id, held.end, event.source]
            del starts[:count], kept[:count]
            if not kept:
                del self._types[type_name]


def insert(starts: list[int], items: list[Any], start: int, item: Any) -> None:
    """Put an item where its start belongs, behind those of the same start."""
    if not starts or start >= starts[-1]:
        starts.append(start)
        items.append(item)
        return
    place = bisect_right(starts, start)
    starts.insert(place, start)
    items.insert(place, item)


FRESH_MAX = 64  # rows asked one by one before the columns are built anew
PLACES_MAX = 4_096  # places whose answers are kept
GATES_MAX = (
    64  # so many are asked one by one of an event from a new place; beyond, boxes are ranges
)

Condition = Callable[[Any], bool]


class Gate(NamedTuple):
    """State what a row asks of where an event comes from; None: nothing."""

    source: str | None
    location: str | None
    region: Region | None
    via: str | None  # the neighbour that it must have come from

    def test(self, held: Held) -> bool:
        """Tell whether an event passes."""
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
    """State what one operator asks at one place."""

    key: Key  # in the words of whoever asks
    gate: Gate
    since_ms: int | None = None  # None: whenever it began
    condition: Condition | None = None  # for what the key's fields do not say

    def test(self, held: Held) -> bool:
        """Tell whether an event passes; the reference for the columns."""
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
        return self.meets(held)

    def meets(self, held: Held) -> bool:
        """Ask the condition beside the fields of the key."""
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
    """Tell whether it lies in any range at all.

    An attribute that is a number to who asks may be text, or nothing, where the event enters.
    """
    kind = value.__class__
    return kind is int or (kind is float and value == value)  # noqa: PLR0124 - not so of NaN


def _same(value: Any, wanted: Scalar) -> bool:
    # Truth is no number, though Python takes True for 1.
    return bool(value == wanted) and isinstance(value, bool) == isinstance(wanted, bool)


def _number(value: Any) -> Any:
    return value if _is_number(value) else None


def _text(value: Any) -> Any:
    return value if value.__class__ is str else None


def _truth(value: Any) -> Any:
    return value if value.__class__ is bool else None


# A column has the values of one attribute that are of one kind, as those of two have no order.
Reader = Callable[[Any], Any]
Bound = tuple[str, Reader, Any, Any]  # attribute, kind, low, high; half open, None is open
_NEVER = (0, 0)


def _half_open(low: Any, high: Any, low_open: bool, high_open: bool) -> tuple[Any, Any]:
    """Return the range [low, high) of the same numbers, or of few more."""
    if any(isinstance(end, float) and isnan(end) for end in (low, high)):
        return _NEVER
    if low is not None and low_open:
        low = after(low)
    if high is not None and not high_open:
        high = None if high == inf else past(high)
    return low, high


def _bounds(row: Row) -> Iterator[Bound]:
    """Give all that a row asks of values."""
    for attribute, low, high, low_open, high_open in map(_ends, row.key.ranges):
        yield attribute, _number, *_half_open(low, high, low_open, high_open)
    for attribute, wanted in row.key.equals:
        if isinstance(wanted, bool):
            yield attribute, _truth, int(wanted), wanted + 1
        elif isinstance(wanted, str):
            yield attribute, _text, wanted, past(wanted)
        else:
            yield attribute, _number, *_half_open(wanted, wanted, False, False)
    if row.since_ms is not None:
        yield START, _number, row.since_ms, None


def _is_exact(row: Row) -> bool:
    """Return whether the bounds of a row hold for its values alone."""
    # Further out there are integers that no float between two others keeps apart.
    numbers = [end for one in row.key.ranges for end in (one.low, one.high) if end is not None]
    numbers += [value for _, value in row.key.equals if not isinstance(value, str)]
    return all(-EXACT_FLOAT_MAX < number < EXACT_FLOAT_MAX for number in numbers)


class RowIndex:
    """Rows by slot; `lookup` gives the slots whose row an event passes as set bits."""

    def __init__(self) -> None:
        self._rows: dict[int, Row] = {}  # all, by number
        self._fresh: dict[int, Row] = {}
        self._spent = 0  # fresh rows asked since the columns were built
        self._alive = 0
        self._columns: list[tuple[str, Reader, StepColumn]] = []
        self._gates: list[tuple[Gate, int]] = []
        self._open = 0  # rows that ask nothing of the place
        self._asking = 0  # rows of which the columns do not say all,
        self._asked: dict[int, Callable[[Held], bool]] = {}  # and what does
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
        bits = (self._place(held) if self._gates else self._open) & self._alive
        for attribute, kind, column in self._columns:
            if not bits:
                break
            bits &= column.rows(kind(held.value(attribute)))
        if asking := bits & self._asking:
            for slot in slots_of(asking):
                if not self._asked[slot](held):
                    bits ^= 1 << slot
        for slot, row in self._fresh.items():
            if row.test(held):
                bits |= 1 << slot
        return bits

    def _place(self, held: Held) -> int:
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
        self._alive = bits_of(list(self._rows))
        self._asked = {}
        gates: dict[Gate, list[int]] = {}
        many = len({row.gate for row in self._rows.values()}) > GATES_MAX
        spans: dict[tuple[str, Reader], dict[int, tuple[Any, Any]]] = {}
        for slot, row in self._rows.items():
            bounds = list(_bounds(row))
            gate = row.gate
            if many and gate.region is not None and gate.region.shape == "box":
                bounds += _sides(gate.region)
                gate = gate._replace(region=None)
            gates.setdefault(gate, []).append(slot)
            for attribute, kind, low, high in bounds:
                column = spans.setdefault((attribute, kind), {})
                column[slot] = _both(column.get(slot, (None, None)), (low, high))
            if not _is_exact(row):
                self._asked[slot] = row.test
            elif row.condition is not None:
                self._asked[slot] = row.meets
        self._asking = bits_of(list(self._asked))
        self._open = bits_of(gates.pop(Gate(None, None, None, None), []))
        self._gates = [(gate, bits_of(slots)) for gate, slots in gates.items()]
        self._columns = [
            (*key, StepColumn([(slot, *span) for slot, span in column.items()], self._free(column)))
            for key, column in spans.items()
        ]

    def _free(self, bounded: Iterable[int]) -> int:
        """Return the rows that a column does not bound."""
        return self._alive & ~bits_of(list(bounded))


def _both(left: tuple[Any, Any], right: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the range that two ranges of one term have in common."""
    lows = [low for low, _ in (left, right) if low is not None]
    highs = [high for _, high in (left, right) if high is not None]
    return max(lows, default=None), min(highs, default=None)


def _sides(region: Region) -> list[Bound]:
    """Return a box as bounds of an event's position."""
    a, b, c, d = region.numbers
    first, second = METRES if region.metric else DEGREES
    return [
        (first, _number, *_half_open(min(a, c), max(a, c), False, False)),
        (second, _number, *_half_open(min(b, d), max(b, d), False, False)),
    ]

"""Accumulators: what a window keeps of the values of one argument, and each aggregate over them.

Owns one accumulator for each kind of thing kept (several aggregates of one argument share it) and
one record for each of language.functions.AGGREGATES. Must not know windows, groups or text.
Invariant: a result depends on the values (and their events' order) that are in, not on the order
in which they came; a list gives the same value as a window with the same events.

Panes `take` values in runs and are `merged`; what moves with a window may `add` and `remove` single
values. Values are neither null nor infinite.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import accumulate, chain, islice
from operator import attrgetter, lt
from typing import Any

from broker.engine.event.event import Event, MetricPosition, Order
from broker.engine.window.constituents import Head, order_of, plain_order
from broker.engine.window.exact import Moments, WholeMoments, quantile, unsigned_zero
from language.functions import AGGREGATES

BLOCK_MAX = 2_048  # values that an insertion may move

_order = attrgetter("order")
_end = attrgetter("end")


class Tally:
    """Count values; the count is exact under removal, as all of its kind are alike."""

    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0

    def take(self, values: Sequence[Any]) -> None:
        """Add `values`."""
        self.n += len(values)

    def add(self, _: Any) -> None:
        """Add a value."""
        self.n += 1

    def remove(self, _: Any) -> None:
        """Take back a value."""
        self.n -= 1

    def merged(self, others: Sequence[Tally]) -> Tally:
        """Return a new tally of all together."""
        made = Tally()
        made.n = self.n + sum([other.n for other in others])
        return made

    def plain(self) -> int:
        """Return plain data."""
        return self.n

    def restore(self, data: int) -> None:
        """Take up what `plain` gave."""
        self.n = data


class Extreme:
    """Keep the least or the greatest value of a pane.

    It cannot give a value back (it has no inverse), so a pane's extreme is only ever merged.
    """

    __slots__ = ("pick", "value")

    def __init__(self, *, greatest: bool) -> None:
        self.pick = max if greatest else min
        self.value: Any = None

    def take(self, values: Sequence[Any]) -> None:
        """Add `values`."""
        extreme = self.pick(values)
        self.value = extreme if self.value is None else self.pick(self.value, extreme)

    def result(self) -> Any:
        """Return the value; None of none."""
        return unsigned_zero(self.value)

    def merged(self, others: Sequence[Extreme]) -> Extreme:
        """Return the most extreme of all."""
        made = Extreme(greatest=self.pick is max)
        values = [part.value for part in (self, *others) if part.value is not None]
        made.value = self.pick(values) if values else None
        return made

    def plain(self) -> Any:
        """Return plain data."""
        return self.value

    def restore(self, data: Any) -> None:
        """Take up what `plain` gave."""
        self.value = data


class MonotoneDeque:
    """Keep the least or the greatest of values that come in order and leave oldest first.

    Only values that may yet become the extreme are kept, the extreme first: each value comes and
    goes once, so a step costs constant time amortised (the monotone deque). Two stacks would do the
    same for any merge, but store every value twice.
    """

    __slots__ = ("deque", "greatest")

    def __init__(self, *, greatest: bool) -> None:
        self.greatest = greatest
        self.deque: deque[Any] = deque()

    def add(self, value: Any) -> None:
        """Add the newest."""
        kept = self.deque
        # Equals stay: each of them is removed in its turn.
        if self.greatest:
            while kept and kept[-1] < value:
                kept.pop()
        else:
            while kept and kept[-1] > value:
                kept.pop()
        kept.append(value)

    def remove(self, value: Any) -> None:
        """Take back the oldest."""
        if self.deque[0] == value:
            self.deque.popleft()

    def result(self) -> Any:
        """Return the value; None of none."""
        return unsigned_zero(self.deque[0]) if self.deque else None


class Bag:
    """Keep all values of a pane, for quantiles: they are sorted when one is read."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: list[Any] = []

    def take(self, values: Iterable[Any]) -> None:
        """Add `values`."""
        self.values += values

    def quantile(self, over: int, under: int) -> float | None:
        """Return the over/under quantile; see `quantile`."""
        values = self.values
        values.sort()
        return quantile(len(values), values.__getitem__, over, under)

    def merged(self, others: Sequence[Bag]) -> Bag:
        """Return all values together; sorted runs are merged when they are read."""
        made = Bag()
        made.values = [*self.values, *chain.from_iterable([other.values for other in others])]
        return made

    def plain(self) -> list[Any]:
        """Return plain data."""
        return list(self.values)

    def restore(self, data: list[Any]) -> None:
        """Take up what `plain` gave, in whatever order."""
        self.values = list(data)


class Ascending:
    """Keep all values ascending: for quantiles, and for extremes of what leaves in any order.

    Values stand in blocks, so that an insertion moves few of them: with 100,000 values a flat list
    would move 50,000 pointers, a block at most 2,048. `lasts` and `sizes` are those of the blocks.
    """

    __slots__ = ("_upto", "blocks", "count", "greatest", "lasts", "sizes")

    def __init__(self, *, greatest: bool = False) -> None:
        self.greatest = greatest
        self.blocks: list[list[Any]] = []
        self.lasts: list[Any] = []
        self.sizes: list[int] = []
        self.count = 0
        self._upto: list[int] | None = None  # the number of values in each block and before it

    def add(self, value: Any) -> None:
        """Insert a value in its place."""
        self.count += 1
        self._upto = None
        at = bisect_left(self.lasts, value)
        if at == len(self.lasts):
            if not at:
                self.blocks.append([value])
                self.lasts.append(value)
                self.sizes.append(1)
                return
            at -= 1
        block = self.blocks[at]
        insort(block, value)
        self.lasts[at] = block[-1]
        self.sizes[at] += 1
        if len(block) > BLOCK_MAX:
            half = len(block) // 2
            self.blocks[at : at + 1] = parts = [block[:half], block[half:]]
            self.lasts[at : at + 1] = [part[-1] for part in parts]
            self.sizes[at : at + 1] = [len(part) for part in parts]

    def remove(self, value: Any) -> None:
        """Take back a value."""
        self.count -= 1
        self._upto = None
        at = bisect_left(self.lasts, value)
        block = self.blocks[at]
        del block[bisect_left(block, value)]
        if block:
            self.lasts[at] = block[-1]
            self.sizes[at] -= 1
        else:
            del self.blocks[at], self.lasts[at], self.sizes[at]

    def value_at(self, rank: int) -> Any:
        """Return the value of a rank, from 0."""
        if len(self.blocks) == 1:
            return self.blocks[0][rank]
        if self._upto is None:
            self._upto = list(accumulate(self.sizes))
        upto = self._upto
        at = bisect_right(upto, rank)
        return self.blocks[at][rank - upto[at] + self.sizes[at]]

    def quantile(self, over: int, under: int) -> float | None:
        """Return the over/under quantile; see `quantile`."""
        return quantile(self.count, self.value_at, over, under)

    def result(self) -> Any:
        """Return the least or the greatest value; None of none."""
        if not self.count:
            return None
        return unsigned_zero(self.value_at(self.count - 1 if self.greatest else 0))


class Distinct:
    """Count how often each value is inside: a set alone could not take values back."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[Any, int] = {}

    def take(self, values: Sequence[Any]) -> None:
        """Add `values`."""
        for value in map(hashable, values):
            self.counts[value] = self.counts.get(value, 0) + 1

    def add(self, value: Any) -> None:
        """Add a value."""
        key = hashable(value)
        self.counts[key] = self.counts.get(key, 0) + 1

    def remove(self, value: Any) -> None:
        """Take back a value."""
        key = hashable(value)
        self.counts[key] -= 1
        if not self.counts[key]:
            del self.counts[key]

    def result(self) -> int:
        """Return the number of different values."""
        return len(self.counts)

    def merged(self, others: Sequence[Distinct]) -> Distinct:
        """Return all together, of which no value can be taken back: how often each was is lost."""
        made = Distinct()
        for part in (self, *others):
            made.counts |= part.counts
        return made

    def plain(self) -> list[Any]:
        """Return plain data."""
        return [[plain_value(value), count] for value, count in self.counts.items()]

    def restore(self, data: list[Any]) -> None:
        """Take up what `plain` gave."""
        self.counts = {hashable(value_of(value)): count for value, count in data}


class Ends:
    """Keep the first and the last value of a pane, by the order of the events they are from."""

    __slots__ = ("first_event", "first_value", "last_event", "last_value")

    def __init__(self) -> None:
        self.first_event: Any = None  # or its head
        self.first_value: Any = None
        self.last_event: Any = None
        self.last_value: Any = None

    def take_of(self, values: Sequence[Any], events: Sequence[Event]) -> None:
        """Add the values of as many events."""
        low = high = 0
        if len(events) > 1:
            ends = list(map(_end, events))
            low, high = index_of(min, ends, events), index_of(max, ends, events)
        self._take_first(events[low], values[low])
        self._take_last(events[high], values[high])

    def first(self) -> Any:
        """Return the first value; None of none."""
        return self.first_value

    def last(self) -> Any:
        """Return the last value; None of none."""
        return self.last_value

    def merged(self, others: Sequence[Ends]) -> Ends:
        """Return the first and the last of all."""
        made = Ends()
        for part in (self, *others):
            if part.first_event is not None:
                made._take_first(part.first_event, part.first_value)
                made._take_last(part.last_event, part.last_value)
        return made

    def plain(self) -> list[Any]:
        """Return plain data."""
        events = self.first_event, self.last_event
        orders = [None if event is None else plain_order(event.order) for event in events]
        return [*orders, plain_value(self.first_value), plain_value(self.last_value)]

    def restore(self, data: list[Any]) -> None:
        """Take up what `plain` gave."""
        heads = [None if order is None else Head(order_of(order)) for order in data[:2]]
        self.first_event, self.last_event = heads
        self.first_value, self.last_value = value_of(data[2]), value_of(data[3])

    def _take_first(self, event: Any, value: Any) -> None:
        first = self.first_event
        # Whole orders are asked for only where ends tie.
        if (
            first is None
            or event.end < first.end
            or (event.end == first.end and event.order < first.order)
        ):
            self.first_event, self.first_value = event, value

    def _take_last(self, event: Any, value: Any) -> None:
        last = self.last_event
        if (
            last is None
            or event.end > last.end
            or (event.end == last.end and event.order > last.order)
        ):
            self.last_event, self.last_value = event, value


class Ordered:
    """Keep all values in the order of their events: for First and Last where values leave, and for
    aggregates of the user's own.

    Values leave oldest first, whatever the order in which they came.
    """

    __slots__ = ("events", "values")

    def __init__(self) -> None:
        self.events: deque[Any] = deque()  # in order: those that the values are of, or their heads
        self.values: deque[Any] = deque()

    def add_of(self, value: Any, event: Event) -> None:
        """Add the value of an event."""
        events = self.events
        # Whole orders are asked for only where ends tie, or one is put in the midst of others.
        if not events or events[-1].end < event.end:
            events.append(event)
            self.values.append(value)
        else:
            place = bisect_left(events, event.order, key=_order)
            events.insert(place, event)
            self.values.insert(place, value)

    def remove(self, _: Any) -> None:
        """Take back the oldest."""
        self.events.popleft()
        self.values.popleft()

    def take_of(self, values: Sequence[Any], events: Sequence[Event]) -> None:
        """Add the values of as many events."""
        self._fill([*self.entries(), *zip(events, values, strict=True)])

    def first(self) -> Any:
        """Return the first value; None of none."""
        return self.values[0] if self.values else None

    def last(self) -> Any:
        """Return the last value; None of none."""
        return self.values[-1] if self.values else None

    def merged(self, others: Sequence[Ordered]) -> Ordered:
        """Return all together."""
        made = Ordered()
        made._fill([entry for part in (self, *others) for entry in part.entries()])
        return made

    def plain(self) -> list[Any]:
        """Return plain data."""
        return [[plain_order(event.order), plain_value(value)] for event, value in self.entries()]

    def restore(self, data: list[Any]) -> None:
        """Take up what `plain` gave."""
        self._fill([(Head(order_of(order)), value_of(value)) for order, value in data])

    def entries(self) -> list[tuple[Any, Any]]:
        """Return the events, or their heads, with their values."""
        return list(zip(self.events, self.values, strict=True))

    def _fill(self, entries: list[tuple[Any, Any]]) -> None:
        ends = [event.end for event, _ in entries]
        if not all(map(lt, ends, islice(ends, 1, None))):
            entries.sort(key=_order_of)
        self.events = deque([event for event, _ in entries])
        self.values = deque([value for _, value in entries])


def _order_of(entry: tuple[Any, Any]) -> Order:
    order: Order = entry[0].order
    return order


# --- which accumulator is made ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AccumulatorKind:
    """A thing to keep: how it is made in a pane, in a window that moves, and in one that moves and
    whose values leave in any order, as `distinct` makes them.
    """

    in_pane: Callable[[], Any]
    sliding: Callable[[], Any]
    scattered: Callable[[], Any]
    grows: bool = False  # with the values, so that a limit counts them
    of_events: bool = False  # is given the events that values are from


def _extreme(*, greatest: bool) -> AccumulatorKind:
    return AccumulatorKind(
        partial(Extreme, greatest=greatest),
        partial(MonotoneDeque, greatest=greatest),
        partial(Ascending, greatest=greatest),
    )


def _moments(kind: type[Moments], *, squared: bool) -> AccumulatorKind:
    # Sums are exact, so a value taken back leaves no rest: the same object serves everywhere.
    make = partial(kind, squared)
    return AccumulatorKind(make, make, make)


KINDS: dict[str, AccumulatorKind] = {
    "tally": AccumulatorKind(Tally, Tally, Tally),
    "moments": _moments(Moments, squared=False),
    "squares": _moments(Moments, squared=True),
    "least": _extreme(greatest=False),
    "greatest": _extreme(greatest=True),
    "bag": AccumulatorKind(Bag, Ascending, Ascending, grows=True),
    "distinct": AccumulatorKind(Distinct, Distinct, Distinct, grows=True),
    "ends": AccumulatorKind(Ends, Ordered, Ordered, of_events=True),
    "ordered": AccumulatorKind(Ordered, Ordered, Ordered, grows=True, of_events=True),
}
WHOLE_KINDS: dict[str, AccumulatorKind] = {  # of integers alone, whose sums need no unit
    "moments": _moments(WholeMoments, squared=False),
    "squares": _moments(WholeMoments, squared=True),
}


def kind_named(name: str, *, whole: bool) -> AccumulatorKind:
    """Return the kind of a thing to keep; `whole` where all of its values are integers."""
    return WHOLE_KINDS.get(name, KINDS[name]) if whole else KINDS[name]


# --- the aggregates ---------------------------------------------------------------------------


def _moments_of(values: Sequence[Any], *, squared: bool = False) -> Moments:
    moments = Moments(squared)
    moments.take(values)
    return moments


def _sum(values: Sequence[Any], _: Any) -> Any:
    whole = all(value.__class__ is int for value in values)
    moments = _moments_of(values)
    return moments.sum_int() if whole else moments.sum_float()


def _quantile(values: Sequence[Any], share: Fraction) -> float | None:
    return quantile(len(values), sorted(values).__getitem__, share.numerator, share.denominator)


@dataclass(frozen=True, slots=True)
class Computation:
    """The engine's part of one aggregate.

    `kept`: the kind of accumulator (see KINDS). `result`: code of its value, `{kept}` being the
    accumulator, `{over}` / `{under}` the share of a quantile; `of_whole`: the same where all values
    are integers. `nullable`: whether it may be null though there are values. `of_list`: its value
    of one or more values at hand, in order, with the share.
    """

    kept: str
    result: str
    of_list: Callable[[Sequence[Any], Any], Any]
    nullable: bool = False
    of_whole: str | None = None


_QUANTILE = Computation("bag", "{kept}.quantile({over}, {under})", _quantile)

COMPUTATIONS: dict[str, Computation] = {
    "Count": Computation("tally", "{kept}.n", lambda values, _: len(values)),
    "Sum": Computation(
        "moments", "{kept}.sum_float()", _sum, nullable=True, of_whole="{kept}.sum_int()"
    ),
    "Avg": Computation("moments", "{kept}.mean()", lambda values, _: _moments_of(values).mean()),
    "StdDev": Computation(
        "squares",
        "{kept}.deviation()",
        lambda values, _: _moments_of(values, squared=True).deviation(),
    ),
    "Min": Computation("least", "{kept}.result()", lambda values, _: unsigned_zero(min(values))),
    "Max": Computation("greatest", "{kept}.result()", lambda values, _: unsigned_zero(max(values))),
    "Median": _QUANTILE,
    "Quantile": _QUANTILE,
    "First": Computation("ends", "{kept}.first()", lambda values, _: values[0]),
    "Last": Computation("ends", "{kept}.last()", lambda values, _: values[-1]),
    "CountDistinct": Computation(
        "distinct", "{kept}.result()", lambda values, _: len(set(map(hashable, values)))
    ),
}


def is_nullable(function: str) -> bool:
    """Return True for an aggregate that has no value of some events."""
    return COMPUTATIONS[function].nullable or AGGREGATES[function].over_none is None


def aggregate(function: str, values: Sequence[Any], share: Fraction | None = None) -> Any:
    """Return the aggregate of non-null values in order; `share` is that of a quantile."""
    if not values:
        return AGGREGATES[function].over_none
    return COMPUTATIONS[function].of_list(values, share)


# --- values -----------------------------------------------------------------------------------


def hashable(value: Any) -> Any:
    """Return the value as a key: a position in degrees as a tuple."""
    return tuple(value) if value.__class__ is list else value


def index_of(pick: Any, ends: Sequence[int], events: Sequence[Any]) -> int:
    """Return the index of the first event in order (`pick` is min) or of the last one (max).

    An order is a tuple with ids; it is asked for only where ends tie, as a few events in 1,000 do.
    """
    edge = pick(ends)
    if ends.count(edge) == 1:
        return ends.index(edge)
    tied = [index for index, end in enumerate(ends) if end == edge]
    return int(pick(tied, key=lambda index: events[index].order))


def plain_value(value: Any) -> Any:
    """Return a value as plain data: a metric position as an object, a tuple as a list."""
    if isinstance(value, MetricPosition):
        return {"x": value.x, "y": value.y, "z": value.z}
    return list(value) if isinstance(value, tuple) else value


def value_of(data: Any) -> Any:
    """Return the value that `plain_value` gave as plain data."""
    return MetricPosition(**data) if isinstance(data, dict) else data

"""What aggregates keep of the values they have seen.

Owns one class for each kind of thing kept; several aggregates of one argument share it. Must not
know windows, groups or text. Invariant: what is kept depends on the values (and their events'
order) that are in, not on the order in which they came; values are neither null nor infinite.

Panes `take` values in runs and are `merged`; what moves with a window adds and removes single
values (more of that in aggregates_moving.py). Nulls never come here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from broker.engine.event.event import Event, MetricPosition, Order
from broker.engine.window.exact import ratio
from broker.engine.window.ids import order_of, plain_order


class Kept(Protocol):
    """What a pane keeps of one argument."""

    def merged(self, others: Any) -> Any:
        """This and those of other panes together, as a new one."""

    def plain(self) -> Any:
        """Plain data for a snapshot."""

    def restore(self, data: Any) -> None:
        """Take up what `plain` gave."""


class Tally:
    """How many values there were."""

    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0

    def take(self, values: Sequence[Any]) -> None:
        """Add many."""
        self.n += len(values)

    def add(self, _: Any) -> None:
        """Add one."""
        self.n += 1

    def remove(self, _: Any) -> None:
        """Take back one."""
        self.n -= 1

    def merged(self, others: Sequence[Tally]) -> Tally:
        """All together."""
        made = Tally()
        made.n = self.n + sum([other.n for other in others])
        return made

    def plain(self) -> int:
        """Plain data."""
        return self.n

    def restore(self, data: int) -> None:
        """Take up what `plain` gave."""
        self.n = data


class Extreme:
    """The least or the greatest value of a pane."""

    __slots__ = ("pick", "value")

    def __init__(self, greatest: bool) -> None:
        self.pick = max if greatest else min
        self.value: Any = None

    def take(self, values: Sequence[Any]) -> None:
        """Add many."""
        found = self.pick(values)
        self.value = found if self.value is None else self.pick(self.value, found)

    def result(self) -> Any:
        """The value; None of none."""
        return unsigned_zero(self.value)

    def merged(self, others: Sequence[Extreme]) -> Extreme:
        """The most extreme of all."""
        made = Extreme(self.pick is max)
        values = [one.value for one in (self, *others) if one.value is not None]
        made.value = self.pick(values) if values else None
        return made

    def plain(self) -> Any:
        """Plain data."""
        return self.value

    def restore(self, data: Any) -> None:
        """Take up what `plain` gave."""
        self.value = data


def quantile(count: int, value_at: Callable[[int], Any], over: int, under: int) -> float | None:
    """The over/under quantile of ascending values: linear between the closest ranks of (n − 1) q,
    rounded once; None of none.
    """
    if not count:
        return None
    rank, rest = divmod((count - 1) * over, under)
    low = value_at(rank)
    if rest == 0 or low == (high := value_at(rank + 1)):
        return ratio(low, 1) if low.__class__ is int else unsigned_zero(float(low))
    a, a_unit = low.as_integer_ratio()
    b, b_unit = high.as_integer_ratio()
    weighed = a * b_unit * (under - rest) + b * a_unit * rest
    return ratio(weighed, a_unit * b_unit * under)


class Bag:
    """All values, for quantiles."""

    __slots__ = ("ascending", "values")

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.ascending = True

    def take(self, values: Sequence[Any]) -> None:
        """Add many."""
        self.values += values
        self.ascending = False

    def quantile(self, over: int, under: int) -> float | None:
        """See above."""
        if not self.ascending:
            self.values.sort()
            self.ascending = True
        return quantile(len(self.values), self.values.__getitem__, over, under)

    def merged(self, others: Sequence[Bag]) -> Bag:
        """All together."""
        made = Bag()
        for one in (self, *others):
            made.take(one.values)
        return made

    def plain(self) -> list[Any]:
        """Plain data."""
        return list(self.values)

    def restore(self, data: list[Any]) -> None:
        """Take up what `plain` gave."""
        self.values = []
        self.take(data)


class Distinct:
    """How often each value is inside."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: Counter[Any] = Counter()

    def take(self, values: Sequence[Any]) -> None:
        """Add many."""
        self.counts.update([hashable(value) for value in values])

    def add(self, value: Any) -> None:
        """Add one."""
        self.counts[hashable(value)] += 1

    def remove(self, value: Any) -> None:
        """Take back one."""
        key = hashable(value)
        if self.counts[key] == 1:
            del self.counts[key]
        else:
            self.counts[key] -= 1

    def result(self) -> int:
        """How many different values."""
        return len(self.counts)

    def merged(self, others: Sequence[Distinct]) -> Distinct:
        """All together."""
        made = Distinct()
        for one in (self, *others):
            made.counts.update(one.counts)
        return made

    def plain(self) -> list[Any]:
        """Plain data."""
        return [[plain_value(value), count] for value, count in self.counts.items()]

    def restore(self, data: list[Any]) -> None:
        """Take up what `plain` gave."""
        self.counts = Counter({hashable(value_of(value)): count for value, count in data})


class Ends:
    """The first and the last value of a pane, by the order of the events they are from."""

    __slots__ = ("first_at", "first_value", "last_at", "last_value")

    def __init__(self) -> None:
        self.first_at: Order | None = None
        self.first_value: Any = None
        self.last_at: Order | None = None
        self.last_value: Any = None

    def take_of(self, values: Sequence[Any], events: Sequence[Event]) -> None:
        """Add the values of as many events."""
        low = index_of_first(events)
        self._take_first(events[low].order, values[low])
        high = index_of_last(events)
        self._take_last(events[high].order, values[high])

    def first(self) -> Any:
        """The first value; None of none."""
        return self.first_value

    def last(self) -> Any:
        """The last value; None of none."""
        return self.last_value

    def merged(self, others: Sequence[Ends]) -> Ends:
        """The first and the last of all."""
        made = Ends()
        for one in (self, *others):
            if one.first_at is not None and one.last_at is not None:
                made._take_first(one.first_at, one.first_value)
                made._take_last(one.last_at, one.last_value)
        return made

    def plain(self) -> list[Any]:
        """Plain data."""
        values = [plain_value(self.first_value), plain_value(self.last_value)]
        return [plain_order(self.first_at), plain_order(self.last_at), *values]

    def restore(self, data: list[Any]) -> None:
        """Take up what `plain` gave."""
        self.first_at, self.last_at = order_of(data[0]), order_of(data[1])
        self.first_value, self.last_value = value_of(data[2]), value_of(data[3])

    def _take_first(self, at: Order, value: Any) -> None:
        if self.first_at is None or at < self.first_at:
            self.first_at, self.first_value = at, value

    def _take_last(self, at: Order, value: Any) -> None:
        if self.last_at is None or at > self.last_at:
            self.last_at, self.last_value = at, value


def unsigned_zero(value: Any) -> Any:
    """The value, with 0.0 for -0.0: they are equal, so which of them comes first must not show."""
    return value + 0.0 if value.__class__ is float else value


def hashable(value: Any) -> Any:
    """The value as a key: a position in degrees as a tuple."""
    return tuple(value) if value.__class__ is list else value


def index_of_first(events: Sequence[Any]) -> int:
    """Where the first in order stands; the whole order is asked for only where ends tie."""
    ends = [event.end for event in events]
    low = min(ends)
    if ends.count(low) == 1:
        return ends.index(low)
    tied = [i for i, end in enumerate(ends) if end == low]
    return min(tied, key=lambda i: events[i].order)


def index_of_last(events: Sequence[Any]) -> int:
    """Where the last in order stands."""
    ends = [event.end for event in events]
    high = max(ends)
    if ends.count(high) == 1:
        return ends.index(high)
    tied = [i for i, end in enumerate(ends) if end == high]
    return max(tied, key=lambda i: events[i].order)


def plain_value(value: Any) -> Any:
    """A value as plain data: a metric position as an object, a tuple as a list."""
    if isinstance(value, MetricPosition):
        return {"x": value.x, "y": value.y, "z": value.z}
    return list(value) if isinstance(value, tuple) else value


def value_of(data: Any) -> Any:
    """The value that `plain_value` gave as plain data."""
    return MetricPosition(**data) if isinstance(data, dict) else data

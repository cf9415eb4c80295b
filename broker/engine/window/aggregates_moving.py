"""What aggregates keep of the values in a window that moves.

Owns what differs from aggregates.py where values are taken back. Must not know windows or groups.
Invariant: as there. What is called sliding gets values in order and gives back the oldest; the
others take and give them back in any order, as `distinct` makes them come.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from broker.engine.event.event import Event, Order
from broker.engine.window.aggregates import plain_value, quantile, unsigned_zero, value_of
from broker.engine.window.ids import order_of, plain_order

BLOCK_MAX = 2_048  # values that an insertion may move


class SlidingLeast:
    """The least of the values inside: only those that may yet become it are kept, ascending."""

    __slots__ = ("candidates",)

    def __init__(self) -> None:
        self.candidates: deque[Any] = deque()

    def add(self, value: Any) -> None:
        """Add the newest."""
        candidates = self.candidates
        while candidates and candidates[-1] > value:
            candidates.pop()
        candidates.append(value)

    def remove(self, value: Any) -> None:
        """Take back the oldest."""
        if self.candidates[0] == value:
            self.candidates.popleft()

    def result(self) -> Any:
        """The value; None of none."""
        return unsigned_zero(self.candidates[0]) if self.candidates else None


class SlidingGreatest(SlidingLeast):
    """The greatest of the values inside: those that may yet become it, descending."""

    __slots__ = ()

    def add(self, value: Any) -> None:
        """Add the newest."""
        candidates = self.candidates
        while candidates and candidates[-1] < value:
            candidates.pop()
        candidates.append(value)


class SlidingEnds:
    """The values inside, oldest first."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: deque[Any] = deque()

    def add(self, value: Any) -> None:
        """Add the newest."""
        self.values.append(value)

    def remove(self, _: Any) -> None:
        """Take back the oldest."""
        self.values.popleft()

    def first(self) -> Any:
        """The first value; None of none."""
        return self.values[0] if self.values else None

    def last(self) -> Any:
        """The last value; None of none."""
        return self.values[-1] if self.values else None


class Ascending:
    """Values that come and go in any order, kept ascending, for quantiles.

    They stand in blocks, so that an insertion moves few of them; `lasts` and `sizes` are those of
    the blocks.
    """

    __slots__ = ("_upto", "blocks", "count", "lasts", "sizes")

    def __init__(self) -> None:
        self.blocks: list[list[Any]] = []
        self.lasts: list[Any] = []
        self.sizes: list[int] = []
        self.count = 0
        self._upto: list[int] | None = None  # how many values stand in each block and before

    def add(self, value: Any) -> None:
        """Add one, in its place."""
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
        """Take back one."""
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
        """The value of a rank, from 0."""
        if self._upto is None:
            self._upto = list(accumulate(self.sizes))
        upto = self._upto
        at = bisect_right(upto, rank)
        return self.blocks[at][rank - upto[at] + self.sizes[at]]

    def quantile(self, over: int, under: int) -> float | None:
        """See aggregates.quantile."""
        return quantile(self.count, self.value_at, over, under)


class Least(Ascending):
    """The least of values that come and go in any order."""

    __slots__ = ()

    def result(self) -> Any:
        """The value; None of none."""
        return unsigned_zero(self.blocks[0][0]) if self.blocks else None


class Greatest(Ascending):
    """The greatest of values that come and go in any order."""

    __slots__ = ()

    def result(self) -> Any:
        """The value; None of none."""
        return unsigned_zero(self.lasts[-1]) if self.blocks else None


class ScatteredEnds:
    """The first and the last value, by order, of values that come and go in any order."""

    __slots__ = ("orders", "values")

    def __init__(self) -> None:
        self.orders: list[Order] = []  # ascending
        self.values: list[Any] = []

    def add_of(self, value: Any, event: Event) -> None:
        """Add the value of an event."""
        at = bisect_left(self.orders, event.order)
        self.orders.insert(at, event.order)
        self.values.insert(at, value)

    def remove_of(self, _: Any, event: Event) -> None:
        """Take back the value of an event."""
        at = bisect_left(self.orders, event.order)
        del self.orders[at]
        del self.values[at]

    def first(self) -> Any:
        """The first value; None of none."""
        return self.values[0] if self.values else None

    def last(self) -> Any:
        """The last value; None of none."""
        return self.values[-1] if self.values else None


class Ordered(ScatteredEnds):
    """All values in the order of their events, for aggregates of the user's own."""

    __slots__ = ()

    def take_of(self, values: Sequence[Any], events: Sequence[Event]) -> None:
        """Add the values of as many events."""
        self._fill([*self.entries(), *_ordered(values, events)])

    def merged(self, others: Sequence[Ordered]) -> Ordered:
        """All together."""
        made = Ordered()
        made._fill([entry for one in (self, *others) for entry in one.entries()])
        return made

    def plain(self) -> list[Any]:
        """Plain data."""
        return [[plain_order(order), plain_value(value)] for order, value in self.entries()]

    def restore(self, data: list[Any]) -> None:
        """Take up what `plain` gave."""
        self._fill([(order_of(order), value_of(value)) for order, value in data])

    def entries(self) -> list[tuple[Order, Any]]:
        """The values with the orders of their events."""
        return list(zip(self.orders, self.values, strict=True))

    def _fill(self, entries: list[tuple[Order, Any]]) -> None:
        entries.sort(key=_first)
        self.orders = [order for order, _ in entries]
        self.values = [value for _, value in entries]


def _ordered(values: Sequence[Any], events: Sequence[Event]) -> list[tuple[Order, Any]]:
    return [(event.order, value) for event, value in zip(events, values, strict=True)]


def _first(entry: tuple[Order, Any]) -> Order:
    return entry[0]

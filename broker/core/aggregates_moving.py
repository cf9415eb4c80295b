"""What aggregates keep of the values in a window that moves.

Owns what differs from aggregates.py where values are taken back. Must not know windows or groups.
Invariant: as there. What is called sliding gets values in order and gives back the oldest; the
others take and give them back in any order, as `distinct` makes them come.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import Any

from broker.core.aggregates import Bag, unsigned_zero
from broker.core.event import Event, Order


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


class Least(Bag):
    """The least of values that come and go in any order."""

    __slots__ = ()

    def result(self) -> Any:
        """The value; None of none."""
        return unsigned_zero(self.values[0]) if self.values else None


class Greatest(Bag):
    """The greatest of values that come and go in any order."""

    __slots__ = ()

    def result(self) -> Any:
        """The value; None of none."""
        return unsigned_zero(self.values[-1]) if self.values else None


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

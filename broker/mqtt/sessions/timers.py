"""Moments at which something is due, in virtual milliseconds.

Owns their order. Must not know a clock: the moment is an argument. Invariant: what is due at the
same moment happens in the order in which it was set; cancelled timers never pile up.
"""

import heapq
from collections.abc import Callable


class Timer:
    """One moment; `cancel` makes it nothing."""

    __slots__ = ("_owner", "_todo", "order", "when_ms")

    def __init__(
        self, owner: "Timers", when_ms: int, order: int, todo: Callable[[int], None]
    ) -> None:
        self._owner = owner
        self._todo: Callable[[int], None] | None = todo
        self.when_ms = when_ms
        self.order = order

    def __lt__(self, other: "Timer") -> bool:
        return (self.when_ms, self.order) < (other.when_ms, other.order)

    @property
    def live(self) -> bool:
        """Tell whether it is still to happen."""
        return self._todo is not None

    def cancel(self) -> None:
        """It will not happen; nothing, if it has."""
        if self._todo is not None:
            self._todo = None
            self._owner.discarded()

    def fire(self, now_ms: int) -> None:
        """Do what is due, once."""
        todo, self._todo = self._todo, None
        if todo is not None:
            todo(now_ms)


class Timers:
    """A heap of timers."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._order = 0
        self._dead = 0
        self.sooner = False  # a timer was set that comes before all others; whoever waits clears it

    def at(self, when_ms: int, todo: Callable[[int], None]) -> Timer:
        """Have `todo(now_ms)` called once it is `when_ms`."""
        self._order += 1
        timer = Timer(self, when_ms, self._order, todo)
        heapq.heappush(self._heap, timer)
        if self._heap[0] is timer:
            self.sooner = True
        return timer

    def next_wake(self) -> int | None:
        """The earliest moment at which something is due."""
        self._prune()
        return self._heap[0].when_ms if self._heap else None

    def fire(self, now_ms: int) -> None:
        """Do all that is due by now, also what that makes due."""
        self._prune()
        while self._heap and self._heap[0].when_ms <= now_ms:
            heapq.heappop(self._heap).fire(now_ms)
            self._prune()

    def discarded(self) -> None:
        """A timer in the heap was cancelled; sweep once half of them are."""
        self._dead += 1
        if self._dead > 64 and self._dead * 2 > len(self._heap):
            self._heap = [timer for timer in self._heap if timer.live]
            heapq.heapify(self._heap)
            self._dead = 0

    def _prune(self) -> None:
        while self._heap and not self._heap[0].live:
            heapq.heappop(self._heap)
            self._dead -= 1

"""Which groups are to be looked at when.

Owns the times. Must not know what is done then. Invariant: a group has one time, the one that was
set last; times that lie in the past are given out once.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from broker.engine.event.agent import WATERMARK_END


class Agenda:
    """By group, the watermark at which it is due; what is due at the end alone is not noted."""

    __slots__ = ("_due", "_heap", "_serial")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, tuple[Any, ...]]] = []
        self._due: dict[tuple[Any, ...], int] = {}
        self._serial = 0

    def set(self, key: tuple[Any, ...], at: int | None) -> None:
        """The group is due at the watermark, and at no other; None: it is not due."""
        if at is None or at >= WATERMARK_END:
            self._due.pop(key, None)
        # An entry is never moved in the heap: the dict says which one counts, others are passed
        # over when they come up.
        elif self._due.get(key) != at:
            self._due[key] = at
            self._serial += 1
            heappush(self._heap, (at, self._serial, key))

    def take(self, watermark: int) -> list[tuple[Any, ...]]:
        """The groups that are due by the watermark; they are due no more."""
        ready = []
        heap = self._heap
        while heap and heap[0][0] <= watermark:
            at, _, key = heappop(heap)
            if self._due.get(key) == at:
                del self._due[key]
                ready.append(key)
        return ready

    def first(self) -> int | None:
        """The least watermark at which a group is due."""
        heap = self._heap
        # Stale entries at the top go now, so each is looked at once in all.
        while heap and self._due.get(heap[0][2]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

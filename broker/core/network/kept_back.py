"""What of an origin's events is kept back from one neighbour.

Owns these events and the orders in which they are looked for. Must not know claims or promises.
Invariant: what a question costs depends on what it finds and on how many types there are, not on
how much waits.

Each order is a heap. What has gone stays in there until it comes to the top, or until more has gone
than waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import TypeAlias

from broker.core.routing.matching import Waiting

SPARE = 64  # so that few are not ordered anew again and again

Row: TypeAlias = tuple[int, Waiting]
Kind: TypeAlias = tuple[str, tuple[str, ...]]
"""An event's type, and those of its partners."""
Heap: TypeAlias = list[tuple[int, int]]
"""Of (a value, the position that has it), the least first."""


class KeptBack(dict[int, Waiting]):
    """By position."""

    def __init__(self) -> None:
        super().__init__()
        self._order_anew()

    def __setitem__(self, position: int, one: Waiting) -> None:
        super().__setitem__(position, one)
        self._ordered += 1
        if self._ordered > 2 * len(self) + SPARE:
            self._order_anew()
        else:
            self._order(position, one)

    def _order_anew(self) -> None:
        self._ordered = len(self)
        self._positions: Heap = []
        self._ends: dict[str, Heap] = {}
        self._overs: dict[Kind, Heap] = {}
        for position, one in self.items():
            self._order(position, one)

    def _order(self, position: int, one: Waiting) -> None:
        name, end = one.held.event.event_type, one.held.end
        heappush(self._positions, (position, position))
        heappush(self._ends.setdefault(name, []), (end, position))
        heappush(self._overs.setdefault((name, one.types), []), (one.over_ms, position))

    # --- questions -------------------------------------------------------------------------

    def _least(self, heap: Heap) -> int | None:
        while heap and heap[0][1] not in self:
            heappop(heap)
        return heap[0][0] if heap else None

    def first(self) -> int | None:
        """The least position."""
        return self._least(self._positions)

    def ends(self) -> dict[str, int]:
        """By type the least end."""
        found = {name: self._least(heap) for name, heap in self._ends.items()}
        return {name: end for name, end in found.items() if end is not None}

    # --- what goes -------------------------------------------------------------------------

    def take(self, positions: Iterable[int]) -> list[Row]:
        """What waits of these; it waits no more."""
        return [(position, self.pop(position)) for position in positions if position in self]

    def take_first(self, events_max: int, before: int) -> list[Row]:
        """The least positions: those of more than so many, and those before a position."""
        found: list[Row] = []
        first = self.first()
        while first is not None and (len(self) > events_max or first < before):
            found.append((first, self.pop(first)))
            first = self.first()
        return found

    def take_over(self, reached_ms: Callable[[str, tuple[str, ...]], float]) -> list[Row]:
        """What has no partner that begins behind the time that is reached for its kind."""
        found: list[Row] = []
        for kind, heap in self._overs.items():
            if self._least(heap) is None:
                continue
            limit_ms = reached_ms(*kind)
            while (least_ms := self._least(heap)) is not None and least_ms <= limit_ms:
                position = heappop(heap)[1]
                found.append((position, self.pop(position)))
        return found

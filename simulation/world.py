"""Virtual time: what happens when, in one thread and without waiting.

Owns the heap of what is to happen. Must not know what that is. Invariant: actions happen in the
order of their times, and at one time in the order in which they were planned; time never goes back.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random

ACTIONS_MAX = 1_000_000  # a run with more does not end by itself


class World:
    """Holds the time, in milliseconds since the epoch, and all randomness of a run."""

    def __init__(self, random: Random, now: int, actions_max: int = ACTIONS_MAX) -> None:
        self.random = random
        self.now = now
        self.happened = 0
        self._actions_max = actions_max
        self._planned: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = 0

    def at(self, time_ms: int, action: Callable[[], None]) -> None:
        """Plan an action; a time that has passed means now, after all that is planned for now."""
        self._serial += 1
        heappush(self._planned, (max(time_ms, self.now), self._serial, action))

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Plan an action for so long from now."""
        self.at(self.now + delay_ms, action)

    def run(self, until_ms: int | None = None) -> None:
        """Let all happen that is planned, or all up to a time, at which it is then.

        Raises RuntimeError where there is no end.
        """
        while self._planned and (until_ms is None or self._planned[0][0] <= until_ms):
            self.now, _, action = heappop(self._planned)
            self.happened += 1
            if self.happened > self._actions_max:
                raise RuntimeError(f"more than {self._actions_max} actions, and still no end")
            action()
        if until_ms is not None:
            self.now = max(self.now, until_ms)

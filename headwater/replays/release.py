"""Results in one global order, released as soon as none before them can come.

Owns the waiting results. Must not know how they are found. Invariant: what is released comes in
order, then by the subscription's place in the file, however the input was cut into batches.
"""

from __future__ import annotations

from broker.engine.event.agent import Result
from broker.engine.runtime.budget import in_one_go
from broker.engine.runtime.results import sort_results


class Release:
    """Holds results until the frontier has passed their end."""

    def __init__(self) -> None:
        self._waiting: list[Result] = []

    def add(self, results: list[Result]) -> None:
        """Take results, in any order."""
        self._waiting += results

    def due(self, frontier: int) -> list[Result]:
        """The results that end at or before the frontier, in order."""
        if not self._waiting:
            return []
        due = [result for result in self._waiting if result.end <= frontier]
        if due:
            self._waiting = [result for result in self._waiting if result.end > frontier]
            in_one_go(sort_results(due, len(due)))
        return due

    def rest(self) -> list[Result]:
        """All that waits, in order."""
        waiting, self._waiting = self._waiting, []
        in_one_go(sort_results(waiting, len(waiting)))
        return waiting

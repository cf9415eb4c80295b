"""The pairs of an operator: how many pass each question, and which came nearest.

Owns the choice of pairs where there are too many. Must not know what is asked (criteria.py).
Invariant: at most PAIRS_MAX pairs are looked at, shared by the groups; of more, those nearest in
time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from broker.engine.event.occurrence import Occurrence, end_of, start_of
from headwater.explaining.criteria import Criterion, Miss
from headwater.explaining.words import counted, names

PAIRS_MAX = 200_000  # of one operator, shared by the groups
PAIRS_MIN = 100  # of each group at least


class Pairs:
    """A count of the pairs that pass each question, and the nearest to passing the next."""

    def __init__(self, criteria: Sequence[Criterion], groups: int) -> None:
        self._criteria = criteria
        self._most = max(PAIRS_MIN, PAIRS_MAX // groups)  # of each group
        self._passed = [0] * len(criteria)
        self._nearest: list[tuple[Miss, Occurrence, Occurrence] | None] = [None] * len(criteria)
        self._looked = 0
        self.cut = False

    def passing(
        self, lefts: list[Occurrence], rights: list[Occurrence], group: tuple[Any, ...]
    ) -> list[tuple[Occurrence, Occurrence]]:
        """The pairs that pass all questions; of too many, those that lie nearest in time."""
        passed = []
        rights = sorted(rights, key=start_of)
        each = len(rights)
        if len(lefts) * len(rights) > self._most:
            self.cut = True
            each = max(1, self._most // len(lefts))
        starts = [start_of(right) for right in rights] if each < len(rights) else []
        for left in lefts[: self._most]:
            low = 0
            if starts:
                low = bisect_left(starts, end_of(left)) - each // 2
                low = max(0, min(low, len(rights) - each))
            for right in rights[low : low + each]:
                self._looked += 1
                if self._passes(left, right, group):
                    passed.append((left, right))
        return passed

    def _passes(self, left: Occurrence, right: Occurrence, group: tuple[Any, ...]) -> bool:
        for number, criterion in enumerate(self._criteria):
            if criterion.test(left, right, group):
                self._passed[number] += 1
                continue
            if not self._passed[number]:
                miss = criterion.miss(left, right)
                nearest = self._nearest[number]
                if miss is not None and (nearest is None or miss[0] < nearest[0][0]):
                    self._nearest[number] = (miss, left, right)
            return False
        return True

    def told(self) -> str:
        """Pairs, and how many of them are left after each question."""
        parts = [counted(self._looked, "pair")]
        for criterion, count in zip(self._criteria, self._passed, strict=True):
            parts.append(f"{counted(count)} {criterion.text}")
            if not count:
                break
        return ", ".join(parts)

    def nearest(self) -> list[str]:
        """The pair that came nearest to passing the question that none passed."""
        for count, nearest in zip(self._passed, self._nearest, strict=True):
            if not count:
                if nearest is None:
                    return []
                (_, text), left, right = nearest
                return [f"nearest: {names(left)} and {names(right)} {text}"]
        return []

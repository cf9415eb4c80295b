"""A distribution in fixed buckets.

Owns the bounds and the counts. Must not know what is measured. Invariant: the bounds ascend, no
count ever falls, and `sum` is that of all observed values.
"""

from bisect import bisect_left
from collections.abc import Sequence
from math import inf
from typing import Final

# From a tenth of a millisecond, which a fast disk takes, to a minute, beyond which a person has
# looked: three bounds a decade tell 2 s from 5 s, and make 19 series.
LATENCY_S: Final = (
    *(0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
    *(0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0),
)


class Histogram:
    """Counts of values by the least bound that they do not exceed; the last count has no bound."""

    def __init__(self, bounds: Sequence[float] = LATENCY_S) -> None:
        if list(bounds) != sorted(set(bounds)):
            raise ValueError(f"the bounds {bounds} do not ascend")
        self.bounds = tuple(bounds)
        self.sum = 0.0
        self._counts = [0] * (len(bounds) + 1)

    @property
    def count(self) -> int:
        """All that was observed."""
        return sum(self._counts)

    def observe(self, value: float, times: int = 1) -> None:
        """Count `value`, which was measured so many `times`; one below 0 counts as 0."""
        value = max(value, 0.0)  # clocks differ, and a sum that falls is no counter
        self._counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    def cumulative(self) -> list[tuple[float, int]]:
        """Return (bound, how many values do not exceed it), the last with the bound inf."""
        rows = []
        total = 0
        for bound, count in zip((*self.bounds, inf), self._counts, strict=True):
            total += count
            rows.append((bound, total))
        return rows

    def quantile(self, share: float) -> float | None:
        """Return the bound that a `share` of all values does not exceed; None: none was observed.

        It is inf where such a value lies beyond all bounds.
        """
        wanted = share * self.count
        return next((bound for bound, total in self.cumulative() if 0 < total >= wanted), None)

"""Until when a subscription's results count: `until` an instant, or `for` so long.

Owns what waits for its beginning to be known. Must not know how results are found. Invariant: what
is let through ends before the end, whatever is still to come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker.engine.event.agent import WATERMARK_END
from broker.engine.event.occurrence import Occurrence, end_of
from language.tree import Subscription

Found = tuple[Occurrence, tuple[Any, ...]]  # an occurrence and its partition's key


def ending_of(subscription: Subscription | None) -> Ending | None:
    """The end of a subscription that has one."""
    if subscription is None or (subscription.until_ms, subscription.for_ms) == (None, None):
        return None
    return Ending(subscription.until_ms, subscription.for_ms)


class Ending:
    """The end of one subscription.

    `floor`: nothing that is still to come begins before it, and so neither does the subscription.
    """

    __slots__ = ("floor", "for_ms", "until_ms", "waiting")

    def __init__(self, until_ms: int | None, for_ms: int | None) -> None:
        self.until_ms = until_ms
        self.for_ms = for_ms
        self.floor = WATERMARK_END
        self.waiting: list[Found] = []

    def sift(self, found: Sequence[Found], begin: int | None) -> list[Found]:
        """Return what counts of these and of what waited; what may or may not count waits on."""
        for_ms, sure = self.for_ms, WATERMARK_END
        until = WATERMARK_END if self.until_ms is None else self.until_ms
        if for_ms is not None and begin is not None:
            until = min(until, begin + for_ms)
            if self.floor < begin:
                sure = self.floor + for_ms
        counted = [one for one in (*self.waiting, *found) if end_of(one[0]) < until]
        self.waiting = [one for one in counted if end_of(one[0]) >= sure]
        return [one for one in counted if end_of(one[0]) < sure]

    def at(self, begin: int | None) -> int | None:
        """From when on nothing counts, of a subscription that began then; None if not known."""
        ends = [] if self.until_ms is None else [self.until_ms]
        if self.for_ms is not None and begin is not None:
            ends.append(begin + self.for_ms)
        return min(ends, default=None)

    def due(self, watermark: int) -> int | None:
        """The next watermark at which what waits may go: the floor rises no faster than that."""
        if not self.waiting or self.for_ms is None:
            return None
        wanted = self.hold() + 2 - self.for_ms
        return max(wanted - 1, watermark + max(1, wanted - self.floor))

    def hold(self) -> int:
        """Nothing that waits ends at or before this."""
        return min([end_of(one) - 1 for one, _ in self.waiting], default=WATERMARK_END)

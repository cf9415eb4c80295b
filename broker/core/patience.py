"""Events that wait with their groups until something may come of them.

Owns when a group's stages are given what came. Must not know stages. Invariant: a group is left
alone only while nothing can be reported of it; what waits is given in order, and none twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker.core.agent import WATERMARK_END
from broker.core.event import Event
from broker.core.prospects import NEVER, Prospect, Reach
from broker.core.staged_partition import Entry, Partition

FRESH_MAX = 32  # events that wait in one group; with more, its stages forget what they can

Group = tuple[Any, ...]


class Patience:
    """What waits in all groups of one agent."""

    def __init__(self, prospect: Prospect, key: Callable[[Event], Any] | None) -> None:
        self._prospect = prospect
        self._key = key
        self.count = 0  # events that wait

    def put(
        self,
        entries: Sequence[Entry],
        partitions: dict[Group, Partition],
        *,
        eager: bool,
    ) -> dict[Group, None]:
        """Let events wait, in order; the groups that may report, or `eager` all that got some."""
        touched: dict[Group, None] = {}
        key_of, tests = self._key, self._prospect.tests
        key: Any = ()
        for entry in entries:
            at, event = entry
            if key_of is not None:
                key = key_of(event)
                if key is None:
                    continue
            partition = partitions.get(key)
            if partition is None:
                partition = partitions[key] = Partition(self._prospect.reach())
            fresh = partition.fresh
            fresh.append(entry)
            self.count += 1
            if tests[at](partition.reach, event) or eager:
                touched[key] = None
            elif len(fresh) >= FRESH_MAX and key not in touched:
                self.forget(partition, event.end - 1)
                if 2 * len(partition.fresh) > FRESH_MAX:
                    touched[key] = None
        return touched

    def taken(self, partition: Partition) -> list[Entry]:
        """What waits in a group; it waits no more."""
        entries = partition.fresh
        partition.fresh = []
        self.count -= len(entries)
        return entries

    def forget(self, partition: Partition, watermark: int) -> None:
        """Drop of what waits in a group that of which nothing can come any more."""
        if self._prospect.forgets_ms is None or watermark >= WATERMARK_END:
            return
        since = watermark - self._prospect.forgets_ms
        kept = [entry for entry in partition.fresh if entry[1].start > since]
        self.count -= len(partition.fresh) - len(kept)
        partition.fresh = kept

    def is_quiet(self, partition: Partition, watermark: int) -> bool:
        """Whether the stages of a group have nothing to forget; what waits there may be less."""
        if partition.size:
            return False
        self.forget(partition, watermark)
        return self._prospect.forgets_ms is not None or not partition.fresh

    def reach(self, watermark: int) -> Reach:
        """Of a group of which is known only that it was given nothing that ends later."""
        return [max(watermark, NEVER)] * self._prospect.operands

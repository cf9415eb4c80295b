"""Events that wait with their groups until something may come of them.

Owns when a group's stages are given what came. Must not know stages. Invariant: a group is left
alone only while nothing can be reported of it; what waits is given in order, and none twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from broker.engine import native
from broker.engine.event.agent import WATERMARK_END
from broker.engine.event.event import Event
from broker.engine.event.occurrence import Occurrence
from broker.engine.pattern.agent.staged_partition import FRESH_MAX, Entry, Group, Partition
from broker.engine.pattern.layout.prospects import Prospect, Reach

TRIAL_EVENTS = 4_096  # after so many it is judged whether anything is gained by waiting


class Patience:
    """Keep what waits in all groups of one agent; `new` makes what it keeps of a group."""

    def __init__(
        self,
        prospect: Prospect,
        key: Callable[[Event], Any] | None,
        new: Callable[[Group, Reach], Partition],
        slots: tuple[str, ...] | None = None,
    ) -> None:
        """`slots`: where an event has the parts of its key, if all of them stand in slots."""
        self._prospect = prospect
        self._key = key
        self._new = new
        self.count = 0  # events that wait
        self.matches: list[tuple[Occurrence, Group]] = []  # found without operators
        self.in_vain = False  # asking costs more than it spares: most may complete something
        self._asked = self._hopeful = 0
        self._pass = self._passing(slots)

    def _passing(
        self, slots: tuple[str, ...] | None, last: int = -1, room: int = FRESH_MAX
    ) -> Callable[..., int] | None:
        """Compile what sets aside all of which nothing can come, and asks about the others."""
        if native.passes is None or slots is None:
            return None
        prospect = self._prospect
        made: Callable[..., int] = native.passes.Patience(
            slots, prospect.operands, prospect.steps, last, room
        )
        return made

    def put(
        self,
        entries: Sequence[Entry],
        partitions: dict[Group, Partition],
        since: int | None = None,
        *,
        eager: bool,
    ) -> dict[Group, None]:
        """Let events wait; the groups that may report, or `eager` all that got some.

        All to come end after `since`; None: they are in order.
        """
        touched: dict[Group, None] = {}
        key_of, tests, new, prospect = self._key, self._prospect.tests, self._new, self._prospect
        hopeful = asked = 0

        def ask(entry: Entry) -> None:
            nonlocal hopeful, asked
            at, event = entry
            key: Any = () if key_of is None else key_of(event)
            if key is None:
                return
            partition = partitions.get(key)
            if partition is None:
                partition = partitions[key] = new(key, prospect.reach())
            fresh = partition.fresh
            fresh.append(entry)
            asked += 1
            if tests[at](partition.reach, event) or eager:
                touched[key] = None
                hopeful += 1
            elif len(fresh) >= FRESH_MAX and key not in touched:
                self.forget(partition, event.end - 1 if since is None else since)
                if 2 * len(partition.fresh) > FRESH_MAX:
                    touched[key] = None

        if eager or self._pass is None:
            for entry in entries:
                ask(entry)
        else:
            waiting = self._pass(entries, partitions, touched, {}, ask)
            self.count += waiting  # beside those that `ask` has added
        self.count += asked
        self._hopeful += hopeful
        self._asked += len(entries)
        self.in_vain = self._asked >= TRIAL_EVENTS and 2 * self._hopeful > self._asked
        return touched

    def completing(
        self, entries: Sequence[Entry], partitions: Mapping[Group, Partition]
    ) -> int | None:
        """Return the end of the first event to come, in order, that may complete something.

        Nothing is changed; events that have not come yet may complete more.
        """
        key_of, tests = self._key, self._prospect.tests
        reaches: dict[Group, Reach] = {}
        for place, event in entries:
            key = () if key_of is None else key_of(event)
            if key is None:
                continue
            reach = reaches.get(key)
            if reach is None:
                partition = partitions.get(key)
                reach = self._prospect.reach() if partition is None else list(partition.reach)
                reaches[key] = reach
            if tests[place](reach, event):
                end: int = event.end
                return end
        return None

    def dropped(self) -> dict[str, int]:
        """Return what was dropped of what waits, by reason."""
        return {}

    def eldest(self) -> int:
        """Return when the eldest begins of what waits where groups have no operators."""
        return WATERMARK_END

    @property
    def trial(self) -> list[int]:
        """Return how many events were asked about, and how many gave hope, for snapshots."""
        return [self._asked, self._hopeful]

    @trial.setter
    def trial(self, told: list[int]) -> None:
        self._asked, self._hopeful = told

    def taken(self, partition: Partition) -> list[Entry]:
        """Take what waits in a group; it waits no more."""
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

    @property
    def forgets(self) -> bool:
        """Tell whether what waits is ever forgotten here, or its agent has to do that."""
        return self._prospect.forgets_ms is not None

    def any_reach(self) -> Reach:
        """Return that of a group of which it is not known what it was given."""
        return [WATERMARK_END] * len(self._prospect.reach())

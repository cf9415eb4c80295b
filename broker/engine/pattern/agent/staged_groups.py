"""The groups of a staged agent: made, left alone, looked at in time, and bounded.

Owns partitions and when each is due. Must not know where events come from or what is reported.
Invariant: a group that is not there is one that knows nothing, and a new one would do as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Protocol

from broker.engine.event.agent import WATERMARK_NONE, LeafEvents
from broker.engine.event.event import Event
from broker.engine.event.occurrence import Occurrence
from broker.engine.pattern.agent.lone import LoneAtom
from broker.engine.pattern.agent.patience import Group
from broker.engine.pattern.agent.staged_partition import Partition
from broker.engine.pattern.agent.staged_plan import StagedPlan
from broker.engine.pattern.fused.fusion import FusedPlan
from broker.engine.pattern.selection.choice import due
from broker.engine.pattern.selection.ending import ending_of
from broker.engine.pattern.stage.base import SWEEP_MS, least
from broker.engine.runtime.agenda import Agenda
from broker.engine.runtime.pending import Pending

OCCURRENCES_MAX = 1_000_000
GROUPS_MAX = 100_000
MANY = 4  # groups are many where so many times as many were too many
# Detected events that lasted longer than anything is kept for what has no bound by its text.
OUTLASTING = "outlasting"
GROUPS_OVERFLOW = "groups_overflow"

_events = itemgetter(1)

Found = tuple[Occurrence, Group]  # an occurrence and its partition's key


class Outcome(Protocol):
    """Makes what an agent puts out."""

    dropped_inverted: int

    def make_all(self, matches: list[Found]) -> list[Any]:
        """Make an event or a result of each occurrence; some may give none."""


class StagedGroups:
    """Hold what a staged agent is given, and its partitions."""

    def __init__(
        self,
        plan: StagedPlan,
        outcome: Outcome,
        classes: Mapping[str, type[Event]],
        *,
        occurrences_max: int = OCCURRENCES_MAX,
        groups_max: int = GROUPS_MAX,
    ) -> None:
        self.plan = plan
        self.outcome = outcome
        self._classes = classes
        self._occurrences_max = occurrences_max
        self.groups_max = groups_max
        self._ending = ending_of(plan.subscription)
        self.waits = plan.waits
        self.lone = LoneAtom(plan.selects[0], plan.key, outcome) if plan.is_lone else None
        self._patience = None if plan.is_lone else plan.patience()
        self._crowded = False  # so that nothing may wait with its group
        self._begin: int | None = None
        self._pending = Pending(plan.layout.budget)
        self._partitions: dict[Group, Partition] = {}
        self._agenda = Agenda()
        self._holds: dict[Group, int] = {}  # what each partition holds back
        self._eldest: dict[Group, int] = {}  # when what each holds begins, where that matters
        self._moved: dict[Group, Partition] = {}  # those of which that is to be asked anew
        self._size = 0
        self._watermark = WATERMARK_NONE
        self._is_new = True  # what another agent left may wait, which had to keep an order
        self._swept = WATERMARK_NONE
        self.dropped_overflow = self.dropped_groups = self.outlasting = 0

    @property
    def groups(self) -> Mapping[Group, Partition]:
        """Return what is held of each group."""
        return self._partitions

    # --- made, and left alone ------------------------------------------------------------

    def _make_room(self, batch: Sequence[LeafEvents]) -> None:
        """Near the limit all is given to stages at once: they alone know what goes first."""
        if self._patience is None:
            return
        coming = sum(map(len, map(_events, batch)))
        held = self._patience.count + self._size + len(self._pending) + coming
        self._crowded = held > self._occurrences_max
        if self._crowded:
            self._catch_up()

    def _catch_up(self) -> None:
        """Give all groups stages as far as the watermark, though nothing can come of it."""
        if self._patience is not None and self._patience.count:
            behind = [key for key, one in self._partitions.items() if one.fresh]
            found = [one for key in behind for one in self._advance(key)]
            assert not found, "what may be complete does not wait"

    def _partition(self, key: Group) -> Partition:
        partition = self._partitions.get(key)
        if partition is None:
            known = [] if self._patience is None else self._patience.any_reach()
            partition = self._partitions[key] = self.plan.new(key, known)
            self.plan.open(partition, self._begin)
        return partition

    # --- how long, and how much ---------------------------------------------------------

    def _settle(self, key: Group, partition: Partition) -> None:
        """Let it forget what is too old by now, and note what it holds."""
        self.dropped_overflow += self.plan.trim(partition, self._watermark)
        self._note(key, partition)

    def _note(self, key: Group, partition: Partition) -> None:
        """Note when it is due next, and hold the limit: past it the oldest go, counted."""
        self._moved[key] = partition
        self._size += partition.count()
        excess = self._size - self._occurrences_max
        if excess > 0:
            shed = partition.root.shed(excess)
            part = min(excess - shed, len(partition.log))
            del partition.log[:part]
            self._size += partition.count()  # what was shed may have taken more along
            self.dropped_overflow += shed + part
        self._schedule(key, partition)

    def _schedule(self, key: Group, partition: Partition) -> None:
        turn = due(partition.waiting, self.plan.manner, self._watermark)
        self._agenda.set(key, least([partition.root.due(), turn]))

    def _sweep(self, touched: dict[Group, None]) -> list[Group]:
        """Let silent partitions drop what has expired, now and then; return those that may go."""
        # What is fused goes after a silent look, as a new one costs more; of many, all at once.
        fused = self.plan.fused
        period_ms = fused.sweep_ms if isinstance(fused, FusedPlan) else SWEEP_MS
        if self._watermark // period_ms == self._swept // period_ms:
            return []
        self._swept = self._watermark
        patience, candidates = self._patience, []
        all_go = not self.plan.is_plain or MANY * len(self._partitions) > self.groups_max
        for key, one in self._partitions.items():
            if all_go or not (one.size or one.fresh):
                candidates.append(key)
            if key in touched:
                continue
            if patience is not None and not one.size:
                patience.forget(one, self._watermark)
                if patience.forgets or not one.fresh:
                    continue  # there is nothing that its stages could forget
            touched[key] = None
        return candidates

    def _drop_idle(self, candidates: list[Group]) -> None:
        """Let go of those groups that know nothing."""
        per_ms = 0 if self.plan.manner.at_most is None else self.plan.manner.at_most[1]
        for key in candidates:
            if self._partitions[key].idle(self._watermark, per_ms):
                self._drop(key)

    def _hold_groups(self) -> None:
        """Hold the limits of groups, and of all that is in them: first goes what began first."""
        partitions = self._partitions
        while len(partitions) > self.groups_max or (
            self._size > self._occurrences_max and len(partitions) > 1
        ):
            self._drop(next(iter(partitions)))
            self.dropped_groups += 1

    def _drop(self, key: Group) -> None:
        """Let go of a group, and of all that it holds."""
        gone = self._partitions.pop(key)
        self._size -= gone.size
        if self._patience is not None:
            self._patience.taken(gone)
        self._agenda.set(key, None)
        self._holds.pop(key, None)
        self._eldest.pop(key, None)
        self._moved.pop(key, None)

    def _advance(self, key: Group) -> list[Found]:
        """Let a group go on as far as the watermark; what is reported of it."""
        raise NotImplementedError

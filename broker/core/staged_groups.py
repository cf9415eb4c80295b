"""The groups of a staged agent: made, left alone, looked at in time, and bounded.

Owns partitions and when each is due. Must not know where events come from or what is reported.
Invariant: a group that is not there is one that knows nothing, and a new one would do as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from broker.core.agenda import Agenda
from broker.core.agent import WATERMARK_NONE, LeafEvents
from broker.core.choice import due, hold
from broker.core.conditions import slots_read
from broker.core.ending import ending_of
from broker.core.event import Event
from broker.core.matching import key_function, leaf_select
from broker.core.occurrence import Occurrence
from broker.core.operands import Silence, operands, types_that_last
from broker.core.patience import Patience
from broker.core.pattern import Layout
from broker.core.pattern_groups import DURATION_MAX_MS, OCCURRENCES_MAX, SWEEP_MS, Outcome
from broker.core.pending import Pending
from broker.core.promises import Promise
from broker.core.prospects import prospect_of
from broker.core.solved import Solving, solver_of
from broker.core.staged_partition import (
    LOG_MAX,
    Partition,
    consumption_of,
    derived,
    log_keep_ms,
    manner_of,
    reports_at_once,
)
from broker.core.stages.base import Site, Stage, least
from broker.core.stages.build import Builder
from broker.core.stages.lasting import Foresight
from broker.core.stages.memory import Memory
from broker.core.verdicts import Doubt
from language.tree import Case, Subscription

Group = tuple[Any, ...]
Found = tuple[Occurrence, Group]  # an occurrence and its partition's key


class StagedGroups:
    """What a staged agent is told, and its partitions."""

    def __init__(
        self,
        case: Case,
        layout: Layout,
        outcome: Outcome,
        classes: Mapping[str, type[Event]],
        durations: Foresight,
        *,
        subscription: Subscription | None = None,
        doubt: Doubt | None = None,
        occurrences_max: int = OCCURRENCES_MAX,
    ) -> None:
        self._layout = self.layout = layout
        self._outcome = self.outcome = outcome
        self._classes = classes
        self._durations = durations = durations.of(types_that_last(layout.root))
        self._occurrences_max = occurrences_max
        at_most = None if subscription is None else subscription.at_most
        self._manner = manner_of(case, layout, DURATION_MAX_MS, at_most, durations, doubt=doubt)
        self._ending = ending_of(subscription)
        self._selects = [leaf_select(leaf, doubt) for leaf in layout.leaves]
        self._key = key_function(case.group_by) if case.group_by else None
        self._slots = slots_read(case.group_by)
        self.doubt = doubt
        self._at_once = reports_at_once(layout, self._manner)
        builder = Builder(layout, case.group_by, doubt, at_once=self._at_once)
        self._make = builder.build(layout.root)
        self._silences = any(isinstance(one, Silence) for one in operands(layout.root))
        self._consumption = consumption_of(layout, self._manner)
        if self._consumption == "spent":
            self._manner = replace(self._manner, consuming=())
        self._logs = bool(self._manner.consuming) and self._consumption == "again"
        self._log_keep_ms = log_keep_ms(layout)
        self._derived = derived(layout)
        self._contiguous = any(joint.next for joint in layout.joints)
        self._promise = Promise(case, layout, durations, doubt)
        # Where the eldest of what is held is asked for, nothing waits elsewhere.
        in_turn = self._manner.in_turn or self._promise.lags
        patient = doubt is None and not (self._at_once or in_turn)
        self._patience = self._patience_of(layout) if patient else None
        self._crowded = False  # so that nothing may wait with its group
        self._begin: int | None = None
        self._pending = Pending(layout.budget)
        self._partitions: dict[Group, Partition] = {}
        self._agenda = Agenda()
        self._holds: dict[Group, int] = {}  # what each partition holds back
        self._eldest: dict[Group, int] = {}  # when what each holds begins, where that matters
        self._moved: dict[Group, Partition] = {}  # those of which that is to be asked anew
        self._size = 0
        self._watermark = WATERMARK_NONE
        self._swept = WATERMARK_NONE
        self.dropped_overflow = self.outlasting = 0

    def _patience_of(self, layout: Layout) -> Patience[Partition] | None:
        """How events wait with their groups; None where they cannot."""
        prospect = prospect_of(layout, in_order=True)
        if prospect is None:
            return None
        solver = solver_of(layout) if self._ending is None else None
        if solver is None:
            return Patience(prospect, self._key, Partition, self._slots)
        return Solving(prospect, self._key, Partition, solver, self._slots)

    # --- made, and left alone ------------------------------------------------------------

    def _make_room(self, batch: Sequence[LeafEvents]) -> None:
        """Near the limit all is given to stages at once: they alone know what goes first."""
        if self._patience is None:
            return
        coming = sum([len(events) for _, events in batch])
        most = self._patience.count + self._size + len(self._pending) + coming
        self._crowded = most > self._occurrences_max
        if self._crowded:
            self._catch_up()

    def _catch_up(self) -> None:
        """Give all groups stages as far as the watermark, though nothing can come of it."""
        if self._patience is not None and self._patience.count:
            behind = [key for key, one in self._partitions.items() if one.fresh]
            found = [one for key in behind for one in self._advance(key)]
            assert not found, "what may be complete does not wait"

    def _forget_waiting(self) -> None:
        """Let groups that do without stages forget what they can."""
        if isinstance(self._patience, Solving) and self._patience.count:
            for one in self._partitions.values():
                if not one.open:
                    self._patience.forget(one, self._watermark)

    def _give_up_waiting(self) -> None:
        """From now on all is given to stages at once."""
        self._catch_up()
        for key, partition in self._partitions.items():
            if not partition.open:
                self._open(key, partition)
        self._patience = None

    def _partition(self, key: Group) -> Partition:
        partition = self._partitions.get(key)
        if partition is None:
            known = [] if self._patience is None else self._patience.reach(())
            partition = self._partitions[key] = Partition(key, known)
            self._open(key, partition)
        return partition

    def _open(self, key: Group, partition: Partition) -> None:
        begin = None if self._key else self._begin
        exact, budget = self.doubt is None, self.layout.budget
        site = Site(key, self._durations, begin, self._at_once, exact, budget=budget)
        if self._logs:
            site.memory = Memory()
        partition.site, partition.root, partition.open = site, self._root(site), True

    def _root(self, site: Site) -> Stage:
        site.leaves = [None] * len(self._layout.leaves)
        return self._make(site)

    # --- how long, and how much ---------------------------------------------------------

    def _settle(self, key: Group, partition: Partition) -> None:
        """Note when it is due next, and hold the limit: past it the oldest go, counted."""
        if partition.log:
            self._trim(partition)
        self._moved[key] = partition
        if partition.site.named:
            partition.site.forget_named()
        self._size += partition.count()
        excess = self._size - self._occurrences_max
        if excess > 0:
            shed = partition.root.shed(excess)
            part = min(excess - shed, len(partition.log))
            del partition.log[:part]
            self._size += partition.count()  # what was shed may have taken more along
            self.dropped_overflow += shed + part
        self._schedule(key, partition)

    def _trim(self, partition: Partition) -> None:
        """Forget of the log what can no longer matter, or what is too much, counted."""
        if self._log_keep_ms is not None:
            slack_ms = 0 if self.doubt is None else self.doubt.slack_ms(self._log_keep_ms)
            limit = min(self._watermark, partition.root.hold(), hold(partition.waiting))
            partition.forget(limit + 1 - self._log_keep_ms - slack_ms)
        elif self._derived:
            partition.forget_unheld()
        excess = len(partition.log) - LOG_MAX
        if excess > 0:
            del partition.log[:excess]
            self.dropped_overflow += excess

    def _schedule(self, key: Group, partition: Partition) -> None:
        turn = due(partition.waiting, self._manner, self._watermark)
        self._agenda.set(key, least([partition.root.due(), turn]))

    def _sweep(self, touched: dict[Group, None]) -> bool:
        """Let silent partitions drop what has expired, now and then; whether it was done."""
        if self._watermark - self._swept < SWEEP_MS:
            return False
        self._swept = self._watermark
        patience = self._patience
        for key, one in self._partitions.items():
            if key in touched:
                continue
            if patience is not None and not one.size:
                patience.forget(one, self._watermark)
                if patience.forgets or not one.fresh:
                    continue  # there is nothing that its stages could forget
            touched[key] = None
        return True

    def _drop_idle(self) -> None:
        """Let go of the groups that know nothing."""
        per_ms = 0 if self._manner.at_most is None else self._manner.at_most[1]
        watermark = self._watermark
        for key in [k for k, one in self._partitions.items() if one.idle(watermark, per_ms)]:
            self._drop(key)

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

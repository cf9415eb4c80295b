"""The groups of a pattern agent: made, stepped, bounded, and left alone while nothing can come.

Owns partitions and how long they keep what. Must not know where events come from or what becomes
of occurrences. Invariant: a group that is not there is one that holds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from broker.core.agenda import Agenda
from broker.core.agent import WATERMARK_END, WATERMARK_NONE, LeafEvents
from broker.core.conditions import slots_read
from broker.core.event import Event
from broker.core.matching import Program
from broker.core.operands import FOLLOWS, types_that_last
from broker.core.partition import Partition, discipline_of
from broker.core.patience import Patience
from broker.core.pattern import Layout
from broker.core.pending import Pending
from broker.core.promises import Promise
from broker.core.prospects import Reach, prospect_of
from broker.core.stages.lasting import Foresight
from broker.core.store import Store
from language.tree import Case

DURATION_MAX_MS = 7 * 86_400_000
OCCURRENCES_MAX = 1_000_000
# Detected events that lasted longer than anything is kept for what has no bound by its text.
OUTLASTING = "outlasting"
MANY = 4  # groups are many where so many times as many were too many
SWEEP_MS = 60_000  # partitions are swept for what has expired at most so often


Found = tuple[Any, tuple[Any, ...]]  # an occurrence and its partition's key


class Outcome(Protocol):
    """Makes what the agent puts out."""

    dropped_inverted: int

    def make(self, occurrence: Any, group: tuple[Any, ...]) -> Any:
        """An event or a result; None if the occurrence gives none."""


class PatternGroups:
    """What a pattern agent is told, and its partitions."""

    groups_max = 0  # which those have that keep several

    def __init__(
        self,
        case: Case,
        layout: Layout,
        outcome: Outcome,
        classes: Mapping[str, type[Event]],
        *,
        duration_max_ms: int = DURATION_MAX_MS,
        occurrences_max: int = OCCURRENCES_MAX,
        foresight: Foresight | None = None,
    ) -> None:
        self._outcome = outcome
        self._classes = classes
        self._layout = self.layout = layout
        self._duration_max_ms = duration_max_ms
        self._occurrences_max = occurrences_max
        foresight = foresight and foresight.of(types_that_last(layout.root))
        self._discipline = discipline_of(case, layout, duration_max_ms, foresight)
        contexts = {joint.context for joint in layout.joints if joint.operator != "or"}
        self.ordered = self._discipline.stepwise or "recent" in contexts
        self.waits = self.ordered
        # Each event of its one leaf is an occurrence, decided at once: nothing is held.
        self.is_lone = not layout.joints and not self.ordered
        self._stepwise = self._discipline.stepwise or any(
            joint.operator not in (*FOLLOWS, "or") and joint.context == "recent"
            for joint in layout.joints
        )
        self._program = Program(
            layout, case.group_by, ordered=self.ordered, duration_max_ms=duration_max_ms
        )
        self._program.keeps_latest_only(allowed=not self._discipline.consuming)
        self._promise = Promise(case, layout, foresight)
        asks = self._program.asks_durations() or layout.last or self._promise.lags
        self._foresight = foresight if asks else None
        self._changes = -1  # of durations, when it was looked ahead
        self._horizon_ms, self._log_keep_ms = self._program.horizon_ms(), self._program.reach_ms()
        patient = layout.joints and not self.ordered
        prospect = prospect_of(layout, in_order=False) if patient else None
        self._patience: Patience[Partition] | None = None
        if prospect is not None:
            self._patience = Patience(
                prospect, self._program.key, self._new, slots_read(case.group_by)
            )
        self._pending = Pending(layout.budget)
        # Where `last` waits: by group the end of the first found, and when a choice is final.
        self._open, self._closing = Agenda(), Agenda()
        self._partitions: dict[Any, Partition] = {}
        self._eldest_of: dict[Any, int] = {}  # of those that were asked since they moved
        self._moved: dict[Any, Partition] = {}  # the others, where that is asked at all
        self._size = 0
        self._watermark = WATERMARK_NONE
        self._swept = WATERMARK_NONE
        self.dropped_overflow = self.outlasting = 0

    # --- steps ---------------------------------------------------------------------------

    def _step_at_once(self, key: tuple[Any, ...], lists: list[Any]) -> list[Found]:
        partition = self._partition(key)
        found = self._program.step(lists, partition.stores, key)
        self._settle(partition)
        return [(occurrence, key) for occurrence in found]

    def _step_fresh(self, key: tuple[Any, ...]) -> list[Found]:
        assert self._patience is not None
        lists: list[Any] = [[] for _ in range(self._program.leaf_count)]
        for leaf, event in self._patience.taken(self._partitions[key]):
            lists[leaf].append(event)
        return self._step_at_once(key, lists)

    def _catch_up(self) -> None:
        """Let nothing wait, though nothing can come of it."""
        if self._patience is not None and self._patience.count:
            behind = [key for key, one in self._partitions.items() if one.fresh]
            found = [pair for key in behind for pair in self._step_fresh(key)]
            assert not found, "what may be complete does not wait"

    # --- bounds --------------------------------------------------------------------------

    def _partition(self, key: tuple[Any, ...]) -> Partition:
        partition = self._partitions.get(key)
        if partition is None:
            fresh = [] if self._patience is None else self._patience.reach()
            partition = self._partitions[key] = self._new(key, fresh)
        return partition

    def _new(self, key: tuple[Any, ...], reach: Reach) -> Partition:
        return Partition(key, [Store() for _ in range(self._program.store_count)], reach=reach)

    def _count(self, partition: Partition) -> None:
        if self._promise.lags:
            self._moved[partition.group] = partition
        size = partition.size()
        self._size += size - partition.counted
        partition.counted = size

    def _settle(self, partition: Partition) -> None:
        """Expire, and hold the limit: past it the oldest of this partition go, counted."""
        self._expire(partition)
        self._count(partition)
        excess = self._size - self._occurrences_max
        if excess <= 0:
            return
        for store in sorted(partition.stores, key=lambda store: -len(store.ends)):
            count = min(excess, len(store.ends))
            store.drop_oldest(count)
            self.dropped_overflow += count
            excess -= count
        if excess > 0 and partition.log:
            count = min(excess, len(partition.log))
            del partition.log[:count]
            self.dropped_overflow += count
        self._count(partition)

    def _note(self, partition: Partition) -> None:
        """Write down what of a group is found and not final."""
        selection = self._discipline.selection
        if selection is None:
            return
        found = partition.found
        closing = [at for at in map(selection.closes_at, found) if at > self._watermark]
        self._open.set(partition.group, min([one[0] for one in found], default=None))
        self._closing.set(partition.group, min(closing, default=None))

    def _expire(self, partition: Partition) -> None:
        self._program.expire(partition.stores, self._watermark)
        if partition.log and self._log_keep_ms is not None:
            oldest = self._watermark + 1 - self._log_keep_ms
            partition.log = [entry for entry in partition.log if entry[1].end >= oldest]

    def _look_ahead(self, foresight: Foresight, batch: Sequence[LeafEvents]) -> None:
        """Keep for as long as events still to come may reach back."""
        self.outlasting += foresight.observe(batch)
        if self._changes != foresight.durations.changes:
            self._changes = foresight.durations.changes
            self._program.keep(foresight.most_ms())
            self._horizon_ms = self._program.horizon_ms()
            self._log_keep_ms = self._program.reach_ms()

    def _sweep(self) -> None:
        """Expire in every partition, now and then, so that silent ones do not stay for ever.

        One that holds nothing goes when nothing has come since the look before, as most get
        something soon; where there are many, at once.
        """
        if self._horizon_ms is None:
            return
        if self._watermark - self._swept < max(SWEEP_MS, self._horizon_ms):
            return
        self._swept = self._watermark
        patience = self._patience
        many = MANY * len(self._partitions) > self.groups_max
        for key, partition in list(self._partitions.items()):
            silent = not (partition.counted or partition.fresh)
            if patience is not None and partition.fresh:
                patience.forget(partition, self._watermark)
                if partition.fresh and not patience.forgets:
                    self._step_fresh(key)
            if partition.counted:
                self._expire(partition)
                self._count(partition)
            if (silent or many) and not (partition.counted or partition.fresh):
                self._drop(key)

    def _drop(self, key: Any) -> None:
        """Let go of a group, and of all that it holds."""
        gone = self._partitions.pop(key)
        self._size -= gone.counted
        if self._patience is not None:
            self._patience.taken(gone)
        self._open.set(key, None)
        self._closing.set(key, None)
        self._eldest_of.pop(key, None)
        self._moved.pop(key, None)

    def _eldest(self) -> int:
        """When the eldest of all that is held begins."""
        for key, partition in self._moved.items():
            self._eldest_of[key] = partition.eldest()
        self._moved.clear()
        for key in [key for key in self._eldest_of if key not in self._partitions]:
            del self._eldest_of[key]
        return min(self._eldest_of.values(), default=WATERMARK_END)

"""The agent of a pattern: operators over operators, or several as one, for each partition.

Owns the way of events to partitions and of occurrences from them, which partitions there are, and
when each is due. Must not know what stages do, how occurrences are chosen (choice.py) or what
becomes of them (outcome.py). Invariant: what it reports depends on the events and on the order of
time alone, never on how they were batched; a group that is not there is one that knows nothing, and
a new one would do as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, Protocol

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE, LeafEvents
from broker.engine.event.event import Event
from broker.engine.event.occurrence import Occurrence
from broker.engine.pattern.agent.chain_store import StoredChains
from broker.engine.pattern.agent.lone import LoneAtom
from broker.engine.pattern.agent.patience import Pending, by_end
from broker.engine.pattern.agent.staged_partition import (
    Group,
    OpenTimes,
    Partition,
    beginning,
    packed,
    unpack,
)
from broker.engine.pattern.agent.staged_plan import StagedPlan
from broker.engine.pattern.fused import join_snapshot
from broker.engine.pattern.fused.fusion import Fused, FusedPlan
from broker.engine.pattern.selection.choice import due
from broker.engine.pattern.selection.ending import ending_of
from broker.engine.pattern.stage.base import SWEEP_MS, least
from broker.engine.runtime.agenda import Agenda
from broker.engine.runtime.shelf import Shelf
from broker.engine.runtime.subscribed import put_in_order

LOOKED_EVENTS = 256  # to come, that are looked through for what they complete: some 100 µs
STATE_VERSION = 2  # version 1, of stages or of joins (join_snapshot.py), is read as well
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


class StagedAgent:
    """One case whose detect is a pattern of stages (see agent.Agent)."""

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
        self._open_times = OpenTimes()
        self._size = 0
        self._watermark = WATERMARK_NONE
        self._is_new = True  # what another agent left may wait, which had to keep an order
        self._swept = WATERMARK_NONE
        self.dropped_overflow = self.dropped_groups = self.outlasting = 0

    @property
    def groups(self) -> Mapping[Group, Partition]:
        """Return what is held of each group."""
        return self._partitions

    # --- the door ------------------------------------------------------------------------

    @property
    def minds_beginning(self) -> bool:
        """Tell whether what it reports depends on when the task began."""
        return self._ending is not None or (self.plan.key is None and self.plan.silences)

    def begin(self, instant: int) -> None:
        """When the task began: now, or the least start of the input; an earlier one stands."""
        if self._begin is None or instant < self._begin:
            self._begin = instant
            if self.plan.key is None and self.plan.silences:
                partition = self._open_times.moved[()] = self._partition(())
                partition.site.begin = instant
                self._schedule((), partition)

    def begins_from(self, floor: int) -> None:
        """The task, if not begun before, begins at this time or later."""
        if self._ending is not None:
            self._ending.floor = floor

    def ends_at(self) -> int | None:
        """From when on nothing it reports is a result; None where that is not known."""
        return None if self._ending is None else self._ending.at(self._begin)

    def feed(self, batch: Sequence[LeafEvents], watermark: int) -> list[Any]:
        """Take events and the watermark; return what became known."""
        if self.lone is not None:
            self._watermark = max(self._watermark, watermark)
            if self.plan.observes:
                self.plan.durations.observe(batch)
            return self.lone.feed(batch)
        self._make_room(batch)
        since, self._watermark = self._watermark, max(self._watermark, watermark)
        touched = self._take(batch, since)
        if self.plan.timed:
            touched.update(dict.fromkeys(self._agenda.take(self._watermark)))
        if self._watermark >= WATERMARK_END:  # now all that is open is decided
            touched.update(dict.fromkeys(self._partitions))
        silent = self._sweep(touched)
        matches: list[Found] = []
        if self._patience is not None and self._patience.matches:
            matches, self._patience.matches = self._patience.matches, matches
        for key in touched:
            matches += self._advance(key)
        if self._ending is not None:
            matches = self._ending.sift(matches, self._begin)
        if silent:
            self._drop_idle(silent)
        if self._patience is not None and self._patience.in_vain:
            self._catch_up()  # from now on all is given to stages at once
            for partition in self._partitions.values():
                if not partition.open:
                    self.plan.open(partition, self._begin)
            self._patience = None
        while (groups := len(self._partitions)) > self.groups_max or (
            self._size > self._occurrences_max and groups > 1
        ):
            self._drop(next(iter(self._partitions)))  # first goes what began first
            self.dropped_groups += 1
        put_in_order(matches, self.plan.layout.budget)
        return self.outcome.make_all(matches)

    def watermark_out(self, watermark: int) -> int:
        """Return the end up to which nothing more will come out, given the inputs' watermark."""
        promise, times = self.plan.promise, self._open_times
        times.look(begun=promise.lags)
        reported = min(watermark, min(times.holds.values(), default=WATERMARK_END))
        if self._ending is not None:
            reported = min(reported, self._ending.hold())
        waiting = WATERMARK_END if self._patience is None else self._patience.eldest()
        eldest = min(times.eldest.values(), default=waiting)
        return promise.out(watermark, reported, eldest)

    def next_due(self) -> int | None:
        """Return the least watermark at which `feed` without events could report; None if never."""
        times = [ms for ms in (self._pending.first_end, self._agenda.first()) if ms is not None]
        # What is fused has decided all that it can; only what `last` chooses among may wait.
        open_size = self._size if self.plan.timed else 0
        if open_size or (self.plan.fused is None and self._patience and self._patience.count):
            times.append(WATERMARK_END)
        ends = None if self._ending is None else self._ending.due(self._watermark)
        return least([*times, ends])

    def next_report(self) -> int | None:
        """Return the watermark from which on what came may be reported; no later than it is."""
        if self._patience is None or len(self._pending) > LOOKED_EVENTS:
            return self.next_due()
        completing = self._patience.completing(self._pending.entries, self._partitions)
        ends = None if self._ending is None else self._ending.due(self._watermark)
        return least([completing, self._agenda.first(), ends])

    def held(self) -> int:
        """Count the events it holds (if fused, would keep); what is due next stays as it is."""
        if self.plan.is_plain:
            self._catch_up()
        if self._patience is not None and self._patience.forgets and self._patience.count:
            for partition in self._partitions.values():  # whose operators hold nothing
                if not partition.open or not partition.size:
                    self._patience.forget(partition, self._watermark)
        waiting = 0 if self._ending is None else len(self._ending.waiting)
        waiting += 0 if self._patience is None else self._patience.count
        return len(self._pending) + self._size + waiting

    def dropped(self) -> dict[str, int]:
        """Count what it dropped, by reason."""
        dropped = {
            "occurrences_overflow": self.dropped_overflow,
            "start_after_end": self.outcome.dropped_inverted,
            OUTLASTING: self.outlasting,
        }
        if self.plan.manner.at_most is not None:
            suppressed = [each.waiting.suppressed for each in self._partitions.values()]
            dropped["at_most"] = sum(suppressed)
        if self.plan.key is not None:
            dropped[GROUPS_OVERFLOW] = self.dropped_groups
        return dropped if self._patience is None else {**dropped, **self._patience.dropped()}

    def hand_over(self, other: StagedAgent) -> None:
        """Give what the store of a chain holds to an agent without; this one is done with."""
        assert isinstance(self._patience, StoredChains)
        completed = other.feed(self._patience.members(), self._watermark)
        assert not completed, "what completes a chain is never stored"
        for place, event in self._pending.entries:
            other._pending.add(place, (event,))

    # --- taking events -------------------------------------------------------------------

    def _take(self, batch: Sequence[LeafEvents], since: int) -> dict[Group, None]:
        """Give what the watermark has passed to its partitions; which these are."""
        plan, pending, taken = self.plan, self._pending, []
        leaves, key_of = plan.layout.leaves, plan.key
        for place, events in batch:
            select = plan.selects[place] if place < len(leaves) else None
            passed = events if select is None else select(events)
            if plan.doubt is not None:
                plan.doubt.see(passed)
            if plan.observes:
                self.outlasting += plan.durations.observe(((place, passed),))
            if place >= len(leaves) and not plan.contiguous:
                passed = beginning(passed, self._partitions, key_of)
            taken.append((place, passed))
        if plan.fused is not None and plan.observes:
            plan.fused.look_ahead()
        ahead, until = (since, WATERMARK_END) if plan.at_once else (None, self._watermark)
        if plan.fused is not None and plan.at_once and not self._is_new:  # any order will do
            released = by_end(taken)
        else:
            released = pending.pass_through(taken, until)
            self._is_new = False
        if self._patience is not None:
            return self._patience.put(released, self._partitions, ahead, eager=self._crowded)
        touched: dict[Group, None] = {}
        for place, event in released:
            key = () if key_of is None else key_of(event)
            if key is None:
                continue
            partition = self._partition(key)
            if key_of is not None and plan.silences and place >= len(leaves):
                begin = partition.site.begin
                partition.site.begin = event.start if begin is None else min(begin, event.start)
            partition.fresh.append((place, event))
            touched[key] = None
        return touched

    # --- deciding ------------------------------------------------------------------------

    def _advance(self, key: Group) -> list[Found]:
        partition, plan = self._partitions[key], self.plan
        if not partition.open:
            plan.open(partition, self._begin)
        if entries := partition.fresh:
            partition.fresh = []
            if self._patience is not None:
                self._patience.count -= len(entries)
        root = partition.root
        if plan.is_straight and isinstance(root, Fused):
            matches = root.step(entries, self._watermark)
        else:
            matches = plan.advance(partition, entries, self._watermark)
            root = partition.root  # where events are consumed it may be another now
        if plan.in_turn or not plan.timeless or not isinstance(root, Fused):
            self._settle(key, partition)
        else:
            held = root.expire(self._watermark) + len(partition.site.named)
            self._size += held - partition.size
            partition.size = held
            if self._size > self._occurrences_max:
                self._settle(key, partition)
        return list(zip(matches, repeat(key))) if matches else []

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
            behind = [key for key, each in self._partitions.items() if each.fresh]
            matches = [match for key in behind for match in self._advance(key)]
            assert not matches, "what may be complete does not wait"

    def _partition(self, key: Group) -> Partition:
        partition = self._partitions.get(key)
        if partition is None:
            reach = [] if self._patience is None else self._patience.any_reach()
            partition = self._partitions[key] = self.plan.new(key, reach)
            self.plan.open(partition, self._begin)
        return partition

    # --- how long, and how much ---------------------------------------------------------

    def _settle(self, key: Group, partition: Partition) -> None:
        """Let it forget what is too old by now, and note what it holds."""
        self.dropped_overflow += self.plan.trim(partition, self._watermark)
        self._note(key, partition)

    def _note(self, key: Group, partition: Partition) -> None:
        """Note when it is due next, and hold the limit: past it the oldest go, counted."""
        self._open_times.moved[key] = partition
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
        for key, partition in self._partitions.items():
            if all_go or not (partition.size or partition.fresh):
                candidates.append(key)
            if key in touched:
                continue
            if patience is not None and not partition.size:
                patience.forget(partition, self._watermark)
                if patience.forgets or not partition.fresh:
                    continue  # there is nothing that its stages could forget
            touched[key] = None
        return candidates

    def _drop_idle(self, candidates: list[Group]) -> None:
        """Let go of those groups that know nothing."""
        per_ms = 0 if self.plan.manner.at_most is None else self.plan.manner.at_most[1]
        for key in candidates:
            if self._partitions[key].idle(self._watermark, per_ms):
                self._drop(key)

    def _drop(self, key: Group) -> None:
        """Let go of a group, and of all that it holds."""
        gone = self._partitions.pop(key)
        self._size -= gone.size
        if self._patience is not None:
            self._patience.taken(gone)
        self._agenda.set(key, None)
        self._open_times.drop(key)

    # --- snapshots -----------------------------------------------------------------------

    def state(self) -> Any:
        """Return its state; what waits with its group goes on waiting, here and where this goes."""
        if self.plan.is_plain:
            self._catch_up()  # where operators run one by one, nothing waits so
        if isinstance(self._patience, StoredChains):
            parts = self._watermark, self._pending.entries, self.dropped(), self._classes
            return self._patience.state(*parts)
        shelf = Shelf(self._classes)
        partitions = [packed(each, shelf) for each in self._partitions.values()]
        early = () if self._ending is None else self._ending.waiting
        return {
            "version": STATE_VERSION,
            "lasting": self.plan.durations.seen(),
            "doubt_ms": None if self.plan.doubt is None else self.plan.doubt.most_ms,
            "begin": self._begin,
            "watermark": self._watermark,
            "swept": self._swept,
            "overflow": self.dropped_overflow,
            "inverted": self.outcome.dropped_inverted,
            OUTLASTING: self.outlasting,
            "pending": [[place, shelf.put(event)] for place, event in self._pending.entries],
            "patience": None if self._patience is None else self._patience.trial,
            "partitions": partitions,
            "early": [[list(group), shelf.put_all(match)] for match, group in early],
            "floor": None if self._ending is None else self._ending.floor,
            "events": shelf.packed(),
            **({} if self.plan.key is None else {GROUPS_OVERFLOW: self.dropped_groups}),
        }

    def restore(self, state: Any) -> None:
        """Take up such a state, made by an agent of the same task and case."""
        if state["version"] > STATE_VERSION:
            raise ValueError(f"agent state of version {state['version']} cannot be read")
        if "chain" not in state and join_snapshot.is_of_joins(state):
            state = join_snapshot.staged(state, self.plan.layout)
        shelf = Shelf(self._classes, state["events"])
        self._watermark, self._pending = state["watermark"], Pending(self.plan.layout.budget)
        self.plan.know(state.get("lasting", {}))
        for place, n in state["pending"]:
            self._pending.add(place, (shelf.get(n),))
        if isinstance(self._patience, StoredChains):
            counts = self._patience.restore(state, shelf, self._pending)
            self.outcome.dropped_inverted = counts.get("start_after_end", 0)
            self.outlasting = counts.get(OUTLASTING, 0)
            return
        self._begin, self._swept = state["begin"], state.get("swept", WATERMARK_NONE)
        if self.plan.doubt is not None:
            self.plan.doubt.most_ms = max(self.plan.doubt.most_ms, state["doubt_ms"] or 0)
        self.dropped_overflow, self.outlasting = state["overflow"], state.get(OUTLASTING, 0)
        self.dropped_groups = state.get(GROUPS_OVERFLOW, 0)
        self.outcome.dropped_inverted = state["inverted"]
        self._partitions, self._agenda, self._size = {}, Agenda(), 0
        self._open_times = OpenTimes()
        trial = state.get("patience", [0, 0])
        self._patience = None if trial is None else self._patience
        if self._patience is not None:
            self._patience.count, self._patience.trial = 0, trial
        for row in state["partitions"]:
            self._restore_partition(tuple(row[0]), row, shelf)
        if self._ending is not None:
            early = state.get("early", ())
            self._ending.waiting = [(shelf.get_all(match), tuple(group)) for group, match in early]
            self._ending.floor = state.get("floor", self._ending.floor)

    def _restore_partition(self, key: Group, packed: list[Any], shelf: Shelf) -> None:
        without_stages = self._patience is not None and not packed[3]
        if without_stages:
            assert self._patience is not None
            partition = self._partitions[key] = self.plan.new(key, self._patience.any_reach())
        else:
            partition = self._partition(key)
        unpack(partition, packed, shelf, self.plan.manner.selection)
        if self._patience is not None:
            self._patience.count += len(partition.fresh)
        if self._patience is None and partition.fresh:  # nothing waits here any more
            matches = self._advance(key)
            assert not matches, "what may be complete does not wait"
        elif not without_stages:  # it forgets when it would have: what is held shows
            self._note(key, partition)

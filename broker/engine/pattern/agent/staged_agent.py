"""The agent of a pattern: operators over operators, or several as one, for each partition.

Owns the way of events to partitions and of occurrences from them. Must not know how partitions are
kept (staged_groups.py), what stages do, how occurrences are chosen (choice.py) or what becomes of
them (outcome.py). Invariant: what it reports depends on
the events and on the order of time alone, never on how they were batched.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE, LeafEvents
from broker.engine.event.event import Event
from broker.engine.pattern.agent.chain_store import StoredChains
from broker.engine.pattern.agent.patience import Group
from broker.engine.pattern.agent.staged_groups import (
    GROUPS_OVERFLOW,
    OUTLASTING,
    Found,
    StagedGroups,
)
from broker.engine.pattern.agent.staged_partition import packed, unpack
from broker.engine.pattern.fused import join_snapshot
from broker.engine.pattern.fused.fusion import Fused
from broker.engine.pattern.selection.choice import hold
from broker.engine.pattern.stage.base import least
from broker.engine.runtime.agenda import Agenda
from broker.engine.runtime.pending import Pending, by_end
from broker.engine.runtime.shelf import Shelf
from broker.engine.runtime.subscribed import put_in_order

LOOKED_EVENTS = 256  # to come, that are looked through for what they complete: some 100 µs
STATE_VERSION = 2  # version 1, of stages or of joins (join_snapshot.py), is read as well


class StagedAgent(StagedGroups):
    """One case whose detect is a pattern of stages (see agent.Agent)."""

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
                self._moved[()] = self._partition(())
                self._moved[()].site.begin = instant
                self._schedule((), self._partitions[()])

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
        found: list[Found] = [] if self._patience is None else self._patience.found()
        for key in touched:
            found += self._advance(key)
        if self._ending is not None:
            found = self._ending.sift(found, self._begin)
        if silent:
            self._drop_idle(silent)
        if self._patience is not None and self._patience.in_vain:
            self._catch_up()  # from now on all is given to stages at once
            for partition in self._partitions.values():
                if not partition.open:
                    self.plan.open(partition, self._begin)
            self._patience = None
        self._hold_groups()
        put_in_order(found, self.plan.layout.budget)
        return self.outcome.make_all(found)

    def watermark_out(self, watermark: int) -> int:
        """Return the end up to which nothing more will come out, given the inputs' watermark."""
        for key, partition in self._moved.items():
            self._holds[key] = min(partition.root.hold(), hold(partition.waiting))
            if self._holds[key] >= WATERMARK_END:
                del self._holds[key]
            if self.plan.promise.lags:
                self._eldest[key] = partition.eldest()
        self._moved.clear()
        reported = min(watermark, min(self._holds.values(), default=WATERMARK_END))
        if self._ending is not None:
            reported = min(reported, self._ending.hold())
        waiting = WATERMARK_END if self._patience is None else self._patience.eldest()
        eldest = min(self._eldest.values(), default=waiting)
        return self.plan.promise.out(watermark, reported, eldest)

    def next_due(self) -> int | None:
        """Return the least watermark at which `feed` without events could report; None if never."""
        known = [ms for ms in (self._pending.first_end, self._agenda.first()) if ms is not None]
        # What is fused has decided all that it can; only what `last` chooses among may wait.
        open_size = self._size if self.plan.timed else 0
        if open_size or (self.plan.fused is None and self._patience and self._patience.count):
            known.append(WATERMARK_END)
        ends = None if self._ending is None else self._ending.due(self._watermark)
        return least([*known, ends])

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
            suppressed = [one.waiting.suppressed for one in self._partitions.values()]
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
        for at, events in batch:
            select = plan.selects[at] if at < len(leaves) else None
            passed = events if select is None else select(events)
            if plan.doubt is not None:
                plan.doubt.see(passed)
            if plan.observes:
                self.outlasting += plan.durations.observe(((at, passed),))
            if at >= len(leaves) and not plan.contiguous:
                passed = self._beginning(passed)
            taken.append((at, passed))
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
        for at, event in released:
            key = () if key_of is None else key_of(event)
            if key is None:
                continue
            partition = self._partition(key)
            if key_of is not None and plan.silences and at >= len(leaves):
                begin = partition.site.begin
                partition.site.begin = event.start if begin is None else min(begin, event.start)
            partition.fresh.append((at, event))
            touched[key] = None
        return touched

    def _beginning(self, events: Sequence[Event]) -> list[Event]:
        """Those with which a partition may begin; all others say nothing of a silence."""
        partitions, key_of = self._partitions, self.plan.key
        found = []
        for event in events:
            known = None if key_of is None else partitions.get(key_of(event))
            begin = None if known is None else known.site.begin
            if begin is None or event.start < begin:
                found.append(event)
        return found

    # --- deciding ------------------------------------------------------------------------

    def _advance(self, key: Group) -> list[Found]:
        partition, plan = self._partitions[key], self.plan
        if not partition.open:
            plan.open(partition, self._begin)
        if entries := partition.fresh:
            partition.fresh = []
            if self._patience is not None:
                self._patience.count -= len(entries)
        found = plan.advance(partition, entries, self._watermark)
        if plan.in_turn or not plan.timeless or not isinstance(partition.root, Fused):
            self._settle(key, partition)
        else:
            held = partition.root.expire(self._watermark) + len(partition.site.named)
            self._size += held - partition.size
            partition.size = held
            if self._size > self._occurrences_max:
                self._settle(key, partition)
        return list(zip(found, repeat(key))) if found else []

    # --- snapshots -----------------------------------------------------------------------

    def state(self) -> Any:
        """Return its state; what waits with its group goes on waiting, here and where this goes."""
        if self.plan.is_plain:
            self._catch_up()  # where operators run one by one, nothing waits so
        if isinstance(self._patience, StoredChains):
            parts = self._watermark, self._pending.entries, self.dropped(), self._classes
            return self._patience.state(*parts)
        shelf = Shelf(self._classes)
        partitions = [packed(one, shelf) for one in self._partitions.values()]
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
            "pending": [[at, shelf.put(event)] for at, event in self._pending.entries],
            "patience": None if self._patience is None else self._patience.trial,
            "partitions": partitions,
            "early": [[list(group), shelf.put_all(one)] for one, group in early],
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
        for at, n in state["pending"]:
            self._pending.add(at, (shelf.get(n),))
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
        self._holds, self._moved, self._eldest = {}, {}, {}
        trial = state.get("patience", [0, 0])
        self._patience = None if trial is None else self._patience
        if self._patience is not None:
            self._patience.count, self._patience.trial = 0, trial
        for one in state["partitions"]:
            self._restore_partition(tuple(one[0]), one, shelf)
        if self._ending is not None:
            early = state.get("early", ())
            self._ending.waiting = [(shelf.get_all(one), tuple(group)) for group, one in early]
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
            found = self._advance(key)
            assert not found, "what may be complete does not wait"
        elif not without_stages:  # it forgets when it would have: what is held shows
            self._note(key, partition)

"""The agent of a pattern that needs more than joins: stages over stages, for each partition.

Owns the way of events to partitions and of occurrences from them. Must not know how partitions are
kept (staged_groups.py), what stages do, how occurrences are chosen (choice.py) or what becomes of
them (outcome.py). Invariant: what it reports depends on
the events and on the order of time alone, never on how they were batched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker.core.agenda import Agenda
from broker.core.agent import WATERMARK_END, WATERMARK_NONE, LeafEvents
from broker.core.choice import eldest_of, hold, take
from broker.core.choices import MAYBE, Maybe
from broker.core.event import Event
from broker.core.occurrence import Occurrence
from broker.core.operands import composite
from broker.core.pattern_agent import Handover
from broker.core.pattern_groups import OUTLASTING
from broker.core.pending import Pending
from broker.core.shelf import Shelf
from broker.core.solved import Solving
from broker.core.staged_groups import Found, Group, StagedGroups
from broker.core.staged_partition import Partition, logged, packed, unpack, without_lists
from broker.core.stages.base import Site, least
from broker.core.subscribed import all_made, put_in_order
from broker.core.verdicts import certainty_at, certainty_of

STATE_VERSION = 1


class StagedAgent(StagedGroups):
    """One case whose detect is a pattern of stages (see agent.Agent)."""

    waits = True

    # --- the door ------------------------------------------------------------------------

    @property
    def minds_beginning(self) -> bool:
        """Whether what it reports depends on when the task began."""
        return self._ending is not None or (self._key is None and self._silences)

    def begin(self, instant: int) -> None:
        """When the task began: now, or the least start of the input; an earlier one stands."""
        if self._begin is None or instant < self._begin:
            self._begin = instant
            if self._key is None and self._silences:
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
        """See agent.Agent."""
        self._make_room(batch)
        self._watermark = max(self._watermark, watermark)
        touched = self._take(batch)
        touched.update(dict.fromkeys(self._agenda.take(self._watermark)))
        if self._watermark >= WATERMARK_END:  # now all that is open is decided
            touched.update(dict.fromkeys(self._partitions))
        swept = self._sweep(touched)
        found: list[Found] = self._patience.found() if isinstance(self._patience, Solving) else []
        for key in touched:
            found += self._advance(key)
        if self._ending is not None:
            found = self._ending.sift(found, self._begin)
        if swept:
            self._drop_idle()
        if self._patience is not None and self._patience.in_vain:
            self._give_up_waiting()
        put_in_order(found, self.layout.budget)
        return all_made(self._outcome, found)

    def watermark_out(self, watermark: int) -> int:
        """See agent.Agent."""
        for key, partition in self._moved.items():
            self._holds[key] = min(partition.root.hold(), hold(partition.waiting))
            if self._holds[key] >= WATERMARK_END:
                del self._holds[key]
            if self._promise.lags:
                self._eldest[key] = min(partition.root.eldest(), eldest_of(partition.waiting))
        self._moved.clear()
        reported = min(watermark, min(self._holds.values(), default=WATERMARK_END))
        if self._ending is not None:
            reported = min(reported, self._ending.hold())
        eldest = min(self._eldest.values(), default=WATERMARK_END)
        return self._promise.out(watermark, reported, eldest)

    def next_due(self) -> int | None:
        """See agent.Agent."""
        times = [self._pending.first_end, self._agenda.first()]
        known = [time for time in times if time is not None]
        if self._size or (self._patience is not None and self._patience.count):
            known.append(WATERMARK_END)
        ends = None if self._ending is None else self._ending.due(self._watermark)
        return least([*known, ends])

    def held(self) -> int:
        """See agent.Agent; asking moves no group on, as what is due next would show it."""
        self._forget_waiting()
        waiting = 0 if self._patience is None else self._patience.count
        ends = 0 if self._ending is None else len(self._ending.waiting)
        return len(self._pending) + self._size + waiting + ends

    def dropped(self) -> dict[str, int]:
        """See agent.Agent."""
        return {
            "occurrences_overflow": self.dropped_overflow,
            "start_after_end": self._outcome.dropped_inverted,
            OUTLASTING: self.outlasting,
            "at_most": sum([one.waiting.suppressed for one in self._partitions.values()]),
        }

    def adopt(self, other: Handover) -> None:
        """Go on where an agent of the same layout has stopped."""
        self._watermark = other.watermark
        for at, event in other.pending:
            self._pending.add(at, (event,))
        for old, stores in other.held:
            partition = self._partition(old.group)
            for stage, (lefts, rights) in zip(partition.site.joints, stores, strict=True):
                stage.adopt(list(lefts), list(rights))
            partition.waiting.found = list(old.found)
            if self._logs:
                partition.log = old.log or logged(self._layout, stores)
            self._settle(old.group, partition)

    # --- taking events -------------------------------------------------------------------

    def _take(self, batch: Sequence[LeafEvents]) -> dict[tuple[Any, ...], None]:
        """Give what the watermark has passed to its partitions; which these are."""
        pending, taken = self._pending, []
        leaves = self._layout.leaves
        for at, events in batch:
            select = self._selects[at] if at < len(leaves) else None
            passed = events if select is None else select(events)
            if self.doubt is not None:
                self.doubt.see(passed)
            self.outlasting += self._durations.observe(((at, passed),))
            if at >= len(leaves) and not self._contiguous:
                passed = self._beginning(passed)
            taken.append((at, passed))
        released = pending.pass_through(taken, WATERMARK_END if self._at_once else self._watermark)
        if self._patience is not None:
            return self._patience.put(released, self._partitions, eager=self._crowded)
        touched: dict[tuple[Any, ...], None] = {}
        for at, event in released:
            key = () if self._key is None else self._key(event)
            if key is None:
                continue
            partition = self._partition(key)
            if self._key is not None and self._silences and at >= len(leaves):
                begin = partition.site.begin
                partition.site.begin = event.start if begin is None else min(begin, event.start)
            if self._logs:
                partition.log.append((at, event))
            self._give(partition.site, at, event)
            touched[key] = None
        return touched

    def _beginning(self, events: Sequence[Event]) -> list[Event]:
        """Those with which a partition may begin; all others say nothing of a silence."""
        partitions, key_of = self._partitions, self._key
        found = []
        for event in events:
            known = None if key_of is None else partitions.get(key_of(event))
            begin = None if known is None else known.site.begin
            if begin is None or event.start < begin:
                found.append(event)
        return found

    def _give(self, site: Site, at: int, event: Event) -> None:
        if at < len(site.leaves):
            site.leaves[at].events.append(event)
        elif self._contiguous:
            site.name([event])

    # --- deciding ------------------------------------------------------------------------

    def _advance(self, key: tuple[Any, ...]) -> list[Found]:
        partition = self._partitions.get(key)
        if partition is None:
            return []
        if self._patience is not None:
            if not partition.open:
                self._open(key, partition)
            for at, event in self._patience.taken(partition):
                partition.site.leaves[at].events.append(event)
        found = self._found(partition)
        if self._manner.maybe_drop and not self._manner.in_turn:
            found = [one for one in found if certainty_of(one) != MAYBE]
        if self._manner.in_turn:
            waiting = partition.waiting
            waiting.found += found
            limit = min(self._watermark, partition.root.hold())
            found = take(
                waiting,
                self._manner,
                limit,
                lambda one, gone: self._refind(partition, one, gone),
                lambda: self._begins(partition),
            )
        self._settle(key, partition)
        return [(occurrence, key) for occurrence in found]

    def _begins(self, partition: Partition) -> int:
        """No occurrence that is still to be found begins before this, all found anew or not."""
        return partition.root.begins()

    def _found(self, partition: Partition) -> list[Occurrence]:
        found = partition.root.advance(self._watermark)
        doubt, root = self.doubt, self._layout.root
        if doubt is None or composite(root):
            return found
        # A single event whose span is asked about may be uncertain of itself.
        return [
            (Maybe(one.end), one.start, one) if certainty_at(root, one, doubt) == MAYBE else one
            for one in found
        ]

    def _refind(
        self, partition: Partition, reported: Occurrence, gone: set[int]
    ) -> list[Occurrence]:
        """All occurrences anew, without the consumed events as candidates.

        What was chosen up to the one that was reported last stands.
        """
        if not self._logs:
            return partition.take_out(gone)
        silent, places = self._layout.silent, len(self._layout.leaves)
        self._layout.budget.spend(len(partition.log))
        partition.log = [
            (at, event)
            for at, event in partition.log
            if id(event) not in gone or at in silent or at >= places
        ]
        old = partition.site
        assert old.memory is not None
        site = partition.site = old.anew()
        site.memory = old.memory.after(without_lists(self._layout, reported), gone)
        partition.root = self._root(site)
        for at, event in partition.log:
            self._give(site, at, event)
        return self._found(partition)

    # --- snapshots -----------------------------------------------------------------------

    def state(self) -> Any:
        """See agent.Agent; what waits with its group goes on waiting, here and where this goes."""
        shelf = Shelf(self._classes)
        partitions = [packed(one, shelf) for one in self._partitions.values()]
        early = () if self._ending is None else self._ending.waiting
        return {
            "version": STATE_VERSION,
            "lasting": self._durations.seen(),
            "doubt_ms": None if self.doubt is None else self.doubt.most_ms,
            "begin": self._begin,
            "watermark": self._watermark,
            "swept": self._swept,
            "overflow": self.dropped_overflow,
            "inverted": self._outcome.dropped_inverted,
            OUTLASTING: self.outlasting,
            "pending": [[at, shelf.put(event)] for at, event in self._pending.entries],
            "patience": None if self._patience is None else self._patience.trial,
            "partitions": partitions,
            "early": [[list(group), shelf.put_all(one)] for one, group in early],
            "floor": None if self._ending is None else self._ending.floor,
            "events": shelf.packed(),
        }

    def restore(self, state: Any) -> None:
        """See agent.Agent."""
        if state["version"] != STATE_VERSION:
            raise ValueError(f"agent state of version {state['version']} cannot be read")
        shelf = Shelf(self._classes, state["events"])
        self._begin, self._watermark = state["begin"], state["watermark"]
        self._swept = state.get("swept", WATERMARK_NONE)
        self._durations.know(state.get("lasting", {}))
        if self.doubt is not None:
            self.doubt.most_ms = max(self.doubt.most_ms, state["doubt_ms"] or 0)
        self.dropped_overflow, self.outlasting = state["overflow"], state.get(OUTLASTING, 0)
        self._outcome.dropped_inverted = state["inverted"]
        self._pending = Pending(self.layout.budget)
        for at, n in state["pending"]:
            self._pending.add(at, (shelf.get(n),))
        self._partitions, self._agenda, self._size = {}, Agenda(), 0
        self._holds, self._moved, self._eldest = {}, {}, {}
        if self._patience is not None and state.get("patience", [0, 0]) is None:
            self._patience = None
        if self._patience is not None:
            self._patience.count, self._patience.trial = 0, state.get("patience", [0, 0])
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
            partition = self._partitions[key] = Partition(key, self._patience.reach(()))
        else:
            partition = self._partition(key)
        unpack(partition, packed, shelf, self._manner.selection)
        if self._patience is not None:
            self._patience.count += len(partition.fresh)
        if self._patience is None and partition.fresh:  # nothing waits here any more
            for at, event in partition.fresh:
                self._give(partition.site, at, event)
            partition.fresh = []
            found = self._advance(key)
            assert not found, "what may be complete does not wait"
        elif not without_stages:
            self._settle(key, partition)

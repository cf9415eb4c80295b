"""The agent of a pattern that needs more than joins: stages over stages, for each partition.

Owns pending events, partitions and when each is due. Must not know what stages do, how occurrences
are chosen (choice.py) or what becomes of them (outcome.py). Invariant: what it reports depends on
the events and on the order of time alone, never on how they were batched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from broker.core.agenda import Agenda
from broker.core.agent import WATERMARK_END, WATERMARK_NONE, LeafEvents
from broker.core.choice import due, hold, take
from broker.core.choices import MAYBE, Maybe
from broker.core.event import Event
from broker.core.matching import key_function, leaf_select
from broker.core.occurrence import Occurrence, sort_in_order
from broker.core.operands import Silence, composite, least, operands, types_that_last
from broker.core.outcome import assigned_lag
from broker.core.pattern import Layout
from broker.core.pattern_agent import (
    DURATION_MAX_MS,
    IN_ORDER,
    OCCURRENCES_MAX,
    SWEEP_MS_MIN,
    Handover,
    Outcome,
)
from broker.core.pending import Pending
from broker.core.shelf import Shelf
from broker.core.staged_partition import (
    LOG_MAX,
    Partition,
    consumption_of,
    derived,
    log_keep_ms,
    logged,
    manner_of,
    packed,
    reports_at_once,
    unpack,
    without_lists,
)
from broker.core.stages.base import Site, Stage, end_of
from broker.core.stages.build import Builder
from broker.core.stages.lasting import Foresight
from broker.core.stages.memory import Memory
from broker.core.verdicts import Doubt, certainty_at, certainty_of
from language.tree import Case, Subscription

STATE_VERSION = 1

Found = tuple[Occurrence, tuple[Any, ...]]  # an occurrence and its partition's key


class StagedAgent:
    """One case whose detect is a pattern of stages (see agent.Agent)."""

    waits = True

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
        self._until = None if subscription is None else subscription.until_ms
        self._for_ms = None if subscription is None else subscription.for_ms
        self._selects = [leaf_select(leaf, doubt) for leaf in layout.leaves]
        self._key = key_function(case.group_by) if case.group_by else None
        self.doubt = doubt
        self._at_once = reports_at_once(layout, self._manner)
        builder = Builder(layout, case.group_by, DURATION_MAX_MS, doubt, at_once=self._at_once)
        self._make = builder.build(layout.root)
        self._silences = any(isinstance(one, Silence) for one in operands(layout.root))
        self._consumption = consumption_of(layout, self._manner)
        if self._consumption == "spent":
            self._manner = replace(self._manner, consuming=())
        self._logs = bool(self._manner.consuming) and self._consumption == "again"
        self._log_keep_ms = log_keep_ms(layout)
        self._derived = derived(layout)
        self._contiguous = any(joint.next for joint in layout.joints)
        self._lags = assigned_lag(case, layout)
        self._begin: int | None = None
        self._pending = Pending()
        self._partitions: dict[Any, Partition] = {}
        self._agenda = Agenda()
        self._holds: dict[tuple[Any, ...], int] = {}  # what each partition holds back
        self._moved: dict[
            tuple[Any, ...], Partition
        ] = {}  # those of which that is to be asked anew
        self._size = 0
        self._watermark = WATERMARK_NONE
        self._swept = WATERMARK_NONE
        self.dropped_overflow = 0

    # --- the door ------------------------------------------------------------------------

    def begin(self, instant: int) -> None:
        """When the task began: now, or the least start of the input; an earlier one stands."""
        if self._begin is None or instant < self._begin:
            self._begin = instant
            if self._key is None and self._silences:
                self._moved[()] = self._partition(())
                self._moved[()].site.begin = instant
                self._schedule((), self._partitions[()])

    def feed(self, batch: Sequence[LeafEvents], watermark: int) -> list[Any]:
        """See agent.Agent."""
        self._watermark = max(self._watermark, watermark)
        touched = self._take(batch)
        touched.update(dict.fromkeys(self._agenda.take(self._watermark)))
        if self._watermark >= WATERMARK_END:  # now all that is open is decided
            touched.update(dict.fromkeys(self._partitions))
        swept = self._sweep(touched)
        found: list[Found] = []
        for key in touched:
            found += self._advance(key)
        if swept:
            per_ms = 0 if self._manner.at_most is None else self._manner.at_most[1]
            idle = [k for k, p in self._partitions.items() if p.idle(self._watermark, per_ms)]
            for key in idle:
                del self._partitions[key]
                self._agenda.set(key, None)
                self._holds.pop(key, None)
                self._moved.pop(key, None)
        sort_in_order(found, *IN_ORDER)
        made = [self._outcome.make(occurrence, group) for occurrence, group in found]
        return [one for one in made if one is not None]

    def watermark_out(self, watermark: int) -> int:
        """See agent.Agent."""
        for key, partition in self._moved.items():
            self._holds[key] = min(partition.root.hold(), hold(partition.waiting))
            if self._holds[key] >= WATERMARK_END:
                del self._holds[key]
        self._moved.clear()
        out = min(watermark, min(self._holds.values(), default=WATERMARK_END))
        if not self._lags or out >= WATERMARK_END:
            return out
        within_ms = self._layout.root.within_ms
        return out - (DURATION_MAX_MS if within_ms is None else within_ms)

    def next_due(self) -> int | None:
        """See agent.Agent."""
        times = [self._pending.first_end, self._agenda.first()]
        known = [time for time in times if time is not None]
        if self._size:
            known.append(WATERMARK_END)
        return min(known, default=None)

    def held(self) -> int:
        """See agent.Agent."""
        return len(self._pending) + self._size

    def dropped(self) -> dict[str, int]:
        """See agent.Agent."""
        return {
            "occurrences_overflow": self.dropped_overflow,
            "start_after_end": self._outcome.dropped_inverted,
            "at_most": sum([one.waiting.suppressed for one in self._partitions.values()]),
        }

    def adopt(self, other: Handover) -> None:
        """Go on where an agent of the same layout has stopped."""
        self._watermark = other.watermark
        for _, at, event in other.pending:
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
        pending = self._pending
        leaves = self._layout.leaves
        for at, events in batch:
            select = self._selects[at] if at < len(leaves) else None
            passed = events if select is None else select(events)
            if self.doubt is not None:
                self.doubt.see(passed)
            for event in passed:
                if event.start < event.end:
                    self._durations.durations.observe(event.event_type, event.end - event.start)
            pending.add(at, passed)
        until = WATERMARK_END if self._at_once else self._watermark
        touched: dict[tuple[Any, ...], None] = {}
        for at, event in pending.release(until):
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

    def _give(self, site: Site, at: int, event: Event) -> None:
        if at < len(site.leaves):
            site.leaves[at].events.append(event)
        elif self._contiguous:
            site.name([event])

    def _partition(self, key: tuple[Any, ...]) -> Partition:
        partition = self._partitions.get(key)
        if partition is None:
            begin = self._begin if self._key is None else None
            site = Site(key, self._durations, begin, self._at_once, self.doubt is None)
            if self._logs:
                site.memory = Memory()
            partition = self._partitions[key] = Partition(site, self._root(site))
        return partition

    def _root(self, site: Site) -> Stage:
        site.leaves = [None] * len(self._layout.leaves)
        return self._make(site)

    # --- deciding ------------------------------------------------------------------------

    def _advance(self, key: tuple[Any, ...]) -> list[Found]:
        partition = self._partitions.get(key)
        if partition is None:
            return []
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
                partition.root.begins,
            )
        until = self._until
        if self._for_ms is not None and self._begin is not None:
            until = least(until, self._begin + self._for_ms)
        if until is not None:
            found = [one for one in found if end_of(one) < until]
        self._settle(key, partition)
        return [(occurrence, key) for occurrence in found]

    def _found(self, partition: Partition) -> list[Occurrence]:
        found = partition.root.advance(self._watermark)
        doubt, root = self.doubt, self._layout.root
        if doubt is None or composite(root):
            return found
        # A single event whose span is asked about may be uncertain of itself.
        verdicts = [certainty_at(root, one, doubt) for one in found]
        return [
            (Maybe(one.end), one.start, one) if verdict == MAYBE else one
            for one, verdict in zip(found, verdicts, strict=True)
        ]

    def _refind(
        self, partition: Partition, reported: Occurrence, gone: set[int]
    ) -> list[Occurrence]:
        """All occurrences anew, without the consumed events as candidates.

        What was chosen up to the one that was reported last stands.
        """
        if not self._logs:
            return partition.take_out(gone)
        silent = self._layout.silent
        places = len(self._layout.leaves)
        partition.log = [
            (at, event)
            for at, event in partition.log
            if id(event) not in gone or at in silent or at >= places
        ]
        old = partition.site
        assert old.memory is not None
        site = partition.site = Site(old.group, old.durations, old.begin, exact=old.exact)
        site.memory = old.memory.after(without_lists(self._layout, reported), gone)
        partition.root = self._root(site)
        for at, event in partition.log:
            self._give(site, at, event)
        return self._found(partition)

    def _settle(self, key: tuple[Any, ...], partition: Partition) -> None:
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

    def _schedule(self, key: tuple[Any, ...], partition: Partition) -> None:
        times = [partition.root.due(), due(partition.waiting, self._manner)]
        at = min([time for time in times if time is not None], default=None)
        self._agenda.set(key, None if at is None else max(at, self._watermark + 1))

    def _sweep(self, touched: dict[tuple[Any, ...], None]) -> bool:
        """Let silent partitions drop what has expired, now and then; whether it was done."""
        if self._watermark - self._swept < SWEEP_MS_MIN * 60:
            return False
        self._swept = self._watermark
        for key in self._partitions:
            touched.setdefault(key)
        return True

    # --- snapshots -----------------------------------------------------------------------

    def state(self) -> Any:
        """See agent.Agent."""
        shelf = Shelf(self._classes)
        partitions = [packed(one, shelf) for one in self._partitions.values()]
        return {
            "version": STATE_VERSION,
            "lasting": self._durations.seen(),
            "doubt_ms": None if self.doubt is None else self.doubt.most_ms,
            "begin": self._begin,
            "watermark": self._watermark,
            "swept": self._swept,
            "overflow": self.dropped_overflow,
            "inverted": self._outcome.dropped_inverted,
            "pending": [[at, shelf.put(event)] for at, event in self._pending.entries],
            "partitions": partitions,
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
        self.dropped_overflow = state["overflow"]
        self._outcome.dropped_inverted = state["inverted"]
        self._pending = Pending()
        for at, n in state["pending"]:
            self._pending.add(at, (shelf.get(n),))
        self._partitions, self._agenda, self._size = {}, Agenda(), 0
        self._holds, self._moved = {}, {}
        for one in state["partitions"]:
            key = tuple(one[0])
            partition = self._partition(key)
            unpack(partition, one, shelf, self._manner.selection)
            self._settle(key, partition)

"""The agent of a pattern: partitions, order, choice and consumption over a compiled program.

Owns pending events and partitions. Must not know how partners are found (matching.py), how they
are chosen (partition.py) or what an occurrence becomes (outcome.py). Invariant: what it reports
depends on the events and on the order of time alone, never on how they were batched.

A pattern whose meaning does not need order reports at once. The others hold their events until
the watermark has passed them and then take them in order; where choices within one instant depend
on each other (`and[recent]`, `consuming`, `last`), instant by instant.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol

from broker.core.agent import WATERMARK_NONE, LeafEvents
from broker.core.event import Event, Order
from broker.core.matching import Program
from broker.core.occurrence import (
    events_of,
    head_of,
    order_of,
    sort_in_order,
    sorted_events,
    span_of,
)
from broker.core.operands import FOLLOWS, types_that_last
from broker.core.outcome import SubscriptionOutcome, assigned_lag
from broker.core.partition import Partition, discipline_of, instant, instants, take
from broker.core.pattern import Layout
from broker.core.shelf import Shelf, pack_partition, unpack_partition
from broker.core.stages.lasting import Foresight
from broker.core.store import Store
from language.tree import Case

DURATION_MAX_MS = 7 * 86_400_000
OCCURRENCES_MAX = 1_000_000
STATE_VERSION = 1
SWEEP_MS_MIN = 1_000  # partitions are swept for what has expired at most so often

Found = tuple[Any, tuple[Any, ...]]  # an occurrence and its partition's key


class Outcome(Protocol):
    """Makes what the agent puts out."""

    dropped_inverted: int

    def make(self, occurrence: Any, group: tuple[Any, ...]) -> Any:
        """An event or a result; None if the occurrence gives none."""


def _of_occurrence(key: Callable[[Any], Any]) -> Callable[[Found], Any]:
    return lambda found: key(found[0])


IN_ORDER = tuple(map(_of_occurrence, (span_of, head_of, order_of)))


@dataclass(frozen=True, slots=True)
class Handover:
    """What a pattern agent is and holds; by partition, what each operator's two stores hold."""

    layout: Layout
    outcome: Outcome
    pending: list[tuple[Order, int, Event]]
    held: list[tuple[Partition, list[tuple[list[Any], list[Any]]]]]
    watermark: int


class PatternAgent:
    """One case whose detect is a pattern (see agent.Agent)."""

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
        self._foresight = foresight if self._program.asks_durations() or layout.last else None
        self._changes = -1  # of durations, when it was looked ahead
        self._horizon_ms, self._log_keep_ms = self._program.horizon_ms(), self._program.reach_ms()
        self._lags = assigned_lag(case, layout)
        self._pending: list[tuple[Order, int, Event]] = []
        self._partitions: dict[Any, Partition] = {}
        self._size = 0
        self._watermark = WATERMARK_NONE
        self._swept = WATERMARK_NONE
        self.dropped_overflow = 0

    # --- the door ------------------------------------------------------------------------

    def feed(self, batch: Sequence[LeafEvents], watermark: int) -> list[Any]:
        """See agent.Agent."""
        if self.is_lone:
            return self._feed_lone(batch, watermark)
        self._watermark = max(self._watermark, watermark)
        selected = self._selected(batch)
        if self._foresight is not None:
            self._look_ahead(self._foresight, selected)
        found = self._feed_ordered(selected) if self.ordered else self._feed_at_once(selected)
        self._sweep()
        if len(found) > 1:
            sort_in_order(found, *IN_ORDER)
        make = self._outcome.make
        made = [make(occurrence, group) for occurrence, group in found]
        return [one for one in made if one is not None]

    def watermark_out(self, watermark: int) -> int:
        """See agent.Agent."""
        out = watermark
        if self._discipline.stepwise:
            for partition in self._partitions.values():
                for occurrence in partition.found:
                    out = min(out, occurrence[0] - 1)
        if not self._lags:
            return out
        within_ms = self._layout.root.within_ms
        if within_ms is not None:
            return out - within_ms
        return min([out - self._duration_max_ms, *(start - 1 for start in self._starts())])

    def next_due(self) -> int | None:
        """See agent.Agent."""
        due = [self._pending[0][0][0]] if self._pending else []
        selection = self._discipline.selection
        if selection is not None:
            due += [
                selection.closes_at(found)
                for partition in self._partitions.values()
                for found in partition.found
            ]
        return min(due, default=None)

    def held(self) -> int:
        """See agent.Agent."""
        return len(self._pending) + self._size

    def dropped(self) -> dict[str, int]:
        """See agent.Agent."""
        return {
            "occurrences_overflow": self.dropped_overflow,
            "start_after_end": self._outcome.dropped_inverted,
        }

    def state(self) -> Any:
        """See agent.Agent."""
        shelf = Shelf(self._classes)
        return {
            "version": STATE_VERSION,
            "lasting": {} if self._foresight is None else self._foresight.seen(),
            "watermark": self._watermark,
            "swept": self._swept,
            "overflow": self.dropped_overflow,
            "inverted": self._outcome.dropped_inverted,
            "pending": [[leaf, shelf.put(event)] for _, leaf, event in self._pending],
            "partitions": [pack_partition(one, shelf) for one in self._partitions.values()],
            "events": shelf.packed(),
        }

    def restore(self, state: Any) -> None:
        """See agent.Agent."""
        if state["version"] != STATE_VERSION:
            raise ValueError(f"agent state of version {state['version']} cannot be read")
        shelf = Shelf(self._classes, state["events"])
        if self._foresight is not None:
            self._foresight.know(state.get("lasting", {}))
        self._watermark, self._swept = state["watermark"], state["swept"]
        self.dropped_overflow = state["overflow"]
        self._outcome.dropped_inverted = state["inverted"]
        self._pending = [
            (event.order, leaf, event)
            for leaf, at in state["pending"]
            for event in (shelf.get(at),)
        ]
        restored = [unpack_partition(packed, shelf) for packed in state["partitions"]]
        self._partitions = {partition.group: partition for partition in restored}
        self._size = 0
        for partition in restored:
            self._count(partition)

    def hand_over(self) -> Handover:
        """All that it is and holds, for an agent that knows more."""
        held = []
        for partition in self._partitions.values():
            stores = [
                (partition.stores[one.left_store].items, partition.stores[one.right_store].items)
                if one.left_store >= 0
                else ([], [])
                for one in self._program.joints
            ]
            held.append((partition, stores))
        return Handover(self._layout, self._outcome, self._pending, held, self._watermark)

    # --- taking events -------------------------------------------------------------------

    def _selected(self, batch: Sequence[LeafEvents]) -> list[tuple[int, Sequence[Event]]]:
        selected = []
        for leaf, events in batch:
            select = self._program.selects[leaf]
            passed = events if select is None else select(events)
            if passed:
                selected.append((leaf, passed))
        return selected

    def _feed_at_once(self, batch: list[tuple[int, Sequence[Event]]]) -> list[Found]:
        if not batch:
            return []
        program = self._program
        if program.key is None:
            lists: list[Any] = [[] for _ in range(program.leaf_count)]
            for leaf, events in batch:  # a definition of several cases brings a leaf twice
                lists[leaf] += events
            return self._step_at_once((), lists)
        split: dict[Any, list[Any]] = {}
        for leaf, events in batch:
            for event in events:
                key = program.key(event)
                if key is None:
                    continue
                entry = split.get(key)
                if entry is None:
                    entry = split[key] = [[] for _ in range(program.leaf_count)]
                entry[leaf].append(event)
        return [pair for key, lists in split.items() for pair in self._step_at_once(key, lists)]

    def _feed_lone(self, batch: Sequence[LeafEvents], watermark: int) -> list[Any]:
        self._watermark = max(self._watermark, watermark)
        if len(batch) == 1:
            return self.made(sorted_events(batch[0][1]))
        return self.made(sorted_events([one for _, some in batch for one in some]))

    def made(self, events: Sequence[Event]) -> list[Any]:
        """What it puts out for events of its one leaf, in the order given; see `is_lone`."""
        select, key_of, outcome = self._program.selects[0], self._program.key, self._outcome
        if select is not None:
            events = select(events)
        keyed = [(event, () if key_of is None else key_of(event)) for event in events]
        made = [outcome.make(event, key) for event, key in keyed if key is not None]
        return [one for one in made if one is not None]

    def maker(self) -> Callable[[Sequence[Event]], list[Any]]:
        """`made`, or what does the same faster."""
        outcome, program = self._outcome, self._program
        plain = program.selects[0] is None and program.key is None
        if plain and isinstance(outcome, SubscriptionOutcome):
            return outcome.make_each
        return self.made

    def _step_at_once(self, key: tuple[Any, ...], lists: list[Any]) -> list[Found]:
        partition = self._partition(key)
        found = self._program.step(lists, partition.stores, key)
        self._settle(partition)
        return [(occurrence, key) for occurrence in found]

    def _feed_ordered(self, batch: list[tuple[int, Sequence[Event]]]) -> list[Found]:
        pending = self._pending
        for leaf, events in batch:
            pending += [(event.order, leaf, event) for event in events]
        if batch:
            pending.sort(key=itemgetter(0, 1))
        ready = bisect_right(pending, self._watermark, key=lambda entry: entry[0][0])
        split: dict[Any, list[tuple[int, Event]]] = {}
        key_of = self._program.key
        for _, leaf, event in pending[:ready]:
            key = () if key_of is None else key_of(event)
            if key is not None:
                split.setdefault(key, []).append((leaf, event))
        del pending[:ready]
        found: list[Found] = []
        for key, entries in split.items():
            found += self._advance(self._partition(key), entries)
        if self._discipline.selection is not None:
            found += self._take_closed(split)
        return found

    def _advance(self, partition: Partition, events: list[tuple[int, Event]]) -> list[Found]:
        reported: list[Any] = []
        runs = instants(events) if self._stepwise else [events]
        for run in runs:
            instant(partition, self._program, self._discipline, run)
            if self._discipline.consuming:
                end = run[-1][1].end
                reported += take(partition, self._program, self._discipline, end)
        reported += take(partition, self._program, self._discipline, self._watermark)
        self._settle(partition)
        return [(occurrence, partition.group) for occurrence in reported]

    def _take_closed(self, touched: dict[Any, Any]) -> list[Found]:
        """What the watermark alone made final, in partitions without new events."""
        found: list[Found] = []
        for key, partition in self._partitions.items():
            if partition.found and key not in touched:
                taken = take(partition, self._program, self._discipline, self._watermark)
                found += [(occurrence, key) for occurrence in taken]
                self._count(partition)
        return found

    # --- bounds --------------------------------------------------------------------------

    def _partition(self, key: tuple[Any, ...]) -> Partition:
        partition = self._partitions.get(key)
        if partition is None:
            stores = [Store() for _ in range(self._program.store_count)]
            partition = self._partitions[key] = Partition(key, stores)
        return partition

    def _count(self, partition: Partition) -> None:
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

    def _expire(self, partition: Partition) -> None:
        self._program.expire(partition.stores, self._watermark)
        if partition.log and self._log_keep_ms is not None:
            oldest = self._watermark + 1 - self._log_keep_ms
            partition.log = [entry for entry in partition.log if entry[1].end >= oldest]

    def _look_ahead(self, foresight: Foresight, batch: Sequence[LeafEvents]) -> None:
        """Keep for as long as events still to come may reach back."""
        foresight.observe(batch)
        if self._changes != foresight.durations.changes:
            self._changes = foresight.durations.changes
            self._program.keep(min(self._duration_max_ms, foresight.most_ms()))
            self._horizon_ms = self._program.horizon_ms()
            self._log_keep_ms = self._program.reach_ms()

    def _sweep(self) -> None:
        """Expire in every partition, now and then, so that silent ones do not stay for ever."""
        if self._horizon_ms is None:
            return
        if self._watermark - self._swept < max(SWEEP_MS_MIN, self._horizon_ms):
            return
        self._swept = self._watermark
        for key, partition in list(self._partitions.items()):
            self._expire(partition)
            self._count(partition)
            if not partition.counted:
                del self._partitions[key]

    def _starts(self) -> list[int]:
        starts = [order[1] for order, _, _ in self._pending]
        for one in self._partitions.values():
            for items in (*(store.items for store in one.stores), one.found):
                starts += [event.start for item in items for event in events_of(item) if event]
        return starts

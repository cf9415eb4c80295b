"""The agent of a pattern: partitions, order, choice and consumption over a compiled program.

Owns pending events and partitions. Must not know how partners are found (matching.py), how they
are chosen (partition.py) or what an occurrence becomes (outcome.py). Invariant: what it reports
depends on the events and on the order of time alone, never on how they were batched.

A pattern whose meaning does not need order reports at once. The others hold their events until
the watermark has passed them and then take them in order; where choices within one instant depend
on each other (`and[recent]`, `consuming`, `last`), instant by instant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from broker.core.agent import WATERMARK_END, LeafEvents
from broker.core.event import Event
from broker.core.occurrence import (
    sorted_events,
)
from broker.core.partition import Partition, instant, instants, take
from broker.core.patience import Patience
from broker.core.pattern import Layout
from broker.core.pattern_groups import OUTLASTING, Found, Outcome, PatternGroups
from broker.core.pending import Entry as Waiting
from broker.core.pending import Pending, by_end
from broker.core.shelf import Shelf, pack_partition, unpack_partition
from broker.core.subscribed import SubscriptionOutcome, all_made, put_in_order

STATE_VERSION = 1


@dataclass(frozen=True, slots=True)
class Handover:
    """What a pattern agent is and holds; by partition, what each operator's two stores hold."""

    layout: Layout
    outcome: Outcome
    pending: list[Waiting]
    held: list[tuple[Partition, list[tuple[list[Any], list[Any]]]]]
    watermark: int


class PatternAgent(PatternGroups):
    """One case whose detect is a pattern (see agent.Agent)."""

    # --- the door ------------------------------------------------------------------------

    def feed(self, batch: Sequence[LeafEvents], watermark: int) -> list[Any]:
        """See agent.Agent."""
        if self.is_lone:
            return self._feed_lone(batch, watermark)
        before, self._watermark = self._watermark, max(self._watermark, watermark)
        selected = self._selected(batch)
        if self._foresight is not None:
            self._look_ahead(self._foresight, selected)
        if self._patience is not None:
            found = self._feed_patiently(self._patience, selected, before)
        else:
            found = self._feed_ordered(selected) if self.ordered else self._feed_at_once(selected)
        self._sweep()
        put_in_order(found, self.layout.budget)
        return all_made(self._outcome, found)

    def watermark_out(self, watermark: int) -> int:
        """See agent.Agent."""
        out = watermark
        first = self._open.first()
        if first is not None:
            out = min(out, first - 1)
        if not self._promise.lags:
            return out
        self._catch_up()
        return self._promise.out(watermark, out, self._eldest())

    def next_due(self) -> int | None:
        """See agent.Agent."""
        due = [self._pending.first_end, self._closing.first()]
        if self._open.first() is not None:
            due.append(WATERMARK_END)
        return min([at for at in due if at is not None], default=None)

    def held(self) -> int:
        """See agent.Agent."""
        self._catch_up()
        return len(self._pending) + self._size

    def dropped(self) -> dict[str, int]:
        """See agent.Agent."""
        return {
            "occurrences_overflow": self.dropped_overflow,
            "start_after_end": self._outcome.dropped_inverted,
            OUTLASTING: self.outlasting,
        }

    def state(self) -> Any:
        """See agent.Agent."""
        self._catch_up()
        shelf = Shelf(self._classes)
        return {
            "version": STATE_VERSION,
            "lasting": {} if self._foresight is None else self._foresight.seen(),
            "watermark": self._watermark,
            "swept": self._swept,
            "overflow": self.dropped_overflow,
            "inverted": self._outcome.dropped_inverted,
            OUTLASTING: self.outlasting,
            "pending": [[leaf, shelf.put(event)] for leaf, event in self._pending.entries],
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
        self.dropped_overflow, self.outlasting = state["overflow"], state.get(OUTLASTING, 0)
        self._outcome.dropped_inverted = state["inverted"]
        self._pending = Pending(self.layout.budget)
        for leaf, at in state["pending"]:
            self._pending.add(leaf, (shelf.get(at),))
        restored = [unpack_partition(packed, shelf) for packed in state["partitions"]]
        self._partitions = {partition.group: partition for partition in restored}
        self._size = 0
        if self._patience is not None:
            self._patience.count = 0
        for partition in restored:
            if self._patience is not None:
                partition.reach = self._patience.reach(partition.reach)
            self._count(partition)
            self._note(partition)

    def hand_over(self) -> Handover:
        """All that it is and holds, for an agent that knows more."""
        self._catch_up()
        held = []
        for partition in self._partitions.values():
            stores = [
                (partition.stores[one.left_store].items, partition.stores[one.right_store].items)
                if one.left_store >= 0
                else ([], [])
                for one in self._program.joints
            ]
            held.append((partition, stores))
        pending = self._pending.entries
        return Handover(self._layout, self._outcome, pending, held, self._watermark)

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

    def _feed_patiently(
        self, patience: Patience[Partition], batch: list[tuple[int, Sequence[Event]]], since: int
    ) -> list[Found]:
        """Let groups wait until an event may complete something; see prospects."""
        entries = by_end(batch)  # so that what follows comes after what it follows
        crowded = self._size + patience.count + len(entries) > self._occurrences_max
        if crowded:
            self._catch_up()
        touched = patience.put(entries, self._partitions, since, eager=crowded)
        found = [pair for key in touched for pair in self._step_fresh(key)]
        if patience.in_vain:
            self._catch_up()
            self._patience = None
        return found

    def _feed_lone(self, batch: Sequence[LeafEvents], watermark: int) -> list[Any]:
        self._watermark = max(self._watermark, watermark)
        if self._foresight is not None:
            self._foresight.observe(batch)
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
        plain = self._plain_outcome()
        return self.made if plain is None else plain.make_each

    def maker_of_one(self) -> Callable[..., Any] | None:
        """What makes the result of a primitive event; None where it may give none."""
        plain = self._plain_outcome()
        return None if plain is None else plain.maker_of_one()

    def _plain_outcome(self) -> SubscriptionOutcome | None:
        """The outcome where each event is a result, as it is."""
        outcome, program = self._outcome, self._program
        plain = program.selects[0] is None and program.key is None
        return outcome if plain and isinstance(outcome, SubscriptionOutcome) else None

    def _feed_ordered(self, batch: list[tuple[int, Sequence[Event]]]) -> list[Found]:
        pending = self._pending
        for leaf, events in batch:
            pending.add(leaf, events)
        split: dict[Any, list[tuple[int, Event]]] = {}
        key_of = self._program.key
        for leaf, event in pending.release(self._watermark):
            key = () if key_of is None else key_of(event)
            if key is not None:
                split.setdefault(key, []).append((leaf, event))
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
        self._note(partition)
        return [(occurrence, partition.group) for occurrence in reported]

    def _take_closed(self, touched: dict[Any, Any]) -> list[Found]:
        """What the watermark alone made final, in partitions without new events."""
        found: list[Found] = []
        due = self._closing.take(self._watermark)
        for key in self._partitions if self._watermark >= WATERMARK_END else due:
            partition = self._partitions[key]
            if partition.found and key not in touched:
                taken = take(partition, self._program, self._discipline, self._watermark)
                found += [(occurrence, key) for occurrence in taken]
                self._count(partition)
                self._note(partition)
        return found

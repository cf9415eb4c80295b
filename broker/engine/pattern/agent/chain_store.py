"""A small store of events for the runs of a chain, in which they wait for what completes one.

Owns the events stored, by group, when they are looked through, and the choice of what is
overwritten (Saleh and others, section 6.3: the newest event of the oldest run, until that run has
nothing but its first and ends; then of the next). Must not know text, nor how partners are found:
the chain's operator does that, for each instant at which a chain can be complete. Invariant: never
more events than the capacity, each that goes before its time is counted, and each match is one that
is found without such a store.

It is one store for all groups of an agent. What fits the last place is not stored: it completes
what is there, or nothing.

An event that fits the first place begins a run. One that fits a later place belongs to each run
from whose first event stored ones lead to it, link by link; where none do it is not stored. Events
are taken in order, so that of a run later places lie later.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from broker.engine.event.agent import WATERMARK_END, LeafEvents
from broker.engine.event.event import Event, Order
from broker.engine.pattern.agent.patience import Patience, Pending
from broker.engine.pattern.agent.staged_partition import Entry, Group, Partition
from broker.engine.pattern.fused.fusion import FusedPlan
from broker.engine.pattern.layout.operands import Joint, Leaf, Operand
from broker.engine.pattern.layout.pattern import Layout
from broker.engine.pattern.layout.prospects import Prospect
from broker.engine.pattern.stage.base import Site
from broker.engine.pattern.times.durations import Foresight
from broker.engine.runtime.shelf import Shelf
from language.relations import FOLLOWS
from language.tree import Case

STATE_VERSION = 1
OVERWRITTEN = "chain_overwritten"
NO_PROSPECT = Prospect(0, (), None, ())  # what is stored, the store alone decides


class Link(NamedTuple):
    """Bound what lies between two places of a chain: a gap in ms, ends included; None is open."""

    low_ms: int | None = None
    high_ms: int | None = None


def links_of(case: Case, layout: Layout) -> list[Link] | None:
    """Return the links of a chain of atoms that reports every combination; else None."""
    links: list[Link] = []
    operand: Operand = layout.root
    while isinstance(operand, Joint):
        plain = operand.operator in FOLLOWS and not operand.context.chooses
        limited = operand.next or operand.nth is not None
        if not plain or limited or not isinstance(operand.right, Leaf):
            return None
        bound = operand.bound
        links.insert(0, Link() if bound is None else Link(bound.low_ms, bound.high_ms))
        operand = operand.left
    chosen = layout.last or layout.first or case.consuming or case.detect.report != "all"
    return links if isinstance(operand, Leaf) and links and not chosen else None


class Chained(NamedTuple):
    """An event at a place of the chain; entries compare as events do."""

    order: Order
    place: int
    event: Event


class ChainStore:
    """Events at all places of a chain but the last; see the module."""

    def __init__(self, links: Sequence[Link], within_ms: int | None, capacity: int) -> None:
        self._links = links
        self._within_ms = within_ms
        self._capacity = capacity
        self.groups: dict[Group, list[Chained]] = {}
        self._starts: deque[tuple[Chained, Group]] = deque()  # the first of each run, oldest first
        self.size = 0
        self.overwritten = 0

    def take(self, group: Group, place: int, event: Event) -> None:
        """Store an event, which comes after all that are stored, where a run can use it."""
        entry = Chained(event.order, place, event)
        if not self.reached(group, entry):
            return
        while self.size >= self._capacity:
            self._overwrite()
        if not self.reached(group, entry):  # what led to it has just gone
            self.overwritten += 1
            return
        insort(self.groups.setdefault(group, []), entry, key=_place_in_order)
        self.size += 1
        if place == 0:
            self._starts.append((entry, group))

    def reached(self, group: Group, entry: Chained) -> bool:
        """Return True where the entry begins a run or continues one."""
        if entry.place == 0:
            return True
        stored = self.groups.get(group, [])
        before = [one for one in stored if one.place == entry.place - 1]
        return self._linked(before, entry, stored)

    def expire(self, now: int) -> None:
        """Drop the runs that cannot be complete any more when nothing ends before the time."""
        if self._within_ms is None:
            return
        ended: dict[Group, None] = {}
        while self._starts and self._starts[0][0].event.start + self._within_ms < now:
            entry, group = self._starts.popleft()
            self._remove(group, entry)
            ended[group] = None
        for group in ended:
            self._prune(group)

    def blank(self) -> ChainStore:
        """Return such a store with nothing in it."""
        return ChainStore(self._links, self._within_ms, self._capacity)

    def restore(self, groups: Sequence[tuple[Group, int, Event]]) -> None:
        """Hold these again: group, place, event, in any order."""
        for group, place, event in groups:
            entry = Chained(event.order, place, event)
            insort(self.groups.setdefault(group, []), entry, key=_place_in_order)
            self.size += 1
            if place == 0:
                self._starts.append((entry, group))
        ordered = sorted(self._starts, key=lambda start: start[0].order)
        self._starts = deque(ordered)

    # --- what goes -----------------------------------------------------------------------

    def _overwrite(self) -> None:
        start, group = self._starts[0]
        newest = self._run([start], self.groups[group])[-1]
        self._remove(group, newest)
        self.overwritten += 1
        if newest is start:  # nothing else was left of its run
            self._starts.popleft()

    def _remove(self, group: Group, entry: Chained) -> None:
        entries = self.groups[group]
        kept = [one for one in entries if one is not entry]
        self.size -= len(entries) - len(kept)
        self.groups[group] = kept
        if not kept:
            del self.groups[group]

    def _prune(self, group: Group) -> None:
        """Drop what only led on from runs that have ended."""
        entries = self.groups.get(group)
        if entries is None:
            return
        starts = [one for one in entries if one.place == 0]
        kept = self._run(starts, entries)
        self.size -= len(entries) - len(kept)
        self.groups[group] = kept
        if not kept:
            del self.groups[group]

    def _run(self, starts: Sequence[Chained], entries: Sequence[Chained]) -> list[Chained]:
        """Of a group's entries, those to which these lead; in order, the first included."""
        by_place: list[list[Chained]] = [[] for _ in range(len(self._links) + 1)]
        found = []
        begins = {id(one) for one in starts}
        for one in entries:
            if one.place == 0:
                led = id(one) in begins
            else:
                led = self._linked(by_place[one.place - 1], one, entries)
            if led:
                by_place[one.place].append(one)
                found.append(one)
        return found

    def _linked(self, before: Sequence[Chained], entry: Chained, stored: Sequence[Chained]) -> bool:
        """Return True where any of `before`, which are in order, leads to the entry."""
        link = self._links[entry.place - 1]
        start = entry.event.start
        for one in reversed(before):
            gap_ms = start - one.event.end
            if link.high_ms is not None and gap_ms > link.high_ms:
                return False
            if gap_ms < (link.low_ms or 0) or (gap_ms == 0 and not _touches(entry, stored)):
                continue
            return True
        return False


def _place_in_order(entry: Chained) -> tuple[Order, int]:
    return (entry.order, entry.place)


def _touches(entry: Chained, stored: Sequence[Chained]) -> bool:
    """Tell if something longer than a point touches at the entry's start: so readings cannot."""
    at = entry.event.start
    if at < entry.event.end:
        return True
    return any(one.event.end == at and one.event.start < at for one in stored)


class StoredChains(Patience):
    """Lets the events of all groups wait in one such store, and finds what they complete there.

    Groups have no operators of their own: one is made for what is looked through, and goes with it.
    """

    def __init__(
        self,
        fused: FusedPlan,
        key: Callable[[Event], Any] | None,
        links: Sequence[Link],
        capacity: int,
        foresight: Foresight,
    ) -> None:
        super().__init__(NO_PROSPECT, key, _no_partition)
        self._fused = fused
        self._site = Site((), foresight, None, budget=fused.layout.budget)
        self._final = len(links)
        self._foresight = foresight if fused.asks_durations() else None
        self.store = ChainStore(links, fused.layout.root.within_ms, capacity)
        self._looked = False  # whether anything was ever looked through

    def put(
        self,
        entries: Sequence[Entry],
        partitions: dict[Group, Partition],  # noqa: ARG002 - there are none
        since: int | None = None,  # noqa: ARG002 - they are in order
        *,
        eager: bool,  # noqa: ARG002 - the store has a limit of its own
    ) -> dict[Group, None]:
        """Store events, or find what they complete."""
        for end, instant in groupby(entries, key=_end_of):
            self._take(end, instant)
        self.count = self.store.size
        return {}

    def _take(self, end: int, entries: Iterator[Entry]) -> None:
        """Take events of one end: first those that are stored, then those that complete."""
        store, key_of = self.store, self._key
        store.expire(end)
        closing: dict[Group, list[Entry]] = {}
        for place, event in entries:
            group = () if key_of is None else key_of(event)
            if group is None:
                continue
            if place == self._final:
                closing.setdefault(group, []).append((place, event))
            else:
                store.take(group, place, event)
        for group, last in closing.items():
            stored = store.groups.get(group)
            if stored is not None:
                self._looked = True
                chain = [(entry.place, entry.event) for entry in stored]
                if self._foresight is not None:
                    self._foresight.observe([(place, (event,)) for place, event in (*chain, *last)])
                made = self._fused.open(group, self._site).step([*chain, *last], end)
                self.matches += [(match, group) for match in made]

    def completing(
        self,
        entries: Sequence[Entry],
        partitions: Mapping[Group, Partition],  # noqa: ARG002 - there are none
    ) -> int | None:
        """Return the end of the first event to come that stands at the end of the chain."""
        return next((event.end for place, event in entries if place == self._final), None)

    @property
    def forgets(self) -> bool:
        """Leave nothing to be forgotten: the store drops by itself what has expired."""
        return False

    def eldest(self) -> int:
        """Return when the eldest begins of what is stored."""
        starts = [entry.event.start for own in self.store.groups.values() for entry in own]
        return min(starts, default=WATERMARK_END)

    def dropped(self) -> dict[str, int]:
        """Return how many were overwritten."""
        return {OVERWRITTEN: self.store.overwritten}

    def members(self) -> list[LeafEvents]:
        """Return what is stored, by place."""
        events: dict[int, list[Event]] = {}
        for entries in self.store.groups.values():
            for entry in entries:
                events.setdefault(entry.place, []).append(entry.event)
        return list(events.items())

    # --- snapshots -----------------------------------------------------------------------

    def state(
        self,
        watermark: int,
        pending: Sequence[Entry],
        dropped: Mapping[str, int],
        classes: Mapping[str, type[Event]],
    ) -> Any:
        """Return the state of the agent: of what is stored, and of what the watermark holds up."""
        shelf = Shelf(classes)
        counts = {name: count for name, count in dropped.items() if name != OVERWRITTEN}
        return {
            "version": STATE_VERSION,
            "watermark": watermark,
            "pending": [[place, shelf.put(event)] for place, event in pending],
            "chain": [
                [list(group), entry.place, shelf.put(entry.event)]
                for group, entries in self.store.groups.items()
                for entry in entries
            ],
            "overwritten": self.store.overwritten,
            "dropped": counts if self._looked else {},
            "events": shelf.packed(),
        }

    def restore(
        self, state: Mapping[str, Any], shelf: Shelf, pending: Pending
    ) -> Mapping[str, int]:
        """Take such a state up, or go on where an agent without this store has stopped.

        `pending` waits for the watermark. Return what the agent has dropped so far.
        """
        self.store = self.store.blank()
        if "chain" not in state:
            self._take_over(state, shelf, pending)
        elif state["version"] != STATE_VERSION:
            raise ValueError(f"agent state of version {state['version']} cannot be read")
        else:
            self.store.restore(
                [
                    (tuple(group), place, shelf.get(number))
                    for group, place, number in state["chain"]
                ]
            )
            self.store.overwritten = state["overwritten"]
        dropped: Mapping[str, int] = state.get("dropped", {})
        self._looked = bool(dropped)
        self.count = self.store.size
        return dropped

    def _take_over(self, state: Mapping[str, Any], shelf: Shelf, pending: Pending) -> None:
        """Store what operators held, in order, as if it came now."""
        for key, _, _, root, _, _, _, _, fresh, *_ in state["partitions"]:
            group = tuple(key)
            operator = self._fused.open(group, self._site)
            if root:
                operator.restore(shelf.get_all(root))
            operator.expire(state["watermark"])
            held = {(event.order, place): event for place, event in operator.members()}
            held |= {(event.order, place): event for place, event in map(_got(shelf), fresh)}
            for order, place in sorted(held):
                event = held[order, place]
                # Without a store nothing waits for the watermark; what is missing may yet come.
                if event.end > state["watermark"]:
                    pending.add(place, (event,))
                else:
                    self.store.take(group, place, event)


def _end_of(entry: Entry) -> int:
    end: int = entry[1].end
    return end


def _no_partition(*_: Any) -> Any:
    raise AssertionError("a store is one for all groups")


def _got(shelf: Shelf) -> Callable[[Sequence[int]], Entry]:
    return lambda packed: (packed[0], shelf.get(packed[1]))

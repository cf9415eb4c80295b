"""One partition of a pattern agent: its stores, what is found but not final, what was consumed.

Owns choice by `last` and consumption, in order. Must not know pending events or output.
Invariant: occurrences are taken in order, each on what those before it left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from broker.core.agent import WATERMARK_END
from broker.core.event import Event, Order
from broker.core.matching import Program
from broker.core.occurrence import events_of, first_of, follows, order_of
from broker.core.patience import Entry
from broker.core.pattern import Layout
from broker.core.prospects import Reach
from broker.core.selection import Selection
from broker.core.stages.base import start_of
from broker.core.stages.lasting import Foresight
from broker.core.store import Store
from broker.engine.runtime.budget import Budget
from language.tree import Case

PURGING = 2  # that each costs that is held, where events are taken out of it
TURN = 20  # candidates that each costs that waits for its turn, where one is chosen,
RANKED = 48  # and more of them where `first` or `last` chooses


@dataclass(frozen=True, slots=True)
class Discipline:
    """How an agent's occurrences are chosen and consumed.

    `consuming` holds places. `rechosen` is true where taking an event away can change choices
    already made (a context other than unrestricted): then the partition keeps its events and
    goes through them again.
    """

    selection: Selection | None
    consuming: tuple[int, ...]
    rechosen: bool

    @property
    def stepwise(self) -> bool:
        """Whether occurrences wait to be taken in order."""
        return self.selection is not None or bool(self.consuming)


def discipline_of(
    case: Case, layout: Layout, duration_max_ms: int, foresight: Foresight | None = None
) -> Discipline:
    """How the case's occurrences are chosen and consumed."""
    selection = Selection(layout, duration_max_ms, foresight) if layout.last else None
    names = case.consuming if layout.joints else ()  # one event's occurrence is in no later one
    consuming = tuple([layout.places[name] for name in names])
    contextual = any(joint.context != "unrestricted" for joint in layout.joints)
    return Discipline(selection, consuming, bool(consuming) and contextual)


@dataclass(slots=True)
class Partition:
    """The state of one partition. `log` is kept only where choices are made again.

    `counted` is its part of what its agent counts.
    """

    group: tuple[Any, ...]
    stores: list[Store]
    found: list[Any] = field(default_factory=list)
    log: list[tuple[int, Event]] = field(default_factory=list)
    counted: int = 0
    reach: Reach = field(default_factory=list)  # of all that it was given; see prospects
    fresh: list[Entry] = field(default_factory=list)  # what waits, and is not in the stores

    def eldest(self) -> int:
        """When the eldest of what it holds begins."""
        starts = [start_of(item) for store in self.stores for item in store.items]
        starts += map(start_of, self.found)
        starts += [event.start for _, event in self.log]
        return min(starts, default=WATERMARK_END)

    def size(self) -> int:
        """How many occurrences it holds."""
        return sum([len(store.ends) for store in self.stores]) + len(self.found) + len(self.log)


def instant(
    partition: Partition, program: Program, discipline: Discipline, new: list[tuple[int, Event]]
) -> None:
    """Take the events of one instant (all of one end, in order)."""
    if discipline.rechosen:
        partition.log += new
    partition.found += _step(partition, program, new)


def _step(partition: Partition, program: Program, new: list[tuple[int, Event]]) -> list[Any]:
    lists: list[Any] = [[] for _ in range(program.leaf_count)]
    for leaf, event in new:
        lists[leaf].append(event)
    return program.step(lists, partition.stores, partition.group)


def take(
    partition: Partition, program: Program, discipline: Discipline, watermark: int
) -> list[Any]:
    """What of the found occurrences is final and reported now, in order."""
    selection = discipline.selection
    if not discipline.consuming:
        if selection is None:
            found, partition.found = partition.found, []
            return found
        program.layout.budget.spend((TURN + RANKED) * len(partition.found))
        return _take_selected(partition, selection, watermark)
    reported = []
    budget = program.layout.budget
    each = TURN if selection is None else TURN + RANKED
    while partition.found:
        budget.spend(each * len(partition.found))
        first = _first(partition, selection, budget)
        if selection is not None and _undecided(partition, selection, first, watermark):
            break
        order = order_of(first)
        partition.found = [other for other in partition.found if other is not first]
        if selection is not None:
            _forget_losers(partition, order)
        reported.append(first)
        _consume(partition, program, discipline, first)
        if discipline.rechosen:
            _forget_losers(partition, order)
    return reported


def _take_selected(partition: Partition, selection: Selection, watermark: int) -> list[Any]:
    chosen = selection.chosen(partition.found)
    reported = [found for found in chosen if selection.closes_at(found) <= watermark]
    partition.found = [found for found in partition.found if selection.closes_at(found) > watermark]
    return reported


def _first(partition: Partition, selection: Selection | None, budget: Budget) -> Any:
    candidates = partition.found if selection is None else selection.chosen(partition.found)
    return first_of(candidates, budget.tie)


def _undecided(partition: Partition, selection: Selection, first: Any, watermark: int) -> bool:
    """Whether the first in order, or any that may yet come before it, is still open."""
    order = order_of(first)
    return any(
        selection.closes_at(found) > watermark
        for found in partition.found
        if found is first or not follows(found, order)
    )


def _forget_losers(partition: Partition, taken: Order) -> None:
    """Drop what lies before the occurrence taken last: its turn has passed."""
    partition.found = [found for found in partition.found if follows(found, taken)]


def _consume(partition: Partition, program: Program, discipline: Discipline, taken: Any) -> None:
    events = events_of(taken)
    gone = [events[place] for place in discipline.consuming if events[place] is not None]
    ids = {id(event) for event in gone}
    if not ids:
        return
    if discipline.rechosen:
        _go_again(partition, program, ids)
        return
    program.layout.budget.spend(PURGING * sum([len(store.items) for store in partition.stores]))
    for store in partition.stores:
        _purge(store, ids)
    partition.found = [found for found in partition.found if not _holds(found, ids)]


def _holds(occurrence: Any, ids: set[int]) -> bool:
    return any(id(event) in ids for event in events_of(occurrence))


def _purge(store: Store, ids: set[int]) -> None:
    kept = [item for item in store.items if not _holds(item, ids)]
    if len(kept) < len(store.items):
        store.items = kept
        store.ends = [item[0] if item.__class__ is tuple else item.end for item in kept]


def _go_again(partition: Partition, program: Program, gone: set[int]) -> None:
    """Choose anew without what is gone."""
    program.layout.budget.spend(TURN * len(partition.log))
    partition.log = [entry for entry in partition.log if id(entry[1]) not in gone]
    partition.stores = [Store() for _ in partition.stores]
    partition.found = []
    for events in instants(partition.log):
        partition.found += _step(partition, program, events)


def instants(events: list[tuple[int, Event]]) -> list[list[tuple[int, Event]]]:
    """Runs of one end, of (leaf, event) in order."""
    runs: list[list[tuple[int, Event]]] = []
    end: int | None = None
    for entry in events:
        if entry[1].end != end:
            end = entry[1].end
            runs.append([])
        runs[-1].append(entry)
    return runs

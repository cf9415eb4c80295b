"""What a staged agent keeps for a partition, and what its case asks of choices.

Owns the shape of partitions and their snapshots. Must not know how they go on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from broker.engine.event.agent import WATERMARK_END
from broker.engine.event.event import Event
from broker.engine.event.occurrence import Occurrence, events_of, flat, without
from broker.engine.pattern.fused.fusion import Fused, FusedStage, stages_in
from broker.engine.pattern.layout.operands import (
    Count,
    Distinct,
    Gathered,
    Joint,
    Leaf,
    Negation,
    Operand,
    Padded,
    operands,
)
from broker.engine.pattern.layout.pattern import Layout
from broker.engine.pattern.layout.prospects import Reach
from broker.engine.pattern.selection.choice import Manner, Waiting, eldest_of, hold
from broker.engine.pattern.selection.selection import Selection
from broker.engine.pattern.stage.base import Site, Stage
from broker.engine.pattern.times.completion import Completion
from broker.engine.pattern.times.durations import Foresight
from broker.engine.pattern.uncertainty.verdicts import Doubt
from broker.engine.runtime.shelf import Shelf
from language.tree import Case, Subscription, Thinning

# What becomes of an occurrence's events where it consumes: its operators have spent them already;
# they are taken out of all that is held; or all is found again without them.
Consumption = Literal["spent", "taken", "again"]
DERIVED = (Leaf, Joint, Negation, Gathered, Padded, Count)
# Events kept in one partition to find all again, where any of them may matter for ever: the oldest
# go first, counted. To look through more costs more than a tenth of a second, for each result.
LOG_MAX = 10_000
LOG_MIN = 64
FRESH_MAX = 32  # events that wait in one group; with more, its stages forget what they can

Group = tuple[Any, ...]
Entry = tuple[int, Event]  # which atom it is for, and the event


def needs_stages(case: Case, layout: Layout, subscription: Subscription | None) -> bool:
    """Tell whether the case asks for more than joins in order."""
    if case.detect.report != "all" or layout.first or layout.named:
        return True
    if layout.last and case.consuming:  # choosing again asks for all that had their turn
        return True
    if subscription is not None and (
        subscription.at_most is not None
        or subscription.for_ms is not None
        or subscription.until_ms is not None
    ):
        return True
    return any(
        not isinstance(one, Leaf | Joint)
        or (isinstance(one, Joint) and (one.nth is not None or one.context.spends))
        for one in operands(layout.root)
    )


class Partition:
    """The stages of one partition, and what waits for its turn.

    Where an event can tell what may come of it (see prospects), the stages are made with the first
    of which something may.
    """

    __slots__ = (
        "fresh",
        "full",
        "group",
        "log",
        "log_full",
        "open",
        "reach",
        "root",
        "site",
        "size",
        "waiting",
    )

    root: Stage | Fused
    site: Site

    def __init__(self, group: tuple[Any, ...], reach: Reach, waiting: Waiting) -> None:
        self.group = group
        self.reach = reach  # of what it was given so far
        self.fresh: list[Entry] = []  # what the stages were not given yet
        self.full = FRESH_MAX  # with so many it is asked which of them still matter
        self.open = False  # whether there are stages
        self.waiting = waiting
        self.log: list[tuple[int, Event]] = []  # kept where events are consumed
        self.log_full = LOG_MIN  # with so many it is asked which of them still matter
        self.size = 0

    def count(self) -> int:
        """Set `size` to what is held; by how much that is more than before."""
        held = self.root.held() + len(self.log) + len(self.site.named)
        if self.waiting.found or self.waiting.groups.count:
            held += self.waiting.count()
        before, self.size = self.size, held
        return held - before

    def eldest(self) -> int:
        """Return when the eldest begins of what occurrences to come may be made of.

        What is logged is in none of the operators' stores where a choice passed it by, and may be
        chosen once that choice is undone.
        """
        starts: list[int] = [event.start for _, event in self.log]
        return min([*starts, self.root.eldest(), eldest_of(self.waiting)])

    def idle(self, watermark: int, per_ms: int) -> bool:
        """Tell whether a new one would do as well; `per_ms` is that of `at most`."""
        waiting = self.waiting
        if self.size or self.fresh or waiting.count() or waiting.answered or waiting.decided:
            return False
        if waiting.suppressed or (waiting.reported and waiting.reported[-1] + per_ms > watermark):
            return False
        return not self.open or self.root.idle()

    def forget(self, oldest: int) -> None:
        """Forget logged events that end before the time, and what was chosen of them."""
        del self.log[: bisect_left(self.log, oldest, key=_end)]
        if self.site.memory is not None:
            self.site.memory.forget(oldest)

    def forget_unheld(self) -> None:
        """Forget logged events that end before anything that is held begins."""
        if len(self.log) < self.log_full:
            return
        self.forget(min(eldest_of(self.waiting), self.root.origin()))
        self.log_full = max(LOG_MIN, 2 * len(self.log))

    def marks(self) -> list[int]:
        """Return with how much it is asked next what still matters; what is held shows it."""
        return [self.full, self.log_full, *(each.asked_max for each in self._fused())]

    def mark(self, marks: list[int]) -> None:
        """Take these up again."""
        # At a limit, how much is held decides what goes: so a restart looks through it no sooner.
        self.full, self.log_full, *inner = marks
        for each, asked_max in zip(self._fused(), inner, strict=False):
            each.asked_max = asked_max

    def _fused(self) -> list[FusedStage]:
        if not self.open or not isinstance(self.root, Fused):
            return []
        return list(stages_in(self.root))

    def take_out(self, gone: set[int]) -> list[Occurrence]:
        """Take consumed events out of all that is held; what is left of what was found."""
        self.root.forget(gone)
        return without(self.waiting.found, gone)


class OpenTimes:
    """Hold of each group what it holds back, and when what it holds begins, where that matters.

    Groups that have `moved` are asked anew when that is looked at next.
    """

    __slots__ = ("eldest", "holds", "moved")

    def __init__(self) -> None:
        self.holds: dict[Group, int] = {}
        self.eldest: dict[Group, int] = {}
        self.moved: dict[Group, Partition] = {}

    def look(self, *, begun: bool) -> None:
        """Ask those that have moved; `begun`: also when what they hold begins."""
        for key, partition in self.moved.items():
            self.holds[key] = min(partition.root.hold(), hold(partition.waiting))
            if self.holds[key] >= WATERMARK_END:
                del self.holds[key]
            if begun:
                self.eldest[key] = partition.eldest()
        self.moved.clear()

    def drop(self, key: Group) -> None:
        """Forget a group that is let go."""
        for each in (self.holds, self.eldest, self.moved):
            each.pop(key, None)


def beginning(
    events: Sequence[Event],
    partitions: Mapping[Group, Partition],
    key_of: Callable[[Event], Any] | None,
) -> list[Event]:
    """Return those with which a partition may begin; all others say nothing of a silence."""
    earlier = []
    for event in events:
        partition = None if key_of is None else partitions.get(key_of(event))
        begin = None if partition is None else partition.site.begin
        if begin is None or event.start < begin:
            earlier.append(event)
    return earlier


def _end(entry: tuple[int, Event]) -> int:
    end: int = entry[1].end
    return end


def manner_of(
    case: Case,
    layout: Layout,
    duration_max_ms: int,
    at_most: Thinning | None,
    foresight: Foresight | None = None,
    *,
    doubt: Doubt | None = None,
    as_decided: bool = False,
) -> Manner:
    """Return how the case's occurrences are chosen and consumed."""
    selects = layout.last or layout.first
    return Manner(
        Selection(layout, duration_max_ms, foresight, doubt) if selects else None,
        tuple([layout.places[name] for name in case.consuming]),
        case.detect.report,
        None if at_most is None else (at_most.count, at_most.per_ms),
        Completion(layout.root, doubt),
        case.detect.maybe_drop,
        as_decided,
        layout.budget,
    )


def waiting_state(waiting: Waiting) -> list[Any]:
    """Return what waits, as occurrences and plain values in lists."""
    return [
        waiting.all_found(),
        [] if waiting.taken is None else [waiting.taken],
        list(waiting.answered.values()),
        [one for _, one in waiting.decided.values()],
        list(waiting.reported),
        waiting.suppressed,
    ]


def packed(partition: Partition, shelf: Shelf) -> list[Any]:
    """A partition as plain data."""
    memory = partition.site.memory if partition.open else None
    return [
        list(partition.group),
        partition.site.begin if partition.open else None,
        shelf.put_all(partition.site.named) if partition.open else [],
        shelf.put_all(partition.root.state()) if partition.open else [],
        shelf.put_all(waiting_state(partition.waiting)),
        [[at, shelf.put(event)] for at, event in partition.log],
        [] if memory is None else shelf.put_all(memory.state()),
        partition.reach,
        [[at, shelf.put(event)] for at, event in partition.fresh],
        partition.marks(),
    ]


def unpack(partition: Partition, data: list[Any], shelf: Shelf, by: Selection | None) -> None:
    """Put such data, of the same group, into a new partition whose occurrences are chosen so."""
    _, begin, named, root, waiting, log, *later = data
    if partition.open:
        partition.site.begin = begin
        partition.site.name(shelf.get_all(named))
        memory = partition.site.memory
        if memory is not None and later and later[0]:
            memory.restore(shelf.get_all(later[0]))
        if root:
            partition.root.restore(shelf.get_all(root))
    restore_waiting(partition.waiting, shelf.get_all(waiting), by)
    partition.log = [(at, shelf.get(n)) for at, n in log]
    if len(later) > 1 and len(later[1]) == len(partition.reach):
        partition.reach = list(later[1])  # else it stands for any
    partition.fresh = [(at, shelf.get(n)) for at, n in later[2]] if len(later) > 2 else []
    if len(later) > 3:
        partition.mark(later[3])


def restore_waiting(waiting: Waiting, state: list[Any], selection: Selection | None) -> None:
    """Take that up again."""
    found, taken, answered, decided, reported, suppressed = state
    waiting.found = found
    waiting.taken_before = taken[0] if taken else None
    waiting.answered = {id(event): event for event in answered}
    waiting.suppressed = suppressed
    waiting.reported.extend(reported)
    if selection is not None:
        for one in decided:
            selection.decide(one, waiting.decided)


def reports_at_once(layout: Layout, manner: Manner, *, either: bool = False) -> bool:
    """Tell whether a pattern's meaning needs no order of time, so that it waits for nothing.

    `either`: `or` needs none, whatever its context.
    """
    return not manner.in_turn and all(
        isinstance(one, Leaf)
        or (
            isinstance(one, Joint)
            and (not one.context.chooses or (either and one.operator == "or"))
            and one.nth is None
            and not one.next
        )
        for one in operands(layout.root)
    )


def consumption_of(layout: Layout, manner: Manner) -> Consumption:
    """Return what must be done when an occurrence of the case consumes."""
    parts = list(operands(layout.root))
    if _spends(layout, parts):
        return "spent"
    plain = all(
        isinstance(one, Leaf | Negation)
        or (isinstance(one, Joint) and not one.context.chooses and one.nth is None)
        for one in parts
    )
    return "taken" if plain and manner.selection is None else "again"


def _spends(layout: Layout, parts: list[Operand]) -> bool:
    """Tell whether what the root passes on is spent in every operator beneath that chooses.

    Then no later occurrence has any of it, nor would choices be others without it. It is spent by
    operator: so no event may be for two of them.
    """
    root = layout.root
    if not isinstance(root, Joint) or root.operator == "or" or not root.context.spends:
        return False
    types = [leaf.event_type for leaf in layout.leaves]
    return len(set(types)) == len(types) and all(
        isinstance(one, Leaf | Negation)
        or (
            isinstance(one, Joint)
            and one.nth is None
            and (one.context.spends or not one.context.chooses)
        )
        for one in parts
    )


def log_keep_ms(layout: Layout) -> int | None:
    """Return how long before the watermark a consumed pattern needs events; None: see `derived`."""
    within_ms = layout.root.within_ms
    parts = list(operands(layout.root))
    if within_ms is None or not all(isinstance(one, (*DERIVED, Distinct)) for one in parts):
        return None
    if any(_counts_on(one) for one in parts):
        return None
    return within_ms + sum([one.window_ms for one in parts if isinstance(one, Distinct)])


def derived(layout: Layout) -> bool:
    """Tell whether what stages hold follows from the events of what they hold, and no others."""
    return not any(not isinstance(one, DERIVED) or _counts_on(one) for one in operands(layout.root))


def _counts_on(operand: Operand) -> bool:
    """Tell whether what it makes of some events depends on how many there were before them."""
    return isinstance(operand, Count) and operand.disjoint


def without_lists(layout: Layout, occurrence: Occurrence) -> list[Any]:
    """Return what an occurrence binds, without what only fills lists."""
    members = enumerate(events_of(occurrence))
    return flat([member for place, member in members if place not in layout.gathered])

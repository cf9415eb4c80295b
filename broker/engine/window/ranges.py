"""Windows over the events of groups that come and go one by one: `range R`, and hops that count in
order.

Owns when a group's events are let go and when a group is reported: at each event for `range R`, at
each tick for such `every T range R` as are not run in panes. Must not know what aggregates keep nor
what a group becomes. Invariant: the events inside are those that the window has, and no others,
whenever a group is reported.

Each event is added once and removed once, as sums, counts and ordered values have an inverse, and
extremes a monotone deque. Two stacks of partial results (DABA Lite, see panes.py) need no inverse,
but three mergers and a partial result an event, where an addition and a removal do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Detected
from broker.engine.runtime.shelf import Shelf
from broker.engine.window.aggregates import Ascending, MonotoneDeque
from broker.engine.window.assigners import Grid
from broker.engine.window.buffer import Entry, WindowStore
from broker.engine.window.code import GROUPS_OVERFLOW, Shape, Slide
from broker.engine.window.constituents import IDS_MAX, Constituents, Trail
from broker.engine.window.emit import WindowOutcome
from broker.engine.window.panes import PANES_MANY

SWEEP_MS_MIN = 1_000  # silent groups are swept at most so often

_order = attrgetter("order")


def is_stepped(shape: Shape, grid: Grid) -> bool:
    """Return True if windows of a range are better moved from tick to tick than merged of panes.

    What grows with its events costs as much to merge as to make; and what is `distinct` in a window
    depends on where it begins.
    """
    return shape.distinct or (shape.grows and grid.panes_each > PANES_MANY)


class Scattered:
    """The events that count, in order, once for each leaf, where they begin to count in any order.

    So they do with `distinct`: when the last event before it with the same keys has gone, an event
    begins to count in the midst of others.
    """

    __slots__ = ("_events", "_gone")

    def __init__(self) -> None:
        self._events: list[Any] = []
        self._gone = 0  # of the events, those at the beginning that have left

    def push(self, event: Any) -> None:
        """Insert an event in its place."""
        events = self._events
        if len(events) == self._gone or events[-1].end < event.end:
            events.append(event)
        else:
            events.insert(bisect_right(events, event.order, self._gone, key=_order), event)

    def drop(self, count: int) -> None:
        """Let go of the oldest; places are given back when they are half of the list."""
        self._gone += count
        if 2 * self._gone > len(self._events):
            del self._events[: self._gone]
            self._gone = 0

    def newest_end(self) -> int:
        """Return the end of the newest event that counts."""
        end: int = self._events[-1].end
        return end

    def constituents(self, _: int) -> Constituents:
        """Return the ids of the events that count."""
        return Constituents([self._events[self._gone : self._gone + IDS_MAX]])


class Group:
    """The events of one group inside of a window that moves (see emit.Summary).

    `alike` has, for each `distinct` leaf, the events inside by their keys, oldest first: the first
    counts, so the keyed set is the accumulator's and not a filter before it.
    """

    __slots__ = (
        "alike", "counts", "end", "inside", "kept", "keys", "maybes", "members", "start", "starts",
        "uncertainties", "uncertainty",
    )  # fmt: skip

    lacking: tuple[str, ...] = ()  # it has its events, so that any aggregate can be made of them

    def __init__(self, shape: Shape) -> None:
        self.keys = shape.distinct_keys
        self.inside: deque[Entry] = deque()
        self.members = Scattered() if shape.distinct else Trail()
        self.counts = [0 for _ in shape.leaves]
        self.kept = shape.new_sliding()
        self.maybes = 0
        self.alike: list[dict[Any, deque[Any]]] = []
        # Points start where they end, in order; only others are worth comparing. Likewise for ε.
        self.starts: Ascending | MonotoneDeque
        self.uncertainties: Ascending | MonotoneDeque
        if shape.distinct:
            self.alike = [{} for _ in shape.leaves]
            self.starts, self.uncertainties = Ascending(), Ascending(greatest=True)
        else:
            self.starts = MonotoneDeque(greatest=False)
            self.uncertainties = MonotoneDeque(greatest=True)
        self.start = self.end = self.uncertainty = 0

    @property
    def maybe(self) -> bool:
        """Return True if an event that counts is of less than full certainty."""
        return self.maybes > 0

    def add(self, entry: Entry, adds: Sequence[Slide]) -> None:
        """Take in the newest event."""
        event, leaves, _ = entry
        self.inside.append(entry)
        for leaf in leaves:
            key_of = self.keys[leaf]
            key = None if key_of is None else key_of(event)
            if key is None:
                self._count(leaf, event, adds)
            elif (alike := self.alike[leaf].get(key)) is None:
                self.alike[leaf][key] = deque((event,))
                self._count(leaf, event, adds)
            else:
                alike.append(event)

    def remove_before(self, end: int, removes: Sequence[Slide], adds: Sequence[Slide]) -> int:
        """Let go of the events that end before a time; return how many they were."""
        inside = self.inside
        count = 0
        while inside and inside[0][0].end < end:
            event, leaves, _ = inside.popleft()
            count += 1
            for leaf in leaves:
                # What goes is the oldest inside, and so the oldest that counts.
                self._discount(leaf, event, removes)
                key_of = self.keys[leaf]
                key = None if key_of is None else key_of(event)
                if key is None:
                    continue
                alike = self.alike[leaf][key]
                alike.popleft()
                if alike:
                    self._count(leaf, alike[0], adds)
                else:
                    del self.alike[leaf][key]
        return count

    def constituents(self) -> Constituents:
        """Return the ids of the events that count."""
        return self.members.constituents(sum(self.counts))

    def summarise(self) -> None:
        """Set the span and the rest that a Summary tells."""
        oldest = self.inside[0][0].start
        least = self.starts.result()
        self.start = oldest if least is None else min(oldest, least)
        self.end = self.members.newest_end()
        self.uncertainty = self.uncertainties.result() or 0

    def _count(self, leaf: int, event: Any, adds: Sequence[Slide]) -> None:
        self.members.push(event)
        self.counts[leaf] += 1
        adds[leaf](self.kept, event)
        if event.start != event.end:
            self.starts.add(event.start)
        if event.uncertainty:
            self.uncertainties.add(event.uncertainty)
        if not event.primitive and event.certainty != "yes":
            self.maybes += 1

    def _discount(self, leaf: int, event: Any, removes: Sequence[Slide]) -> None:
        self.members.drop(1)
        self.counts[leaf] -= 1
        removes[leaf](self.kept, event)
        if event.start != event.end:
            self.starts.remove(event.start)
        if event.uncertainty:
            self.uncertainties.remove(event.uncertainty)
        if not event.primitive and event.certainty != "yes":
            self.maybes -= 1


class MovingGroups:
    """The groups of a case, and the events inside of each."""

    def __init__(self, store: WindowStore) -> None:
        self._store = store
        self._shape = store.shape
        self._adds = store.shape.slides("add")
        self._removes = store.shape.slides("remove")
        self.by_key: dict[Any, Group] = {}

    def enter(self, entry: Entry, oldest: int) -> Group | None:
        """Add the newest event to its group, which lets go of what ends before `oldest`.

        None (and counted) where the limit of groups is reached.
        """
        group = self.by_key.get(entry[2])
        if group is None:
            if len(self.by_key) >= self._store.limits.groups_max:
                self._store.drops[GROUPS_OVERFLOW] += 1
                return None
            group = self.by_key[entry[2]] = Group(self._shape)
        group.add(entry, self._adds)
        self._store.inside += 1 - group.remove_before(oldest, self._removes, self._adds)
        return group

    def leave(self, oldest: int) -> None:
        """Let all groups go of what ends before a time; empty groups go too."""
        for key, group in list(self.by_key.items()):
            self._store.inside -= group.remove_before(oldest, self._removes, self._adds)
            if not group.inside:
                del self.by_key[key]

    def arrange(self) -> None:
        """Put groups in the order of their oldest events; each is reported by itself."""
        rows = sorted(self.by_key.items(), key=lambda row: row[1].inside[0][0].order)
        self.by_key = dict(rows)

    def plain(self, shelf: Shelf) -> Any:
        """Return plain data; what aggregates keep is made again from the events inside."""
        return [self._store.packed(group.inside, shelf) for group in self.by_key.values()]

    def renew(self, data: Any, shelf: Shelf) -> None:
        """Take up what `plain` gave."""
        self.by_key = {}
        for inside in data:
            for entry in self._store.unpacked(inside, shelf):
                group = self.by_key.get(entry[2])
                if group is None:
                    group = self.by_key[entry[2]] = Group(self._shape)
                group.add(entry, self._adds)
                self._store.inside += 1


class Sliding:
    """Windows `range R`: one at each event of a group, reaching R back from its end."""

    def __init__(self, store: WindowStore, outcome: WindowOutcome, range_ms: int) -> None:
        self.store = store
        self._outcome = outcome
        self._range_ms = range_ms
        self._groups = MovingGroups(store)
        self._swept = WATERMARK_NONE

    def take(self, entry: Entry, made: list[Detected]) -> None:
        """Implement buffer.OrderedKind."""
        event, _, key = entry
        end = event.end
        group = self._groups.enter(entry, end - self._range_ms)
        if group is not None and self.store.shape.stands(group.counts):
            group.summarise()
            self._outcome.add((event, end - self._range_ms, end + 1), key, group, made)

    def settle(self, watermark: int, made: list[Detected]) -> None:  # noqa: ARG002
        """Let go of what no window still to come reaches back to, in silent groups too.

        It reports nothing: each window closes with an event.
        """
        if watermark - self._swept >= max(self._range_ms, SWEEP_MS_MIN):
            self._sweep(watermark)

    def _sweep(self, watermark: int) -> None:
        self._swept = watermark
        self._groups.leave(watermark + 1 - self._range_ms)

    def due(self) -> int | None:
        """Implement buffer.OrderedKind."""
        return None

    def least_newest_end(self, least: int) -> int:
        """Implement buffer.OrderedKind. With `distinct` the closing event itself may not count."""
        return least - self._range_ms if self.store.shape.distinct else least

    def least_end(self, least: int) -> int:
        """Implement buffer.OrderedKind."""
        return least - self._range_ms

    def fold(self) -> None:
        """Implement buffer.OrderedKind: nothing is pending."""

    def tidy(self, watermark: int) -> None:
        """Implement buffer.OrderedKind."""
        self._sweep(watermark)
        self._groups.arrange()

    def plain(self, shelf: Shelf) -> Any:
        """Implement buffer.OrderedKind."""
        return [self._swept, self._groups.plain(shelf)]

    def renew(self, data: Any, shelf: Shelf) -> None:
        """Implement buffer.OrderedKind."""
        self._swept = data[0]
        self._groups.renew(data[1], shelf)


class Stepped:
    """Windows `every T range R` one after the other, each from what is inside at its tick."""

    def __init__(self, store: WindowStore, outcome: WindowOutcome, grid: Grid) -> None:
        self.store = store
        self._outcome = outcome
        self._grid = grid
        self._groups = MovingGroups(store)
        self._next: int | None = None  # the next window that may have an event

    def take(self, entry: Entry, made: list[Detected]) -> None:
        """Implement buffer.OrderedKind."""
        first, last = self._grid.windows_of(self._grid.pane_of(entry[0].end))
        if first > last:
            return  # it lies between windows
        self._close_before(first, made)
        if self._next is None or first > self._next:
            self._next = first
        self._groups.enter(entry, self._grid.opens_at(self._next))

    def settle(self, watermark: int, made: list[Detected]) -> None:
        """Implement buffer.OrderedKind."""
        self._close_before(self._grid.closed_by(watermark) + 1, made)

    def due(self) -> int | None:
        """Implement buffer.OrderedKind."""
        return None if self._next is None else self._grid.closes_at(self._next)

    def least_newest_end(self, least: int) -> int:
        """Implement buffer.OrderedKind."""
        return self.least_end(least)

    def least_end(self, least: int) -> int:
        """Implement buffer.OrderedKind."""
        return least if self._next is None else min(least, self._grid.opens_at(self._next))

    def fold(self) -> None:
        """Implement buffer.OrderedKind: nothing is pending."""

    def tidy(self, watermark: int) -> None:
        """Implement buffer.OrderedKind: each tick does."""

    def plain(self, shelf: Shelf) -> Any:
        """Implement buffer.OrderedKind."""
        return [self._next, self._groups.plain(shelf)]

    def renew(self, data: Any, shelf: Shelf) -> None:
        """Implement buffer.OrderedKind."""
        self._next = data[0]
        self._groups.renew(data[1], shelf)

    def _close_before(self, window: int, made: list[Detected]) -> None:
        """Report the windows before one, as long as anything is inside."""
        groups, stands = self._groups.by_key, self.store.shape.stands
        while self._next is not None and self._next < window:
            self._outcome.budget.spend(len(groups))
            self._groups.leave(self._grid.opens_at(self._next))
            standing = []
            for key, group in groups.items():
                if stands(group.counts):
                    group.summarise()
                    standing.append((key, group))
            made += self._outcome.events(self._grid.frame_of(self._next), standing)
            # Silence of a day is no day of empty windows: the next event names the next one.
            self._next = self._next + 1 if groups else None

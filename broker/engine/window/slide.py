"""Windows over the events of groups that come and go one by one.

Owns when a group's events are let go and when it is told of: at each event for `range R`, at each
tick for such `every T range R` as are not run in panes. Must not know what aggregates keep nor what
a group becomes. Invariant: the events inside are those that the window has, and no others, whenever
a group is told of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Detected, Event
from broker.engine.runtime.shelf import Shelf
from broker.engine.window.days import DayGrid
from broker.engine.window.grid import Grid
from broker.engine.window.group import DistinctGroup, Group, group_class
from broker.engine.window.merge import PANES_MANY
from broker.engine.window.ordered import OrderedWindows, packed
from broker.engine.window.outcome import WindowOutcome
from broker.engine.window.shape import GROUPS_OVERFLOW, Shape, WindowLimits
from broker.engine.window.wait import Entry

SWEEP_MS_MIN = 1_000  # silent groups are swept at most so often


def steps(shape: Shape, grid: Grid | DayGrid) -> bool:
    """Whether windows of a range are better moved from tick to tick than merged of panes.

    What grows with its events costs as much to merge as to make; and what is `distinct` in a window
    depends on where it begins.
    """
    return shape.distinct or (shape.grows and grid.panes_each > PANES_MANY)


class MovingWindows(OrderedWindows):
    """The groups, and the events inside of each."""

    def __init__(
        self,
        shape: Shape,
        outcome: WindowOutcome,
        limits: WindowLimits,
        classes: Mapping[str, type[Event]],
    ) -> None:
        super().__init__(shape, outcome, limits, classes)
        self.groups: dict[Any, Group | DistinctGroup] = {}
        self.adds = shape.slides("add")
        self.removes = shape.slides("remove")
        self._group = group_class(shape)

    def enter(self, entry: Entry, oldest: int) -> Group | DistinctGroup | None:
        """Add the newest event to its group, which lets go of what ends before `oldest`.

        None (and counted) where the limit of groups is reached.
        """
        group = self.groups.get(entry[2])
        if group is None:
            if len(self.groups) >= self.limits.groups_max:
                self.drops[GROUPS_OVERFLOW] += 1
                return None
            group = self.groups[entry[2]] = self._group(self.shape)
        group.add(entry, self.adds)
        self.inside += 1 - group.remove_before(oldest, self.removes, self.adds)
        return group

    def leave(self, oldest: int) -> None:
        """Let all groups go of what ends before a time; empty ones go too."""
        for key, group in list(self.groups.items()):
            self.inside -= group.remove_before(oldest, self.removes, self.adds)
            if not group.inside:
                del self.groups[key]

    def plain(self, shelf: Shelf) -> Any:
        """What aggregates keep is made anew from the events inside."""
        return [packed(group.inside, shelf) for group in self.groups.values()]

    def renew(self, data: Any, shelf: Shelf) -> None:
        """See OrderedWindows."""
        self.groups = {}
        for inside in data:
            for entry in self.unpacked(inside, shelf):
                group = self.groups.get(entry[2])
                if group is None:
                    group = self.groups[entry[2]] = self._group(self.shape)
                group.add(entry, self.adds)
                self.inside += 1


class SlidingWindows(MovingWindows):
    """Windows `range R`: one at each event of a group, reaching R back from its end."""

    def __init__(
        self,
        shape: Shape,
        outcome: WindowOutcome,
        range_ms: int,
        limits: WindowLimits,
        classes: Mapping[str, type[Event]],
    ) -> None:
        super().__init__(shape, outcome, limits, classes)
        self._range_ms = range_ms
        self._swept = WATERMARK_NONE

    def take(self, entry: Entry, made: list[Detected]) -> None:
        """See OrderedWindows."""
        event, _, key = entry
        end = event.end
        group = self.enter(entry, end - self._range_ms)
        if group is not None and self.shape.stands(group.counts):
            group.summarise()
            self.outcome.add((event, end - self._range_ms, end + 1), key, group, made)

    def settle(self, made: list[Detected]) -> None:  # noqa: ARG002  # it decides nothing
        """Let go of what no window still to come reaches back to, in silent groups too."""
        if self.watermark - self._swept >= max(self._range_ms, SWEEP_MS_MIN):
            self._swept = self.watermark
            self.leave(self.watermark + 1 - self._range_ms)

    def due(self) -> int | None:
        """See OrderedWindows: each window closes with an event."""
        return None

    def plain(self, shelf: Shelf) -> Any:
        """See OrderedWindows."""
        return [self._swept, super().plain(shelf)]

    def renew(self, data: Any, shelf: Shelf) -> None:
        """See OrderedWindows."""
        self._swept = data[0]
        super().renew(data[1], shelf)

    def least_newest_end(self, watermark: int) -> int:
        """See OrderedWindows. With `distinct` the closing event itself may not count."""
        least = super().least_newest_end(watermark)
        return least - self._range_ms if self.shape.distinct else least

    def least_end(self, watermark: int) -> int:
        """See OrderedWindows."""
        return super().least_newest_end(watermark) - self._range_ms


class SteppedWindows(MovingWindows):
    """Windows `every T range R` one after the other, each from what is inside at its tick."""

    def __init__(
        self,
        shape: Shape,
        outcome: WindowOutcome,
        grid: Grid | DayGrid,
        limits: WindowLimits,
        classes: Mapping[str, type[Event]],
    ) -> None:
        super().__init__(shape, outcome, limits, classes)
        self._grid = grid
        self._next: int | None = None  # the next window that may have an event

    def take(self, entry: Entry, made: list[Detected]) -> None:
        """See OrderedWindows."""
        end = entry[0].end
        first, last = self._grid.windows_of(self._grid.pane_of(end))
        if first > last:
            return  # it lies between windows
        self._close_before(first, made)
        if self._next is None or first > self._next:
            self._next = first
        self.enter(entry, self._grid.opens_at(self._next))

    def settle(self, made: list[Detected]) -> None:
        """See OrderedWindows."""
        self._close_before(self._grid.closed_by(self.watermark) + 1, made)

    def due(self) -> int | None:
        """See OrderedWindows."""
        return None if self._next is None else self._grid.closes_at(self._next)

    def least_end(self, watermark: int) -> int:
        """See OrderedWindows."""
        least = super().least_newest_end(watermark)
        return least if self._next is None else min(least, self._grid.opens_at(self._next))

    def least_newest_end(self, watermark: int) -> int:
        """See OrderedWindows."""
        return self.least_end(watermark)

    def plain(self, shelf: Shelf) -> Any:
        """See OrderedWindows."""
        return [self._next, super().plain(shelf)]

    def renew(self, data: Any, shelf: Shelf) -> None:
        """See OrderedWindows."""
        self._next = data[0]
        super().renew(data[1], shelf)

    def _close_before(self, window: int, made: list[Detected]) -> None:
        """Tell of the windows before one, as long as anything is inside."""
        while self._next is not None and self._next < window:
            self.outcome.budget.spend(len(self.groups))
            self.leave(self._grid.opens_at(self._next))
            standing = []
            for key, group in self.groups.items():
                if self.shape.stands(group.counts):
                    group.summarise()
                    standing.append((key, group))
            made += self.outcome.events(self._grid.frame_of(self._next), standing)
            self._next = self._next + 1 if self.groups else None

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

from collections import deque
from collections.abc import Sequence
from typing import Any

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Detected
from broker.engine.runtime.shelf import Shelf
from broker.engine.window.aggregates import Ascending
from broker.engine.window.assigners import Grid
from broker.engine.window.buffer import Entry, OrderedWindows, WindowTerms, packed
from broker.engine.window.code import GROUPS_OVERFLOW, Shape, Slide
from broker.engine.window.constituents import Constituents, Members
from broker.engine.window.panes import PANES_MANY

SWEEP_MS_MIN = 1_000  # silent groups are swept at most so often


def is_stepped(shape: Shape, grid: Grid) -> bool:
    """Return True if windows of a range are better moved from tick to tick than merged of panes.

    What grows with its events costs as much to merge as to make; and what is `distinct` in a window
    depends on where it begins.
    """
    return shape.distinct or (shape.grows and grid.panes_each > PANES_MANY)


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
        self.members = Members()
        self.counts = [0 for _ in shape.leaves]
        self.kept = shape.new_sliding()
        self.maybes = 0
        self.alike: list[dict[Any, deque[Any]]] = []
        if shape.distinct:
            self.alike = [{} for _ in shape.leaves]
        # Points start where they end, in order; only others are worth comparing. Likewise for ε.
        self.starts, self.uncertainties = Ascending(), Ascending(greatest=True)
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

    @property
    def events(self) -> list[Any]:
        """Return the first events that count."""
        return self.members.first_events()

    def constituents(self) -> Constituents:
        """Return the ids of the events that count; later changes do not touch them."""
        return Constituents(self.events)

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
        self.members.drop()
        self.counts[leaf] -= 1
        removes[leaf](self.kept, event)
        if event.start != event.end:
            self.starts.remove(event.start)
        if event.uncertainty:
            self.uncertainties.remove(event.uncertainty)
        if not event.primitive and event.certainty != "yes":
            self.maybes -= 1


class Moving(OrderedWindows):
    """The groups of a case, and the events inside of each."""

    def __init__(self, terms: WindowTerms) -> None:
        super().__init__(terms)
        self._adds, self._removes = map(terms.shape.slides, ("add", "remove"))
        self._groups: dict[Any, Group] = {}
        # The next window that may have an event; of `range` when silent groups were looked at.
        self._at: int | None = None

    def _come(self, entry: Entry, oldest: int) -> Group | None:
        """Add the newest event to its group, which lets go of what ends before `oldest`.

        None (and counted) where the limit of groups is reached.
        """
        group = self._groups.get(entry[2])
        if group is None:
            if len(self._groups) >= self._limits.groups_max:
                self.drops[GROUPS_OVERFLOW] += 1
                return None
            group = self._groups[entry[2]] = Group(self._shape)
        group.add(entry, self._adds)
        self._inside += 1 - group.remove_before(oldest, self._removes, self._adds)
        return group

    def _leave(self, oldest: int) -> None:
        """Let all groups go of what ends before a time; empty groups go too."""
        for key, group in list(self._groups.items()):
            self._inside -= group.remove_before(oldest, self._removes, self._adds)
            if not group.inside:
                del self._groups[key]

    def _plain(self, shelf: Shelf) -> Any:
        """Return the events inside, of which what aggregates keep is made again."""
        return [self._at, [packed(group.inside, shelf) for group in self._groups.values()]]

    def _renew(self, data: Any, shelf: Shelf) -> None:
        self._at, groups = data
        self._groups = {}
        for inside in groups:
            for entry in self._unpacked(inside, shelf):
                group = self._groups.get(entry[2])
                if group is None:
                    group = self._groups[entry[2]] = Group(self._shape)
                group.add(entry, self._adds)
                self._inside += 1


class Sliding(Moving):
    """Windows `range R`: one at each event of a group, reaching R back from its end."""

    def __init__(self, terms: WindowTerms, range_ms: int) -> None:
        super().__init__(terms)
        self._range_ms = range_ms
        self._at = WATERMARK_NONE

    def _take(self, entry: Entry, made: list[Detected]) -> None:
        event, _, key = entry
        end = event.end
        group = self._come(entry, end - self._range_ms)
        if group is not None and self._shape.stands(group.counts):
            group.summarise()
            frame = event, end - self._range_ms, end + 1
            made += self._outcome.each([(frame, key, group)])

    def _settle(self, watermark: int, made: list[Detected]) -> None:  # noqa: ARG002
        """Let go of what no window still to come reaches back to, in silent groups too.

        It reports nothing: each window closes with an event.
        """
        if self._at is None or watermark - self._at >= max(self._range_ms, SWEEP_MS_MIN):
            self._sweep(watermark)

    def _sweep(self, watermark: int) -> None:
        self._at = watermark
        self._leave(watermark + 1 - self._range_ms)

    def _newest_from(self, least: int) -> int:
        """With `distinct` the closing event itself may not count."""
        return least - self._range_ms if self._shape.distinct else least

    def _ends_from(self, least: int) -> int:
        return least - self._range_ms

    def tidy(self) -> None:
        """Look at silent groups, and put all in the order of their oldest events."""
        self._sweep(self._watermark)
        rows = sorted(self._groups.items(), key=lambda row: row[1].inside[0][0].order)
        self._groups = dict(rows)  # each is reported by itself


class Stepped(Moving):
    """Windows `every T range R` one after the other, each from what is inside at its tick."""

    def __init__(self, terms: WindowTerms, grid: Grid) -> None:
        super().__init__(terms)
        self._grid = grid

    def _take(self, entry: Entry, made: list[Detected]) -> None:
        first, last = self._grid.windows_of(self._grid.pane_of(entry[0].end))
        if first > last:
            return  # it lies between windows
        self._close_before(first, made)
        if self._at is None or first > self._at:
            self._at = first
        self._come(entry, self._grid.opens_at(self._at))

    def _settle(self, watermark: int, made: list[Detected]) -> None:
        self._close_before(self._grid.closed_by(watermark) + 1, made)

    def _due(self) -> int | None:
        return None if self._at is None else self._grid.closes_at(self._at)

    def _ends_from(self, least: int) -> int:
        return least if self._at is None else min(least, self._grid.opens_at(self._at))

    _newest_from = _ends_from

    def _close_before(self, window: int, made: list[Detected]) -> None:
        """Report the windows before one, as long as anything is inside."""
        groups, stands = self._groups, self._shape.stands
        while self._at is not None and self._at < window:
            self._outcome.budget.spend(len(groups))
            self._leave(self._grid.opens_at(self._at))
            standing = []
            for key, group in groups.items():
                if stands(group.counts):
                    group.summarise()
                    standing.append((key, group))
            made += self._outcome.events(self._grid.frame_of(self._at), standing)
            # Silence of a day is no day of empty windows: the next event names the next one.
            self._at = self._at + 1 if groups else None

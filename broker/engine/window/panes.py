"""Windows `every T` and `every T range R`: panes that no window's edge cuts.

Owns which pane an event falls into and which windows a pane belongs to, and what is open. Must not
know what is kept of a pane's events nor what a window's group becomes. Invariant: a window's
events are those of its panes, whatever the order in which they came.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from broker.engine import native
from broker.engine.event.agent import WATERMARK_NONE, LeafEvents
from broker.engine.event.event import Detected
from broker.engine.window.apart import Apart, PaneRows, plain_groups
from broker.engine.window.days import DayGrid
from broker.engine.window.grid import Grid
from broker.engine.window.ids import IDS_MAX, NEVER
from broker.engine.window.merge import Groups, merger_of
from broker.engine.window.outcome import WindowOutcome
from broker.engine.window.partial import PENDING_MAX, Partial, key_of
from broker.engine.window.shape import (
    CLOSED,
    EVENTS_OVERFLOW,
    GROUPS_OVERFLOW,
    IDS_CUT,
    Shape,
    WindowLimits,
)
from broker.engine.window.taking import compile_put, compile_take

VALUES = 4  # values kept for quantiles and distinct counts that are merged for a candidate
RUN_MIN = 16  # events of a pane that are cheaper to take together

_end = attrgetter("end")


class PaneWindows:
    """The open panes of one case, and when their windows close."""

    def __init__(
        self, shape: Shape, outcome: WindowOutcome, grid: Grid | DayGrid, limits: WindowLimits
    ) -> None:
        self._shape = shape
        self._outcome = outcome
        self._grid = grid
        self._limits = limits
        self._folds = shape.folds()
        self._takes = [compile_take(shape.names, grid, leaf) for leaf in shape.leaves]
        self._puts = [compile_put(shape.names, leaf) for leaf in shape.leaves]
        self._watermark = WATERMARK_NONE
        self._closed = grid.closed_by(WATERMARK_NONE)
        self._merger = merger_of(grid.panes_each, growing=shape.grows)
        self._panes: dict[int, Groups] = {}
        self._apart = Apart(shape)
        self._ascending: list[int] = []  # the panes' numbers
        self._due: int | None = None
        self._open = 0  # partials
        self._values = 0  # kept for quantiles and distinct counts
        self.touched: list[Partial] = []  # those with events pending
        self._pending = 0
        # Whether all that is pending are points, certain of their time, and each leaf's in order.
        self._plain = self._in_order = True
        self._newest = [-NEVER for _ in shape.leaves]  # the newest end pending, if so
        # By leaf and key, what takes events that fall into the pane that such came to last.
        self.slots: list[dict[Any, Any]] = [{} for _ in shape.leaves]
        self._slots_of: int | None = None
        self.drops = {GROUPS_OVERFLOW: 0, EVENTS_OVERFLOW: 0, CLOSED: 0, IDS_CUT: 0}

    # --- the door ------------------------------------------------------------------------

    def feed(self, batch: Sequence[LeafEvents], watermark: int) -> list[Detected]:
        """Take events; the events of the windows that the watermark closes, in no order."""
        for leaf, events in batch:
            self._take(leaf, events)
        if watermark <= self._watermark:
            return []
        self._watermark = watermark
        return self._close() if self._due is not None and self._due <= watermark else []

    def next_due(self) -> int | None:
        """The watermark that closes the next window with a pane."""
        return self._due

    def held(self) -> int:
        """Groups of open panes, and values kept for them."""
        self._fold()
        return self._open + self._values

    def least_end(self, watermark: int) -> int:
        """No event ends before this that is in a window yet to be reported."""
        least = watermark + 1
        return min(least, self._grid.begins_at(self._ascending[0])) if self._ascending else least

    def least_newest_end(self, watermark: int) -> int:
        """No window yet to be reported has its newest event end before this."""
        return self.least_end(watermark)

    def state(self) -> dict[str, Any]:
        """Plain data."""
        self._fold()
        said: dict[str, Any] = {
            "watermark": self._watermark,
            "closed": self._closed,
            "drops": dict(self.drops),
            "panes": [[pane, plain_groups(self._panes[pane])] for pane in self._ascending],
        }
        return {**said, "apart": self._apart.state()} if self._apart else said

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
        self._watermark, self._closed = state["watermark"], state["closed"]
        self._merger = merger_of(self._grid.panes_each, growing=self._shape.grows)
        self.drops.update(state["drops"])
        self.touched.clear()
        self._folded()
        self._panes = {
            pane: {key_of(key): Partial.of_plain(self._shape, one) for key, one in groups}
            for pane, groups in state["panes"]
        }
        self._apart.restore(state.get("apart", ()))
        self._ascending = sorted(self._panes)
        self._set_due()
        partials = [one for groups in self._panes.values() for one in groups.values()]
        self._open = len(partials) + len(self._apart)
        self._values = sum(self._shape.grown(one.counts) for one in partials)
        if self._panes and self._grid.windows_of(self._ascending[0])[0] <= self._closed:
            # The merger knows the panes of the last window as before: the next is charged the same.
            self._merged_of(self._closed)

    # --- partial results -----------------------------------------------------------------

    def harvest(self, ids: int) -> PaneRows:
        """What there is of each pane, as plain data, with so many ids of each group; it is gone."""
        self._fold()
        for groups in self._panes.values():
            for one in groups.values():
                one.heads.shorten(ids)
        found = [[pane, plain_groups(self._panes[pane])] for pane in self._ascending]
        self._panes.clear()
        self._ascending.clear()
        self._set_due()
        self._open = self._values = 0
        return found

    def take_rows(self, maker: str, rows: PaneRows) -> tuple[int, int]:
        """Take what `harvest` gave elsewhere: (events that came too late, the greatest ε).

        It is merged once its panes are complete; until then `drop_rows` takes it back.
        """
        late = uncertainty = 0
        for pane, groups in rows:
            is_open = self.groups_of(pane) is not None
            for plain, data in groups:
                partial = Partial.of_plain(self._shape, data)
                if not is_open:
                    late += sum(partial.counts)
                    self.drops[CLOSED] += sum(partial.counts)
                elif self._full():
                    self.refuse(sum(partial.counts))
                else:
                    uncertainty = max(uncertainty, partial.uncertainty)
                    self._open += self._apart.take(maker, pane, key_of(plain), partial)
        return late, uncertainty

    def drop_rows(self, maker: str, first: int | None) -> None:
        """Take back what came of a maker for panes from the first on: they are not complete."""
        self._open -= self._apart.drop(maker, first)

    def rename(self, maker: str, name: str) -> None:
        """Have what came of a maker be of its next life."""
        self._apart.rename(maker, name)

    def _settle(self) -> None:
        for pane in self._apart.panes():
            if self._grid.begins_at(pane + 1) - 1 > self._watermark:
                break
            self._open -= self._apart.settle(pane, self._panes[pane])

    # --- taking events -------------------------------------------------------------------

    def groups_of(self, pane: int) -> Groups | None:
        """The groups of a pane; None where no window of it is open."""
        groups = self._panes.get(pane)
        if groups is not None:
            return groups
        first, last = self._grid.windows_of(pane)
        if first > last or self._grid.closes_at(last) <= self._watermark:
            return None
        groups = self._panes[pane] = {}
        insort(self._ascending, pane)
        self._set_due()
        return groups

    def pass_over(self, pane: int) -> None:
        """Count an event that came when its windows were closed; one between windows is in none."""
        first, last = self._grid.windows_of(pane)
        if first <= last:
            self.drops[CLOSED] += 1

    def refuse(self, count: int) -> None:
        """Count further events of a group that found no room."""
        self.drops[GROUPS_OVERFLOW] += count

    def open_group(self, groups: Groups, key: Any) -> Partial | None:
        """The partial of a group's first event in a pane; None (and counted) past the limit."""
        if self._full():
            self.drops[GROUPS_OVERFLOW] += 1
            return None
        self._open += 1
        partial = groups[key] = Partial(self._shape)
        return partial

    def _full(self) -> bool:
        return self._open >= self._limits.groups_max

    def _take(self, leaf: int, events: Sequence[Any]) -> None:
        growing = self._shape.growing[leaf]
        if growing:
            room = max(0, self._limits.events_max - self._values) // growing
            self.drops[EVENTS_OVERFLOW] += max(0, len(events) - room)
            events = events[:room]
        if not events:
            return
        if not self._put(leaf, events, *self._ends(leaf, events)):
            self._take_apart(leaf, events)
        self._pending += len(events)
        if self._pending >= PENDING_MAX:
            self._fold()

    def _take_apart(self, leaf: int, events: Sequence[Any]) -> None:
        """Take events of several panes: in runs, as far as they are in order and runs are long."""
        at, count = 0, len(events)
        while self._in_order and at < count:
            pane = self._grid.pane_of(events[at].end)
            stop = bisect_left(events, self._grid.begins_at(pane + 1), at, key=_end)
            if stop - at < RUN_MIN:
                break
            run = events[at:stop]
            if not self._put(leaf, run, run[0].end, run[-1].end):
                self._takes[leaf](run, self)
            at = stop
        if at < count:
            self._takes[leaf](events[at:], self)

    def _ends(self, leaf: int, events: Sequence[Any]) -> tuple[int, int]:
        """The least and the greatest end; notes whether what is pending stays plain and in order,
        as most streams are.
        """
        found = self._spanned(leaf, events)
        if found is not None:
            return found
        ends = [event.end for event in events]
        if self._plain:
            self._plain = ends == [event.start for event in events] and not any(
                [event.uncertainty for event in events]  # noqa: C419  # a list is faster
            )
        if self._in_order:
            self._in_order = self._newest[leaf] <= ends[0] and ends == sorted(ends)
            if self._in_order:
                self._newest[leaf] = ends[-1]
                return ends[0], ends[-1]
        return min(ends), max(ends)

    def _spanned(self, leaf: int, events: Sequence[Any]) -> tuple[int, int] | None:
        """The same compiled; None where it cannot be."""
        if native.passes is None:
            return None
        found = native.passes.spanned(events, self._newest[leaf])
        if found is None:
            return None
        low, high, plain, in_order = found
        self._plain = self._plain and plain
        self._in_order = self._in_order and in_order
        if self._in_order:
            self._newest[leaf] = high
        return low, high

    def _put(self, leaf: int, events: Sequence[Any], low: int, high: int) -> bool:
        """Take events that all lie in one open pane; False where they do not."""
        pane = self._grid.pane_of(low)
        if pane != self._grid.pane_of(high):
            return False
        groups = self.groups_of(pane)
        if groups is None:
            return False
        if pane != self._slots_of:
            for slots in self.slots:
                slots.clear()
            self._slots_of = pane
        self._puts[leaf](events, groups, self)
        return True

    def _fold(self) -> None:
        """Take in what is pending; only then are the values kept of it known to the limit."""
        ids = self._limits.ids(self._open)
        if ids < IDS_MAX:
            self.drops[IDS_CUT] += sum([partial.crowd(ids) for partial in self.touched])
        for partial in self.touched:
            if self._shape.grows:
                self._values += self._shape.grown([len(events) for events in partial.pending])
            partial.fold(self._shape, self._folds, plain=self._plain, in_order=self._in_order)
        self.touched.clear()
        self._folded()

    def _folded(self) -> None:
        """Nothing is pending."""
        self._pending = 0
        self._plain = self._in_order = True
        self._newest = [-NEVER for _ in self._shape.leaves]
        for slots in self.slots:
            slots.clear()

    # --- closing windows -----------------------------------------------------------------

    def _next_window(self) -> int:
        return max(self._closed + 1, self._grid.windows_of(self._ascending[0])[0])

    def _set_due(self) -> None:
        self._due = self._grid.closes_at(self._next_window()) if self._ascending else None

    def _close(self) -> list[Detected]:
        self._fold()
        if self._apart:
            self._settle()
        made: list[Detected] = []
        stands = self._shape.stands
        while self._ascending:
            window = self._next_window()
            if self._grid.closes_at(window) > self._watermark:
                break
            groups = self._merged_of(window)
            standing = [(key, partial) for key, partial in groups.items() if stands(partial.counts)]
            made += self._outcome.events(self._grid.frame_of(window), standing)
            self._closed = window
            while self._ascending and self._grid.windows_of(self._ascending[0])[1] <= window:
                self._drop_pane(self._ascending.pop(0))
        self._closed = max(self._closed, self._grid.closed_by(self._watermark))
        self._set_due()
        return made

    def _merged_of(self, window: int) -> Groups:
        """Return the groups of a window; those that are merged are charged."""
        first, last = self._grid.panes_of(window)
        if first == last:
            return self._panes[first]
        low = bisect_left(self._ascending, self._merger.wants_from(first))
        high = bisect_right(self._ascending, last)
        panes = [(pane, self._panes[pane]) for pane in self._ascending[low:high]]
        budget, price = self._outcome.budget, self._merger.price
        budget.spend(price * sum([len(groups) for _, groups in panes]))
        if self._shape.grows:
            grown = self._shape.grown
            values = [grown(part.counts) for _, groups in panes for part in groups.values()]
            budget.spend(sum(values) // VALUES)
        merged = self._merger.merged(first, panes)
        budget.spend(price * len(merged))
        return merged

    def _drop_pane(self, pane: int) -> None:
        groups = self._panes.pop(pane)
        self._open -= len(groups)
        self._values -= sum(self._shape.grown(one.counts) for one in groups.values())

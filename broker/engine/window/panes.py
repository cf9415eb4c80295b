"""Windows `every T` and `every T range R`: panes that no window's edge cuts, and their merging.

Owns what is open, which panes are merged anew for a window, and when windows close. Must not know
what is kept of a pane's events nor what a window's group becomes. Invariant: a window's events are
those of its panes, whatever the order in which they came; panes are not changed by merging, and
either way of merging gives the same.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Protocol

from broker.engine.event.agent import WATERMARK_NONE, LeafEvents
from broker.engine.event.event import Detected
from broker.engine.window.assigners import Grid
from broker.engine.window.code import (
    CLOSED,
    EVENTS_OVERFLOW,
    GROUPS_OVERFLOW,
    IDS_CUT,
    Shape,
    WindowLimits,
    compile_take,
)
from broker.engine.window.constituents import IDS_MAX
from broker.engine.window.emit import WindowOutcome
from broker.engine.window.partials import (
    PENDING_MAX,
    Apart,
    Groups,
    PaneRows,
    Partial,
    are_instants,
    groups_of,
    key_of,
    plain_groups,
)

VALUES = 4  # values kept for quantiles and distinct counts that are merged for a candidate
PANES_FEW = 8  # up to so many panes, merging all of them at once is cheapest
PANES_MANY = 32  # with more, merging what grows with its events costs more than to add and remove

NumberedGroups = tuple[int, Groups]

_end = attrgetter("end")


class Pane:
    """An open pane: its groups, and the events set aside for them, by leaf and key.

    `values`: those kept of its groups for quantiles and distinct counts.
    """

    __slots__ = ("groups", "pending", "values")

    def __init__(self, shape: Shape, groups: Groups) -> None:
        self.groups = groups
        self.values = sum([shape.grown(one.counts) for one in groups.values()])
        self.pending: list[dict[Any, list[Any]]] = [{} for _ in shape.leaves]


class PaneWindows:
    """The open panes of one case, and when their windows close."""

    def __init__(
        self, shape: Shape, outcome: WindowOutcome, grid: Grid, limits: WindowLimits
    ) -> None:
        self._shape = shape
        self._outcome = outcome
        self._grid = grid
        self._limits = limits
        self._takes = [compile_take(shape.names, grid, leaf) for leaf in shape.leaves]
        self._watermark = WATERMARK_NONE
        self._closed = grid.closed_by(WATERMARK_NONE)
        self._merger = merger_of(grid.panes_each, growing=shape.grows)
        self._panes: dict[int, Pane] = {}
        self._apart = Apart(shape)
        self._ascending: list[int] = []  # the panes' numbers
        self._due: int | None = None
        self._open = 0  # partials
        self._values = 0  # kept for quantiles and distinct counts
        self._touched: dict[int, Pane] = {}  # the panes with events pending
        self._pending = 0
        # Of all that is pending: whether each leaf's events came in order, up to its newest end,
        # and whether all are points in time, as those of most streams are.
        self._in_order = self._instants = True
        self._newest = [WATERMARK_NONE for _ in shape.leaves]
        self.drops = {GROUPS_OVERFLOW: 0, EVENTS_OVERFLOW: 0, CLOSED: 0, IDS_CUT: 0}

    # --- the door ------------------------------------------------------------------------

    def feed(self, batch: Sequence[LeafEvents], watermark: int) -> list[Detected]:
        """Take events; return those of the windows that the watermark closes, in no order."""
        for leaf, events in batch:
            self._take(leaf, events)
        if watermark <= self._watermark:
            return []
        self._watermark = watermark
        return self._close() if self._due is not None and self._due <= watermark else []

    def next_due(self) -> int | None:
        """Return the watermark that closes the next window with a pane."""
        return self._due

    def held(self) -> int:
        """Return how many groups of open panes there are, and values kept for them."""
        self._fold()
        return self._open + self._values

    def least_end(self, watermark: int) -> int:
        """Return a bound: no event ends before this that is in a window yet to be reported."""
        least = watermark + 1
        return min(least, self._grid.begins_at(self._ascending[0])) if self._ascending else least

    def least_newest_end(self, watermark: int) -> int:
        """Return a bound: no window yet to be reported has its newest event end before this."""
        return self.least_end(watermark)

    def state(self) -> dict[str, Any]:
        """Return plain data."""
        self._fold()
        plain: dict[str, Any] = {
            "watermark": self._watermark,
            "closed": self._closed,
            "drops": dict(self.drops),
            "panes": [[pane, plain_groups(self._panes[pane].groups)] for pane in self._ascending],
        }
        # Few agents have partials of others; a version that knows none reads what has none.
        return {**plain, "apart": self._apart.state()} if self._apart else plain

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
        self._watermark, self._closed = state["watermark"], state["closed"]
        self._merger = merger_of(self._grid.panes_each, growing=self._shape.grows)
        self.drops.update(state["drops"])
        self._folded()
        self._panes = {
            pane: Pane(self._shape, groups_of(self._shape, groups))
            for pane, groups in state["panes"]
        }
        self._apart.restore(state.get("apart", ()))
        self._ascending = sorted(self._panes)
        self._set_due()
        panes = self._panes.values()
        self._open = sum([len(pane.groups) for pane in panes]) + len(self._apart)
        self._values = sum([pane.values for pane in panes])
        if self._panes and self._grid.windows_of(self._ascending[0])[0] <= self._closed:
            # The merger knows the panes of the last window as before: the next is charged the same.
            self._merged_of(self._closed)

    # --- partial results -----------------------------------------------------------------

    def harvest(self, ids: int) -> PaneRows:
        """Remove all panes; return them as plain data, with so many ids of each group."""
        self._fold()
        for pane in self._panes.values():
            for partial in pane.groups.values():
                partial.shorten(ids)
        rows = [[pane, plain_groups(self._panes[pane].groups)] for pane in self._ascending]
        self._panes.clear()
        self._ascending.clear()
        self._set_due()
        self._open = self._values = 0
        return rows

    def take_rows(self, maker: str, rows: PaneRows) -> tuple[int, int]:
        """Take what `harvest` gave elsewhere: (events that came too late, the greatest ε).

        It is merged once its panes are complete; until then `drop_rows` takes it back.
        """
        late = uncertainty = 0
        for pane, groups in rows:
            is_open = self._pane(pane) is not None
            for plain, data in groups:
                partial = Partial.of_plain(self._shape, data)
                if not is_open:
                    late += sum(partial.counts)
                    self.drops[CLOSED] += sum(partial.counts)
                elif self._open >= self._limits.groups_max:
                    self.drops[GROUPS_OVERFLOW] += sum(partial.counts)
                else:
                    uncertainty = max(uncertainty, partial.uncertainty)
                    self._open += self._apart.take(maker, pane, key_of(plain), partial)
        return late, uncertainty

    def drop_rows(self, maker: str, first: int | None) -> None:
        """Take back what came of a maker for panes from the first on: they are not complete."""
        self._open -= self._apart.drop(maker, first)

    def rename(self, maker: str, name: str) -> None:
        """Count what came of a maker as that of its next incarnation."""
        self._apart.rename(maker, name)

    def _settle(self) -> None:
        for number in self._apart.panes():
            if self._grid.begins_at(number + 1) - 1 > self._watermark:
                break
            pane = self._panes[number]
            self._open -= self._apart.settle(number, pane.groups)
            settled = Pane(self._shape, pane.groups)
            self._values += settled.values - pane.values
            pane.values = settled.values

    # --- taking events -------------------------------------------------------------------

    def pending_of(self, number: int, leaf: int) -> dict[Any, list[Any]] | None:
        """Return a pane's pending events of a leaf by key; None if no window of it is open."""
        pane = self._pane(number)
        if pane is None:
            return None
        self._touched[number] = pane
        return pane.pending[leaf]

    def open_group(
        self, number: int, leaf: int, key: Any, events_count: int = 1
    ) -> list[Any] | None:
        """Return the list for pending events of a group; None past the limit, and they count."""
        pane = self._panes[number]
        if key not in pane.groups:
            if self._open >= self._limits.groups_max:
                self.drops[GROUPS_OVERFLOW] += events_count
                return None
            self._open += 1
            if not self._shape.single:
                pane.groups[key] = Partial(self._shape)
        events = pane.pending[leaf][key] = []
        return events

    def pass_over(self, pane: int, events_count: int = 1) -> None:
        """Count events that came when their windows were closed; one between windows is in none."""
        first, last = self._grid.windows_of(pane)
        if first <= last:
            self.drops[CLOSED] += events_count

    def _pane(self, number: int) -> Pane | None:
        pane = self._panes.get(number)
        if pane is not None:
            return pane
        first, last = self._grid.windows_of(number)
        if first > last or self._grid.closes_at(last) <= self._watermark:
            return None
        pane = self._panes[number] = Pane(self._shape, {})
        insort(self._ascending, number)
        if self._ascending[0] == number:  # the next window to close is one of the oldest pane
            self._set_due()
        return pane

    def _take(self, leaf: int, events: Sequence[Any]) -> None:
        growing = self._shape.growing[leaf]
        if growing:
            room = max(0, self._limits.events_max - self._values) // growing
            self.drops[EVENTS_OVERFLOW] += max(0, len(events) - room)
            events = events[:room]
        if not events:
            return
        ends = list(map(_end, events))
        if self._note(leaf, events, ends) and not self._shape.names.keys:
            self._take_runs(leaf, events, ends)
        else:
            self._takes[leaf](events, self)
        self._pending += len(events)
        if self._pending >= PENDING_MAX:
            self._fold()

    def _take_runs(self, leaf: int, events: Sequence[Any], ends: list[int]) -> None:
        """Take events that are in order and of no group: all of one pane at once."""
        # With groups every event has to be looked at for its key, and its time beside it is cheap.
        for number, begin, stop in self._grid.runs(ends):
            pending = self.pending_of(number, leaf)
            if pending is None:
                self.pass_over(number, stop - begin)
                continue
            own = pending.get(())
            if own is None:
                own = self.open_group(number, leaf, (), stop - begin)
            if own is not None:
                own += events[begin:stop]

    def _note(self, leaf: int, events: Sequence[Any], ends: list[int]) -> bool:
        """Note what is known of the times of all that is pending; return if they are in order."""
        if self._instants:
            self._instants = are_instants(events)
        # A batch that is in no order costs a sort to be looked at: once until all is folded.
        if self._in_order:
            self._in_order = self._newest[leaf] <= ends[0] and ends == sorted(ends)
            self._newest[leaf] = ends[-1]
        return self._in_order

    def _fold(self) -> None:
        """Take in what is pending; only then are the values kept of it known to the limit."""
        shape = self._shape
        ids = self._limits.ids(self._open)
        in_order, instants = self._in_order, self._instants
        simple = shape.simple and in_order and instants and ids == IDS_MAX
        for pane in self._touched.values():
            groups = pane.groups
            for leaf, pending in enumerate(pane.pending):
                for key, events in pending.items():
                    partial = groups.get(key)
                    if partial is None:
                        if simple and len(events) <= IDS_MAX:
                            groups[key] = Partial(shape, events)
                            continue
                        partial = groups[key] = Partial(shape)
                    if ids < IDS_MAX:
                        self.drops[IDS_CUT] += partial.crowd(ids)
                    partial.take(leaf, events, ascending=in_order, instants=instants)
                if growing := shape.growing[leaf]:
                    values = growing * sum(map(len, pending.values()))
                    pane.values += values
                    self._values += values
                # A new dict and not lists that are emptied: of 10,000 groups that came in one run
                # most do not come in the next, and empty lists would be gone through each time.
                pane.pending[leaf] = {}
        self._folded()

    def _folded(self) -> None:
        self._touched.clear()
        self._pending = 0
        self._in_order = self._instants = True
        self._newest = [WATERMARK_NONE for _ in self._shape.leaves]

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
        while self._ascending:
            window = self._next_window()
            if self._grid.closes_at(window) > self._watermark:
                break
            groups = self._merged_of(window)
            standing = self._shape.standing(groups.items())
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
            return self._panes[first].groups
        low = bisect_left(self._ascending, self._merger.wants_from(first))
        high = bisect_right(self._ascending, last)
        numbers = self._ascending[low:high]
        panes = [(number, self._panes[number].groups) for number in numbers]
        budget, price = self._outcome.budget, self._merger.price
        budget.spend(price * sum([len(groups) for _, groups in panes]))
        budget.spend(sum([self._panes[number].values for number in numbers]) // VALUES)
        merged = self._merger.merged(first, panes)
        budget.spend(price * len(merged))
        return merged

    def _drop_pane(self, number: int) -> None:
        pane = self._panes.pop(number)
        self._open -= len(pane.groups)
        self._values -= pane.values


# --- merging ----------------------------------------------------------------------------------


class Merger(Protocol):
    """Merges the panes of one window after the other.

    `price`: the candidates that each group of a pane costs, and each of a window.
    """

    price: int

    def wants_from(self, first: int) -> int:
        """The first pane that it has to be given for a window that begins with pane `first`."""

    def merged(self, first: int, panes: Sequence[NumberedGroups]) -> Groups:
        """The groups of the window; `panes` ascend from the one wanted to the window's last."""


def merger_of(panes_each: int, *, growing: bool) -> Merger:
    """The cheaper way; what grows with its events (quantiles) is not kept merged in many places."""
    return AtOnce() if growing or panes_each <= PANES_FEW else Steady()


class AtOnce:
    """Merges each window's panes from the beginning."""

    price = 8

    def wants_from(self, first: int) -> int:
        """Implement Merger."""
        return first

    def merged(self, first: int, panes: Sequence[NumberedGroups]) -> Groups:  # noqa: ARG002
        """Implement Merger."""
        lists: dict[Any, list[Partial]] = {}
        for _, groups in panes:
            for key, partial in groups.items():
                same = lists.get(key)
                if same is None:
                    lists[key] = [partial]
                else:
                    same.append(partial)
        return {
            key: one[0] if len(one) == 1 else one[0].merged(one[1:]) for key, one in lists.items()
        }


class Steady:
    """A queue of panes that is merged in steps of even size.

    Each pane that comes and each that goes merges at most three times, and each window once more,
    however many panes there are (DABA Lite: Tangwongsan, Hirzel, Schneider, In-order sliding-window
    aggregation in worst-case constant time, VLDB Journal 30, 2021). Two stacks merge less in all,
    but from time to time every pane anew: a step of a second where there are 60,000 groups.

    The panes from `first` to `end` have numbers by age. Those from `back` on are merged as a whole.
    Of each before `left`, and from `ahead` to `back`, there is its merger with all that follow it
    up to `back`; of each from `left` to `right` that with those up to `right`. Those from `right`
    to `ahead` have none yet, and all from `right` to `back` are merged as a whole. With each pane
    that comes or goes, `left` and `ahead` approach `right` by one, and then pass on together to
    `back`; so the mergers are complete when the older half has gone.
    """

    price = 32

    def __init__(self) -> None:
        self._panes: dict[int, NumberedGroups] = {}
        self._mergers: dict[int, Groups] = {}
        self._first = self._left = self._right = self._ahead = self._back = self._end = 0
        self._middle: Groups = {}
        self._newer: Groups = {}
        self._newest: int | None = None

    def wants_from(self, first: int) -> int:
        """Implement Merger."""
        return first if self._newest is None else max(first, self._newest + 1)

    def merged(self, first: int, panes: Sequence[NumberedGroups]) -> Groups:
        """Implement Merger."""
        for pane in panes:
            self._append(pane)
        while self._first < self._end and self._panes[self._first][0] < first:
            self._let_go()
        oldest = self._mergers.get(self._first, {})
        return _together(oldest, self._newer) if self._newer else oldest

    def _append(self, pane: NumberedGroups) -> None:
        self._panes[self._end] = pane
        self._newest = pane[0]
        self._newer = _together(pane[1], self._newer)
        self._end += 1
        self._step()

    def _let_go(self) -> None:
        del self._panes[self._first]
        del self._mergers[self._first]
        self._first += 1
        self._step()

    def _step(self) -> None:
        """Do the share of the work that is due with each pane that comes or goes."""
        if self._first == self._back:
            for number in range(self._back, self._end):
                self._mergers[number] = self._panes[number][1]
            self._left = self._right = self._ahead = self._back = self._end
            self._newer = {}
            return
        if self._left == self._back:
            self._turn()
        if self._left == self._right:
            self._left += 1
            self._right += 1
            self._ahead += 1
            return
        self._mergers[self._left] = _together(self._mergers[self._left], self._middle)
        self._left += 1
        self._ahead -= 1
        groups = self._panes[self._ahead][1]
        self._mergers[self._ahead] = _together(groups, self._mergers.get(self._ahead + 1, {}))

    def _turn(self) -> None:
        """Begin anew: half of the panes are from `first` to `back`, half behind that."""
        self._left, self._right = self._first, self._back
        self._ahead = self._back = self._end
        self._middle, self._newer = self._newer, {}


def _together(left: Groups, right: Groups) -> Groups:
    """Return both together, as a new one."""
    few, many = sorted((left, right), key=len)
    united = dict(many)
    for key, partial in few.items():
        other = united.get(key)
        united[key] = partial if other is None else other.merged([partial])
    return united

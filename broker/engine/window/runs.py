"""Windows of which each group has one open at a time: sessions, and `every T` with `distinct`.

Owns the open run of events of each group, and when it closes. Must not know what aggregates keep
nor what a group becomes. Invariant: a group's events are taken in order, and each is in one run:
it joins the open one, or closes it and opens the next.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, Protocol

from broker.engine.event.agent import WATERMARK_END
from broker.engine.event.event import Detected, Event
from broker.engine.runtime.shelf import Shelf
from broker.engine.window.days import DayGrid
from broker.engine.window.grid import Grid
from broker.engine.window.ids import IDS_MAX
from broker.engine.window.ordered import OrderedWindows
from broker.engine.window.outcome import Frame, WindowKey, WindowOutcome
from broker.engine.window.partial import PENDING_MAX, Partial, key_of, plain_key
from broker.engine.window.shape import GROUPS_OVERFLOW, IDS_CUT, Shape, WindowLimits
from broker.engine.window.wait import Entry

Watch = tuple[int, int, Any]  # a time, the number of a run, its group's key
WATCHES_SLACK = 64  # watches of closed runs that may stand in a heap


class Run:
    """An open run: its name, the span of its events, and the partial of those that count."""

    __slots__ = ("end", "first_end", "kept", "name", "number", "partial", "seen", "start")

    def __init__(self, shape: Shape, number: int, name: WindowKey, start: int, end: int) -> None:
        self.number = number
        self.name = name
        self.start = start
        self.first_end = self.end = end
        self.partial = Partial(shape)
        self.kept = 1  # itself, the values that it keeps and the keys that it has seen
        self.seen: list[set[Any]] = [set() for _ in shape.leaves]


class Course(Protocol):
    """Which events belong to one run."""

    def name(self, event: Any) -> WindowKey | None:
        """The name of the run that an event opens; None of one that is in no window."""

    def joins(self, run: Run, event: Any) -> bool:
        """Whether the next event in order joins the open run."""

    def closes_at(self, run: Run) -> int:
        """The watermark from which on no event can join."""

    def frame_of(self, run: Run) -> Frame:
        """The window that a run has come to be."""


class Sessions:
    """`session G max M`: an event joins that begins at most G after the session's end, and ends at
    most M after its beginning.

    Events still to come end after the watermark but may have begun before, as much as one may
    last: `longest_ms`, None where nobody knows. It never shrinks.
    """

    def __init__(
        self, gap_ms: int, max_ms: int | None, longest_ms: Callable[[], int | None]
    ) -> None:
        self._gap_ms = gap_ms
        self._max_ms = WATERMARK_END if max_ms is None else max_ms
        self._longest_ms = longest_ms

    def name(self, event: Any) -> WindowKey | None:
        """A session is named by its first event."""
        return (event.id, event.end)

    def joins(self, run: Run, event: Any) -> bool:
        """See Course."""
        near: bool = event.start - run.end <= self._gap_ms
        return near and event.end - run.start <= self._max_ms

    def closes_at(self, run: Run) -> int:
        """See Course."""
        closes_at = min(run.start + self._max_ms, WATERMARK_END)
        longest_ms = self._longest_ms()
        if longest_ms is None:
            return closes_at
        return min(closes_at, run.end + self._gap_ms + longest_ms)

    def frame_of(self, run: Run) -> Frame:
        """Return the session, which ends 1 ms after its last end."""
        return run.name, run.start, run.end + 1


class Turns:
    """`every T`: a window's events are one run."""

    def __init__(self, grid: Grid | DayGrid) -> None:
        self._grid = grid

    def name(self, event: Any) -> WindowKey | None:
        """The window's number."""
        first, last = self._grid.windows_of(self._grid.pane_of(event.end))
        return first if first <= last else None

    def joins(self, run: Run, event: Any) -> bool:
        """See Course."""
        return run.name == self.name(event)

    def closes_at(self, run: Run) -> int:
        """See Course."""
        assert isinstance(run.name, int), "turns are numbered"
        return self._grid.closes_at(run.name)

    def frame_of(self, run: Run) -> Frame:
        """Return the window with the number that names the run."""
        assert isinstance(run.name, int), "turns are numbered"
        return self._grid.frame_of(run.name)


class RunWindows(OrderedWindows):
    """The open runs of one case."""

    def __init__(
        self,
        shape: Shape,
        outcome: WindowOutcome,
        course: Course,
        limits: WindowLimits,
        classes: Mapping[str, type[Event]],
    ) -> None:
        super().__init__(shape, outcome, limits, classes)
        self.drops[IDS_CUT] = 0
        self._course = course
        self._folds = shape.folds()
        # By group, in the order in which they were opened: the first began with the least end.
        self._runs: OrderedDict[Any, Run] = OrderedDict()
        self._opened = 0
        # Heaps of when runs close and of their ends, as these were; what has grown is put anew.
        self._closing: list[Watch] = []
        self._ending: list[Watch] = []
        self._touched: list[Partial] = []
        self._pending = 0  # events of those touched

    def take(self, entry: Entry, made: list[Detected]) -> None:
        """See OrderedWindows."""
        event, leaves, key = entry
        run = self._runs.get(key)
        if run is None or not self._course.joins(run, event):
            if run is not None:
                self._close(key, run, made)
            if len(self._runs) >= self.limits.groups_max:
                self._close_until(event.end - 1, made)  # as if each event came alone
            run = self._open(key, event)
            if run is None:
                return
        elif event.start < run.start:
            run.start = event.start
            self._watch(self._closing, self._course.closes_at(run), run, key)
        run.end = event.end
        for leaf in leaves:
            self._put(run, leaf, event)
        if self._pending >= PENDING_MAX:
            self._fold()

    def settle(self, made: list[Detected]) -> None:
        """See OrderedWindows."""
        self._close_until(self.watermark, made)

    def held(self) -> int:
        """See OrderedWindows."""
        self._fold()
        return super().held()

    def due(self) -> int | None:
        """See OrderedWindows."""
        return self._least(self._closing, self._course.closes_at)

    def least_newest_end(self, watermark: int) -> int:
        """See OrderedWindows. With `distinct` the newest event may not count; the first does."""
        if self.shape.distinct:
            return self.least_end(watermark)
        least = super().least_newest_end(watermark)
        end = self._least(self._ending, _end_of)
        return least if end is None else min(least, end)

    def least_end(self, watermark: int) -> int:
        """See OrderedWindows."""
        least = super().least_newest_end(watermark)
        if self._runs:
            least = min(least, next(iter(self._runs.values())).first_end)
        return least

    def plain(self, shelf: Shelf) -> Any:  # noqa: ARG002  # partials hold no events
        """See OrderedWindows."""
        self._fold()
        return [
            [
                plain_key(key),
                [plain_key(run.name), run.start, run.end, run.first_end, run.kept],
                run.partial.plain(),
                [[plain_key(one) for one in sorted(seen, key=repr)] for seen in run.seen],
            ]
            for key, run in self._runs.items()
        ]

    def renew(self, data: Any, shelf: Shelf) -> None:  # noqa: ARG002
        """See OrderedWindows."""
        self._runs.clear()
        self._closing, self._ending, self._touched, self._pending = [], [], [], 0
        for key, (name, start, end, first_end, kept), partial, seen in data:
            run = self._begin(key_of(key), key_of(name), start, first_end)
            run.end, run.kept = end, kept
            run.partial = Partial.of_plain(self.shape, partial)
            run.seen = [{key_of(one) for one in keys} for keys in seen]
            self.inside += kept - 1

    # --- runs ----------------------------------------------------------------------------

    def _open(self, key: Any, event: Any) -> Run | None:
        """The run that an event opens; None where it is in no window or (counted) past a limit."""
        name = self._course.name(event)
        if name is None:
            return None
        if len(self._runs) >= self.limits.groups_max:
            self.drops[GROUPS_OVERFLOW] += 1
            return None
        return self._begin(key, name, event.start, event.end)

    def _begin(self, key: Any, name: WindowKey, start: int, end: int) -> Run:
        self._opened += 1
        run = self._runs[key] = Run(self.shape, self._opened, name, start, end)
        self.inside += 1
        self._watch(self._closing, self._course.closes_at(run), run, key)
        self._watch(self._ending, end, run, key)
        return run

    def _watch(self, heap: list[Watch], time: int, run: Run, key: Any) -> None:
        """Put a time into a heap, without those of closed runs where they have become many."""
        heappush(heap, (time, run.number, key))
        if len(heap) > 2 * len(self._runs) + WATCHES_SLACK:
            least: dict[int, Watch] = {}
            for watch in heap:
                own = self._runs.get(watch[2])
                if own is not None and own.number == watch[1]:
                    least[watch[1]] = min(watch, least.get(watch[1], watch))
            heap[:] = least.values()
            heapify(heap)

    def _put(self, run: Run, leaf: int, event: Any) -> None:
        kept = self.shape.growing[leaf]
        key_of = self.shape.distinct_keys[leaf]
        if key_of is not None:
            key = key_of(event)
            if key is not None:
                seen = run.seen[leaf]
                if key in seen:
                    return
                seen.add(key)
                kept += 1
        run.kept += kept
        self.inside += kept
        partial = run.partial
        pending = partial.pending[leaf]
        if not pending:
            self._touched.append(partial)
        pending.append(event)
        self._pending += 1

    def _fold(self) -> None:
        ids = self.limits.ids(len(self._runs))
        if ids < IDS_MAX:
            self.drops[IDS_CUT] += sum([partial.crowd(ids) for partial in self._touched])
        for partial in self._touched:
            partial.fold(self.shape, self._folds)
        self._touched.clear()
        self._pending = 0

    def _close_until(self, watermark: int, made: list[Detected]) -> None:
        """Close what no event can join that comes after a watermark."""
        while (due := self.due()) is not None and due <= watermark:
            key = self._closing[0][2]
            self._close(key, self._runs[key], made)

    def _close(self, key: Any, run: Run, made: list[Detected]) -> None:
        self._fold()
        del self._runs[key]
        self.inside -= run.kept
        if self.shape.stands(run.partial.counts):
            self.outcome.add(self._course.frame_of(run), key, run.partial, made)

    def _least(self, heap: list[Watch], time_of: Callable[[Run], int]) -> int | None:
        """The least time of an open run, from a heap of times that only ever grow."""
        while heap:
            time, number, key = heap[0]
            run = self._runs.get(key)
            if run is None or run.number != number:
                heappop(heap)
                continue
            now = time_of(run)
            if now == time:
                return time
            heapreplace(heap, (now, number, key))
        return None


def _end_of(run: Run) -> int:
    return run.end

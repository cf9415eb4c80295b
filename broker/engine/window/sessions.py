"""Windows of which each group has one open at a time: sessions, and `every T` with `distinct`.

Owns the open run of events of each group, and when it closes. Must not know what aggregates keep
nor what a group becomes. Invariant: a group's events are taken in order, and each is in one run: it
joins the open one, or closes it and opens the next.

As events come in order, a run never has to be joined with another one: the merging of sessions that
engines without an order do (Akidau and others, The dataflow model, PVLDB 8(12), 2015, 2.2.2) is not
needed, and a run keeps sums, not events.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

from broker.engine.event.agent import WATERMARK_END
from broker.engine.event.event import Detected
from broker.engine.runtime.shelf import Shelf
from broker.engine.window.assigners import Grid
from broker.engine.window.buffer import Entry, OrderedWindows, WindowTerms
from broker.engine.window.code import GROUPS_OVERFLOW, IDS_CUT, Shape
from broker.engine.window.constituents import IDS_MAX
from broker.engine.window.emit import Frame, Standing, WindowKey
from broker.engine.window.partials import (
    PENDING_MAX,
    Partial,
    are_instants,
    key_of,
    plain_key,
)

LIMITS_SLACK = 64  # limits of closed runs that may stand in the heap


class Run:
    """An open run: its name, the span of its events, and the partial of those that count."""

    __slots__ = (
        "end", "first_end", "kept", "key", "name", "number", "partial", "pending", "seen", "start",
    )  # fmt: skip

    def __init__(self, shape: Shape, name: WindowKey, start: int, end: int) -> None:
        self.number = 0  # in the order in which runs were opened
        self.key: Any = None
        self.name = name
        self.start = start
        self.first_end = self.end = end
        self.partial: Partial | None = None  # of what was folded
        self.pending: list[list[Any]] = [[]] if shape.single else [[] for _ in shape.leaves]
        self.kept = 1  # itself, the values that it keeps and the keys that it has seen
        # The first event of a key counts, and events come in order: the keys alone say which count.
        self.seen: list[set[Any]] | None = [set() for _ in shape.leaves] if shape.distinct else None


class Trigger(Protocol):
    """Decides which events belong to one run, and when it closes."""

    max_ms: int | None

    def name(self, event: Any) -> WindowKey | None:
        """Return the name of the run that an event opens; None if it is in no window."""

    def joins(self, run: Run, event: Any) -> bool:
        """Return True if the next event in order joins the open run."""

    def closes_at(self, run: Run) -> int:
        """Return the watermark from which on no event can join; it ascends with a run's end.

        Only `max_ms` from the run's start may come before that.
        """

    def frame_of(self, run: Run) -> Frame:
        """Return the window that a run has come to be."""


class Sessions:
    """`session G max M`: an event joins that begins at most G after the session's end, and ends at
    most M after its beginning.

    Events still to come end after the watermark but may have begun before, as much as one may
    last: `longest_ms`, None where nobody knows. It never shrinks. With G = 3 s, a session that ends
    at 10 s and readings that are points, watermark 13 s closes it; if an event may last 5 s, one
    that ends at 17 s may have begun at 12 s, so only watermark 18 s does.
    """

    def __init__(
        self, gap_ms: int, max_ms: int | None, longest_ms: Callable[[], int | None]
    ) -> None:
        self._gap_ms = gap_ms
        self.max_ms = max_ms
        self._join_max_ms = WATERMARK_END if max_ms is None else max_ms
        self._longest_ms = longest_ms

    def name(self, event: Any) -> WindowKey | None:
        """A session is named by its first event."""
        return (event.id, event.end)

    def joins(self, run: Run, event: Any) -> bool:
        """Implement Trigger."""
        near: bool = event.start - run.end <= self._gap_ms
        return near and event.end - run.start <= self._join_max_ms

    def closes_at(self, run: Run) -> int:
        """Implement Trigger."""
        longest_ms = self._longest_ms()
        if longest_ms is None:
            return WATERMARK_END
        return min(WATERMARK_END, run.end + self._gap_ms + longest_ms)

    def frame_of(self, run: Run) -> Frame:
        """Return the session, which ends 1 ms after its last end."""
        return run.name, run.start, run.end + 1


class Turns:
    """`every T`: a window's events are one run."""

    max_ms: int | None = None

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._frame = 0, WATERMARK_END, WATERMARK_END  # the window of the event that came last

    def name(self, event: Any) -> WindowKey | None:
        """Return the window's number."""
        number, opens, closes = self._frame
        if opens <= event.end < closes:  # they come in order, so mostly it is that
            return number
        first, last = self._grid.windows_of(self._grid.pane_of(event.end))
        if first > last:
            return None
        self._frame = self._grid.frame_of(first)
        return first

    def joins(self, run: Run, event: Any) -> bool:
        """Implement Trigger."""
        return run.name == self.name(event)

    def closes_at(self, run: Run) -> int:
        """Implement Trigger."""
        assert isinstance(run.name, int), "turns are numbered"
        return self._grid.closes_at(run.name)

    def frame_of(self, run: Run) -> Frame:
        """Return the window with the number that names the run."""
        assert isinstance(run.name, int), "turns are numbered"
        return self._grid.frame_of(run.name)


class Runs(OrderedWindows):
    """The open runs of one case.

    They stand in two orders that cost no comparison: as they were opened, by which the first began
    with the least end; and, moved at each event, by their ends, for the event that comes is always
    the newest. The first by its end closes first, but for those that reach their greatest length:
    these alone need a heap.
    """

    def __init__(self, terms: WindowTerms, trigger: Trigger) -> None:
        super().__init__(terms)
        self._trigger = trigger
        self.drops[IDS_CUT] = 0
        self._by_end: OrderedDict[Any, Run] = OrderedDict()  # by group
        self._opened: OrderedDict[int, Run] = OrderedDict()
        self._number = 0
        self._lengths: list[tuple[int, int]] = []  # start + M and number; of closed runs too
        self._touched: dict[int, Run] = {}  # those with events pending
        self._pending = 0
        self._closed: list[Standing] = []  # since the last report

    def _take(self, entry: Entry, made: list[Detected]) -> None:
        event, leaves, key = entry
        run = self._by_end.get(key)
        if run is None or not self._trigger.joins(run, event):
            if run is not None:
                self._close(run)
            if len(self._by_end) >= self._limits.groups_max:
                self._settle(event.end - 1, made)  # as if each event came alone
            run = self._open(key, event)
            if run is None:
                return
        else:
            if event.start < run.start:
                run.start = event.start
                self._limit(run)
            run.end = event.end
            self._by_end.move_to_end(key)
        for leaf in leaves:
            kept = self._shape.growing[leaf]
            if run.seen is not None and (same := self._shape.distinct_keys[leaf]) is not None:
                distinct, seen = same(event), run.seen[leaf]
                if distinct in seen:
                    continue
                if distinct is not None:
                    seen.add(distinct)
                    kept += 1
            run.kept += kept
            self._inside += kept
            # Asked as the event comes: when a run is folded hinges on snapshots, too.
            if len(self._by_end) > self._limits.roomy:
                ids = self._limits.ids(len(self._by_end))
                self.drops[IDS_CUT] += self._partial(run).crowd(ids)
            run.pending[leaf].append(event)
            self._touched[run.number] = run
            self._pending += 1
        if self._pending >= PENDING_MAX:
            self._fold()

    def _due(self) -> int | None:
        due = self._first_due()
        return None if due is None else due[0]

    def _newest_from(self, least: int) -> int:
        """With `distinct` the newest may not count."""
        if self._shape.distinct:
            return self._ends_from(least)
        return min(least, next(iter(self._by_end.values())).end) if self._by_end else least

    def _ends_from(self, least: int) -> int:
        return min(least, next(iter(self._opened.values())).first_end) if self._opened else least

    def _plain(self, shelf: Shelf) -> Any:  # noqa: ARG002  # partials hold no events
        self._fold()
        return [
            [
                plain_key(run.key),
                [plain_key(run.name), run.start, run.end, run.first_end, run.kept],
                self._partial(run).plain(),
                [[plain_key(key) for key in sorted(seen, key=repr)] for seen in _sets(run)],
            ]
            for run in self._opened.values()
        ]

    def _renew(self, data: Any, shelf: Shelf) -> None:  # noqa: ARG002
        self._by_end.clear()
        self._opened.clear()
        self._lengths, self._touched, self._pending = [], {}, 0
        for key, (name, start, end, first_end, kept), partial, seen in data:
            run = self._begin(key_of(key), key_of(name), start, first_end)
            run.end, run.kept = end, kept
            run.partial = Partial.of_plain(self._shape, partial)
            if run.seen is not None:
                run.seen = [{key_of(plain) for plain in keys} for keys in seen]
            self._inside += kept - 1
        # They come as they were opened; which of them ends first is made out again.
        self._by_end = OrderedDict(sorted(self._by_end.items(), key=lambda item: item[1].end))

    def _fold(self) -> None:
        for run in self._touched.values():
            self._fold_run(run)
        self._touched.clear()
        self._pending = 0

    def _partial(self, run: Run) -> Partial:
        if run.partial is None:
            run.partial = Partial(self._shape)
        return run.partial

    def _fold_run(self, run: Run) -> None:
        for leaf, events in enumerate(run.pending):
            if not events:
                continue
            run.pending[leaf] = []
            self._pending -= len(events)
            instants = are_instants(events)
            if run.partial is None and self._shape.simple and instants and len(events) <= IDS_MAX:
                run.partial = Partial(self._shape, events)
            else:
                self._partial(run).take(leaf, events, ascending=True, instants=instants)

    def _open(self, key: Any, event: Any) -> Run | None:
        """The run that an event opens; None where it is in no window or (counted) past a limit."""
        name = self._trigger.name(event)
        if name is None:
            return None
        if len(self._by_end) >= self._limits.groups_max:
            self.drops[GROUPS_OVERFLOW] += 1
            return None
        return self._begin(key, name, event.start, event.end)

    def _begin(self, key: Any, name: WindowKey, start: int, end: int) -> Run:
        self._number += 1
        run = Run(self._shape, name, start, end)
        run.number, run.key = self._number, key
        self._by_end[key] = self._opened[self._number] = run
        self._inside += 1
        self._limit(run)
        return run

    def _limit(self, run: Run) -> None:
        """Note when a run reaches its greatest length."""
        if self._trigger.max_ms is None:
            return
        limits, opened = self._lengths, self._opened
        heappush(limits, (run.start + self._trigger.max_ms, run.number))
        # With a gap of 1 s and M = 1 day nearly all limits in the heap are those of closed runs.
        if len(limits) > 2 * len(opened) + LIMITS_SLACK:
            limits[:] = [limit for limit in limits if limit[1] in opened]
            heapify(limits)

    def _first_due(self) -> tuple[int, Run] | None:
        """The least watermark that closes a run, and that run."""
        if not self._by_end:
            return None
        first = next(iter(self._by_end.values()))
        due = self._trigger.closes_at(first)
        limits = self._lengths
        while limits and limits[0][1] not in self._opened:
            heappop(limits)
        if limits and limits[0][0] < due:
            return limits[0][0], self._opened[limits[0][1]]
        return due, first

    def _settle(self, watermark: int, made: list[Detected]) -> None:
        """Close what no event can join that comes after a watermark; report all that is closed."""
        while (due := self._first_due()) is not None and due[0] <= watermark:
            self._close(due[1])
        closed, self._closed = self._closed, []
        made += self._outcome.each(closed)

    def _close(self, run: Run) -> None:
        if self._touched.pop(run.number, None) is not None:
            self._fold_run(run)
        del self._by_end[run.key], self._opened[run.number]
        self._inside -= run.kept
        partial = self._partial(run)
        if self._shape.stands(partial.counts):
            self._closed.append((self._trigger.frame_of(run), run.key, partial))


def _sets(run: Run) -> list[set[Any]]:
    return [set() for _ in run.pending] if run.seen is None else run.seen

"""`P{n}` and `P+[a..b]`: successive P in a row.

Owns the row that is not complete. Must not know P. Invariant: P are taken in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.occurrence import (
    Occurrence,
    end_of,
    events_of,
    flat,
    start_of,
    strangers,
)
from broker.engine.pattern.stage.base import Inbox, Over, Site, Stage, least, next_of, weakest_end
from broker.engine.pattern.times.timing import Span
from broker.engine.runtime.budget import PLACE_BYTES

Passes = Callable[[Occurrence, tuple[Any, ...]], Occurrence | None]  # see whole.Passes


@dataclass(frozen=True, slots=True)
class CountPlan:
    """`P{count}`; `disjoint` rows under `first` and `chronicle`."""

    count: int
    # LANGUAGE 3: rows slide, but under `first` and `chronicle` an event is in one of them only.
    disjoint: bool
    passes: Passes
    span: Span | None
    # By what encloses the row (`within`): after that the first can be in no whole row any more.
    expire_ms: int | None  # how long one may wait for the others; None: for ever


@dataclass(frozen=True, slots=True)
class RunPlan:
    """`P+[low..high]`."""

    low_ms: int | None
    high_ms: int | None
    passes: Passes
    span: Span | None


def row(items: list[Occurrence]) -> Occurrence:
    """One occurrence of several in a row: each place a list."""
    # A P of several places gives a list for each of them, all of the same length: `(E1 then E2){3}`
    # binds three E1 and three E2, in step.
    columns: Iterable[Sequence[Any]] = (items,)
    if items[0].__class__ is tuple:
        columns = map(flat, zip(*map(events_of, items), strict=True))
    # One uncertain member makes the whole row uncertain.
    end = weakest_end(items, max(map(end_of, items)))
    start = min(map(start_of, items))
    return (end, start, *map(tuple, columns))


class Rows(Over):
    """Hold the P of one row, in order."""

    __slots__ = ("_row",)

    def __init__(self, site: Site, beneath: Stage, span: Span | None) -> None:
        super().__init__(site, (Inbox(beneath, site.budget),), span)
        self._row: list[Occurrence] = []

    def kept(self) -> list[list[Occurrence]]:
        """Return the row so far."""
        return [self._row]

    def keep(self, kept: list[list[Occurrence]]) -> None:
        """Hold this row in place of the one so far."""
        (self._row,) = kept


class CountStage(Rows):
    """So many P, each beginning at or after the end of the one before."""

    __slots__ = ("_plan",)

    def __init__(self, plan: CountPlan, site: Site, beneath: Stage) -> None:
        super().__init__(site, beneath, plan.span)
        self._plan = plan

    def advance(self, watermark: int) -> list[Occurrence]:
        """Return the rows of `count` that are complete by now and pass."""
        self.watermark = watermark
        (inbox,) = self.inboxes
        made = []
        limit = inbox.fill(watermark)
        for item in inbox.take(limit):
            # An overlapping P breaks the row (LANGUAGE 3): the next one begins with it, as no
            # earlier member could be followed by it.
            if self._row and not self._goes_on(item):
                self._row = []
            self._row.append(item)
            if len(self._row) < self._plan.count:
                continue
            # Sliding rows copy `count` members for each P: `{1000}` makes a million in a thousand
            # events, so it is charged by what is copied.
            self.site.budget.spend(len(self._row), PLACE_BYTES * len(self._row))
            whole = self._plan.passes(row(self._row), self.site.group)
            if whole is not None:
                made.append(whole)
            if self._plan.disjoint:
                self._row = []
            else:
                # The list is short (`count`), and a deque would cost more for what is copied each
                # time anyway.
                del self._row[0]
        expire_ms = self._plan.expire_ms
        while self._row and expire_ms is not None and start_of(self._row[0]) + expire_ms <= limit:
            del self._row[0]
        return made

    def _goes_on(self, item: Occurrence) -> bool:
        # It may begin at the very end of the one before; the same event may not follow itself.
        return start_of(item) >= end_of(self._row[-1]) and strangers(self._row[-1], item)


class RunStage(Rows):
    """As many P as there are with such gaps."""

    __slots__ = ("_plan",)

    def __init__(self, plan: RunPlan, site: Site, beneath: Stage) -> None:
        super().__init__(site, beneath, plan.span)
        self._plan = plan

    def advance(self, watermark: int) -> list[Occurrence]:
        """Return the longest runs that are over by now."""
        self.watermark = watermark
        (inbox,) = self.inboxes
        # A longest run is known only when it is over, so runs are closed here and not with the next
        # P.
        limit = inbox.fill(watermark)
        made: list[Occurrence] = []
        for item in inbox.take(limit):
            if self._row and not self._goes_on(item):
                self._close(made)
            self._row.append(item)
        # Without this a run that is followed by silence would be told only when the next P comes.
        if self._row and self._is_over(limit):
            self._close(made)
        return made

    def _goes_on(self, item: Occurrence) -> bool:
        # Two composites that share an event are not successive.
        if not strangers(self._row[-1], item):
            return False
        gap = start_of(item) - end_of(self._row[-1])
        low, high = self._plan.low_ms, self._plan.high_ms
        return (low is None or gap >= low) and (high is None or gap <= high)

    def _is_over(self, limit: int) -> bool:
        # At the end of a replay all that is open is decided.
        if limit >= WATERMARK_END:
            return True
        high = self._plan.high_ms
        # By where something to come may begin, not by the watermark: a P that ends after the
        # watermark may have begun within the gap. `P+[900 ms..1100 ms]` on P@4000 is over once 5100
        # has passed.
        return high is not None and self.inboxes[0].floor() > end_of(self._row[-1]) + high

    def _close(self, made: list[Occurrence]) -> None:
        whole = self._plan.passes(row(self._row), self.site.group)
        if whole is not None:
            made.append(whole)
        self._row = []

    def hold(self) -> int:
        """Return the time after which later occurrences end, by the run as it stands."""
        # The run as it stands may be closed with its present end: what follows waits for it.
        end: int = end_of(self._row[-1]) - 1 if self._row else WATERMARK_END
        return min(super().hold(), end)

    def due(self) -> int | None:
        """Return the next watermark at which time alone may end the run; None if none."""
        over = []
        if self._row and self._plan.high_ms is not None:
            last = end_of(self._row[-1]) + self._plan.high_ms
            # Only a bound from above lets time alone end a run; without one the next P or the end
            # does.
            over.append(self.inboxes[0].clear_at(WATERMARK_NONE, last))
        return least([super().due(), next_of(over, self.watermark)])

"""The agent of a windowed definition: `aggr` with `every T`, `range R`, both, or `session G`.

Owns the door: which kind of window runs, the order of what comes out, watermarks and snapshots.
Must not know how windows keep their events (window_panes.py, window_slide.py, window_runs.py) nor
what a group becomes (window_outcome.py). Invariant: what it reports depends on the events alone,
never on how they were batched or when their watermarks came.

Sums past signed 64 bits stay exact within expressions; as an attribute they are null, as an event
carries none such. So is a float beyond its range.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, ge
from typing import Any

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE, LeafEvents
from broker.engine.event.event import Detected, Event, event_class
from broker.engine.pattern.assigned import types_begun
from broker.engine.pattern.durations import Foresight
from broker.engine.pattern.pattern import lay_out
from broker.engine.runtime.budget import Budget
from broker.engine.window.bound import Lasting, Moment, end_anchors
from broker.engine.window.days import DAY_MS, DayGrid
from broker.engine.window.grid import Grid
from broker.engine.window.ordered import OrderedWindows
from broker.engine.window.outcome import WindowOutcome
from broker.engine.window.panes import PaneWindows
from broker.engine.window.runs import RunWindows, Sessions, Turns
from broker.engine.window.shape import (
    DURATION_MAX_MS,
    EVENTS_MAX,
    GROUPS_MAX,
    INVERTED,
    OUTSIDE,
    Shape,
    WindowLimits,
)
from broker.engine.window.slide import SlidingWindows, SteppedWindows, steps
from language.taskgraph import Task
from language.tree import Case, Definition, Window

STATE_VERSION = 2
ROWS_VERSION = 3  # with partial results of others, which an earlier version would pass over

_order = attrgetter("order")


class WindowAgent:
    """One case of a windowed definition (see agent.Agent).

    Raises ValueError of what the checker refuses too: `consuming` where windows share events, a
    zone that the host does not know, a range in a zone that is not of whole days.
    `foresight` tells how long events of each input may last, where more is known than the limit.
    """

    waits = True

    def __init__(
        self,
        task: Task,
        case: Case,
        output: type[Event],
        *,
        groups_max: int = GROUPS_MAX,
        events_max: int = EVENTS_MAX,
        duration_max_ms: int = DURATION_MAX_MS,
        foresight: Foresight | None = None,
        budget: Budget | None = None,
    ) -> None:
        assert isinstance(task.node, Definition), "windows are of definitions"
        window = task.node.window
        assert window is not None, "this definition has no window"
        if case.consuming and (window.every_ms is None or window.range_ms is not None):
            raise ValueError("`consuming` does not run where windows share events")
        shape = Shape(task, case)
        limits = WindowLimits(groups_max, events_max, duration_max_ms)
        self._outcome = WindowOutcome(task, case, output, shape.names, shape.aggregation)
        self._outcome.budget = budget or self._outcome.budget
        self._anchors = end_anchors(task.node, case.assign)
        self._duration_max_ms = duration_max_ms
        classes = input_classes(task)
        lasting = Lasting(shape, duration_max_ms, foresight)
        sure = foresight and foresight.surely(types_begun(case.assign, lay_out(case)))
        self._longest = Lasting(shape, duration_max_ms, sure)  # for what is promised
        asks = window.session_ms is not None or "least start" in (self._anchors or ())
        self._lasting = lasting if asks and foresight is not None else None
        self._windows = _windows(window, shape, self._outcome, limits, classes, lasting=lasting)
        grid = grid_of(window)
        # Of a watermark: no window yet to be reported begins before that; None in sessions.
        self._opening = None if grid is None else grid.next_opens_at
        if grid is None and window.session_ms is None:
            self._opening = self._windows.least_end

    def feed(self, batch: Sequence[LeafEvents], watermark: int) -> list[Detected]:
        """See agent.Agent."""
        if self._lasting is not None:
            self._lasting.observe(batch)
        made = self._windows.feed(batch, watermark)
        if len(made) > 1:
            ends = [event.end for event in made]
            # Mostly they come in order; whole orders, with lists of ids, only part equal ends.
            if any(map(ge, ends, ends[1:])):
                made.sort(key=_order)
        return made

    def watermark_out(self, watermark: int) -> int:
        """See agent.Agent.

        A window's event is its last instant where no time is assigned: none is open that the
        watermark has passed. An assigned time may lie as early as a group's first event begins,
        so an event that is still to come may put it back by its duration; but none lies before its
        window.
        """
        if watermark >= WATERMARK_END and self._windows.next_due() is None:
            return watermark
        if self._anchors is None:
            return WATERMARK_NONE
        moments = self._anchors.items()
        least = min([self._least(moment, watermark) - ms for moment, ms in moments])
        if self._opening is not None:
            least = max(least, self._opening(watermark))
        return min(watermark, least - 1)

    def _least(self, moment: Moment, watermark: int) -> int:
        """No such moment of a window yet to be reported comes before this."""
        if moment == "window end":
            return watermark + 1
        if moment == "newest end":
            return self._windows.least_newest_end(watermark)
        least = self._windows.least_end(watermark)
        if moment == "least end":
            return least
        if moment == "window start":
            assert self._opening is not None, "a session's start is that of its events"
            return self._opening(watermark)
        longest_ms = self._longest.longest_ms()
        return least - (self._duration_max_ms if longest_ms is None else longest_ms)

    def next_due(self) -> int | None:
        """See agent.Agent."""
        return self._windows.next_due()

    def held(self) -> int:
        """See agent.Agent."""
        return self._windows.held()

    def dropped(self) -> dict[str, int]:
        """See agent.Agent."""
        inverted, outside = self._outcome.dropped_inverted, self._outcome.dropped_outside
        return {**self._windows.drops, INVERTED: inverted, OUTSIDE: outside}

    def panes(self) -> PaneWindows:
        """What runs it, where that is panes. Raises TypeError."""
        if not isinstance(self._windows, PaneWindows):
            raise TypeError("this window does not run in panes")
        return self._windows

    def state(self) -> Any:
        """See agent.Agent."""
        windows = self._windows.state()
        return {
            "version": ROWS_VERSION if "apart" in windows else STATE_VERSION,
            "inverted": self._outcome.dropped_inverted,
            "outside": self._outcome.dropped_outside,
            "windows": windows,
        }

    def restore(self, state: Any) -> None:
        """See agent.Agent."""
        if state["version"] not in {STATE_VERSION, ROWS_VERSION}:
            raise ValueError(f"agent state of version {state['version']} cannot be read")
        self._outcome.dropped_inverted = state["inverted"]
        self._outcome.dropped_outside = state.get("outside", 0)  # earlier releases had none
        self._windows.restore(state["windows"])


def input_classes(task: Task) -> dict[str, type[Event]]:
    """The struct classes of a task's inputs, by the types' names as events bear them."""
    classes = {}
    for name, event_type in task.types.items():
        key = task.needs.get(name)
        own = name if key is None else f"{name}@{key}"
        classes[own] = event_class(own, event_type.attributes, detected=key is not None)
    return classes


def _windows(
    window: Window,
    shape: Shape,
    outcome: WindowOutcome,
    limits: WindowLimits,
    classes: dict[str, type[Event]],
    *,
    lasting: Lasting,
) -> PaneWindows | OrderedWindows:
    """What runs a window: in panes as long as events need no order, one by one where they do."""
    if window.session_ms is not None:
        sessions = Sessions(window.session_ms, window.session_max_ms, lasting.longest_ms)
        return RunWindows(shape, outcome, sessions, limits, classes)
    grid = grid_of(window)
    if grid is None:
        assert window.range_ms is not None, "one of every, range, session"
        return SlidingWindows(shape, outcome, window.range_ms, limits, classes)
    if window.range_ms is not None and steps(shape, grid):
        return SteppedWindows(shape, outcome, grid, limits, classes)
    if shape.distinct:
        return RunWindows(shape, outcome, Turns(grid), limits, classes)
    return PaneWindows(shape, outcome, grid, limits)


def grid_of(window: Window) -> Grid | DayGrid | None:
    """The windows of `every`; None without it. ValueError of a zone or range that cannot be."""
    if window.every_days is None:
        return None if window.every_ms is None else Grid(window.every_ms, window.range_ms)
    assert window.zone is not None, "days are of a zone"
    if window.range_ms is None:
        return DayGrid(window.zone, window.every_days)
    range_days, rest = divmod(window.range_ms, DAY_MS)
    if rest:
        raise ValueError("a range in a zone is of whole days")
    return DayGrid(window.zone, window.every_days, range_days)

"""The agents of windows: `aggr` with `every T`, `range R`, both, or `session G`; and `every T`
without `aggr`, where what is detected leaves at ticks.

Owns the door: which kind of window runs, the order of what comes out, watermarks and snapshots.
Must not know how windows keep their events (panes.py, ranges.py, sessions.py) nor what a group
becomes (emit.py). Invariant: what is reported depends on the events alone, never on how they were
batched or when their watermarks came.

Sums past signed 64 bits stay exact within expressions; as an attribute they are null, as an event
carries none such. So is a float beyond its range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal, Protocol

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE, Agent, LeafEvents
from broker.engine.event.event import Detected, Event, event_class
from broker.engine.event.occurrence import end_of
from broker.engine.pattern.layout.pattern import lay_out
from broker.engine.pattern.times.assigned import types_begun
from broker.engine.pattern.times.durations import Foresight
from broker.engine.runtime.budget import Budget
from broker.engine.runtime.shelf import Shelf
from broker.engine.window.assigners import Grid, grid_of
from broker.engine.window.bound import Lasting, Moment, end_anchors
from broker.engine.window.buffer import OrderedWindows, WindowTerms
from broker.engine.window.code import (
    DURATION_MAX_MS,
    EVENTS_MAX,
    GROUPS_MAX,
    INVERTED,
    OUTSIDE,
    Shape,
    WindowLimits,
)
from broker.engine.window.constituents import put_in_order
from broker.engine.window.emit import WindowOutcome
from broker.engine.window.panes import PaneWindows
from broker.engine.window.ranges import Sliding, Stepped, is_stepped
from broker.engine.window.sessions import Runs, Sessions, Turns
from language.taskgraph import Task
from language.tree import Case, Definition, Window

STATE_VERSION = 2
ROWS_VERSION = 3  # with partial results of others, which an earlier version would pass over

TICK_STATE_VERSION = 1

HELD_MAX = 1_000_000  # events that wait for a tick: half a gigabyte
EARLY = "tick_full"  # beyond, they leave at once: the tick says when, not whether

_order = attrgetter("order")

Content = Literal["panes", "partials", "events"]


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
        asks = window.runs or "least start" in (self._anchors or ())
        self._lasting = lasting if asks and foresight is not None else None
        self._windows = _windows(window, shape, self._outcome, limits, classes, lasting=lasting)
        grid = grid_of(window)
        # Of a watermark: no window yet to be reported begins before that; None in sessions.
        self._opening = None if grid is None else grid.next_opens_at
        if grid is None and not window.runs:
            self._opening = self._windows.least_end

    def feed(self, batch: Sequence[LeafEvents], watermark: int) -> list[Detected]:
        """Implement agent.Agent."""
        if self._lasting is not None:
            self._lasting.observe(batch)
        made = self._windows.feed(batch, watermark)
        self._outcome.name_all()
        put_in_order(made)
        return made

    def watermark_out(self, watermark: int) -> int:
        """Implement agent.Agent.

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
        """Implement agent.Agent."""
        return self._windows.next_due()

    def held(self) -> int:
        """Implement agent.Agent."""
        return self._windows.held()

    def tidy(self) -> None:
        """Let go now of what no report to come depends on, as sooner or later it would be."""
        if isinstance(self._windows, OrderedWindows):
            self._windows.tidy()

    def dropped(self) -> dict[str, int]:
        """Implement agent.Agent."""
        inverted, outside = self._outcome.dropped_inverted, self._outcome.dropped_outside
        return {**self._windows.drops, INVERTED: inverted, OUTSIDE: outside}

    def panes(self) -> PaneWindows:
        """Return what runs it, where that is panes. Raises TypeError."""
        if not isinstance(self._windows, PaneWindows):
            raise TypeError("this window does not run in panes")
        return self._windows

    def state(self) -> Any:
        """Implement agent.Agent."""
        windows = self._windows.state()
        return {
            "version": ROWS_VERSION if "apart" in windows else STATE_VERSION,
            "inverted": self._outcome.dropped_inverted,
            "outside": self._outcome.dropped_outside,
            "windows": windows,
        }

    def restore(self, state: Any) -> None:
        """Implement agent.Agent."""
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
    """Return what runs a window: panes as long as events need no order, a buffer if they do."""
    grid, content = grid_of(window), content_of(window, shape)
    if grid is not None and content == "panes":
        return PaneWindows(shape, outcome, grid, limits)
    terms = WindowTerms(shape, outcome, limits, classes)
    if window.session_ms is not None:
        limits_ms = window.session_ms, window.session_max_ms
        return Runs(terms, Sessions(*limits_ms, lasting.longest_ms))
    if grid is None:
        assert window.range_ms is not None, "one of every, range, session"
        return Sliding(terms, window.range_ms)
    return Stepped(terms, grid) if content == "events" else Runs(terms, Turns(grid))


def content_of(window: Window, shape: Shape) -> Content:
    """Return what is kept of open windows: partials by pane, partials by window, or all events."""
    grid = grid_of(window)
    if window.runs:
        return "partials"
    if grid is None or (window.range_ms is not None and is_stepped(shape, grid)):
        return "events"
    return "partials" if shape.distinct else "panes"


# --- ticks ------------------------------------------------------------------------------------


class TickedOutcome(Protocol):
    """Makes events of occurrences (see staged_agent.Outcome)."""

    dropped_inverted: int

    def make_all(self, found: Sequence[tuple[Any, tuple[Any, ...]]]) -> list[Any]:
        """Make the events of occurrences with their groups; some give none."""


class TickOutcome:
    """Stands between an agent and its outcome, and notes when what it made was complete."""

    def __init__(self, outcome: TickedOutcome) -> None:
        self._outcome = outcome
        self.made: list[tuple[int, Event]] = []  # ends of occurrences, and their events

    @property
    def dropped_inverted(self) -> int:
        """Implement TickedOutcome."""
        return self._outcome.dropped_inverted

    @dropped_inverted.setter
    def dropped_inverted(self, count: int) -> None:
        self._outcome.dropped_inverted = count

    def make_all(self, found: Sequence[tuple[Any, tuple[Any, ...]]]) -> list[Any]:
        """Implement TickedOutcome."""
        events = []
        for each in found:
            made = self._outcome.make_all([each])
            self.made += [(end_of(each[0]), event) for event in made]
            events += made
        return events


class TickAgent:
    """The agent of a definition `every T` without `aggr` (see agent.Agent).

    The events are those of the definition without its `every`, each with its own span; the tick
    only says when they leave. Ticks are the multiples of T (the midnights of a zone): what ends in
    [kT, (k+1)T) leaves when the watermark has passed the last instant before (k+1)T. What is known
    later leaves at the next tick after that.

    `inner` makes its events through `outcome`; `classes` are those of the events made.
    """

    waits = True

    def __init__(
        self,
        inner: Agent,
        outcome: TickOutcome,
        ticks: Grid,
        classes: Mapping[str, type[Event]],
        held_max: int = HELD_MAX,
    ) -> None:
        self._inner = inner
        self._outcome = outcome
        self._ticks = ticks
        self._classes = classes
        self._held_max = held_max
        self._watermark = WATERMARK_NONE
        self._waiting: dict[int, list[Event]] = {}  # by the watermark that lets them go
        self._least: dict[int, int] = {}  # their least end, likewise
        self._held = 0
        self._early = 0

    @property
    def inner(self) -> Agent:
        """The agent that detects."""
        return self._inner

    @inner.setter
    def inner(self, agent: Agent) -> None:
        self._inner = agent

    def feed(self, batch: Sequence[LeafEvents], watermark: int) -> list[Any]:
        """Implement agent.Agent."""
        self._inner.feed(batch, watermark)
        leaving: list[Any] = []
        for end, event in self._outcome.made:
            # The tick after its end; where that has passed before it was known, the next one.
            instant = max(end, self._watermark + 1)
            due = self._ticks.closes_at(self._ticks.pane_of(instant))
            if due <= watermark:
                leaving.append(event)
            elif self._held >= self._held_max:
                self._early += 1
                leaving.append(event)
            else:
                self._wait(due, event)
        self._outcome.made.clear()
        self._watermark = max(self._watermark, watermark)
        for due in [due for due in self._waiting if due <= self._watermark]:
            events = self._waiting.pop(due)
            del self._least[due]
            self._held -= len(events)
            leaving += events
        if len(leaving) > 1:
            leaving.sort(key=_order)
        return leaving

    def watermark_out(self, watermark: int) -> int:
        """Implement agent.Agent."""
        out = self._inner.watermark_out(watermark)
        return min([out, *(end - 1 for end in self._least.values())])

    def next_due(self) -> int | None:
        """Implement agent.Agent."""
        inner = self._inner.next_due()
        return min([*self._waiting, *(() if inner is None else (inner,))], default=None)

    def held(self) -> int:
        """Implement agent.Agent."""
        return self._inner.held() + self._held

    def dropped(self) -> dict[str, int]:
        """Implement agent.Agent: for want of room nothing is lost, but leaves early, counted."""
        return {**self._inner.dropped(), EARLY: self._early}

    def state(self) -> Any:
        """Implement agent.Agent."""
        shelf = Shelf(self._classes)
        waiting = [
            [due, [shelf.put(event) for event in events]] for due, events in self._waiting.items()
        ]
        return {
            "version": TICK_STATE_VERSION,
            "inner": self._inner.state(),
            "watermark": self._watermark,
            "early": self._early,
            "waiting": waiting,
            "events": shelf.packed(),
        }

    def restore(self, state: Any) -> None:
        """Implement agent.Agent."""
        if state["version"] != TICK_STATE_VERSION:
            raise ValueError(f"agent state of version {state['version']} cannot be read")
        self._inner.restore(state["inner"])
        shelf = Shelf(self._classes, state["events"])
        self._watermark, self._early = state["watermark"], state["early"]
        self._waiting, self._least, self._held = {}, {}, 0
        for due, events in state["waiting"]:
            for at in events:
                self._wait(due, shelf.get(at))

    def _wait(self, due: int, event: Event) -> None:
        end: int = event.end
        self._waiting.setdefault(due, []).append(event)
        self._least[due] = min(end, self._least.get(due, end))
        self._held += 1

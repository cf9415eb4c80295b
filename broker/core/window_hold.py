"""The most that a windowed case can hold, told before it runs.

Owns the arithmetic over windows, rates and limits. Must not know agents at work. Invariant: as long
as no more events come than the load says, no agent of the case ever holds more than is told.

What neither the window nor the load bounds is bounded by a limit, which is named; what exceeds it
is refused and counted (see window_shape.WindowLimits).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from broker.core.window import grid_of
from broker.core.window_days import DAY_MS
from broker.core.window_grid import Grid
from broker.core.window_ids import IDS_MAX
from broker.core.window_partial import PENDING_MAX
from broker.core.window_shape import Shape, WindowLimits
from broker.core.window_slide import SWEEP_MS_MIN, steps
from language.taskgraph import Task
from language.tree import Case, Definition, Window

EVENTS_LIMIT = "events_held_max"
GROUPS_LIMIT = "groups_max"


@dataclass(frozen=True, slots=True)
class Load:
    """What comes to a case.

    `rates`: by type, as the task names it, the most events that end within any one second. Events
    run ahead of the watermark by at most `lag_ms`. `keys`: how many groups there are, None where
    nobody knows.
    """

    rates: Mapping[str, float]
    lag_ms: int
    keys: int | None = None


@dataclass(frozen=True, slots=True)
class StateBound:
    """The most that is held: events (or values of them), and partial results, one a group.

    `apart` are events that stand beside partial results, for a while or for the sake of order, and
    that an agent's `held` does not count. `limits` names what bounds all this besides the window
    and the load.
    """

    counted: int
    apart: int
    partials: int
    limits: tuple[str, ...] = ()

    @property
    def events(self) -> int:
        """All events."""
        return self.counted + self.apart

    def text(self) -> str:
        """A clause for people."""
        events = f"{self.events:,} event{'' if self.events == 1 else 's'}"
        partials = f"{self.partials:,} partial result{'' if self.partials == 1 else 's'}"
        by = f" (by {' and '.join(self.limits)})" if self.limits else ""
        return f"at most {events} and {partials}{by}"


def state_bound(task: Task, case: Case, limits: WindowLimits, load: Load) -> StateBound:
    """The most that an agent of a windowed case holds under a load.

    Without `aggr` only what waits for ticks is told, which the limit bounds: how many events a
    pattern makes does not follow from the load.
    """
    assert isinstance(task.node, Definition), "windows are of definitions"
    window = task.node.window
    assert window is not None, "this definition has no window"
    if not window.aggregated:
        return StateBound(limits.events_max, 0, 0, (EVENTS_LIMIT,))
    return _Case(Shape(task, case), window, limits, load).bound()


class _Case:
    def __init__(self, shape: Shape, window: Window, limits: WindowLimits, load: Load) -> None:
        self.shape = shape
        self.window = window
        self.limits = limits
        self.load = load
        # Of midnights a day more than they are apart: clocks change, and dates move.
        self.every_ms = window.every_ms
        if window.every_days is not None:
            self.every_ms = (window.every_days + 1) * DAY_MS
        self.groups = 1 if not shape.names.keys else load.keys

    def bound(self) -> StateBound:
        window = self.window
        if window.session_ms is not None:
            return self._runs(window.session_max_ms)
        if self.every_ms is None:
            return self._moving((window.range_ms or 0) + max(window.range_ms or 0, SWEEP_MS_MIN))
        grid = grid_of(window)
        if window.range_ms is not None and grid is not None and steps(self.shape, grid):
            return self._moving(window.range_ms + self.every_ms)
        return self._runs(self.every_ms) if self.shape.distinct else self._panes(self.every_ms)

    def _panes(self, every_ms: int) -> StateBound:
        """Panes from the beginning of the oldest open window to the newest event."""
        length_ms = (self.window.range_ms or 0) + 2 * every_ms + self.load.lag_ms
        shortest_ms, each = every_ms, 1
        if self.window.every_days is not None:
            shortest_ms = self.window.every_days * DAY_MS // 2
        elif Grid(every_ms, self.window.range_ms).halved:
            each = 2
        panes = (length_ms // shortest_ms + 2) * each
        values = sum(
            self._most(leaf, length_ms) * growing for leaf, growing in enumerate(self.shape.growing)
        )
        partials = None if self.groups is None else self.groups * panes
        apart = min(self._all(length_ms), PENDING_MAX + self.limits.events_max)
        if partials is not None:
            apart = min(apart, PENDING_MAX + 2 * IDS_MAX * partials)
        return self._limited(values, partials, apart)

    def _moving(self, length_ms: int) -> StateBound:
        """The events inside of windows, and those that wait."""
        events = self._all(length_ms) + self._all(self.load.lag_ms)
        return self._limited(events, self.groups)

    def _runs(self, longest_ms: int | None) -> StateBound:
        """A run a group; its values and keys, as long as it may last; and what waits."""
        each = [
            growing + (key is not None)
            for growing, key in zip(self.shape.growing, self.shape.distinct_keys, strict=True)
        ]
        values: int | None = None
        if not any(each):
            values = 0
        elif longest_ms is not None:
            values = sum(self._most(leaf, longest_ms + 1) * kept for leaf, kept in enumerate(each))
        waiting = self._all(self.load.lag_ms)
        events = None if values is None else values + waiting
        apart = PENDING_MAX + self.limits.events_max
        if self.groups is not None:
            apart = PENDING_MAX + 2 * IDS_MAX * self.groups
        return self._limited(events, self.groups, apart)

    def _limited(self, events: int | None, partials: int | None, apart: int = 0) -> StateBound:
        """`apart` are events that are kept besides those that a limit counts."""
        named = []
        if events is None or events > self.limits.events_max:
            events = self.limits.events_max
            named.append(EVENTS_LIMIT)
        if partials is None or partials > self.limits.groups_max:
            partials = self.limits.groups_max
            named.append(GROUPS_LIMIT)
        return StateBound(events, apart, partials, tuple(named))

    def _most(self, leaf: int, length_ms: int) -> int:
        """How many events of a leaf end within so many milliseconds."""
        rate = self.load.rates.get(self.shape.names.operands[leaf].event_type, 0)
        return ceil(rate * ceil(length_ms / 1_000))

    def _all(self, length_ms: int) -> int:
        """How many events of all leaves do; one of two leaves counts once."""
        types = {operand.event_type: leaf for leaf, operand in enumerate(self.shape.names.operands)}
        return sum(self._most(leaf, length_ms) for leaf in types.values())

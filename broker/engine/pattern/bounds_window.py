"""What a window holds at most, and how much it passes on.

Owns the arithmetic of each kind of window. Must not know how windows keep their events. Invariant:
never less than what the agent of the window holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from broker.engine.pattern.bounds_amount import Flow, Held, never, product, total
from broker.engine.pattern.bounds_pattern import Passed
from broker.engine.window.assigners import DAY_MS
from broker.engine.window.code import Shape
from broker.engine.window.ranges import SWEEP_MS_MIN
from language.tree import Window

DAY_LONGEST_MS = DAY_MS + 3_600_000  # a day on which clocks go back


def passed(
    window: Window, shape: Shape, leaves: Sequence[Flow], lag_ms: int | None, held: Held
) -> Passed:
    """What a window passes on; what it holds is added to `held`.

    `leaves` are the flows of its operands, `lag_ms` how far the watermark lags behind.
    """
    if lag_ms is None:
        held.add(None, matches=False, reason="it waits for what may never be decided")
        return Passed(never, None)
    if window.session_ms is not None:
        return _session(window, shape, leaves, lag_ms, held)
    every_ms = window.every_ms
    if window.every_days is not None:
        every_ms = window.every_days * DAY_LONGEST_MS
    range_ms = window.range_ms
    if every_ms is None:
        assert range_ms is not None
        return _moving(shape, leaves, range_ms, lag_ms, held)
    return _ticking(shape, leaves, (every_ms, range_ms), lag_ms, held)


def _events(leaves: Sequence[Flow], span_ms: int) -> int | None:
    return total(*(flow(span_ms) for flow in leaves))


def _values(shape: Shape, leaves: Sequence[Flow], span_ms: int) -> int | None:
    """The values that are kept of the events in so long a time."""
    counts = []
    for leaf, flow in enumerate(leaves):
        kept = shape.growing[leaf] + (shape.distinct_keys[leaf] is not None)
        counts.append(product(flow(span_ms), kept))
    return total(*counts)


def _ticking(
    shape: Shape,
    leaves: Sequence[Flow],
    times: tuple[int, int | None],
    lag_ms: int,
    held: Held,
) -> Passed:
    every_ms, range_ms = times
    reach_ms = (range_ms or every_ms) + every_ms
    span_ms = reach_ms + lag_ms + 1
    why = "events come without limit"
    panes = 2 * (span_ms // every_ms + 2)
    held.matches_each += panes
    held.add(_values(shape, leaves, span_ms), matches=False, reason=why)
    if range_ms is not None and (shape.distinct or any(shape.growing)):
        # Such windows are moved from tick to tick, with their events inside.
        held.add(_events(leaves, span_ms), matches=False, reason=why)
    if shape.distinct:
        held.add(_events(leaves, lag_ms + 1), matches=False, reason=why)
    shares = Fraction(range_ms or every_ms, every_ms).__ceil__() + 1

    def flow(ms: int) -> int | None:
        return product(_events(leaves, ms + reach_ms), shares)

    return Passed(flow, lag_ms + reach_ms + 1)


def _moving(shape: Shape, leaves: Sequence[Flow], range_ms: int, lag_ms: int, held: Held) -> Passed:
    why = "events come without limit"
    if shape.names.keys:
        # Silent groups are swept so often: up to then all lies in one stretch of time.
        inside_ms = range_ms + max(range_ms, SWEEP_MS_MIN) + lag_ms + 2
        held.add(_events(leaves, inside_ms), matches=False, reason=why)
    else:
        # What is inside ends with an event, what waits begins behind the watermark. The silence
        # between the two may be just what a single stretch would count.
        inside_ms = range_ms
        held.add(_events(leaves, inside_ms), matches=False, reason=why)
        held.add(_events(leaves, lag_ms), matches=False, reason=why)
    if any(shape.growing) or shape.distinct:
        held.add(_values(shape, leaves, inside_ms), matches=False, reason=why)
    return Passed(lambda ms: _events(leaves, ms), lag_ms + range_ms + 1)


def _session(
    window: Window, shape: Shape, leaves: Sequence[Flow], lag_ms: int, held: Held
) -> Passed:
    gap_ms = window.session_ms
    assert gap_ms is not None
    held.add(_events(leaves, lag_ms + 1), matches=False, reason="events come without limit")
    held.matches_each += lag_ms // gap_ms + 2
    longest_ms = window.session_max_ms
    if any(shape.growing) or shape.distinct:
        values = None
        if longest_ms is not None:
            values = _values(shape, leaves, longest_ms + gap_ms + lag_ms + 1)
        why = "a session without `max` may go on for ever, and values of all its events are kept"
        held.add(values, matches=False, reason=why)
    late_ms = gap_ms if longest_ms is None and not shape.distinct else longest_ms
    lag = None if late_ms is None else lag_ms + late_ms + gap_ms + 1
    return Passed(lambda ms: _events(leaves, ms + gap_ms), lag)

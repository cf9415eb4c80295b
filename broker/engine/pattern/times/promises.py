"""What an agent promises of what it will put out: that it ends after a time.

Owns the arithmetic of assigned times. Must not know how occurrences are found. Invariant: the
promise holds for all that comes later, and reaches as far as what is open allows.

An assigned time lies within its occurrence (an end may lie after it), so what counts is when an
occurrence that is still to be reported may begin: no earlier than the eldest event that is held or
the longest to come, nor longer before its end than an occurrence may span. Where it is the end of
an event, those to come count from the watermark on.

A promise cannot be taken back. So what nothing bounds is taken to last for the limit, and not only
for as long as any has.
"""

from __future__ import annotations

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE, Agent
from broker.engine.pattern.layout.pattern import Layout
from broker.engine.pattern.times.assigned import assigned_end, types_begun_at_ends, types_ended
from broker.engine.pattern.times.durations import Foresight
from broker.engine.pattern.times.timing import Span
from broker.engine.pattern.uncertainty.verdicts import Doubt
from language.tree import Case


class Promise:
    """The promises of one agent; `lags`: whether it must be told of the eldest that is held."""

    __slots__ = ("_doubt", "_foresight", "_place", "_span", "lags")

    def __init__(
        self,
        case: Case,
        layout: Layout,
        foresight: Foresight | None,
        doubt: Doubt | None = None,
    ) -> None:
        self._doubt = doubt
        self._place = assigned_end(case, layout)
        self.lags = self._place in {"an event", "within"}
        # Of `end = x.end` the event's beginning is nowhere in what is put out.
        points = types_ended(case, layout) if self._place == "an event" else frozenset()
        begun = types_begun_at_ends(case, layout)
        self._foresight = foresight and foresight.surely(begun, points)
        self._span = Span(layout.root, doubt)

    def out(self, watermark: int, reported: int, eldest: int) -> int:
        """Nothing that comes later ends at or before this.

        No occurrence that is reported later ends by `reported`, and what is held begins at `eldest`
        or later; all given the watermark of the inputs.
        """
        if reported >= WATERMARK_END:
            return reported
        if not self.lags:
            # What comes last may have a nominal time before others where times are uncertain.
            early = self._doubt if self._place == "last event" else None
            return reported if early is None else reported - early.slack_ms()
        if self._foresight is None:
            return WATERMARK_NONE  # nothing is known of how long events last
        longest_ms = 0 if self._place == "an event" else self._foresight.longest_of_all_ms()
        # What is to come begins that long before the watermark at worst, what is held where it
        # began. With a watermark at 60 s, events of 5 s and one held from 50 s: nothing to come
        # ends by 49,999.
        by_held = min(watermark - longest_ms, eldest - 1)
        span_ms = self._span.likely_ms(self._foresight)
        return by_held if span_ms is None else max(by_held, reported - span_ms)


def reached_at(agent: Agent, target: int, watermark: int) -> int | None:
    """The watermark of its inputs at which, without events, an agent promises as much.

    The one given is where they are. None: what it holds keeps it from that, for as long as it is
    held; or nothing is known of the inputs.
    """
    if watermark >= WATERMARK_END:
        return None
    promised = agent.watermark_out(watermark)
    if promised >= target:
        return watermark
    if watermark <= WATERMARK_NONE or promised <= WATERMARK_NONE:
        return None
    at = watermark + target - promised  # a promise goes no faster than the inputs
    if agent.watermark_out(at) >= target:
        return at
    # Rejected: to solve for it. Promises are minima over what is held, and agents differ; asking
    # takes some 60 steps, and only where time alone is asked about.
    low, high = at, WATERMARK_END - 1
    if agent.watermark_out(high) < target:
        return None
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if agent.watermark_out(middle) >= target else (middle, high)
    return high

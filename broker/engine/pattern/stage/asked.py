"""What a stage is asked of what it has yet to pass on: where that begins, and when that is clear.

Owns the two answers, as views of stages. Must not know any operator. Invariant: a view answers for
its stage while that stands as it stood.

A view sorts once what its stage keeps, and looks things up: so whoever asks much makes one of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Protocol

from broker.engine.event.agent import WATERMARK_END


class Ahead(Protocol):
    """Whoever can be asked; see base.Stage."""

    def floor(self, above: int) -> int:
        """Of what comes later and begins after `above`: nothing begins before this time."""

    def clear_at(self, above: int, until: int) -> int:
        """The watermark from which on, without events, what begins after `above` does so after
        `until`, too.
        """


class View:
    """A stage over others as it stands, to be asked many times."""

    __slots__ = ("_feeding", "_hold", "_likely_ms", "_starts", "_watermark")

    def __init__(
        self,
        watermark: int,
        hold: int,
        likely_ms: int | None,
        starts: list[int],
        feeding: Sequence[Ahead],
    ) -> None:
        """`hold`, `likely_ms`: after what time, and how long, what it passes on goes on.

        `starts`: when those begin that it keeps to make something of; `feeding`: views of those
        beneath of whose occurrences it may make something.
        """
        self._watermark = watermark
        self._hold = hold
        self._likely_ms = likely_ms
        # Once for the view, and looked up for each question.
        self._starts = sorted(starts)
        self._feeding = feeding

    def floor(self, above: int) -> int:
        """Return a bound: what comes later and begins after `above` begins no earlier."""
        if self._watermark >= WATERMARK_END:
            return WATERMARK_END
        span_ms = self._likely_ms
        if span_ms is not None:  # what began before that is in nothing to come
            above = max(above, min(self._watermark, self._hold) - span_ms)
        floor = min([one.floor(above) for one in self._feeding])
        # `above` is exclusive and `until` inclusive, in both answers.
        at = bisect_right(self._starts, above)
        if at < len(self._starts) and self._starts[at] < floor:
            floor = self._starts[at]
        return floor if span_ms is None else max(floor, above + 1)

    def clear_at(self, above: int, until: int) -> int:
        """Return the watermark from which what begins after `above` begins after `until`, too."""
        if self._watermark >= WATERMARK_END:
            return self._watermark
        clear = max([one.clear_at(above, until) for one in self._feeding])
        at = bisect_right(self._starts, until) - 1
        newest = self._starts[at] if at >= 0 and self._starts[at] > above else None
        span_ms, hold = self._likely_ms, self._hold
        if span_ms is None:
            return clear if newest is None else WATERMARK_END
        if newest is not None:
            past = newest + span_ms
            clear = max(clear, past) if past <= hold else WATERMARK_END
        return min(clear, until + span_ms) if until + span_ms <= hold else clear


class LeafView:
    """The stage of an atom, with what is known now of how long its events last."""

    __slots__ = ("_longest_ms", "_watermark")

    def __init__(self, watermark: int, longest_ms: int) -> None:
        self._watermark = watermark
        self._longest_ms = longest_ms

    def floor(self, above: int) -> int:  # noqa: ARG002
        """Return the first instant at which an event to come may begin."""
        if self._watermark >= WATERMARK_END:
            return WATERMARK_END
        return self._watermark + 1 - self._longest_ms

    def clear_at(self, above: int, until: int) -> int:  # noqa: ARG002
        """Return the watermark from which what is still to come begins after `until`."""
        # An event that begins at `until` may end so much later, and is told by its end.
        return until + self._longest_ms if self._watermark < WATERMARK_END else WATERMARK_END


class WaitingView:
    """Answer many times for what waits between two stages, and for the stage beneath."""

    __slots__ = ("_beneath", "_starts")

    def __init__(self, beneath: Ahead, starts: list[int]) -> None:
        """`starts`: when those begin that wait."""
        self._beneath = beneath
        self._starts = sorted(starts)

    def floor(self, above: int) -> int:
        """Return a bound: what waits or comes and begins after `above` begins no earlier."""
        floor = self._beneath.floor(above)
        at = bisect_right(self._starts, above)
        return min(floor, self._starts[at]) if at < len(self._starts) else floor

    def clear_at(self, above: int, until: int) -> int:
        """Return the watermark from which what begins after `above` begins after `until`, too."""
        at = bisect_right(self._starts, above)
        if at < len(self._starts) and self._starts[at] <= until:
            return WATERMARK_END
        return self._beneath.clear_at(above, until)

"""What a stage is asked of what it has yet to pass on: where that begins, and when that is clear.

Owns the two answers for stages over others, and views for those who ask much at once. Must not know
any operator. Invariant: a view answers as its stage does while the stage stands as it stood.

A stage looks through what it keeps for each answer. A view sorts that once and looks things up.
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


class Asked:
    """The answers of a stage, from what it keeps and from what is beneath."""

    __slots__ = ()
    watermark: int

    def hold(self) -> int:
        """Return the time after which later occurrences end, as far as what is open decides."""
        raise NotImplementedError

    def likely_ms(self) -> int | None:
        """Return how long what it passes on lasts at most, by what is known of the types."""
        raise NotImplementedError

    def feeding(self) -> Sequence[Ahead]:
        """Those beneath of whose occurrences something to come may be made."""
        raise NotImplementedError

    def first_above(self, above: int) -> int | None:
        """Of what it keeps to make something of: the first beginning after the time."""
        raise NotImplementedError

    def last_between(self, above: int, until: int) -> int | None:
        """Of the same: the last beginning after the one time, and not after the other."""
        raise NotImplementedError

    def floor(self, above: int) -> int:
        """Return a bound: what comes later and begins after `above` begins no earlier."""
        if self.watermark >= WATERMARK_END:
            return WATERMARK_END
        span_ms = self.likely_ms()
        if span_ms is not None:  # what began before that is in nothing to come
            above = max(above, min(self.watermark, self.hold()) - span_ms)
        floor = min([one.floor(above) for one in self.feeding()])
        first = self.first_above(above)
        if first is not None and first < floor:
            floor = first
        return floor if span_ms is None else max(floor, above + 1)

    def clear_at(self, above: int, until: int) -> int:
        """Return the watermark from which what begins after `above` begins after `until`, too."""
        if self.watermark >= WATERMARK_END:
            return self.watermark
        clear = max([one.clear_at(above, until) for one in self.feeding()])
        newest = self.last_between(above, until)
        span_ms = self.likely_ms()
        if span_ms is None:
            return clear if newest is None else WATERMARK_END
        hold = self.hold()
        if newest is not None:
            past = newest + span_ms
            clear = max(clear, past) if past <= hold else WATERMARK_END
        return min(clear, until + span_ms) if until + span_ms <= hold else clear


class View(Asked):
    """A stage over others as it stands, to be asked many times."""

    __slots__ = ("_feeding", "_hold", "_likely_ms", "_starts", "watermark")

    def __init__(self, stage: Asked, starts: list[int], feeding: Sequence[Ahead]) -> None:
        """`starts`: when those begin that it keeps to make something of; `feeding`: views."""
        self.watermark = stage.watermark
        self._hold = stage.hold()
        self._likely_ms = stage.likely_ms()
        # Once for the view: the stage itself would walk its stores for each question.
        self._starts = sorted(starts)
        self._feeding = feeding

    def hold(self) -> int:
        """Return the hold that the stage had."""
        return self._hold

    def likely_ms(self) -> int | None:
        """Return how long what the stage passes on lasts at most, as was known."""
        return self._likely_ms

    def feeding(self) -> Sequence[Ahead]:
        """Return the views beneath of whose occurrences something to come may be made."""
        return self._feeding

    def first_above(self, above: int) -> int | None:
        """Return the first start after the time; None if there is none."""
        # `above` is exclusive and `until` inclusive, in both answers.
        at = bisect_right(self._starts, above)
        return self._starts[at] if at < len(self._starts) else None

    def last_between(self, above: int, until: int) -> int | None:
        """Return the last start after the one time and not after the other; None if none."""
        at = bisect_right(self._starts, until) - 1
        return self._starts[at] if at >= 0 and self._starts[at] > above else None


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

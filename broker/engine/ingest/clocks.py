"""How far event time has come: watermarks, and who is late.

Owns what a clock is, and the clock of one input stream. Must not know payloads, tasks or
wall time: `now` comes in and never goes back. Invariant: a watermark that was given out never goes
back, and no event that ends at or before it is let through for its type afterwards.

The watermark W of an input says that every event still to come ends strictly after W. With
lateness L and the greatest end m so far, W = m - L - 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.ingest.source_clocks import Split, course, sifted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.engine.event.event import Event


class Clock(Protocol):
    """Offer what intake asks of clocks."""

    def split(self, events: list[Event], now: int, source: str | None) -> Split:
        """Judge events as they came; the clocks go on by those that are on time.

        `source` is given where all events are known to be of that source.
        """

    def advertise(self, source: str, types: Iterable[str], now: int) -> None:
        """A source says that it will send these types. Raises LimitReachedError."""

    def withdraw(self, source: str, now: int) -> None:
        """A source says that it will send no more."""

    def watermark(self, type_name: str, now: int = 0) -> int:
        """The watermark of a type's events; it is then given out."""

    def foreseen(self, type_name: str, now: int = 0) -> int:
        """The watermark that would be given out; asking changes nothing."""

    def hindmost(self, type_name: str, now: int) -> str:
        """Whose clock holds the type's watermark, for people; empty where nobody does."""

    def floor(self, now: int) -> int:
        """At or before which no event of any source can be on time any more."""

    def next_wake(self, now: int, due: Mapping[str, int]) -> int | None:
        """When to ask again: before that, without events, no type reaches the watermark in `due`.

        None if time alone will never do.
        """

    def pass_over(self, due: Mapping[str, int], now: int) -> bool:
        """Take types that no source is left to send to their watermark in `due`; whether any moved.

        Only types whose last source was withdrawn.
        """

    def finish(self) -> None:
        """Nothing more will come: all watermarks are at their end."""

    def state(self) -> dict[str, Any]:
        """Plain data, of clocks that have not finished."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up such a state, in the place of all that is here."""

    def resume(self, before: int, now: int) -> None:
        """Let what was silent or waited for from `before` until now be so from now on instead."""


class StreamClock:
    """One clock for a whole stream; with lateness None all is on time until it finishes."""

    def __init__(self, lateness_ms: int | None) -> None:
        self._lateness_ms = lateness_ms
        self._newest = WATERMARK_NONE
        self._finished = False

    def split(self, events: list[Event], now: int, source: str | None) -> Split:  # noqa: ARG002
        """Judge events as they came; who sent an event does not matter, nor when it arrived."""
        lateness_ms = self._lateness_ms
        if self._finished:
            return Split([], events, [])
        if lateness_ms is None:
            return Split(events, [], [])
        ahead = course(events, self._newest, WATERMARK_NONE, lateness_ms)
        # The whole batch is judged before any event is: late ones are rare, and only where there is
        # one is it gone through event by event.
        if not ahead.late:
            self._newest = ahead.newest
            floor = self.watermark("", now)
            known = ahead.ordered, ahead.apart, ahead.newest, ahead.ends
            return Split(events, [], [], *known, floor=floor)
        split, self._newest = sifted(events, self._newest, {}, lateness_ms)
        return split

    def advertise(self, source: str, types: Iterable[str], now: int) -> None:
        """Ignore the advertisement: a stream has no sources to wait for."""

    def withdraw(self, source: str, now: int) -> None:
        """Ignore the withdrawal: a stream has no sources to wait for."""

    def watermark(self, type_name: str, now: int = 0) -> int:  # noqa: ARG002
        """Return the watermark, which is the same for all types."""
        if self._finished:
            return WATERMARK_END
        if self._lateness_ms is None or self._newest == WATERMARK_NONE:
            return WATERMARK_NONE
        # An event that ends at m - L is still on time, so the last instant that is closed is the
        # one before: with m = 100 and L = 10 the watermark is 89, and an event that ends at 90
        # counts.
        return self._newest - self._lateness_ms - 1

    def foreseen(self, type_name: str, now: int = 0) -> int:
        """Return the watermark; asking changes nothing here."""
        return self.watermark(type_name, now)

    def hindmost(self, type_name: str, now: int) -> str:  # noqa: ARG002
        """Return an empty text: a stream does not know its sources."""
        return ""

    def floor(self, now: int) -> int:
        """Return the watermark: at or before it no event can be on time any more."""
        return self.watermark("", now)

    def next_wake(self, now: int, due: Mapping[str, int]) -> int | None:  # noqa: ARG002
        """Return None: a stream's clock goes by its events alone."""
        return None

    def pass_over(self, due: Mapping[str, int], now: int) -> bool:  # noqa: ARG002
        """Return False: a stream does not know its sources."""
        return False

    def finish(self) -> None:
        """End the stream: nothing more will come, and all watermarks are at their end."""
        self._finished = True

    def state(self) -> dict[str, Any]:
        """Return the newest time as plain data."""
        return {"newest": self._newest}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up such a state, in the place of what is here."""
        self._newest = state["newest"]

    def resume(self, before: int, now: int) -> None:
        """Change nothing: a stream does not go by the time of day."""

"""An atom: passes on its events as they are.

Owns nothing but what waits for the watermark. Must not know conditions.
"""

from __future__ import annotations

from typing import Any

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.event import Event
from broker.engine.event.occurrence import without
from broker.engine.pattern.stage.asked import Ahead, LeafView
from broker.engine.pattern.stage.base import Site


class LeafStage:
    """One atom of one partition; the agent gives it events in order, none after the watermark."""

    is_atom = True
    __slots__ = ("_asked_ms", "_site", "_type", "_watermark", "events")

    def __init__(self, site: Site, event_type: str, asked_ms: int | None = None) -> None:
        """`asked_ms`: how long its conditions let an event last."""
        self._site = site
        self._type = event_type
        self._asked_ms = asked_ms
        self._watermark = WATERMARK_NONE
        self.events: list[Event] = []

    def advance(self, watermark: int) -> list[Event]:
        """Return the events that came, all of which are due."""
        self._watermark = watermark
        # The agent holds back what lies after the watermark, so all of it is due.
        events, self.events = self.events, []
        return events

    def hold(self) -> int:
        """Return the end of time, as an atom keeps nothing open."""
        # An atom keeps nothing open: what it has passed on is all there is up to the watermark.
        return WATERMARK_END

    def begins(self) -> int:
        """Return a time before which no event begins that is passed on later."""
        if self._watermark >= WATERMARK_END:
            return WATERMARK_END
        # For dropping, what the type might still do counts (`reach_ms`), and not only what it has
        # done (`longest_ms`): a dropped partner cannot be had again.
        reach_ms = self._site.durations.reach_ms(self._type)
        if self._asked_ms is not None and self._asked_ms < reach_ms:
            reach_ms = self._asked_ms
        begins = self._watermark + 1 - reach_ms
        return min([begins, *[event.start for event in self.events]]) if self.events else begins

    def eldest(self) -> int:
        """Return when the eldest of the events that wait here begins."""
        return min([event.start for event in self.events], default=WATERMARK_END)

    def origin(self) -> int:
        """Return a time before which no event begins that waits here or is yet to come."""
        return self.begins()

    def view(self) -> Ahead:
        """Return the atom as it stands, with what is known of how long its events last."""
        # The lesser of what has been seen of the type and what the conditions let through:
        # `Wash(duration < 1 h)` waits for an hour at most.
        longest_ms = self._site.durations.longest_ms(self._type)
        if self._asked_ms is not None:
            longest_ms = min(longest_ms, self._asked_ms)
        return LeafView(self._watermark, longest_ms)

    def due(self) -> int | None:
        """Return None: time alone decides nothing here."""
        return None

    def held(self) -> int:
        """Count the events that wait here."""
        return len(self.events)

    def idle(self) -> bool:
        """Tell whether no event waits here."""
        return not self.events

    def shed(self, count: int) -> int:  # noqa: ARG002
        """Drop nothing; return 0."""
        # What waits here has not been looked at by any operator; a limit on what is held drops
        # their stores.
        return 0

    def forget(self, gone: set[int]) -> None:
        """Take consumed events (by identity) out of those that wait here."""
        self.events = without(self.events, gone)

    def state(self) -> Any:
        """Return the watermark alone."""
        # Events that wait are the agent's to keep: it gives them again.
        return [self._watermark]

    def restore(self, state: Any) -> None:
        """Take the watermark up again."""
        (self._watermark,) = state

"""Which events were taken in before: the memory of (id, end).

Owns that memory. Must not know clocks: it is told how far back it has to reach. Invariant: of the
events with one id and end that end after the watermark, the first alone passes, wherever the
batches were cut; memory is bounded by what arrived after the watermark, and by a limit.

A stream in order pays one comparison for an event: what ends after all that was seen is new. The
dictionary of ids is made of the remembered batches when the first event comes that does not.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.core.event import Event

SLACK = 1_024  # events that it may hold beyond twice what was left of it the last time


class Repeats:
    """Tells new events from repeats; `forgotten` counts what the limit took from the memory."""

    def __init__(self, events_max: int) -> None:
        self._events_max = events_max
        self._newest: int | None = None
        self._batches: deque[tuple[int, list[Event]]] = deque()  # (greatest end, its events)
        self._unfolded = 0  # events in the batches
        self._known: dict[str, Event | dict[int, Event]] = {}  # by id, or by id and end
        self._folded = 0  # events in the dictionary
        self._prune_at = SLACK
        self.forgotten = 0

    @property
    def due(self) -> bool:
        """Whether it has grown so far that it is worth telling it the watermark."""
        return self._unfolded + self._folded > self._prune_at

    def __len__(self) -> int:
        return self._unfolded + self._folded

    def admit(
        self, events: list[Event], *, ascending: bool = False
    ) -> tuple[list[Event], list[tuple[Event, bool]]]:
        """(new events, repeats); each repeat comes with whether it says something else.

        `ascending` says that each of the events is known to end after the one before it.
        """
        if not events:
            return events, []
        newest = self._newest
        if newest is None:
            newest = self._newest = events[0].end - 1
        if ascending:
            if events[0].end <= newest:
                return self._look_up(events, newest)
            newest = events[-1].end
        else:
            for event in events:
                end = event.end
                if end <= newest:
                    return self._look_up(events, newest)
                newest = end
        self._newest = newest
        self._batches.append((newest, list(events)))
        self._unfolded += len(events)
        if len(self) > self._events_max:
            self._forget()
        return events, []

    def advance(self, watermark: int) -> None:
        """Forget what ends at or before the watermark: a repeat of it would be late."""
        batches = self._batches
        while batches and batches[0][0] <= watermark:
            self._unfolded -= len(batches.popleft()[1])
        if self._folded:
            self._rebuild([event for event in self._remembered() if event.end > watermark])
        self._prune_at = 2 * len(self) + SLACK

    def _look_up(
        self, events: list[Event], newest: int
    ) -> tuple[list[Event], list[tuple[Event, bool]]]:
        self._fold()
        greatest = max([event.end for event in events])
        self._newest = max(newest, greatest)
        fresh = events
        repeats: list[tuple[Event, bool]] = []
        ids = {event.id: event for event in events}
        if len(ids) == len(events) and self._known.keys().isdisjoint(ids):
            self._known.update(ids)
            self._folded += len(ids)
        else:
            fresh = []
            for event in events:
                first = self._add(event)
                if first is None:
                    fresh.append(event)
                else:
                    repeats.append((event, _said(first) != _said(event)))
        if len(self) > self._events_max:
            self._forget()
        return fresh, repeats

    def _add(self, event: Event) -> Event | None:
        """The event that stands already for this id and end; else the event is remembered."""
        before = self._known.get(event.id)
        if before is None:
            self._known[event.id] = event
        elif isinstance(before, dict):
            if event.end in before:
                return before[event.end]
            before[event.end] = event
        elif before.end == event.end:
            return before
        else:
            self._known[event.id] = {before.end: before, event.end: event}
        self._folded += 1
        return None

    def _fold(self) -> None:
        for _, events in self._batches:
            for event in events:
                self._add(event)
        self._batches.clear()
        self._unfolded = 0

    def _remembered(self) -> list[Event]:
        found: list[Event] = []
        for one in self._known.values():
            if isinstance(one, dict):
                found += one.values()
            else:
                found.append(one)
        return found

    def _forget(self) -> None:
        """Past the limit the half that ends first goes; a repeat of those is taken for new."""
        self._fold()
        remembered = sorted(self._remembered(), key=lambda event: (event.end, event.id))
        gone = len(remembered) - self._events_max // 2
        self._rebuild(remembered[gone:])
        self.forgotten += gone

    def _rebuild(self, kept: list[Event]) -> None:
        self._known = {}
        self._folded = 0
        for event in kept:
            self._add(event)


def _said(event: Event) -> tuple[Any, ...]:
    return (
        event.event_type,
        event.source,
        event.location,
        event.position,
        event.start,
        event.uncertainty,
        event.attribute_values(),
    )

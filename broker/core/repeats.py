"""Which events were taken in before: the memory of (id, end).

Owns that memory. Must not know clocks: it is told how far back it has to reach. Invariant: of the
events with one id and end that end after the watermark, the first alone passes, wherever the
batches were cut; memory is bounded by what arrived after the watermark, and by a limit.

A stream in order pays one comparison for an event: what ends after all that was seen is new. The
dictionaries of ids are made of the remembered batches when the first event comes that does not.
There is one for each span of event time, so that what the watermark has passed goes as a whole and
nothing that stays is touched for it: forgetting takes a moment, however much is remembered.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.core.event import Event

SLACK = 1_024  # events by which it may grow before it is worth telling it the watermark
SPAN_BITS = 8  # ends that differ in these low bits alone are of one span, of 256 ms


class _Span:
    """The events that end in one span of time, by id, or by id and end."""

    __slots__ = ("count", "known")

    def __init__(self) -> None:
        self.known: dict[str, Event | dict[int, Event]] = {}
        self.count = 0

    def add(self, event: Event) -> Event | None:
        """The event that stands already for this id and end; else the event is remembered."""
        before = self.known.get(event.id)
        if before is None:
            self.known[event.id] = event
        elif isinstance(before, dict):
            if event.end in before:
                return before[event.end]
            before[event.end] = event
        elif before.end == event.end:
            return before
        else:
            self.known[event.id] = {before.end: before, event.end: event}
        self.count += 1
        return None

    def events(self) -> list[Event]:
        """All of them."""
        found: list[Event] = []
        for one in self.known.values():
            if isinstance(one, dict):
                found += one.values()
            else:
                found.append(one)
        return found


class Repeats:
    """Tells new events from repeats; `forgotten` counts what the limit took from the memory."""

    def __init__(self, events_max: int) -> None:
        self._events_max = events_max
        self._newest: int | None = None
        self._batches: deque[tuple[int, list[Event]]] = deque()  # (greatest end, its events)
        self._unfolded = 0  # events in the batches
        self._spans: dict[int, _Span] = {}  # by number: an end without its low bits
        self._numbers: list[int] = []  # theirs, as a heap
        self._folded = 0  # events in the spans
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
                return self._look_up(events, newest, ascending=True)
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
        if self._unfolded + self._folded > self._events_max:
            self._forget()
        return events, []

    def advance(self, watermark: int) -> None:
        """Forget what ends at or before the watermark: a repeat of it would be late."""
        batches, numbers = self._batches, self._numbers
        while batches and batches[0][0] <= watermark:
            self._unfolded -= len(batches.popleft()[1])
        while numbers and (numbers[0] + 1) << SPAN_BITS <= watermark + 1:
            self._drop_span()
        self._prune_at = len(self) + SLACK

    def _look_up(
        self, events: list[Event], newest: int, *, ascending: bool = False
    ) -> tuple[list[Event], list[tuple[Event, bool]]]:
        if self._batches:
            self._fold()
        if ascending:
            least, greatest = events[0].end, events[-1].end
        else:
            ends = [event.end for event in events]
            least, greatest = min(ends), max(ends)
        self._newest = max(newest, greatest)
        fresh, repeats = self._enter(events, least, greatest)
        if self._unfolded + self._folded > self._events_max:
            self._forget()
        return fresh, repeats

    def _enter(
        self, events: list[Event], least: int, greatest: int
    ) -> tuple[list[Event], list[tuple[Event, bool]]]:
        """Put events into their spans; see `admit` for what it returns."""
        if least >> SPAN_BITS == greatest >> SPAN_BITS and len(events) > 1:
            ids: dict[str, Event | dict[int, Event]] = {event.id: event for event in events}
            span = self._span(least >> SPAN_BITS)
            if len(ids) == len(events) and span.known.keys().isdisjoint(ids):
                span.known.update(ids)
                span.count += len(events)
                self._folded += len(events)
                return events, []
        fresh = []
        repeats: list[tuple[Event, bool]] = []
        for event in events:
            first = self._span(event.end >> SPAN_BITS).add(event)
            if first is None:
                self._folded += 1
                fresh.append(event)
            else:
                repeats.append((event, _said(first) != _said(event)))
        return fresh, repeats

    def _span(self, number: int) -> _Span:
        span = self._spans.get(number)
        if span is None:
            span = self._spans[number] = _Span()
            heappush(self._numbers, number)
        return span

    def _drop_span(self) -> _Span:
        """Forget the span that is furthest back."""
        span = self._spans.pop(heappop(self._numbers))
        self._folded -= span.count
        return span

    def _fold(self) -> None:
        for greatest, events in self._batches:
            self._enter(events, events[0].end, greatest)
        self._batches.clear()
        self._unfolded = 0

    def _forget(self) -> None:
        """Past the limit the half that ends first goes; a repeat of those is taken for new."""
        self._fold()
        gone = self._folded - self._events_max // 2
        self.forgotten += gone
        while gone > 0:
            span = self._drop_span()
            gone -= span.count
            if gone < 0:
                kept = sorted(span.events(), key=lambda event: (event.end, event.id))[gone:]
                self._enter(kept, kept[0].end, kept[-1].end)


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

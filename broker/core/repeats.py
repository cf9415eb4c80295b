"""Which events were taken in before: the memory of (id, end).

Owns that memory. Must not know clocks: it is told how far back it has to reach. Invariant: of the
events with one id and end that end after the watermark, the first alone passes, wherever the
batches were cut; memory is bounded by what arrived after the watermark, and by a limit.

A stream in order pays one comparison for an event: what ends after all that was seen is new. Where
events come in another order, a batch of which no event ends with another one is new by that alone.
Only where some do are events found by their ends, and those of one end told apart by their ids.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.core.event import Event

SLACK = 1_024  # events by which it may grow before it is worth forgetting some

RUN_EVENTS = 256  # of small batches that came in no order, so many are kept together

_end = attrgetter("end")
_key = attrgetter("end", "id")


class _Run:
    """Events that came in no order, their ends, and the greatest of these, or more."""

    __slots__ = ("ends", "events", "newest")

    def __init__(self, newest: int, ends: list[int], events: list[Event]) -> None:
        self.newest = newest
        self.ends = ends
        self.events = events

    def add(self, other: _Run) -> None:
        """Take others in."""
        self.newest = max(self.newest, other.newest)
        self.ends += other.ends
        self.events += other.events

    def after(self, watermark: int) -> _Run:
        """Those that end after it."""
        later = [end > watermark for end in self.ends]
        ends, events = compress(self.ends, later), compress(self.events, later)
        return _Run(self.newest, list(ends), list(events))


class Repeats:
    """Tells new events from repeats; `forgotten` counts what the limit took from the memory."""

    def __init__(self, events_max: int, slack: int = SLACK) -> None:
        self._events_max = events_max
        self._slack = slack
        self._newest: int | None = None  # nothing remembered ends later
        self._batches: deque[tuple[int, list[Event]]] = deque()  # (greatest end, its events)
        self._unfolded = 0  # events in the batches
        self._loose: list[_Run] = []  # those that came in no order, where no two end together
        self._loose_ends: set[int] = set()
        # Those of which some did end together: by end the event, or those of that end by id.
        self._by_end: dict[int, Event | dict[str, Event]] = {}
        self._folded = 0  # events in it
        self.prune_at = slack  # with more than so many it is looked for what may be forgotten
        self.forgotten = 0

    @property
    def due(self) -> bool:
        """Whether it has grown so far that it is worth telling it the watermark."""
        return len(self) > self.prune_at

    def __len__(self) -> int:
        return self._unfolded + len(self._loose_ends) + self._folded

    def events(self) -> list[Event]:
        """All that are remembered, by end and id."""
        found = [event for _, events in self._batches for event in events]
        found += [event for run in self._loose for event in run.events]
        for one in self._by_end.values():
            found += one.values() if isinstance(one, dict) else [one]
        return sorted(found, key=_key)

    def restore(self, events: Iterable[Event], prune_at: int | None = None) -> None:
        """Remember these alone; they are no repeats of each other. `prune_at` is as it was."""
        kept = list(events)
        self._batches.clear()
        self._loose.clear()
        self._loose_ends.clear()
        self._by_end.clear()
        self._unfolded = self._folded = 0
        self._newest = max(map(_end, kept), default=None)
        self.prune_at = self._slack if prune_at is None else prune_at
        self._enter(kept, list(map(_end, kept)))

    def admit(
        self,
        events: list[Event],
        *,
        ordered: bool = False,
        apart: bool = False,
        newest: int | None = None,
        ends: list[int] | None = None,
    ) -> tuple[list[Event], list[tuple[Event, bool]]]:
        """(new events, repeats); each repeat comes with whether it says something else.

        `ordered` says that none of the events is known to end before the one before it, `apart`
        that no two of them end at the same time, and `newest` after which time none ends; `ends`
        are their ends, where these are known.
        """
        if not events:
            return events, []
        before = self._newest
        if newest is None:
            newest = events[-1].end if ordered else max(map(_end, events))
        if before is None or newest > before:
            self._newest = newest
        repeats: list[tuple[Event, bool]] = []
        if ordered and apart and (before is None or events[0].end > before):
            self._batches.append((newest, list(events)))
            self._unfolded += len(events)
        else:
            if self._batches:
                self._loosen()
            if ends is None:
                ends = [event.end for event in events]
            if not self._all_new(ends, events, newest):
                self._fold()
                repeats = self._enter(events, ends)
                if repeats:
                    events = _without(events, repeats)
        if len(self) > self._events_max:
            self._forget()
        return events, repeats

    def advance(self, watermark: int) -> None:
        """Forget what ends at or before the watermark: a repeat of it would be late.

        All is looked through, so it is called when much has come since; see `due`.
        """
        batches = self._batches
        while batches and batches[0][0] <= watermark:
            self._unfolded -= len(batches.popleft()[1])
        if batches:  # the next one, in order, may have a part of it
            newest, events = batches[0]
            gone = bisect_right(events, watermark, key=_end)
            if gone:
                batches[0] = (newest, events[gone:])
                self._unfolded -= gone
        if self._loose:
            self._forget_loose(watermark)
        if self._by_end:
            kept = {end: one for end, one in self._by_end.items() if end > watermark}
            self._by_end = kept
            several = [len(one) for one in kept.values() if isinstance(one, dict)]
            self._folded = len(kept) - len(several) + sum(several)
        self.prune_at = 2 * len(self) + self._slack

    def _forget_loose(self, watermark: int) -> None:
        self._loose = [run.after(watermark) for run in self._loose if run.newest > watermark]
        self._loose_ends = {end for run in self._loose for end in run.ends}

    def _all_new(self, ends: list[int], events: list[Event], newest: int) -> bool:
        """Remember events if none ends with another; else those before may be counted too many."""
        known = self._loose_ends
        if not known.isdisjoint(ends):
            return False
        if self._by_end and not self._by_end.keys().isdisjoint(ends):
            return False
        count = len(known) + len(ends)
        known.update(ends)
        if len(known) < count:
            return False
        run = _Run(newest, list(ends), list(events))
        if self._loose and len(self._loose[-1].ends) < RUN_EVENTS:
            self._loose[-1].add(run)
        else:
            self._loose.append(run)
        return True

    def _loosen(self) -> None:
        """Take what came in order for what did not; it ends after all before it."""
        for newest, events in self._batches:
            ends: list[int] = [event.end for event in events]
            self._loose.append(_Run(newest, ends, events))
            self._loose_ends.update(ends)
        self._batches.clear()
        self._unfolded = 0

    def _enter(self, events: list[Event], ends: list[int]) -> list[tuple[Event, bool]]:
        """Remember events that are new by their ends; the repeats among them."""
        by_end = self._by_end
        put = by_end.__setitem__
        pairs = zip(ends, events, strict=True)
        beside = [event for end, event in pairs if end in by_end or put(end, event)]
        repeats = []
        for event in beside:
            held = by_end[event.end]
            if not isinstance(held, dict):
                held = by_end[event.end] = {held.id: held}
            first = held.get(event.id)
            if first is None:
                held[event.id] = event
            else:
                repeats.append((event, _said(first) != _said(event)))
        self._folded += len(events) - len(repeats)
        return repeats

    def _fold(self) -> None:
        """Find those by their ends that came in no order."""
        for run in self._loose:
            self._enter(run.events, run.ends)
        self._loose.clear()
        self._loose_ends.clear()

    def _forget(self) -> None:
        """Past the limit the half that ends first goes; a repeat of those is taken for new."""
        events = self.events()
        kept = events[len(events) - self._events_max // 2 :]
        self.forgotten += len(events) - len(kept)
        self.restore(kept)


def _without(events: list[Event], repeats: list[tuple[Event, bool]]) -> list[Event]:
    """The events that are no repeats; where one object stands several times, the last go first."""
    again = Counter([id(event) for event, _ in repeats])
    kept = []
    for event in reversed(events):
        if again[id(event)]:
            again[id(event)] -= 1
        else:
            kept.append(event)
    return kept[::-1]


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

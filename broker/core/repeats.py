"""Which events were taken in before: the memory of (id, end).

Owns that memory. Must not know clocks: it is told how far back it has to reach. Invariant: of the
events with one id and end that end after the watermark, the first alone passes, wherever the
batches were cut; memory is bounded by what arrived after the watermark, and by a limit.

The memory is cut into generations by arrival, so that what the watermark has passed goes as a whole
and nothing that stays is touched for it. A stream in order pays one comparison for an event: what
ends after all that was seen is new. Where events come in another order, a batch asks each
generation that reaches so far back once whether it has any of their ids; only where one has, event
by event whether it has that id with that end. What a generation needs for an answer is made when
the first such question comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.core.event import Event

SLACK = 1_024  # events by which it may grow before it is worth forgetting some
GENERATIONS = 4  # about so many at once

_id = attrgetter("id")
_end = attrgetter("end")
_key = attrgetter("id", "end")


class _Generation:
    """Events that arrived one after the other, and by what they are found."""

    __slots__ = ("_by_key", "_ids", "_keyed", "_named", "events", "greatest")

    def __init__(self, greatest: int) -> None:
        self.events: list[Event] = []
        self.greatest = greatest  # none of them ends later
        self._ids: set[str] = set()  # of the first `_named` events
        self._named = 0
        self._by_key: dict[tuple[str, int], Event] = {}  # of the first `_keyed` events
        self._keyed = 0

    def has_any(self, ids: set[str]) -> bool:
        """Whether any of its events has one of the ids."""
        if self._named < len(self.events):
            self._ids.update(map(_id, self.events[self._named :] if self._named else self.events))
            self._named = len(self.events)
        return not self._ids.isdisjoint(ids)

    def get(self, key: tuple[str, int]) -> Event | None:
        """Its event of an id and end."""
        if self._keyed < len(self.events):
            rest = self.events[self._keyed :]
            self._by_key.update(zip(map(_key, rest), rest, strict=True))
            self._keyed = len(self.events)
        return self._by_key.get(key)

    def add(self, events: list[Event], greatest: int, ids: set[str] | None) -> None:
        """Remember new events; their ids, where they are known."""
        if ids is not None and self._named == len(self.events):
            self._ids |= ids
            self._named += len(events)
        self.events += events
        self.greatest = max(self.greatest, greatest)

    def add_keyed(self, event: Event, key: tuple[str, int]) -> None:
        """Remember one new event, just asked for."""
        self.events.append(event)
        self._by_key[key] = event
        self._keyed += 1
        self.greatest = max(self.greatest, key[1])


class Repeats:
    """Tells new events from repeats; `forgotten` counts what the limit took from the memory."""

    def __init__(self, events_max: int, slack: int = SLACK) -> None:
        self._events_max = events_max
        self._slack = slack
        self._newest: int | None = None  # nothing remembered ends later
        self._generations: deque[_Generation] = deque()
        self._count = 0
        self._prune_at = slack
        self._ids_come_again = False  # with other ends: then there is no use in asking for ids
        self.forgotten = 0

    @property
    def due(self) -> bool:
        """Whether it has grown so far that it is worth telling it the watermark."""
        return self._count > self._prune_at

    def __len__(self) -> int:
        return self._count

    def events(self) -> list[Event]:
        """All that are remembered, in the order of their arrival."""
        return [event for generation in self._generations for event in generation.events]

    def restore(self, events: Iterable[Event]) -> None:
        """Remember these alone; they are no repeats of each other."""
        self._generations.clear()
        self._count, self._newest, self._prune_at = 0, None, self._slack
        kept = list(events)
        if kept:
            self._newest = max(map(_end, kept))
            self._add(kept, self._newest, None)

    def admit(
        self,
        events: list[Event],
        *,
        ordered: bool = False,
        apart: bool = False,
        span: tuple[int, int] | None = None,
    ) -> tuple[list[Event], list[tuple[Event, bool]]]:
        """(new events, repeats); each repeat comes with whether it says something else.

        `ordered` says that none of the events is known to end before the one before it, `apart`
        that no two of them end at the same time, and `span` between which times all end.
        """
        if not events:
            return events, []
        if ordered:
            least, greatest = events[0].end, events[-1].end
        elif span is not None:
            least, greatest = span
        else:
            ends = [event.end for event in events]
            least, greatest = min(ends), max(ends)
        newest = self._newest
        ids = None
        if newest is None or greatest > newest:
            self._newest = greatest
        if not (ordered and apart and (newest is None or least > newest)):
            ids = self._new_ids(events, least)
            if ids is None:
                return self._one_by_one(events)
        self._add(events, greatest, ids)
        if self._count > self._events_max:
            self._forget()
        return events, []

    def advance(self, watermark: int) -> None:
        """Forget what ends at or before the watermark: a repeat of it would be late."""
        generations = self._generations
        while generations and generations[0].greatest <= watermark:
            self._count -= len(generations.popleft().events)
        self._prune_at = self._count + self._slack

    def _current(self, greatest: int) -> _Generation:
        """The generation that takes what is new."""
        generations = self._generations
        if generations and len(generations[-1].events) < max(
            self._slack, self._count // GENERATIONS
        ):
            return generations[-1]
        generations.append(_Generation(greatest))
        self._ids_come_again = False  # perhaps no longer
        return generations[-1]

    def _add(self, events: list[Event], greatest: int, ids: set[str] | None) -> None:
        self._current(greatest).add(events, greatest, ids)
        self._count += len(events)

    def _new_ids(self, events: list[Event], least: int) -> set[str] | None:
        """The events' ids where each is new; None where it takes a closer look to tell."""
        if self._ids_come_again:
            return None
        ids = set(map(_id, events))
        if len(ids) < len(events):
            return None
        for generation in self._generations:
            if generation.greatest >= least and generation.has_any(ids):
                return None
        return ids

    def _one_by_one(self, events: list[Event]) -> tuple[list[Event], list[tuple[Event, bool]]]:
        fresh = []
        repeats: list[tuple[Event, bool]] = []
        for event in events:
            key = _key(event)
            for generation in self._generations:
                if generation.greatest >= key[1]:
                    first = generation.get(key)
                    if first is not None:
                        repeats.append((event, _said(first) != _said(event)))
                        break
            else:
                current = self._current(key[1])
                current.get(key)
                current.add_keyed(event, key)
                self._count += 1
                fresh.append(event)
        self._ids_come_again = not repeats
        if self._count > self._events_max:
            self._forget()
        return fresh, repeats

    def _forget(self) -> None:
        """Past the limit the half that ends first goes; a repeat of those is taken for new."""
        events = sorted(self.events(), key=lambda event: (event.end, event.id))
        kept = events[len(events) - self._events_max // 2 :]
        self.forgotten += len(events) - len(kept)
        self.restore(kept)


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

"""Which events were taken in before: the memory of (id, end).

Owns that memory. Must not know clocks: it is told how far back it has to reach. Invariant: of the
events with one id and end that end after the watermark, the first alone passes, wherever the
batches were cut; memory is bounded by what arrived after the watermark, and by a limit.

A stream in order pays one comparison for an event: what ends after all that was seen is new. Where
events come in another order, a batch of which none ends with another event is new by that alone.
Once some did end together events are told apart by their ids, few of which come again as a rule.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from broker.engine import native

if TYPE_CHECKING:
    from broker.engine.event.event import Event

# Pruning looks at everything that is remembered; with slack it is paid for by as many events that
# came since.
SLACK = 1_024  # events by which it may grow before it is worth forgetting some

FEWER = 4  # a batch of so large a part of the slack, and of all there is, pays for a look at both

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

    def __len__(self) -> int:
        return len(self.ends)

    def add(self, other: _Run) -> None:
        """Take others in."""
        self.newest = max(self.newest, other.newest)
        self.ends += other.ends
        self.events += other.events

    def after(self, watermark: int) -> _Run:
        """Those that end after it."""
        if native.passes is not None:
            found = native.passes.later(self.ends, self.events, watermark)
            if found is not None:
                return _Run(self.newest, *found)
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
        self._runs: list[_Run] = []  # those that came in no order
        self.count = 0  # events in both; past `prune_at` it is worth giving it the watermark
        self._ends = _ends_of([])  # of the runs, while no two events of them end together
        # After that by id the event, or those of that id by end.
        self._by_id: dict[str, Event | dict[int, Event]] | None = None
        self.prune_at = slack
        self.forgotten = 0

    def __len__(self) -> int:
        return self.count

    def events(self) -> list[Event]:
        """All that are remembered, by end and id."""
        found = [event for _, events in self._batches for event in events]
        found += [event for run in self._runs for event in run.events]
        return sorted(found, key=_key)

    def restore(self, events: Iterable[Event], prune_at: int | None = None) -> None:
        """Remember these alone; they are no repeats of each other. `prune_at` is as it was."""
        kept = list(events)
        ends = list(map(_end, kept))
        self._newest = max(ends, default=None)
        self._batches.clear()
        self._runs = [] if self._newest is None else [_Run(self._newest, ends, kept)]
        self.count = len(kept)
        self._ends, self._by_id = _ends_of([ends]), None
        if len(self._ends) < len(kept):
            self._tell_by_id()
        self.prune_at = self._slack if prune_at is None else prune_at

    def admit(
        self,
        events: list[Event],
        *,
        ordered: bool = False,
        apart: bool = False,
        newest: int | None = None,
        ends: list[int] | None = None,
        floor: int | None = None,
    ) -> tuple[list[Event], list[tuple[Event, bool]]]:
        """(new events, repeats); each repeat comes with whether it says something else.

        `ordered` says that none of the events is known to end before the one before it, `apart`
        that no two of them end at the same time, and `newest` after which time none ends; `ends`
        are their ends, where these are known. What ends at or before `floor` is late from now on:
        it need not be remembered.
        """
        if not events:
            return events, []
        before = self._newest
        if newest is None:
            newest = events[-1].end if ordered else max(map(_end, events))
        if before is None or newest > before:
            self._newest = newest
        repeats: list[tuple[Event, bool]] = []
        # The case of nearly every stream in order: nothing is entered anywhere, the batch itself is
        # the memory, and one comparison settled all of its events.
        if ordered and apart and (before is None or events[0].end > before):
            self._append(newest, events, floor)
        else:
            if self._batches:
                self._loosen()
            if ends is None:
                ends = [event.end for event in events]
            # A set of ends is smaller than a dictionary by id, and nothing is read of the events
            # but what is known already. Sensors that report at random instants seldom end together,
            # so ids are often never needed.
            if self._by_id is None and not self._ends_anew(ends):
                self._tell_by_id()
            repeats = [] if self._by_id is None else self._enter(self._by_id, events)
            if repeats:
                events = _without(events, repeats)
                ends = [event.end for event in events]
            if floor is not None and len(events) >= max(self._slack // FEWER, self.count):
                # Most of what is remembered has passed, as a rule: it is not worth copying.
                self._runs.append(_Run(newest, ends, events))
                self.count += len(events)
                self.advance(floor)
            else:
                self._add(_Run(newest, list(ends), list(events)))
                self.count += len(events)
        if self.count > self._events_max:
            self._forget()
        return events, repeats

    def advance(self, watermark: int) -> None:
        """Forget what ends at or before the watermark: a repeat of it would be late.

        All is looked through, so it is called when much has come since; see `prune_at`.
        """
        batches = self._batches
        self._pass_batches(watermark)
        if batches:  # the next one, in order, may have a part of it
            # The batch that the watermark cuts through; later ones are whole, as they came in
            # order.
            newest, events = batches[0]
            gone = bisect_right(events, watermark, key=_end)
            if gone:
                batches[0] = (newest, events[gone:])
                self.count -= gone
        if self._runs:
            runs = [run.after(watermark) for run in self._runs if run.newest > watermark]
            self.count += sum(map(len, runs)) - sum(map(len, self._runs))
            self._runs = runs
            if self._by_id is None:
                self._ends = _ends_of([run.ends for run in runs])
            else:
                self._tell_by_id()
        self.prune_at = 2 * len(self) + self._slack

    def _append(self, newest: int, events: list[Event], floor: int | None) -> None:
        """Remember a batch that ends after all before it, and in order."""
        if floor is not None:
            self._pass_batches(floor)
        passed = floor is not None and events[0].end <= floor
        kept = events[bisect_right(events, floor, key=_end) :] if passed else list(events)
        if kept:
            self._batches.append((newest, kept))
            self.count += len(kept)

    def _pass_batches(self, watermark: int) -> None:
        """Forget whole batches that came in order."""
        batches = self._batches
        while batches and batches[0][0] <= watermark:
            self.count -= len(batches.popleft()[1])

    def _add(self, run: _Run) -> None:
        if self._runs and len(self._runs[-1]) < RUN_EVENTS:
            self._runs[-1].add(run)
        else:
            self._runs.append(run)

    def _ends_anew(self, ends: list[int]) -> bool:
        """Remember the ends; tell whether each is new. If not, too much may be remembered."""
        known = self._ends
        count = len(known) + len(ends)
        known.update(ends)
        return len(known) == count

    def _tell_by_id(self) -> None:
        """From now on events of the runs are found by their ids."""
        self._ends = _ends_of([])
        self._by_id = {}
        for run in self._runs:
            self._enter(self._by_id, run.events)

    def _loosen(self) -> None:
        """Take what came in order for what did not; it ends after all before it."""
        for newest, events in self._batches:
            ends: list[int] = [event.end for event in events]
            self._add(_Run(newest, ends, events))
            if self._by_id is None:
                self._ends.update(ends)
            else:
                self._enter(self._by_id, events)
        self._batches.clear()

    def _enter(
        self, by_id: dict[str, Event | dict[int, Event]], events: list[Event]
    ) -> list[tuple[Event, bool]]:
        """Remember events that are new by their ids and ends; the repeats among them."""
        ids = [event.id for event in events]
        if by_id.keys().isdisjoint(ids):
            count = len(by_id) + len(ids)
            by_id.update(zip(ids, events, strict=True))
            if len(by_id) == count:
                return []
            for one in set(ids):  # some have one id: these are told apart one by one
                del by_id[one]
        put = by_id.__setitem__
        pairs = zip(ids, events, strict=True)
        beside = [event for one, event in pairs if one in by_id or put(one, event)]
        repeats = []
        for event in beside:
            # Same id with another end is a new event: small devices number their readings anew
            # after a reset (paper 001, 2: recurrent events and mere duplications are to be told
            # apart).
            held = by_id[event.id]
            if not isinstance(held, dict):
                held = by_id[event.id] = {held.end: held}
            first = held.get(event.end)
            if first is None:
                held[event.end] = event
            else:
                repeats.append((event, _said(first) != _said(event)))
        return repeats

    def _forget(self) -> None:
        """Past the limit the half that ends first goes; a repeat of those is taken for new."""
        events = self.events()
        # Half at once, so that past the limit not every event costs a sort. What ends first goes
        # first: that is what the watermark would have passed next.
        kept = events[len(events) - self._events_max // 2 :]
        self.forgotten += len(events) - len(kept)
        self.restore(kept)


def _ends_of(lists: Sequence[list[int]]) -> Any:
    """A set of these; where it is compiled it takes integers alone."""
    made: Any = set() if native.passes is None else native.passes.Ends()
    for ends in lists:
        made.update(ends)
    return made


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

"""The clocks of a live broker's sources.

Owns the judgement of events by a clock, a clock for each source and the watermark of each type.
Must not know payloads, tasks or wall time. Invariant: a watermark that was given out never goes
back, and no event that ends at or before it is let through for its type afterwards.

- An event is late if it ends at or before its source's watermark, or at or before what was given
  out for its type: the latter concerns a source that came, or gained a type, after that.
- The watermark of a type is the least of the watermarks of the sources that have sent or advertised
  it. A source of many types has one clock for all of them.
- A source that was silent for the idle timeout has the clock m + (time since its last event that
  was not late arrived), and keeps what that clock has reached when it comes back.
- A source that was advertised holds its types' watermarks until its first event; past the idle
  timeout it is passed over, until it speaks.
- A withdrawn source is passed over at once. A type whose last source was withdrawn is waited for
  no more: it goes with the foremost source, and `pass_over` takes it past whatever is still open.
  It is never put at the end of time itself: all of whoever takes its place would be late then.
- A type that has no source, and never had one, is waited for as a silent source would be, from the
  moment when its watermark was first asked for; then it goes with the foremost source, also through
  the silence of that one.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from itertools import islice
from operator import le, lt
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from broker.engine import native
from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.limits import LimitReachedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.engine.event.event import Event


SWEEPS = 4  # at most so many in an idle timeout: each looks at every source


# What the clock has seen anyway is handed on with the events: the memory of repeats would otherwise
# look through the ends of a batch a second time.
class Split(Struct, frozen=True):
    """Events by the clocks' judgement, each list in the order given.

    `refused` are those of sources for which no place is left. Of the events on time, `ordered` says
    that none is known to end before the one before it, `apart` that no two then end together;
    `newest` is the time after which none of them ends and `ends` are their ends, where these are
    known without looking. `floor`, where it is known, is the time at or before which from now on
    every event is late.
    """

    on_time: list[Event]
    late: list[Event]
    refused: list[Event]
    ordered: bool = False
    apart: bool = False
    newest: int | None = None
    ends: list[int] | None = None
    floor: int | None = None


class Course(Struct, frozen=True, gc=False):
    """Describe how a clock went on over events: up to the first late one, if `late`."""

    newest: int
    late: bool
    ordered: bool = False  # none ended before one before it, those of earlier batches too
    apart: bool = False  # nor with it, where they are ordered
    ends: list[int] | None = None


def course(events: list[Event], newest: int, passed: int, lateness_ms: int) -> Course:
    """The clock's course from `newest`; what ends at or before `passed` is late in any case.

    The ends are looked through as a list: of a stream in order that takes one pass at the pace of
    Python's own loops, unless it is compiled.
    """
    if native.passes is not None:
        # The compiled pass holds times in 64 bits and tests for None faster than for a bound that
        # nothing meets.
        least = None if passed == WATERMARK_NONE else passed
        went = native.passes.course(events, newest, least, lateness_ms)
        if went is not None:
            return Course(*went)
    ends: list[int] = [event.end for event in events]
    if not ends:
        return Course(newest, False, True, True, ends)
    first = ends[0]
    # Strictly ascending: no two end together, so none can be a repeat of another of the batch
    # either.
    if first > newest and first > passed and all(map(lt, ends, islice(ends, 1, None))):
        return Course(ends[-1], False, True, True, ends)
    if passed > WATERMARK_NONE and min(ends) <= passed:
        return Course(newest, True)
    ordered = first >= newest and all(map(le, ends, islice(ends, 1, None)))
    # The clock goes on within the batch: an event may be late because of one that stands before it
    # in the same payload, as it would be if they had come one by one.
    floor = newest - lateness_ms
    for end in ends:
        if end > newest:
            newest = end
            floor = end - lateness_ms
        elif end < floor:
            return Course(newest, True)
    return Course(newest, False, ordered, False, ends)


def sifted(
    events: list[Event], newest: int, given: dict[str, int], lateness_ms: int
) -> tuple[Split, int]:
    """By the clock as it goes on, event by event; and where it has come."""
    split = Split([], [], [])
    for event in events:
        end = event.end
        if end < newest - lateness_ms or end <= given.get(event.event_type, WATERMARK_NONE):
            split.late.append(event)
        else:
            split.on_time.append(event)
            newest = max(newest, end)
    return split, newest


# A clock for each source and not for each type: a device that sends temperature and door alike has
# one clock, and what it says of one type tells how far it has come with the other.
class _Source:
    """One source's clock; `newest` is the greatest end, `at` when it was last heard."""

    __slots__ = ("at", "gone", "heard", "name", "newest", "passed", "stated", "types")

    def __init__(self, name: str, at: int) -> None:
        self.name = name
        self.at = at
        self.newest = WATERMARK_NONE
        self.heard = False
        self.stated = False  # advertised, so that it is not forgotten for being idle
        self.gone = False
        self.types: dict[str, None] = {}
        self.passed: list[str] = []  # types that pass over it until it speaks


_ALL = ""  # in the place of a type: every source
_Heap = list[tuple[int, int, _Source]]


# `_heaps`: entries are lower bounds, corrected only when they come to the top: a source that
# sends a thousand events moves no heap, and the least is found by a few corrections. A heap that is
# kept exact would cost log n for each event.
# `_forget`: it runs on from where it was: whoever waits for the type goes on at the pace of the
# time of day, without a jump.
# `pass_over`: only up to what somebody waits for, never to the end of time: a source that comes
# back is late for what was reported, and for nothing else.
# `_source`: names of sources are strangers' texts: without a bound, a device that makes up a new
# one for each event would fill the memory.
# `split`: each source is judged by its own clock: a device that is a minute behind is late by its
# own events alone, not because its neighbour's clock runs fast.
# `_of_source`: what was given out differs by type, so a mixed batch is judged event by event.
# `watermark`: with lateness L an event that ends at clock - L is still on time; see the clock of a
# stream.
# `foreseen`: asked for and taken back: one way to reckon a watermark is enough, and a second that
# only looks would have to be kept equal to it.
# `resume`: the broker itself was away, so nobody was silent meanwhile: otherwise all sources would
# be passed over at each start.
# `_least`: silence counts for time (an idle source's clock runs on), so that one dead sensor does
# not hold all results back for ever: paper 001 (3) reckons with devices whose messages never come.
# `_wake`: the watermark's formula turned around: which clock would give that target.
class SourceClocks:
    """The clocks of a live broker's sources; see the module for what they mean.

    `idle_timeout_ms` None waits for every source without end.
    """

    def __init__(
        self, lateness_ms: int, idle_timeout_ms: int | None, *, sources_max: int = 100_000
    ) -> None:
        self._lateness_ms = lateness_ms
        self._idle_ms = idle_timeout_ms
        self._sources_max = sources_max
        self._sources: dict[str, _Source] = {}
        self._heaps: dict[str, _Heap] = {}  # lower bounds of the clocks, by type
        self._given: dict[str, int] = {}
        self._ended: dict[str, tuple[int, int]] = {}  # type → (clock, since) of its last source
        self._withdrawn: dict[str, None] = {}  # types whose last source said that it ends
        self._asked: dict[str, int] = {}  # type without a source → when it was first asked for
        self._foremost = WATERMARK_NONE
        self._foremost_at = 0  # when that was heard
        self._serial = 0
        self._swept_at: int | None = None
        self._finished = False

    def __len__(self) -> int:
        return len(self._sources)

    # --- sources -------------------------------------------------------------------------

    def advertise(self, source: str, types: Iterable[str], now: int) -> None:
        """A source says that it will send these types. Raises LimitReachedError."""
        one = self._source(source, now)
        if one is None:
            raise LimitReachedError("sources_max", self._sources_max, "sources")
        one.stated = True
        for name in types:
            self._join(one, name)

    def withdraw(self, source: str, now: int) -> None:
        """A source says that it will send no more."""
        one = self._forget(source, now)
        if one is None or not one.heard:
            return
        for name in one.types:
            if self._least(name, now) is None:
                self._withdrawn[name] = None

    def _forget(self, source: str, now: int) -> _Source | None:
        one = self._sources.pop(source, None)
        if one is None:
            return None
        one.gone = True
        clock = self._clock(one, now)
        if one.heard:
            for name in one.types:
                before = self._ended.get(name)
                if before is None or before[0] + now - before[1] < clock:
                    self._ended[name] = (clock, now)
        return one

    def pass_over(self, due: Mapping[str, int], now: int) -> bool:
        """Take withdrawn types to their watermark in `due`; return whether any moved."""
        moved = False
        for name, target in due.items():
            if name in self._withdrawn and self.watermark(name, now) < target:
                ended = (target + self._lateness_ms + 1, now)
                moved = moved or self._ended.get(name) != ended  # else others are waited for
                self._ended[name] = ended
        return moved

    def _source(self, name: str, now: int) -> _Source | None:
        """The source, new where it is not known; None if there is no place for it."""
        one = self._sources.get(name)
        if one is None:
            if len(self._sources) >= self._sources_max and not self._swept(now):
                return None
            one = self._sources[name] = _Source(name, now)
            self._join(one, _ALL)
        return one

    def _swept(self, now: int) -> bool:
        """Forget unadvertised sources that are idle; whether there is a place now."""
        if self._idle_ms is None:
            return False
        if self._swept_at is not None and now - self._swept_at < self._idle_ms // SWEEPS:
            return False
        self._swept_at = now
        for name in [n for n, one in self._sources.items() if self._idle(one, now)]:
            if not self._sources[name].stated:
                self._forget(name, now)
        return len(self._sources) < self._sources_max

    def _join(self, one: _Source, type_name: str) -> None:
        if type_name not in one.types:
            one.types[type_name] = None
            self._push(one, type_name)

    def _push(self, one: _Source, type_name: str) -> None:
        self._serial += 1
        heap = self._heaps.setdefault(type_name, [])
        if len(heap) > 2 * len(self._sources) + 16:  # withdrawn ones that nobody came across
            heap[:] = [entry for entry in heap if not entry[2].gone]
            heapify(heap)
        heappush(heap, (one.newest, self._serial, one))
        self._asked.pop(type_name, None)
        self._ended.pop(type_name, None)
        self._withdrawn.pop(type_name, None)

    # --- events --------------------------------------------------------------------------

    def split(self, events: list[Event], now: int, source: str | None) -> Split:
        """Judge events as they came, each by the clock of its source."""
        if self._finished:
            return Split([], events, [])
        if source is not None:
            return self._of_source(events, now, source)
        by_source: dict[str, list[Event]] = {}
        for event in events:
            by_source.setdefault(event.source or "", []).append(event)
        if len(by_source) == 1:
            return self._of_source(events, now, next(iter(by_source)))
        parts = [self._of_source(own, now, name) for name, own in by_source.items()]
        late = {id(event) for part in parts for event in part.late}
        refused = {id(event) for part in parts for event in part.refused}
        if not late and not refused:
            return Split(events, [], [])
        return Split(
            [event for event in events if id(event) not in late and id(event) not in refused],
            [event for event in events if id(event) in late],
            [event for event in events if id(event) in refused],
        )

    def _of_source(self, events: list[Event], now: int, source: str) -> Split:
        if not events:
            return Split(events, [], [])
        one = self._sources.get(source) or self._source(source, now)
        if one is None:
            return Split([], [], events)
        if len(events) > 1 and len(set(map(type, events))) > 1:
            return self._of_types(events, now, one)
        name = events[0].event_type
        passed = self._given.get(name, WATERMARK_NONE)
        before = self._clock(one, now)
        ahead = course(events, before, passed, self._lateness_ms)
        if ahead.late:
            return self._of_types(events, now, one)
        self._heard(one, ahead.newest, now)
        if name not in one.types:
            self._join(one, name)
        return Split(events, [], [], ahead.ordered, ahead.apart, ends=ahead.ends)

    def _of_types(self, events: list[Event], now: int, one: _Source) -> Split:
        split, newest = sifted(events, self._clock(one, now), self._given, self._lateness_ms)
        if split.on_time:
            self._heard(one, newest, now)
            for name in dict.fromkeys(event.event_type for event in split.on_time):
                self._join(one, name)
        return split

    def _heard(self, one: _Source, newest: int, now: int) -> None:
        one.newest = newest
        one.at = now
        one.heard = True
        if newest >= self._foremost:
            self._foremost, self._foremost_at = newest, now
        if one.passed:
            for name in one.passed:
                self._push(one, name)
            one.passed.clear()

    # --- watermarks ----------------------------------------------------------------------

    def watermark(self, type_name: str, now: int = 0) -> int:
        """Return the watermark of a type's events; it is then given out."""
        if self._finished:
            return WATERMARK_END
        least = self._least(type_name, now)
        clock = self._without_source(type_name, now) if least is None else least[0]
        given = self._given.get(type_name, WATERMARK_NONE)
        reached = clock - self._lateness_ms - 1 if clock > WATERMARK_NONE else given
        if reached <= given:
            return given
        self._given[type_name] = reached
        return reached

    def foreseen(self, type_name: str, now: int = 0) -> int:
        """Return the watermark that would be given out; asking changes nothing."""
        given, asked = self._given.get(type_name), self._asked.get(type_name)
        reached = self.watermark(type_name, now)
        if given is None:
            self._given.pop(type_name, None)
        else:
            self._given[type_name] = given
        if asked is None:
            self._asked.pop(type_name, None)
        return reached

    def floor(self, now: int) -> int:
        """Return the instant at or before which no event of any source can be on time any more."""
        if self._finished:
            return WATERMARK_END
        least = self._least(_ALL, now)
        if least is None or least[0] <= WATERMARK_NONE:
            return WATERMARK_NONE
        return least[0] - self._lateness_ms - 1

    def next_wake(self, now: int, due: Mapping[str, int]) -> int | None:
        """Return the earliest wake of any type in `due`; None if time alone will never do."""
        wakes = [self._wake(name, target, now) for name, target in due.items()]
        return min((wake for wake in wakes if wake is not None), default=None)

    def finish(self) -> None:
        """End all clocks: nothing more will come, and all watermarks are at their end."""
        self._finished = True

    def hindmost(self, type_name: str, now: int) -> str:
        """Whose clock holds the type's watermark, for people; empty where nobody sends it."""
        least = self._least(type_name, now)
        return "" if least is None else f"source {least[1].name}"

    # --- snapshots -----------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Plain data."""
        sources = [
            [one.name, one.at, one.newest, one.heard, one.stated, list(one.types), one.passed]
            for one in self._sources.values()
        ]
        return {
            "sources": sources,
            "given": self._given,
            "ended": {name: list(ended) for name, ended in self._ended.items()},
            "withdrawn": list(self._withdrawn),
            "asked": self._asked,
            "foremost": [self._foremost, self._foremost_at],
            "swept_at": self._swept_at,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up such a state, in the place of all that is here."""
        self._sources, self._heaps = {}, {}
        for name, at, newest, heard, stated, types, passed in state["sources"]:
            one = self._sources[name] = _Source(name, at)
            one.newest, one.heard, one.stated, one.passed = newest, heard, stated, list(passed)
            for type_name in types:
                one.types[type_name] = None
                if type_name not in one.passed:
                    self._push(one, type_name)
        self._given, self._asked = dict(state["given"]), dict(state["asked"])
        self._ended = {name: (clock, since) for name, (clock, since) in state["ended"].items()}
        self._withdrawn = dict.fromkeys(state["withdrawn"])
        self._foremost, self._foremost_at = state["foremost"]
        self._swept_at = state["swept_at"]

    def resume(self, before: int, now: int) -> None:
        """Let what was silent or waited for from `before` until now be so from now on instead."""
        for one in self._sources.values():
            if one.heard or not self._idle(one, before):  # else it is passed over until it speaks
                one.newest, one.at = self._clock(one, before), now
        away_ms = now - before
        self._foremost, self._foremost_at = self.foremost_clock(before), now
        self._ended = {
            name: (clock, since + away_ms) for name, (clock, since) in self._ended.items()
        }
        self._asked = {name: since + away_ms for name, since in self._asked.items()}

    def _without_source(self, type_name: str, now: int) -> int:
        """The clock of a type that no source has."""
        ended = self._ended.get(type_name)
        if ended is not None:
            run_on = ended[0] + now - ended[1]
            return max(run_on, self._foremost) if type_name in self._withdrawn else run_on
        since = self._asked.setdefault(type_name, now)
        if self._idle_ms is None or now - since < self._idle_ms:
            return WATERMARK_NONE
        return self.foremost_clock(now)

    def foremost_clock(self, now: int) -> int:
        """Return the clock of the foremost source, which runs on while that is silent."""
        silent_ms = now - self._foremost_at
        if self._idle_ms is None or silent_ms < self._idle_ms or self._foremost <= WATERMARK_NONE:
            return self._foremost
        return self._foremost + silent_ms

    def _idle(self, one: _Source, now: int) -> bool:
        return self._idle_ms is not None and now - one.at >= self._idle_ms

    def _clock(self, one: _Source, now: int) -> int:
        idle_ms = self._idle_ms
        silent_ms = now - one.at
        if idle_ms is None or silent_ms < idle_ms or not one.heard:
            return one.newest
        return one.newest + silent_ms

    def _least(self, type_name: str, now: int) -> tuple[int, _Source] | None:
        """The source of the type that is furthest behind of those waited for, and its clock."""
        heap = self._heaps.get(type_name)
        while heap:
            clock, serial, one = heap[0]
            if one.gone:
                heappop(heap)
                continue
            if not one.heard and self._idle(one, now):
                heappop(heap)
                one.passed.append(type_name)
                continue
            current = self._clock(one, now)
            if current <= clock:
                return clock, one
            if len(heap) == 1:
                heap[0] = (current, serial, one)
                return current, one
            heapreplace(heap, (current, serial, one))
        return None

    def _wake(self, type_name: str, target: int, now: int) -> int | None:
        if self._finished or self._given.get(type_name, WATERMARK_NONE) >= target:
            return now
        if self._idle_ms is None:
            return None
        clock = target + self._lateness_ms + 1
        found = self._least(type_name, now)
        if found is None:
            ended = self._ended.get(type_name)
            if ended is not None:
                return max(now, ended[1] + clock - ended[0])
            since = self._asked.get(type_name, now)
            if now < since + self._idle_ms or self._foremost <= WATERMARK_NONE:
                return since + self._idle_ms if now < since + self._idle_ms else None
            at = self._foremost_at
            return max(now, at + self._idle_ms, at + clock - self._foremost)
        least = found[1]
        idle_at = least.at + self._idle_ms
        if not least.heard:
            return max(now, idle_at)
        return max(now, idle_at, least.at + clock - least.newest)

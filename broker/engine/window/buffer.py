"""The ordered buffer: windows that take their events in order, and the events that wait for that.

Owns the way of an event until it is taken, the limits on what waits, and the door. Must not know
which windows there are (see ranges.py and sessions.py). Invariant: events are taken in order, each
once, when the watermark has passed its end, for then none can still come before it.

Panes need no order, so they need no buffer. What needs one are windows that begin or end with an
event: `range R`, `session G`, and all in which `distinct` asks which event was the first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from broker.engine.event.agent import WATERMARK_NONE, LeafEvents
from broker.engine.event.event import Detected, Event
from broker.engine.event.source import Constants, build
from broker.engine.runtime.shelf import Shelf
from broker.engine.window.code import (
    CLOSED,
    EVENTS_OVERFLOW,
    GROUPS_OVERFLOW,
    Shape,
    WindowLimits,
    key_lines,
)
from broker.engine.window.emit import WindowOutcome
from broker.engine.window.plan import OperandNames

Leaves = tuple[int, ...]
Entry = tuple[Any, Leaves, Any]  # an event, the leaves that it came to, its group's key


def arrivals(batch: Sequence[LeafEvents]) -> list[tuple[Any, Leaves]]:
    """Return each event once, with all the leaves that it came to in this batch."""
    if len(batch) == 1:
        leaf, events = batch[0]
        alone = (leaf,)
        return [(event, alone) for event in events]
    # By identity: two events may have one id, and an event that came to two operands is one.
    arrived: dict[int, tuple[Any, list[int]]] = {}
    for leaf, events in batch:
        for event in events:
            leaves = arrived.setdefault(id(event), (event, []))[1]
            if leaf not in leaves:
                leaves.append(leaf)
    return [(event, tuple(sorted(leaves))) for event, leaves in arrived.values()]


class Waiting:
    """The entries that wait.

    Most streams come in order, or nearly: those events stand in a line and cost an append. The
    others stand in a heap beside it, so that a stray costs the logarithm of the strays alone.
    """

    def __init__(self) -> None:
        self._line: deque[Entry] = deque()
        self._strays: list[tuple[int, int, Entry]] = []  # a heap; numbers keep entries apart
        self._number = 0

    def __len__(self) -> int:
        return len(self._line) + len(self._strays)

    def __iter__(self) -> Iterator[Entry]:
        yield from self._line
        for _, _, entry in sorted(self._strays, key=itemgetter(0, 1)):
            yield entry

    def put(self, entry: Entry) -> None:
        """Let an entry wait."""
        line = self._line
        end = entry[0].end
        if not line or end >= line[-1][0].end:
            line.append(entry)
        else:
            self._number += 1
            heappush(self._strays, (end, self._number, entry))

    def first_end(self) -> int | None:
        """Return the least end of what waits."""
        ends = [line[0][0].end for line in (self._line,) if line]
        ends += [end for end, _, _ in self._strays[:1]]
        return min(ends, default=None)

    def ready(self, watermark: int) -> list[Entry]:
        """Remove the entries that end at or before the watermark, and return them in order."""
        line, strays = self._line, self._strays
        ready: list[Entry] = []
        while line and line[0][0].end <= watermark:
            ready.append(line.popleft())
        if strays and strays[0][0] <= watermark:
            while strays and strays[0][0] <= watermark:
                ready.append(heappop(strays)[2])
            ready.sort(key=_end_of)
        # Whole orders hold ids, and for events of windows even lists: they are asked for if ends
        # tie, and only then.
        if any([entry[0].end == later[0].end for entry, later in pairwise(ready)]):  # noqa: C419
            ready.sort(key=_order_of)
        return ready


def _end_of(entry: Entry) -> int:
    end: int = entry[0].end
    return end


def _order_of(entry: Entry) -> tuple[Any, str]:
    """Events go by their order; the id only parts what no order does."""
    return (entry[0].order, entry[0].id)


class WindowTerms(NamedTuple):
    """Hold what all windows of a case are made of, and the classes of its events."""

    shape: Shape
    outcome: WindowOutcome
    limits: WindowLimits
    classes: Mapping[str, type[Event]]


class OrderedWindows:
    """The door of ordered windows; each kind of them says what becomes of an event.

    `_inside` counts the events, or values kept of events, that wait no more.
    """

    def __init__(self, terms: WindowTerms) -> None:
        self._shape, self._outcome, self._limits, self._classes = terms
        self._key_of = compile_key(terms.shape.names)
        self._inside = 0
        self._watermark = WATERMARK_NONE
        self._waiting = Waiting()
        self.drops = {GROUPS_OVERFLOW: 0, EVENTS_OVERFLOW: 0, CLOSED: 0}

    # --- what a kind says ----------------------------------------------------------------

    # Take the next event in order; add to those made what became certain by it.
    _take: Callable[[Entry, list[Detected]], None]
    # Close what no later event can change: all up to the watermark has been taken.
    _settle: Callable[[int, list[Detected]], None]
    # Give bounds below the newest end of any window yet to be reported, and below the end of any
    # event in one; no event still to be taken ends before the time given.
    _newest_from: Callable[[int], int]
    _ends_from: Callable[[int], int]
    # Give what is open, as plain data, and take it up.
    _plain: Callable[[Shelf], Any]
    _renew: Callable[[Any, Shelf], None]

    def _due(self) -> int | None:
        """Return the least watermark that, without events, could bring a report."""
        return None

    def _fold(self) -> None:
        """Take in what is pending, so that `_inside` counts it."""

    # --- the door ------------------------------------------------------------------------

    def feed(self, batch: Sequence[LeafEvents], watermark: int) -> list[Detected]:
        """Take events; return those of the windows that the watermark decides, in no order."""
        if batch:
            self._enter(batch)
        made: list[Detected] = []
        if watermark > self._watermark:
            self._watermark = watermark
            for entry in self._waiting.ready(watermark):
                self._take(entry, made)
            self._settle(watermark, made)
        return made

    def tidy(self) -> None:
        """Let go now of what no report to come depends on, and stand as if begun since that."""

    def next_due(self) -> int | None:
        """Return the least watermark that takes an event or closes a window."""
        times = (self._waiting.first_end(), self._due())
        return min([each for each in times if each is not None], default=None)

    def held(self) -> int:
        """Return how many events wait or are inside, and values kept of such."""
        self._fold()
        return len(self._waiting) + self._inside

    def least_newest_end(self, watermark: int) -> int:
        """Return a bound: no window yet to be reported has its newest event end before this."""
        return self._newest_from(self._least(watermark))

    def least_end(self, watermark: int) -> int:
        """Return a bound: no event ends before this that is in a window yet to be reported."""
        return self._ends_from(self._least(watermark))

    def state(self) -> dict[str, Any]:
        """Return plain data."""
        shelf = Shelf(self._classes)
        return {
            "watermark": self._watermark,
            "drops": dict(self.drops),
            "waiting": packed(self._waiting, shelf),
            "windows": self._plain(shelf),
            "events": shelf.packed(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
        shelf = Shelf(self._classes, state["events"])
        self._watermark = state["watermark"]
        self.drops.update(state["drops"])
        self._waiting = Waiting()
        for entry in self._unpacked(state["waiting"], shelf):
            self._waiting.put(entry)
        self._inside = 0
        self._renew(state["windows"], shelf)

    def _unpacked(self, entries: Sequence[Any], shelf: Shelf) -> Iterator[Entry]:
        """Yield the entries that `packed` gave as plain data; their keys are made again."""
        for number, leaves in entries:
            event = shelf.get(number)
            yield event, tuple(leaves), self._key_of(event)

    def _least(self, watermark: int) -> int:
        first = self._waiting.first_end()
        return watermark + 1 if first is None else min(watermark + 1, first)

    def _enter(self, batch: Sequence[LeafEvents]) -> None:
        waiting, key_of = self._waiting, self._key_of
        room = self._limits.events_max - len(waiting) - self._inside
        for event, leaves in arrivals(batch):
            key = key_of(event)
            if key is None:
                continue
            if event.end <= self._watermark:
                self.drops[CLOSED] += 1
            elif room <= 0:
                self.drops[EVENTS_OVERFLOW] += 1
            else:
                room -= 1
                waiting.put((event, leaves, key))


def packed(entries: Iterable[Entry], shelf: Shelf) -> list[list[Any]]:
    """Return entries as plain data."""
    return [[shelf.put(event), list(leaves)] for event, leaves, _ in entries]


def compile_key(names: OperandNames) -> Callable[[Any], Any]:
    """Return a function of an event: its group's key, None where a part is null."""
    lines = [line.replace("continue", "return None") for line in key_lines(names)]
    text = "\n".join(["def key_of(e):", *(f"    {line}" for line in lines), "    return key"])
    return build(text + "\n", "key_of", Constants())

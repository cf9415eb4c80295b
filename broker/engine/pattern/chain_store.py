"""A small store of events for the runs of a chain, and what goes when it is full.

Owns the events stored, by group, and the choice of what is overwritten (Saleh and others, section
6.3: the newest event of the oldest run, until that run has nothing but its first and ends; then of
the next). Must not know agents, text or time but that of events. Invariant: never more events than
the capacity, and each that goes before its time is counted.

An event that fits the first place begins a run. One that fits a later place belongs to each run
from whose first event stored ones lead to it, link by link; where none do it is not stored. Events
are taken in order, so that of a run later places lie later.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from broker.engine.event.event import Event, Order

Group = tuple[Any, ...]


class Link(NamedTuple):
    """What lies between two places of a chain: a gap in ms, ends included; None is open."""

    low_ms: int | None = None
    high_ms: int | None = None


class Entry(NamedTuple):
    """An event at a place of the chain; entries compare as events do."""

    order: Order
    place: int
    event: Event


class ChainStore:
    """Events at all places of a chain but the last; see the module."""

    def __init__(self, links: Sequence[Link], within_ms: int | None, capacity: int) -> None:
        self._links = links
        self._within_ms = within_ms
        self._capacity = capacity
        self.groups: dict[Group, list[Entry]] = {}
        self._starts: deque[tuple[Entry, Group]] = deque()  # the first of each run, oldest first
        self.size = 0
        self.overwritten = 0

    def take(self, group: Group, place: int, event: Event) -> None:
        """Store an event, which comes after all that are stored, where a run can use it."""
        entry = Entry(event.order, place, event)
        if not self.reached(group, entry):
            return
        while self.size >= self._capacity:
            self._overwrite()
        if not self.reached(group, entry):  # what led to it has just gone
            self.overwritten += 1
            return
        insort(self.groups.setdefault(group, []), entry, key=_place_in_order)
        self.size += 1
        if place == 0:
            self._starts.append((entry, group))

    def reached(self, group: Group, entry: Entry) -> bool:
        """Whether the entry begins a run or continues one."""
        if entry.place == 0:
            return True
        stored = self.groups.get(group, [])
        before = [one for one in stored if one.place == entry.place - 1]
        return self._linked(before, entry, stored)

    def expire(self, now: int) -> None:
        """Drop the runs that cannot be complete any more when nothing ends before the time."""
        if self._within_ms is None:
            return
        ended: dict[Group, None] = {}
        while self._starts and self._starts[0][0].event.start + self._within_ms < now:
            entry, group = self._starts.popleft()
            self._remove(group, entry)
            ended[group] = None
        for group in ended:
            self._prune(group)

    def restore(self, groups: Sequence[tuple[Group, int, Event]]) -> None:
        """Hold these again: group, place, event, in any order."""
        for group, place, event in groups:
            entry = Entry(event.order, place, event)
            insort(self.groups.setdefault(group, []), entry, key=_place_in_order)
            self.size += 1
            if place == 0:
                self._starts.append((entry, group))
        ordered = sorted(self._starts, key=lambda start: start[0].order)
        self._starts = deque(ordered)

    # --- what goes -----------------------------------------------------------------------

    def _overwrite(self) -> None:
        start, group = self._starts[0]
        newest = self._run([start], self.groups[group])[-1]
        self._remove(group, newest)
        self.overwritten += 1
        if newest is start:  # nothing else was left of its run
            self._starts.popleft()

    def _remove(self, group: Group, entry: Entry) -> None:
        entries = self.groups[group]
        kept = [one for one in entries if one is not entry]
        self.size -= len(entries) - len(kept)
        self.groups[group] = kept
        if not kept:
            del self.groups[group]

    def _prune(self, group: Group) -> None:
        """Drop what only led on from runs that have ended."""
        entries = self.groups.get(group)
        if entries is None:
            return
        starts = [one for one in entries if one.place == 0]
        kept = self._run(starts, entries)
        self.size -= len(entries) - len(kept)
        self.groups[group] = kept
        if not kept:
            del self.groups[group]

    def _run(self, starts: Sequence[Entry], entries: Sequence[Entry]) -> list[Entry]:
        """Of a group's entries, those to which these lead; in order, the first included."""
        by_place: list[list[Entry]] = [[] for _ in range(len(self._links) + 1)]
        found = []
        begins = {id(one) for one in starts}
        for one in entries:
            if one.place == 0:
                led = id(one) in begins
            else:
                led = self._linked(by_place[one.place - 1], one, entries)
            if led:
                by_place[one.place].append(one)
                found.append(one)
        return found

    def _linked(self, before: Sequence[Entry], entry: Entry, stored: Sequence[Entry]) -> bool:
        """Whether any of `before`, which are in order, leads to the entry."""
        link = self._links[entry.place - 1]
        start = entry.event.start
        for one in reversed(before):
            gap_ms = start - one.event.end
            if link.high_ms is not None and gap_ms > link.high_ms:
                return False
            if gap_ms < (link.low_ms or 0) or (gap_ms == 0 and not _touches(entry, stored)):
                continue
            return True
        return False


def _place_in_order(entry: Entry) -> tuple[Order, int]:
    return (entry.order, entry.place)


def _touches(entry: Entry, stored: Sequence[Entry]) -> bool:
    """Whether something longer than a point touches at the entry's start: so readings cannot."""
    at = entry.event.start
    if at < entry.event.end:
        return True
    return any(one.event.end == at and one.event.start < at for one in stored)

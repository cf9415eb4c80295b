"""Candidate stores: what one side of an operator holds for partners still to come.

Owns keeping occurrences sorted by end and dropping those that can no longer matter. Must not know
operators. Invariant: `ends[i]` is the end of `items[i]`, ascending.

An occurrence is the event itself at a leaf, and (end, start, event, …) above leaves, with None for
a place that stays empty under `or`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

Occurrence = Any

TRIM_MIN = 32  # dead items are dropped in runs, so that dropping costs little per item


class Store:
    """Occurrences of one operand in one partition."""

    __slots__ = ("ends", "items")

    def __init__(self) -> None:
        self.items: list[Occurrence] = []
        self.ends: list[int] = []

    def extend_leaves(self, events: list[Occurrence]) -> None:
        """Take events; in-order ones are appended, others inserted."""
        ends = self.ends
        for event in events:
            end = event.end
            if not ends or end >= ends[-1]:
                ends.append(end)
                self.items.append(event)
            else:
                at = bisect_right(ends, end)
                ends.insert(at, end)
                self.items.insert(at, event)

    def extend(self, occurrences: list[Occurrence]) -> None:
        """Take composite occurrences."""
        ends = self.ends
        for occurrence in occurrences:
            end = occurrence[0]
            if not ends or end >= ends[-1]:
                ends.append(end)
                self.items.append(occurrence)
            else:
                at = bisect_right(ends, end)
                ends.insert(at, end)
                self.items.insert(at, occurrence)

    def put(self, new: list[Occurrence], *, composite: bool) -> None:
        """Take occurrences, or events as such."""
        if composite:
            self.extend(new)
        else:
            self.extend_leaves(new)

    def hold(self, items: list[Occurrence]) -> None:
        """Hold these, by end, in place of all others."""
        self.items = items
        self.ends = [item[0] if item.__class__ is tuple else item.end for item in items]

    def expire(self, before: int) -> None:
        """Drop what ends before the time."""
        ends = self.ends
        if len(ends) >= TRIM_MIN and ends[TRIM_MIN - 1] >= before:
            return
        dead = bisect_left(ends, before)
        if dead:
            del ends[:dead]
            del self.items[:dead]

    def drop_before(self, time: int) -> None:
        """Drop what ends before the time, now."""
        if self.ends and self.ends[0] < time:
            self.drop_oldest(bisect_left(self.ends, time))

    def keep_latest(self, before: int) -> None:
        """Drop what ends before the time, but for the last of these."""
        dead = bisect_left(self.ends, before) - 1
        if dead > 0:
            del self.ends[:dead]
            del self.items[:dead]

    def drop_oldest(self, count: int) -> None:
        """Drop so many of the oldest."""
        del self.ends[:count]
        del self.items[:count]

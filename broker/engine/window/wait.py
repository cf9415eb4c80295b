"""Events that wait until none can come before them, for windows that take theirs in order.

Owns the order in which events are taken. Must not know groups nor what becomes of the events.
Invariant: events come out in order, each once, when the watermark has passed their end.

Most streams come in order, or nearly: those events stand in a line and cost an append. The others
stand in a heap beside it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any

from broker.engine.event.agent import LeafEvents

Leaves = tuple[int, ...]
Entry = tuple[Any, Leaves, Any]  # an event, the leaves that it came to, its group's key

_first = itemgetter(0)


def arrivals(batch: Sequence[LeafEvents]) -> list[tuple[Any, Leaves]]:
    """Each event once, with all the leaves that it came to in this batch."""
    if len(batch) == 1:
        leaf, events = batch[0]
        alone = (leaf,)
        return [(event, alone) for event in events]
    found: dict[int, tuple[Any, list[int]]] = {}
    for leaf, events in batch:
        for event in events:
            leaves = found.setdefault(id(event), (event, []))[1]
            if leaf not in leaves:
                leaves.append(leaf)
    return [(event, tuple(sorted(leaves))) for event, leaves in found.values()]


class Waiting:
    """The entries that wait."""

    def __init__(self) -> None:
        self._ends: list[int] = []  # of the line, ascending
        self._line: list[Entry] = []
        self._gone = 0  # places of the line that are empty
        self._strays: list[tuple[int, int, Entry]] = []  # a heap; numbers keep entries apart
        self._number = 0

    def __len__(self) -> int:
        return len(self._line) - self._gone + len(self._strays)

    def __iter__(self) -> Iterator[Entry]:
        yield from self._line[self._gone :]
        for _, _, entry in sorted(self._strays, key=itemgetter(0, 1)):
            yield entry

    def put(self, entry: Entry) -> None:
        """Let an entry wait."""
        end = entry[0].end
        ends = self._ends
        if not ends or end >= ends[-1]:
            ends.append(end)
            self._line.append(entry)
        else:
            self._number += 1
            heappush(self._strays, (end, self._number, entry))

    def first_end(self) -> int | None:
        """The end of the first that waits."""
        line = self._ends[self._gone] if self._gone < len(self._ends) else None
        if not self._strays:
            return line
        stray = self._strays[0][0]
        return stray if line is None else min(line, stray)

    def ready(self, watermark: int) -> list[Entry]:
        """Those that end at or before the watermark, in order; they wait no more."""
        upto = bisect_right(self._ends, watermark, self._gone)
        found = self._line[self._gone : upto]
        ends = self._ends[self._gone : upto]
        self._leave(upto)
        strays = self._strays
        if strays and strays[0][0] <= watermark:
            mixed = list(zip(ends, found, strict=True))
            while strays and strays[0][0] <= watermark:
                end, _, entry = heappop(strays)
                mixed.append((end, entry))
            mixed.sort(key=_first)
            ends = [end for end, _ in mixed]
            found = [entry for _, entry in mixed]
        if len(set(ends)) < len(ends):
            found.sort(key=entry_order)
        return found

    def _leave(self, upto: int) -> None:
        """Empty the places up to one; they are given back when they are half of the line."""
        if upto == len(self._line):
            self._ends.clear()
            self._line.clear()
            self._gone = 0
        elif 2 * upto < len(self._line):
            for at in range(self._gone, upto):
                self._line[at] = _EMPTY
            self._gone = upto
        else:
            del self._ends[:upto]
            del self._line[:upto]
            self._gone = 0


_EMPTY: Entry = (None, (), None)


def entry_order(entry: Entry) -> tuple[Any, str]:
    """Events go by their order; the id only parts what no order does."""
    return (entry[0].order, entry[0].id)

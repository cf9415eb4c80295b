"""Events that wait for the watermark.

Owns their order. Must not know what becomes of them. Invariant: they are released in the order of
time, and in what order they came does not show.

What comes in order is appended, what is late is inserted; the whole order of events is asked for
only among those of one end that are released together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from operator import itemgetter, lt

from broker.core.event import Event, Order

Entry = tuple[int, Event]  # which atom it is for, and the event


_atom = itemgetter(0)


def _order(entry: Entry) -> tuple[int, Order, int]:
    at, event = entry
    return (event.start, event.order, at)


class Pending:
    """Events by end, each with the number of the atom that it is for."""

    __slots__ = ("_ends", "_entries")

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._entries: list[Entry] = []

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def entries(self) -> list[Entry]:
        """All of them, by end."""
        return self._entries

    @property
    def first_end(self) -> int | None:
        """The least end; None where nothing waits."""
        return self._ends[0] if self._ends else None

    def add(self, at: int, events: Sequence[Event]) -> None:
        """Take events for one atom, in any order."""
        ends, entries = self._ends, self._entries
        for event in events:
            end = event.end
            if not ends or end >= ends[-1]:
                ends.append(end)
                entries.append((at, event))
            else:
                place = bisect_right(ends, end)
                ends.insert(place, end)
                entries.insert(place, (at, event))

    def release(self, until: int) -> list[Entry]:
        """Those that end by the time, in order (of one event, by atom); they wait no more."""
        ends = self._ends
        if not ends or ends[0] > until:
            return []
        count = len(ends) if ends[-1] <= until else bisect_right(ends, until)
        ready = self._entries[:count]
        plain = all(map(lt, ends, islice(ends, 1, count)))
        del ends[:count]
        del self._entries[:count]
        if not plain:
            _sort_runs(ready)
        return ready


def _sort_runs(entries: list[Entry]) -> None:
    """Sort those of one end, which stand together."""
    begin = 0
    end = entries[0][1].end
    for at in range(1, len(entries) + 1):
        if at < len(entries) and entries[at][1].end == end:
            continue
        if at - begin > 1:
            run = entries[begin:at]
            alone = all(entry[1] is run[0][1] for entry in run)
            entries[begin:at] = sorted(run, key=_atom) if alone else sorted(run, key=_order)
        if at < len(entries):
            begin, end = at, entries[at][1].end

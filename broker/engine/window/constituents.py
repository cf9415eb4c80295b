"""The constituents of a window's event, as far as order asks for them.

Owns the lists of ids by which events of equal end and start are ordered. Must not know when
windows close. Invariant: a list depends on the window's events alone, and is made only where two
begin alike, so that nobody pays for a long window who does not ask. No event is in two groups of
a window, so that the first id, which needs no sorting, nearly always decides.

A window may have more events than could be kept beside its running sums, so a list holds its first
IDS_MAX ids (IDS_CROWDED, and counted, while very many groups are open). Lists that are longer and
agree so far are ordered by what comes after them: by definition, case, window and lineage.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import Any

from broker.engine.event.event import Order
from broker.engine.event.occurrence import said_in_order, sort_in_order, span_of
from broker.engine.runtime.budget import Budget

IDS_MAX = 64  # ids of a window's event that order looks at; up to 128 events a group are kept
IDS_CROWDED = 8  # where so many groups are open that this would be too much
PRIMITIVES = 0.25  # candidates that it costs to put an event in order, beside others of one end
DETECTED = 16  # the same of an event of a window, whose own ids may have to be made for that
NEVER = 2**63  # later than any time
LEVELS_NESTED = 100  # of an order key that is written as it is; deeper ones are written flat

_order = attrgetter("order")
_end = attrgetter("end")
_ids = attrgetter("ids")


class Lazy:
    """A tuple that is made when it is first compared; it compares with tuples too.

    There is one for each window event, so each kind sets `_made` to None on its own: that is
    cheaper than to ask this one for it.
    """

    __slots__ = ("_made",)

    _made: tuple[Any, ...] | None

    def made(self) -> tuple[Any, ...]:
        """The tuple."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def _make(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        return iter(self.made())

    def __len__(self) -> int:
        return len(self.made())

    def __repr__(self) -> str:
        return repr(self.made())

    __hash__ = None  # type: ignore[assignment]

    def first(self) -> Any:
        """Return what comes first in the tuple; None where it is empty."""
        made = self.made()
        return made[0] if made else None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return bool(self.first() == first_of(other) and self.made() == made_of(other))

    def __lt__(self, other: object) -> bool:
        # Two empty lists are equal in their first as well, and one of them is less than any other:
        # only two firsts that differ decide.
        mine, its = self.first(), first_of(other)
        if mine == its or mine is None or its is None:
            return bool(self.made() < made_of(other))
        return bool(mine < its)

    def __le__(self, other: object) -> bool:
        return bool(self.made() <= made_of(other))

    def __gt__(self, other: object) -> bool:
        return bool(self.made() > made_of(other))

    def __ge__(self, other: object) -> bool:
        return bool(self.made() >= made_of(other))


class Constituents(Lazy):
    """The primitive ids of events in order, those of a detected one by its own list.

    Nothing may change the list of events afterwards. The first `most` in order are told.
    """

    __slots__ = ("_events", "_first", "_most", "budget")

    def __init__(self, events: list[Any], most: int = IDS_MAX) -> None:
        self._made = None
        self._first: Any = None
        self._events = events
        self._most = most
        self.budget: Budget | None = None  # of the steps in which others are compared with these

    def events(self) -> list[Any]:
        """The events, each with an order and an end; in no promised order."""
        return self._events

    def in_order(self) -> list[Any]:
        """The first events, in order; whole orders are asked for only where ends tie."""
        events = sorted(self._events, key=_end)
        if len(set(map(_end, events))) < len(events):
            self._charge(events)
            events.sort(key=_order)
        return events[: self._most]

    def first(self) -> Any:
        """Return the first id; nothing is sorted for it unless the first events tie."""
        if self._first is None:
            events = self._events
            if len(events) == 1:
                ids = events[0].ids
                if ids.__class__ is tuple and ids:
                    self._first = ids[0]
                    return self._first
            first = first_of(self._first_of(events).ids) if events else None
            # A detected event may be of no ids at all: then a later one gives the first.
            self._first = super().first() if first is None else first
        return self._first

    def _first_of(self, events: Sequence[Any]) -> Any:
        if len(events) == 1:
            return events[0]
        # A minimum over at most 128 ends in place of a sort, which cost five times as much and was
        # a fifth of what a tumbling average took.
        ends = list(map(_end, events))
        least = min(ends)
        if ends.count(least) == 1:
            return events[ends.index(least)]
        tied = [event for event, end in zip(events, ends, strict=True) if end == least]
        self._charge(tied)
        return min(tied, key=_order)

    def _charge(self, tied: Sequence[Any]) -> None:
        if self.budget is not None:
            one_costs = PRIMITIVES if tied[0].primitive else DETECTED
            self.budget.spend(int(one_costs * len(tied)))

    def _make(self) -> tuple[Any, ...]:
        # In C as far as can be: of many hopping windows, making these lists is the greatest part.
        return tuple(islice(chain.from_iterable(map(_ids, self.in_order())), IDS_MAX))


class Lineage(Lazy):
    """The order of what a window's event is made of: the last resort where even the window ties.

    Where an event closed the window, that one decides first.
    """

    __slots__ = ("_closing", "_constituents")

    def __init__(self, constituents: Constituents, closing: Any = None) -> None:
        self._made = None
        self._constituents = constituents
        self._closing = closing

    def _make(self) -> Order:
        orders = [event.order for event in self._constituents.in_order()]
        end = start = 0
        if self._closing is not None:
            end, start = self._closing.end, self._closing.start
            orders.insert(0, self._closing.order)
        return (end, start, *said_in_order(orders), ())


class Head:
    """Stand for an event that is among the first by its order, which is what a snapshot keeps."""

    __slots__ = ("order",)

    primitive = True  # all that its order says is there

    def __init__(self, order: Order) -> None:
        self.order = order

    @property
    def end(self) -> int:
        """The event's end."""
        return self.order[0]

    @property
    def ids(self) -> Any:
        """The event's primitive ids."""
        return self.order[2]


class Members:
    """The events that count in a window that moves, in order; once for each leaf."""

    __slots__ = ("_events", "_gone")

    def __init__(self) -> None:
        self._events: list[Any] = []
        self._gone = 0  # of the events, those at the beginning that have left

    def push(self, event: Any) -> None:
        """Insert an event in its place."""
        events = self._events
        # With `distinct` one begins to count in the midst of others, when the last event before it
        # with the same keys has gone.
        if len(events) == self._gone or events[-1].end < event.end:
            events.append(event)
        else:
            events.insert(bisect_right(events, event.order, self._gone, key=_order), event)

    def drop(self) -> None:
        """Let go of the oldest; places are given back when they are half of the list."""
        self._gone += 1
        if 2 * self._gone > len(self._events):
            del self._events[: self._gone]
            self._gone = 0

    def newest_end(self) -> int:
        """Return the end of the newest event that counts."""
        end: int = self._events[-1].end
        return end

    def first_events(self) -> list[Any]:
        """Return the first events that count, as a list of its own."""
        return self._events[self._gone : self._gone + IDS_MAX]


def put_in_order(events: list[Any]) -> None:
    """Sort the events of windows; those of sessions and sliding windows mostly come in order.

    Of aligned windows all events of one tick have one end, so that their ids decide: the first of
    each alone where no two are equal, else all of them, which then stay with the events as tuples.
    """
    sort_in_order(events, span_of, _first_id, _all_ids, _order)


def _first_id(event: Any) -> Any:
    ids = event.constituents
    first = ids.first() if ids.__class__ is Constituents else first_of(ids)
    return () if first is None else (first,)


def _all_ids(event: Any) -> Any:
    # A comparison of two `Lazy` costs several calls, and every later sort would pay them again.
    ids = event.constituents = made_of(event.constituents)
    return ids


def first_of(ids: Any) -> Any:
    """Return the first of ids, late or not; None of none."""
    if isinstance(ids, Lazy):
        return ids.first()
    return ids[0] if ids else None


def made_of(value: object) -> Any:
    """The tuple where one is made late; else the value."""
    return value.made() if isinstance(value, Lazy) else value


# A key has three levels for each definition below, and neither Python nor the codec goes through
# more than some hundred by recursion: so both walks go by a list of what is left, and a deep key
# is written as one flat list, [count] in the place of each tuple with its parts behind it. Shallow
# ones stay nested, as they always were written.
def plain_order(order: Any) -> Any:
    """An order key as plain data: lists in place of tuples; {"flat": …} of a deep one."""
    flat, levels = _flattened(order)
    return {"flat": flat} if levels > LEVELS_NESTED else _nested(flat, list)


def order_of(data: Any) -> Any:
    """The order key that `plain_order` gave as plain data."""
    return _nested(data["flat"] if isinstance(data, dict) else _flattened(data)[0], tuple)


def _flattened(value: Any) -> tuple[list[Any], int]:
    """Return the flat list of nested tuples or lists, and how deep they are nested."""
    flat: list[Any] = []
    deepest = 0
    left = [(value, 1)]
    while left:
        part, level = left.pop()
        part = made_of(part)
        if isinstance(part, tuple | list):
            deepest = max(deepest, level)
            flat.append([len(part)])
            left += [(each, level + 1) for each in reversed(part)]
        else:
            flat.append(part)
    return flat, deepest


def _nested(flat: Sequence[Any], kind: type[list[Any] | tuple[Any, ...]]) -> Any:
    """Return what a flat list tells, from its end: then the parts are there before the whole."""
    made: list[Any] = []
    for part in reversed(flat):
        if isinstance(part, list | tuple):
            count = part[0]
            parts = kind(reversed(made[len(made) - count :]))
            del made[len(made) - count :]
            made.append(parts)
        else:
            made.append(part)
    (whole,) = made
    return whole

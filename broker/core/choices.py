"""What can be said of times that are known up to an uncertainty: yes, maybe or no.

Owns the exact answer to "does some choice of the true times meet these conditions?". Must not know
operators. Invariant: true times are real numbers, chosen independently for each event within its
uncertainty; a reading has one, what lasts has two with start ≤ end (LANGUAGE: uncertain time; seed
001, section 5).

An occurrence is asked about by its start and end alone. Which of its events is the first and which
the last makes a *piece*: within a piece start and end lie in two ranges, and at most "they are one"
or "start ≤ end" binds them together, so that all conditions are bounds on differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

YES, MAYBE, NO = 2, 1, 0
WORDS = {YES: "yes", MAYBE: "maybe"}

# The times of p and of q; `a - b ≤ c`, or `< c` where strict, is (a, b, c, strict).
ZERO, P_START, P_END, Q_START, Q_END = range(5)
Number = int | Fraction
Condition = tuple[int, int, Number, bool]

# What a way to meet a relation may ask beside differences.
P_ENDS_IN_READING, Q_STARTS_IN_READING = "p ends in a reading", "q starts in a reading"
P_ENDS_IN_NONE, Q_STARTS_IN_NONE = "no reading ends p", "no reading starts q"
Way = tuple[Condition | str, ...]


class Maybe(int):
    """The end of an occurrence that is not certain: an integer like any other end."""

    __slots__ = ()


class Piece(NamedTuple):
    """A choice of the first and the last event of an occurrence."""

    start: tuple[int, int]
    end: tuple[int, int]
    one: bool  # start and end are one time
    reading_first: bool
    reading_last: bool


def pieces(events: Sequence[Any]) -> list[Piece]:
    """All choices of the first and the last of the events that times allow."""
    start_max = min([event.start + event.uncertainty for event in events])
    end_min = max([event.end - event.uncertainty for event in events])
    found = []
    for first, last in product(events, events):
        start = (first.start - first.uncertainty, start_max)
        end = (end_min, last.end + last.uncertainty)
        if start[0] > start[1] or end[0] > end[1]:
            continue
        reading = first.start == first.end
        one = first is last and reading
        found.append(Piece(start, end, one, reading, last.start == last.end))
    return found


def can(ways: Sequence[Way], p: Sequence[Any], q: Sequence[Any]) -> bool:
    """Whether some choice of the times of p's and q's events goes one of the ways."""
    for a, b in product(pieces(p), pieces(q) if q else (None,)):
        known = _bounds(a, P_START, P_END)
        if b is not None:
            known += _bounds(b, Q_START, Q_END)
        for way in ways:
            told = _told(way, a, b, p, q)
            if told is not None and _feasible(known + told):
                return True
    return False


def verdict(
    holds: Sequence[Way], fails: Sequence[Way], p: Sequence[Any], q: Sequence[Any] = ()
) -> int:
    """YES if no choice fails, NO if none holds.

    Nearly always the ranges of the four times alone tell; only what they leave open is asked for.
    """
    low, high = _ranges(p, q)
    may_hold = _told_by_ranges(holds, low, high)
    if may_hold is None:
        may_hold = can(holds, p, q)
    if not may_hold:
        return NO
    may_fail = _told_by_ranges(fails, low, high)
    if may_fail is None:
        may_fail = can(fails, p, q)
    return MAYBE if may_fail else YES


def _ranges(p: Sequence[Any], q: Sequence[Any]) -> tuple[list[int], list[int]]:
    """The least and the greatest that each of the five times can be."""
    low, high = [0], [0]
    for events in (p, q):
        if events:
            low.append(min([event.start - event.uncertainty for event in events]))
            low.append(max([event.end - event.uncertainty for event in events]))
            high.append(min([event.start + event.uncertainty for event in events]))
            high.append(max([event.end + event.uncertainty for event in events]))
    return low, high


def _told_by_ranges(ways: Sequence[Way], low: list[int], high: list[int]) -> bool | None:
    """Whether some choice goes one of the ways; None where the ranges do not tell."""
    open_ways = False
    for way in ways:
        sure = possible = True
        for one in way:
            if isinstance(one, str):
                sure = False
                continue
            a, b, c, strict = one
            most, least = high[a] - low[b], low[a] - high[b]
            if least > c or (strict and least == c):
                possible = False
                break
            if most > c or (strict and most == c):
                sure = False
        if possible and sure:
            return True
        open_ways = open_ways or possible
    return None if open_ways else False


def _bounds(piece: Piece, start: int, end: int) -> list[Condition]:
    return [
        (start, ZERO, piece.start[1], False),
        (ZERO, start, -piece.start[0], False),
        (end, ZERO, piece.end[1], False),
        (ZERO, end, -piece.end[0], False),
        (start, end, 0, False),
        *([(end, start, 0, False)] if piece.one else []),
    ]


def _told(
    way: Way, a: Piece, b: Piece | None, p: Sequence[Any], q: Sequence[Any]
) -> list[Condition] | None:
    """The conditions of a way on two pieces; None where these cannot go it."""
    conditions: list[Condition] = []
    for one in way:
        if not isinstance(one, str):
            conditions.append(one)
        elif one == P_ENDS_IN_READING:
            if not a.reading_last:
                return None
        elif one == P_ENDS_IN_NONE:
            if a.reading_last:
                return None
            conditions += _readings_before(p)
        elif one == Q_STARTS_IN_READING:
            if b is None or not b.reading_first:
                return None
        else:
            if b is None or b.reading_first:
                return None
            conditions += _readings_after(q)
    return conditions


def _readings_before(p: Sequence[Any]) -> list[Condition]:
    """Each reading of p comes before p's end."""
    readings = [event for event in p if event.start == event.end]
    told: list[Condition] = [
        (ZERO, P_END, event.uncertainty - event.start, True) for event in readings
    ]
    return [*told, (P_START, P_END, 0, True)] if readings else told


def _readings_after(q: Sequence[Any]) -> list[Condition]:
    """Each reading of q comes after q's start."""
    readings = [event for event in q if event.start == event.end]
    told: list[Condition] = [
        (Q_START, ZERO, event.start + event.uncertainty, True) for event in readings
    ]
    return [*told, (Q_START, Q_END, 0, True)] if readings else told


def _feasible(conditions: Sequence[Condition]) -> bool:
    """Whether times meet all conditions: no circle of differences asks for less than nothing."""
    far: dict[tuple[int, int], tuple[Number, int]] = {}
    for a, b, c, strict in conditions:
        way = (c, -1 if strict else 0)
        if (a, b) not in far or way < far[a, b]:
            far[a, b] = way
    names = range(5)
    for middle in names:
        for a in names:
            first = far.get((a, middle))
            if first is None:
                continue
            for b in names:
                second = far.get((middle, b))
                if second is None:
                    continue
                way = (first[0] + second[0], max(-1, first[1] + second[1]))
                if (a, b) not in far or way < far[a, b]:
                    far[a, b] = way
    return all(far.get((name, name), (0, 0)) >= (0, 0) for name in names)

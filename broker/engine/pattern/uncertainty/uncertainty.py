"""Verdicts over times that are known up to an uncertainty: yes, maybe or no.

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
# A conjunction; a relation is met in one of several ways.
Way = tuple[Condition | str, ...]


def le(a: int, b: int, c: Number = 0) -> Condition:
    """Ask that a - b ≤ c."""
    return (a, b, c, False)


def lt(a: int, b: int, c: Number = 0) -> Condition:
    """Ask that a - b < c."""
    return (a, b, c, True)


class Maybe(int):
    """The end of an occurrence that is not certain: an integer like any other end."""

    __slots__ = ()


class Piece(NamedTuple):
    """A choice of the first and the last event of an occurrence."""

    start: tuple[int, int]
    end: tuple[int, int]
    is_point: bool  # start and end are one time
    reading_first: bool
    reading_last: bool


def pieces(events: Sequence[Any]) -> list[Piece]:
    """Return all choices of the first and the last of the events that times allow."""
    start_max = min([event.start + event.uncertainty for event in events])
    end_min = max([event.end - event.uncertainty for event in events])
    # No start is later than the earliest that is surely over, no end earlier than the latest.
    allowed = []
    for first, last in product(events, events):
        start = (first.start - first.uncertainty, start_max)
        end = (end_min, last.end + last.uncertainty)
        if start[0] > start[1] or end[0] > end[1]:
            continue
        reading = first.start == first.end
        is_point = first is last and reading
        allowed.append(Piece(start, end, is_point, reading, last.start == last.end))
    return allowed


def can(ways: Sequence[Way], p: Sequence[Any], q: Sequence[Any]) -> bool:
    """Return True where some choice of the times of p's and q's events goes one of the ways."""
    # Without q it is asked of one occurrence alone.
    for a, b in product(pieces(p), pieces(q) if q else (None,)):
        bounds = _bounds(a, P_START, P_END)
        if b is not None:
            bounds += _bounds(b, Q_START, Q_END)
        for conjunction in ways:
            conditions = _conditions(conjunction, a, b, p, q)
            if conditions is not None and _feasible(bounds + conditions):
                return True
    return False


def verdict(
    holds: Sequence[Way], fails: Sequence[Way], p: Sequence[Any], q: Sequence[Any] = ()
) -> int:
    """Return YES if no choice fails, NO if none holds, else MAYBE.

    Nearly always the ranges of the four times alone tell; only what they leave open is asked for.
    """
    low, high = _ranges(p, q)
    # A piece's search costs some hundred steps, a look at the ranges some ten.
    may_hold = _decided_by_ranges(holds, low, high)
    if may_hold is None:
        may_hold = can(holds, p, q)
    if not may_hold:
        return NO
    may_fail = _decided_by_ranges(fails, low, high)
    if may_fail is None:
        may_fail = can(fails, p, q)
    return MAYBE if may_fail else YES


def _ranges(p: Sequence[Any], q: Sequence[Any]) -> tuple[list[int], list[int]]:
    """Return the least and the greatest that each of the five times can be."""
    low, high = [0], [0]
    for events in (p, q):
        if events:
            low.append(min([event.start - event.uncertainty for event in events]))
            low.append(max([event.end - event.uncertainty for event in events]))
            high.append(min([event.start + event.uncertainty for event in events]))
            high.append(max([event.end + event.uncertainty for event in events]))
    return low, high


def _decided_by_ranges(ways: Sequence[Way], low: list[int], high: list[int]) -> bool | None:
    """Return True where some choice goes one of the ways; None where the ranges do not tell."""
    open_ways = False
    for conjunction in ways:
        sure = possible = True
        for condition in conjunction:
            if isinstance(condition, str):
                sure = False
                continue
            a, b, c, strict = condition
            greatest, least = high[a] - low[b], low[a] - high[b]
            # Where the least difference is too much, no choice of times goes this way.
            if least > c or (strict and least == c):
                possible = False
                break
            # Ranges of one occurrence are not independent: what some choice breaks is left open.
            if greatest > c or (strict and greatest == c):
                sure = False
        if possible and sure:
            return True
        open_ways = open_ways or possible
    return None if open_ways else False


def _bounds(piece: Piece, start: int, end: int) -> list[Condition]:
    # A range is two differences to ZERO.
    return [
        (start, ZERO, piece.start[1], False),
        (ZERO, start, -piece.start[0], False),
        (end, ZERO, piece.end[1], False),
        (ZERO, end, -piece.end[0], False),
        (start, end, 0, False),
        *([(end, start, 0, False)] if piece.is_point else []),
    ]


def _conditions(
    conjunction: Way, a: Piece, b: Piece | None, p: Sequence[Any], q: Sequence[Any]
) -> list[Condition] | None:
    """Return the conditions of a way on two pieces; None where these cannot go it."""
    conditions: list[Condition] = []
    for condition in conjunction:
        if not isinstance(condition, str):
            conditions.append(condition)
        elif condition == P_ENDS_IN_READING:
            if not a.reading_last:
                return None
        elif condition == P_ENDS_IN_NONE:
            if a.reading_last:
                return None
            # Of several events that may end together none may be a reading.
            conditions += _readings_before(p)
        elif condition == Q_STARTS_IN_READING:
            if b is None or not b.reading_first:
                return None
        else:
            if b is None or b.reading_first:
                return None
            conditions += _readings_after(q)
    return conditions


def _readings_before(p: Sequence[Any]) -> list[Condition]:
    """Ask that each reading of p comes before p's end."""
    readings = [event for event in p if event.start == event.end]
    conditions: list[Condition] = [
        (ZERO, P_END, event.uncertainty - event.start, True) for event in readings
    ]
    return [*conditions, (P_START, P_END, 0, True)] if readings else conditions


def _readings_after(q: Sequence[Any]) -> list[Condition]:
    """Ask that each reading of q comes after q's start."""
    readings = [event for event in q if event.start == event.end]
    conditions: list[Condition] = [
        (Q_START, ZERO, event.start + event.uncertainty, True) for event in readings
    ]
    return [*conditions, (Q_START, Q_END, 0, True)] if readings else conditions


def _feasible(conditions: Sequence[Condition]) -> bool:
    """Return True where times meet all: no circle of differences asks for less than nothing."""
    # The tightest limit of each difference; a strict one is tighter than its equal.
    limits: dict[tuple[int, int], tuple[Number, int]] = {}
    for a, b, c, strict in conditions:
        limit = (c, -1 if strict else 0)
        if (a, b) not in limits or limit < limits[a, b]:
            limits[a, b] = limit
    # Floyd and Warshall's shortest ways, over the five times.
    names = range(5)
    for middle in names:
        for a in names:
            first = limits.get((a, middle))
            if first is None:
                continue
            for b in names:
                second = limits.get((middle, b))
                if second is None:
                    continue
                limit = (first[0] + second[0], max(-1, first[1] + second[1]))
                if (a, b) not in limits or limit < limits[a, b]:
                    limits[a, b] = limit
    return all(limits.get((name, name), (0, 0)) >= (0, 0) for name in names)

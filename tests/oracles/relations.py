"""How two occurrences lie in time to each other: `then`, Allen's relations, `concat`, `parallel`.

Owns: the reference meaning of every relation and of the bounds on gaps.
Must not know: where the occurrences come from.
Invariant: a relation is a statement about starts and ends, and about the events that touch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tests.oracles import spec as s
from tests.oracles.events import Occurrence

Holds: TypeAlias = Callable[[Occurrence, Occurrence], bool]


def may_touch(p: Occurrence, q: Occurrence) -> bool:
    """Whether p may end where q starts: no two readings of one instant follow each other.

    Of each event of p that ends and each of q that starts where they touch, one is longer than a
    point. So (a, D) then (c) with a and c readings of one instant is no occurrence, however long D.
    An absence is longer than a point.
    """
    ending = [event for event in p.spans if event.end == p.end]
    starting = [event for event in q.spans if event.start == q.start]
    return not any(a.is_point and b.is_point for a in ending for b in starting)


def _then(p: Occurrence, q: Occurrence) -> bool:
    return p.end < q.start or (p.end == q.start and may_touch(p, q))


def _meets(p: Occurrence, q: Occurrence) -> bool:
    return p.end == q.start and may_touch(p, q)


def _overlaps(p: Occurrence, q: Occurrence) -> bool:
    return p.start < q.start < p.end < q.end


def _during(p: Occurrence, q: Occurrence) -> bool:
    return q.start < p.start and p.end < q.end


def _starts(p: Occurrence, q: Occurrence) -> bool:
    return p.start == q.start and p.end < q.end


def _finishes(p: Occurrence, q: Occurrence) -> bool:
    return q.start < p.start and p.end == q.end


def _equals(p: Occurrence, q: Occurrence) -> bool:
    return p.start == q.start and p.end == q.end


def _concat(p: Occurrence, q: Occurrence) -> bool:
    if p.start == p.end and q.start == q.end:
        return False
    return p.start <= q.start < p.end or (p.end == q.start and may_touch(p, q))


def _parallel(p: Occurrence, q: Occurrence) -> bool:
    return p.start <= q.end and q.start <= p.end


RELATIONS: dict[s.Relation, Holds] = {
    "and": lambda _, __: True,
    "then": _then,
    "before": lambda p, q: p.end < q.start,
    "meets": _meets,
    "overlaps": _overlaps,
    "during": _during,
    "contains": lambda p, q: _during(q, p),
    "starts": _starts,
    "finishes": _finishes,
    "equals": _equals,
    "concat": _concat,
    "parallel": _parallel,
}


def gap_of(pair: s.Pair, p: Occurrence, q: Occurrence) -> tuple[int, int]:
    """Where the gap between the two begins and ends; of `and` whichever comes first."""
    if pair.op == "and" and q.end < p.start:
        return q.end, p.start
    assert pair.op in ("and", "then", "before"), "no other operator has a gap"
    return p.end, q.start


def in_bound(pair: s.Pair, p: Occurrence, q: Occurrence) -> bool:
    """Whether the gap lies within the bound of the operator, ends included."""
    if pair.bound is None:
        return True
    begin, end = gap_of(pair, p, q)
    gap_ms = max(0, end - begin) if pair.op == "and" else end - begin
    return is_within(gap_ms, pair.bound)


def is_within(gap_ms: int, bound: s.Bound) -> bool:
    """Whether a gap lies between the ends of a bound."""
    low_ok = bound.low_ms is None or bound.low_ms <= gap_ms
    return low_ok and (bound.high_ms is None or gap_ms <= bound.high_ms)

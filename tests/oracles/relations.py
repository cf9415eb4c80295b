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
    """
    ending = [event for event in p.events if event.end == p.end]
    starting = [event for event in q.events if event.start == q.start]
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


def in_bound(pair: s.Pair, p: Occurrence, q: Occurrence) -> bool:
    """Whether the gap lies within the bound of the operator, ends included."""
    if pair.bound is None:
        return True
    if pair.op == "and":
        gap_ms = max(0, q.start - p.end, p.start - q.end)
    else:
        assert pair.op in ("then", "before"), "no other operator takes a bound"
        gap_ms = q.start - p.end
    low_ok = pair.bound.low_ms is None or pair.bound.low_ms <= gap_ms
    return low_ok and (pair.bound.high_ms is None or gap_ms <= pair.bound.high_ms)

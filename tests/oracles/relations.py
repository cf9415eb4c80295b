"""How two occurrences lie in time to each other: `then`, Allen's relations, `concat`, `parallel`.

Owns: the reference meaning of every relation, of the bounds on gaps, of spans.
Must not know: where the occurrences come from.
Invariant: a relation is a statement about starts and ends, and about the events that touch. It is
written twice: as what holds of nominal times, and as the systems of conditions with which it holds
or fails while times are uncertain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

from tests.oracles import spec as s
from tests.oracles.certainty import (
    LASTS_P,
    LASTS_Q,
    REACHES_P,
    REACHES_Q,
    System,
    Times,
    at_most,
    less,
    same,
    verdict,
)
from tests.oracles.events import Event, Occurrence
from tests.oracles.verdicts import Certainty, certainly, weakest

Holds: TypeAlias = Callable[[Occurrence, Occurrence], bool]

# --- nominal times ----------------------------------------------------------------------------


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


# --- uncertain times --------------------------------------------------------------------------

_PE_IS_QS = same("pe", "qs")
_TOUCH: list[System] = [[*_PE_IS_QS, LASTS_P], [*_PE_IS_QS, LASTS_Q]]
_POINTS_MEET: System = [*_PE_IS_QS, REACHES_P, REACHES_Q]

# Per relation: the systems with which it holds, and those with which it fails.
SYSTEMS: dict[s.Relation, tuple[list[System], list[System]]] = {
    "and": ([[]], []),
    "then": ([less("pe", "qs"), *_TOUCH], [less("qs", "pe"), _POINTS_MEET]),
    "before": ([less("pe", "qs")], [at_most("qs", "pe")]),
    "meets": (_TOUCH, [less("pe", "qs"), less("qs", "pe"), _POINTS_MEET]),
    "overlaps": (
        [less("ps", "qs") + less("qs", "pe") + less("pe", "qe")],
        [at_most("qs", "ps"), at_most("pe", "qs"), at_most("qe", "pe")],
    ),
    "during": (
        [less("qs", "ps") + less("pe", "qe")],
        [at_most("ps", "qs"), at_most("qe", "pe")],
    ),
    "contains": (
        [less("ps", "qs") + less("qe", "pe")],
        [at_most("qs", "ps"), at_most("pe", "qe")],
    ),
    "starts": (
        [same("ps", "qs") + less("pe", "qe")],
        [less("ps", "qs"), less("qs", "ps"), at_most("qe", "pe")],
    ),
    "finishes": (
        [same("pe", "qe") + less("qs", "ps")],
        [less("pe", "qe"), less("qe", "pe"), at_most("ps", "qs")],
    ),
    "equals": (
        [same("ps", "qs") + same("pe", "qe")],
        [less("ps", "qs"), less("qs", "ps"), less("pe", "qe"), less("qe", "pe")],
    ),
    # Where q starts before p ends p lasts; where it starts as p ends they touch.
    "concat": (
        [at_most("ps", "qs") + less("qs", "pe"), *(at_most("ps", "qs") + one for one in _TOUCH)],
        [less("qs", "ps"), less("pe", "qs"), _POINTS_MEET],
    ),
    "parallel": (
        [at_most("ps", "qe") + at_most("qs", "pe")],
        [less("qe", "ps"), less("pe", "qs")],
    ),
}


def _longer(ms: int, drift: Fraction) -> int | Fraction:
    return ms * (1 + drift) if drift else ms


def _shorter(ms: int, drift: Fraction) -> int | Fraction:
    return ms * (1 - drift) if drift else ms


def are_exact(events: Sequence[Event]) -> bool:
    """Whether all times are known."""
    return all(event.uncertainty == 0 for event in events)


def related(op: s.Relation, p: Occurrence, q: Occurrence) -> Certainty:
    """How certainly the two are in a relation."""
    if are_exact((*p.spans, *q.spans)):
        return certainly(RELATIONS[op](p, q))
    return verdict(*SYSTEMS[op], Times(p.spans, q.spans))


def bounded(pair: s.Pair, p: Occurrence, q: Occurrence, drift: Fraction) -> Certainty:
    """How certainly the gap lies within the bound; each end of it is a statement of its own."""
    if pair.bound is None:
        return Certainty.YES
    assert pair.op in ("and", "then", "before"), "no other operator takes a bound"
    if are_exact((*p.spans, *q.spans)) and drift == 0:
        return certainly(in_bound(pair, p, q))
    times, parts = Times(p.spans, q.spans), []
    low_ms, high_ms = pair.bound.low_ms, pair.bound.high_ms
    swapped = [("pe", "qs")] if pair.op != "and" else [("pe", "qs"), ("qe", "ps")]
    if low_ms and pair.op == "and":
        holds = [at_most(a, b, -_shorter(low_ms, drift)) for a, b in swapped]
        fails: list[System] = [
            [one for a, b in swapped for one in less(b, a, _longer(low_ms, drift))]
        ]
        parts.append(verdict(holds, fails, times))
    elif low_ms is not None and pair.op != "and":
        holds = [at_most("pe", "qs", -_shorter(low_ms, drift))]
        parts.append(verdict(holds, [less("qs", "pe", _longer(low_ms, drift))], times))
    if high_ms is not None:
        holds = [[one for a, b in swapped for one in at_most(b, a, _longer(high_ms, drift))]]
        fails = [less(a, b, -_shorter(high_ms, drift)) for a, b in swapped]
        parts.append(verdict(holds, fails, times))
    return weakest(parts)


def spans_at_most(one: Occurrence, ms: int, drift: Fraction) -> Certainty:
    """`within T`: how certainly the occurrence spans no more."""
    if are_exact(one.spans) and drift == 0:
        return certainly(one.end - one.start <= ms)
    holds = [at_most("pe", "ps", _longer(ms, drift))]
    return verdict(holds, [less("ps", "pe", -_shorter(ms, drift))], Times(one.spans))


def follows_within(anchor: Event, other: Event, ms: int, drift: Fraction) -> Certainty:
    """`within T from A`, of one other event: it begins at A's end or later, and ends in time."""
    if are_exact((anchor, other)) and drift == 0:
        return certainly(anchor.end <= other.start and other.end <= anchor.end + ms)
    times = Times((anchor,), (other,))
    late_fails = less("pe", "qe", -_shorter(ms, drift))
    return weakest(
        (
            verdict([at_most("pe", "qs")], [less("qs", "pe")], times),
            verdict([at_most("qe", "pe", _longer(ms, drift))], [late_fails], times),
        )
    )


def lies_inside(p: Occurrence, q: Occurrence) -> Certainty:
    """Whether q starts and ends within p."""
    if are_exact((*p.spans, *q.spans)):
        return certainly(p.start <= q.start and q.end <= p.end)
    holds = [at_most("ps", "qs") + at_most("qe", "pe")]
    return verdict(holds, [less("qs", "ps"), less("pe", "qe")], Times(p.spans, q.spans))


def starts_within(p: Occurrence, q: Occurrence, ms: int, drift: Fraction) -> Certainty:
    """Whether q starts after the beginning of p and at most so long after it."""
    if are_exact((*p.spans, *q.spans)) and drift == 0:
        return certainly(p.start < q.start <= p.start + ms)
    times = Times(p.spans, q.spans)
    late = verdict(
        [at_most("qs", "ps", _longer(ms, drift))], [less("ps", "qs", -_shorter(ms, drift))], times
    )
    return weakest((verdict([less("ps", "qs")], [at_most("qs", "ps")], times), late))


def comes_after(p: Occurrence, q: Occurrence, ms: int, drift: Fraction) -> Certainty:
    """Whether q meets (u, u + T], u being the end of p: it ends later and starts in time.

    That is one statement; what is in both has one time.
    """
    if are_exact((*p.spans, *q.spans)) and drift == 0:
        return certainly(q.end > p.end and q.start <= p.end + ms)
    return verdict(
        [less("pe", "qe") + at_most("qs", "pe", _longer(ms, drift))],
        [at_most("qe", "pe"), less("pe", "qs", -_shorter(ms, drift))],
        Times(p.spans, q.spans),
    )

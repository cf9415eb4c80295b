"""How certain relations, bounds and spans are while times are uncertain.

Owns what each relation asks of starts and ends, in the ways to meet and to fail it. Must not know
stores or patterns. Invariant: with exact times and without drift the answer is that of join.py.

`drift` is ρ: a duration T counts as T(1 + ρ) for "not no" and T(1 - ρ) for "yes"; a lower bound the
other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from broker.engine.event.occurrence import Occurrence, events_of, flat, identity, touches
from broker.engine.pattern.layout.operands import Distinct, Joint, Kth, Operand, least
from broker.engine.pattern.uncertainty.relations import RELATION_TESTS
from broker.engine.pattern.uncertainty.uncertainty import (
    MAYBE,
    NO,
    P_END,
    P_START,
    Q_END,
    Q_START,
    YES,
    Number,
    Way,
    le,
    lt,
    verdict,
)
from language.tree import Bound


@dataclass(slots=True)
class Doubt:
    """Keep the uncertainty known of a task's inputs; `most_ms` is the greatest ε so far."""

    drift: Fraction
    most_ms: int = 0

    def see(self, events: Sequence[Any]) -> None:
        """Events came."""
        for event in events:
            self.most_ms = max(self.most_ms, event.uncertainty)

    def slack_ms(self, limit_ms: int = 0) -> int:
        """By how much nominal times may miss a limit that is met all the same."""
        # Both instants may be off by ε (paper 001, section 3, "Time Systems": accuracy intervals),
        # and the drift part is cut to whole ms: 1 more is never too little. Rejected: 2g-precedence
        # of paper 001: it orders nothing nearer than two ticks, and says no where a match may be.
        return 2 * self.most_ms + int(limit_ms * self.drift) + 1

    def reach_slack_ms(self, joint: Joint, limit_ms: int) -> int:
        """The same of two operands: with an anchor each is held to that, not one to the other."""
        # Two doubts: the one may be late after A by one, the other early by one.
        return self.slack_ms(limit_ms) + (self.slack_ms() if joint.anchors else 0)

    def longer(self, limit_ms: int) -> Number:
        """T(1 + ρ)."""
        return limit_ms * (1 + self.drift) if self.drift else limit_ms

    def shorter(self, limit_ms: int) -> Number:
        """T(1 - ρ)."""
        return limit_ms * (1 - self.drift) if self.drift else limit_ms


def spans_of(occurrence: Occurrence) -> list[Any]:
    """All of an occurrence that has a time: its events and absences."""
    return flat(events_of(occurrence))


def _exact(doubt: Doubt, p: Sequence[Any], q: Sequence[Any] = ()) -> bool:
    # Most events have no ε: then the nominal answer costs two comparisons and no search.
    return not doubt.drift and not any(event.uncertainty for events in (p, q) for event in events)


def related(operator: str, p: Sequence[Any], q: Sequence[Any]) -> int:
    """Judge how certainly p and q are in the relation."""
    if not any(event.uncertainty for event in p) and not any(event.uncertainty for event in q):
        return YES if _nominally(operator, p, q) else NO
    # Drift does not come in: a relation compares instants, and measures no duration.
    judged = RELATION_TESTS[operator]
    return verdict(judged.holds, judged.fails, p, q)


def _nominally(operator: str, p: Sequence[Any], q: Sequence[Any]) -> bool:
    times = {
        P_START: min([event.start for event in p]),
        P_END: max([event.end for event in p]),
        Q_START: min([event.start for event in q]),
        Q_END: max([event.end for event in q]),
    }
    # Of a way the words say which readings may touch, and all others compare two times.
    for way in RELATION_TESTS[operator].holds:
        conditions = [one for one in way if not isinstance(one, str)]
        if not all(
            times[a] - times[b] < c if strict else times[a] - times[b] <= c
            for a, b, c, strict in conditions
        ):
            continue
        if len(conditions) == len(way) or touches(times[P_END], tuple(p), tuple(q)):
            return True
    return False


def bounded(operator: str, bound: Bound, p: Sequence[Any], q: Sequence[Any], doubt: Doubt) -> int:
    """Judge how certainly the gap lies within the bound, each end of which is its own statement."""
    # `and` has no order: its gap is that of whichever comes second.
    gaps = [(P_END, Q_START)] if operator != "and" else [(P_END, Q_START), (Q_END, P_START)]
    parts = [YES]
    low, high = bound.low_ms, bound.high_ms
    # A lower bound of 0 on `and` says nothing: where they touch or share time the gap is 0.
    if low is not None and (low > 0 or operator != "and"):
        holds: list[Way] = [(le(a, b, -doubt.shorter(low)),) for a, b in gaps]
        fails: list[Way] = [tuple(lt(b, a, doubt.longer(low)) for a, b in gaps)]
        parts.append(verdict(holds, fails, p, q))
    if high is not None:
        holds = [tuple(le(b, a, doubt.longer(high)) for a, b in gaps)]
        fails = [(lt(a, b, -doubt.shorter(high)),) for a, b in gaps]
        parts.append(verdict(holds, fails, p, q))
    return min(parts)


def spanning(p: Sequence[Any], limit_ms: int, doubt: Doubt) -> int:
    """Judge how certainly all of it lies within so long a time."""
    # Without ε and ρ the answer is a comparison of integers, and never a maybe.
    if _exact(doubt, p):
        span = max([event.end for event in p]) - min([event.start for event in p])
        return YES if span <= limit_ms else NO
    holds: list[Way] = [(le(P_END, P_START, doubt.longer(limit_ms)),)]
    fails: list[Way] = [(lt(P_START, P_END, -doubt.shorter(limit_ms)),)]
    return verdict(holds, fails, p)


def anchored(anchor: Any, other: Any, limit_ms: int, doubt: Doubt) -> int:
    """`within T from A`, of one other event: it begins at A's end or later, and ends in time."""
    if _exact(doubt, (anchor,), (other,)):
        inside = anchor.end <= other.start and other.end <= anchor.end + limit_ms
        return YES if inside else NO
    after = verdict([(le(P_END, Q_START),)], [(lt(Q_START, P_END),)], (anchor,), (other,))
    in_time = verdict(
        [(le(Q_END, P_END, doubt.longer(limit_ms)),)],
        [(lt(P_END, Q_END, -doubt.shorter(limit_ms)),)],
        (anchor,),
        (other,),
    )
    # A conjunction is as weak as its weakest part (LANGUAGE, "Uncertain time"); NO is the least.
    return min(after, in_time)


def inside(p: Sequence[Any], q: Sequence[Any], window_ms: int | None, doubt: Doubt) -> int:
    """Judge how certainly q falls where `p without q` (or `without[T]`) does not want it."""
    if window_ms is None:
        holds: list[Way] = [(le(P_START, Q_START), le(Q_END, P_END))]
        fails: list[Way] = [(lt(Q_START, P_START),), (lt(P_END, Q_END),)]
        return verdict(holds, fails, p, q)
    after = verdict([(lt(P_START, Q_START),)], [(le(Q_START, P_START),)], p, q)
    in_time = verdict(
        [(le(Q_START, P_START, doubt.longer(window_ms)),)],
        [(lt(P_START, Q_START, -doubt.shorter(window_ms)),)],
        p,
        q,
    )
    return min(after, in_time)


def disturbing(p: Sequence[Any], q: Sequence[Any], for_ms: int, doubt: Doubt) -> int:
    """Judge how certainly q meets (u, u + T], u the end of p: it ends later, starts in time.

    What both have is at one time in both, so that it is nothing that ends later, and has begun.
    """
    # A p does not disturb the silence that it begins.
    own = set(map(identity, p))
    others = [event for event in q if identity(event) not in own]
    if not others:
        return NO
    # The end of p, which is the latest of its ends, lies between these two.
    soonest = max([event.end - event.uncertainty for event in p])
    latest = max([event.end + event.uncertainty for event in p])
    if max([event.end + event.uncertainty for event in others]) <= soonest:
        return NO
    surely = max([event.end - event.uncertainty for event in others]) > latest
    if len(others) == len(q):
        first = min([event.start - event.uncertainty for event in q])
        if first > latest + doubt.longer(for_ms):
            return NO
        last = min([event.start + event.uncertainty for event in q])
        surely = surely and last <= soonest + doubt.shorter(for_ms)
    return YES if surely else MAYBE


def certainty_of(occurrence: Occurrence) -> int:
    """Return how certain an occurrence is, as its stage has found."""
    if occurrence.__class__ is tuple:
        # A maybe is kept in the class of its end (event.occurrence.Maybe): no field for the others.
        return MAYBE if occurrence[0].__class__ is not int else YES
    return MAYBE if getattr(occurrence, "certainty", "yes") == "maybe" else YES


def certainty_at(operand: Operand, occurrence: Occurrence, doubt: Doubt) -> int:
    """The same; a single event may also be uncertain of its own span."""
    if occurrence.__class__ is tuple:
        return certainty_of(occurrence)
    within_ms = operand.within_ms
    while isinstance(operand, Kth | Distinct):
        operand = operand.operand
        within_ms = least(within_ms, operand.within_ms)
    if within_ms is None:
        return certainty_of(occurrence)
    return min(certainty_of(occurrence), spanning((occurrence,), within_ms, doubt))

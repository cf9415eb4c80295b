"""Operators over two sides while times are uncertain.

Owns how certain a pair is. Must not know how partners are found (join.py). Invariant: partners are
chosen by nominal order among all that is not NO; a pair's test ends with its certainty, which is
false where it is NO.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from broker.engine.event.occurrence import Occurrence, end_of, events_of, flat, start_of
from broker.engine.pattern.layout.operands import Joint, Operand, silent_places
from broker.engine.pattern.uncertainty.uncertainty import MAYBE, NO, Maybe
from broker.engine.pattern.uncertainty.verdicts import (
    Doubt,
    anchored,
    bounded,
    certainty_at,
    related,
    spanning,
    spans_of,
)

# Against a compiled test of two pairs of numbers: each relation is asked for its ways to hold and
# to fail (relations.py), at both ends of every interval.
WEIGHING = 24  # candidates that a pair costs whose times are weighed


def anchored_parts(
    operand: Operand, occurrence: Occurrence, places: Sequence[int], doubt: Doubt
) -> list[int]:
    """Of each `within T from A` around an operand and each other event: how certainly it holds."""
    members = events_of(occurrence)
    parts = []
    for anchor, within_ms in operand.anchors:
        if not operand.low <= anchor < operand.high:
            continue
        origins = flat([members[anchor - operand.low]])
        # The anchor is an optional list that bound nothing: no event can be within T from it.
        if not origins:
            return [NO]
        others = flat([members[place - operand.low] for place in places if place != anchor])
        parts += [anchored(a, x, within_ms, doubt) for a in origins for x in others]
    return parts


def marked(occurrence: Occurrence, certainty: int) -> Occurrence | None:
    """The occurrence with its certainty; None of NO."""
    if certainty == NO:
        return None
    if certainty == MAYBE and occurrence.__class__ is tuple:
        # A bare event carries its certainty itself; only what is made of several is marked here.
        return (Maybe(occurrence[0]), *occurrence[1:])
    return occurrence


class Weighed:
    """Weigh the pairs of one operator, and make them."""

    def __init__(self, joint: Joint, doubt: Doubt) -> None:
        self._joint = joint
        self.doubt = doubt
        silent = silent_places(joint)
        self._places = [at for at in range(joint.low, joint.high) if at not in silent]

    def reach_slack_ms(self, limit_ms: int) -> int:
        """Return by how much nominal times may miss how far back a partner lies."""
        return self.doubt.reach_slack_ms(self._joint, limit_ms)

    def ended(self, side: Operand) -> Callable[[Occurrence], int]:
        """Return what gives the end of a side's occurrence, marked where that is not certain."""

        def end(item: Occurrence) -> int:
            maybe = certainty_at(side, item, self.doubt) == MAYBE
            return Maybe(end_of(item)) if maybe else end_of(item)

        return end

    def weigh(self, left: Occurrence, right: Occurrence) -> int:
        """Judge how certainly the times of the two are what is asked of them."""
        joint, doubt = self._joint, self.doubt
        p, q = spans_of(left), spans_of(right)
        verdict = related(joint.operator, p, q)
        if verdict and joint.bound is not None:
            verdict = min(verdict, bounded(joint.operator, joint.bound, p, q, doubt))
        if verdict and joint.within_ms is not None:
            verdict = min(verdict, spanning([*p, *q], joint.within_ms, doubt))
        if verdict and joint.anchors:
            whole = self._whole(left, right)
            verdict = min([verdict, *anchored_parts(joint, whole, self._places, doubt)])
        return verdict

    def paired(self, left: Occurrence, right: Occurrence, verdict: int) -> Occurrence:
        """Return the occurrence of both, whose times were judged so, marked if not certain."""
        whole = self._whole(left, right)
        parts = (
            verdict,
            certainty_at(self._joint.left, left, self.doubt),
            certainty_at(self._joint.right, right, self.doubt),
        )
        # NO cannot be here any more: what is NO was discarded as a candidate.
        return (Maybe(whole[0]), *whole[1:]) if min(parts) == MAYBE else whole

    def _whole(self, left: Occurrence, right: Occurrence) -> Occurrence:
        end = max(int(end_of(left)), int(end_of(right)))
        start = min(start_of(left), start_of(right))
        return (end, start, *events_of(left), *events_of(right))

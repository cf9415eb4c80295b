"""How far apart the events of an occurrence can lie: what makes δt.

Owns the arithmetic of `within`, bounds, anchors and uncertain times on a layout. Must not know
operators or events. Invariant: no occurrence that is not certainly impossible spans more, from its
earliest start to its latest end by nominal times.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor

from broker.engine.pattern.operands import (
    Distinct,
    Gathered,
    Joint,
    Kth,
    Leaf,
    Negation,
    Operand,
    Padded,
    Silence,
    least,
)
from language.relations import FOLLOWS
from language.tree import Comparison, Constant, Expression, Name

DAY_MS = 86_400_000
WEEK_MS = 604_800_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """What is known of times in the whole network.

    `uncertainty_ms_max`: no event that is taken in has a greater ε. `drift`: ρ, of the worst clock.
    `duration_ms_max`: no event that is taken in lasts longer (Limits.event_duration_ms_max).
    `delta_t_ms_max`: what would have to wait longer for its partners travels at once: brokers on
    the way keep events for so long.
    """

    uncertainty_ms_max: int
    drift: Fraction = Fraction(0)
    duration_ms_max: int = WEEK_MS
    delta_t_ms_max: int = DAY_MS

    def loose(self, limit_ms: int) -> int:
        """The greatest nominal distance of two instants that may be at most `limit_ms` apart."""
        return floor(limit_ms * (1 + self.drift)) + 2 * self.uncertainty_ms_max


class Spans:
    """The greatest spans of the occurrences of operands."""

    def __init__(
        self, times: Times, here: frozenset[str], made: frozenset[str] | None = None
    ) -> None:
        """`made`: the types that definitions make; how long their events last nobody knows.
        `here`: those of them whose events are made at the home (None: all are).
        """
        self.times = times
        self.here = here
        self._made = here if made is None else made
        self._doubt_ms = 2 * times.uncertainty_ms_max

    def of(self, operand: Operand) -> int | None:
        """The greatest span in milliseconds; None where there is no limit."""
        found = self._natural(operand)
        if operand.within_ms is not None:
            found = least(found, self.times.loose(operand.within_ms))
        for place, within_ms in operand.anchors:
            if operand.low <= place < operand.high:
                found = least(found, self._anchored(operand, place, within_ms))
        return found

    def _anchored(self, operand: Operand, place: int, within_ms: int) -> int | None:
        """All others begin after the anchor's end, or seem to begin a little before it."""
        anchor = next((leaf for leaf in _leaves(operand) if leaf.low == place), None)
        duration_ms = None if anchor is None else self._leaf(anchor)
        if duration_ms is None:
            return None
        return max(duration_ms, self._doubt_ms) + self.times.loose(within_ms)

    def _leaf(self, leaf: Leaf) -> int | None:
        if leaf.event_type in self._made:
            return None
        return least(self.times.duration_ms_max, stated_duration_ms(leaf.conditions))

    def _natural(self, operand: Operand) -> int | None:
        if isinstance(operand, Leaf):
            return self._leaf(operand)
        if isinstance(operand, Silence):
            return operand.for_ms
        if isinstance(operand, Negation):
            return self.of(operand.left)
        if isinstance(operand, Kth | Distinct | Padded):
            return self.of(operand.operand)
        if isinstance(operand, Gathered):
            return None  # of the chain alone; its lists may reach beyond
        if isinstance(operand, Joint):
            return self._joint(operand)
        return None

    def _joint(self, joint: Joint) -> int | None:
        left, right = self.of(joint.left), self.of(joint.right)
        if left is None or right is None:
            return None
        if joint.operator == "or":
            return max(left, right)
        if joint.bound is not None and joint.bound.high_ms is not None:
            return left + self.times.loose(joint.bound.high_ms) + right
        if joint.operator != "and" and joint.operator not in FOLLOWS:
            return left + right + self._doubt_ms  # they share an instant, or may
        return None


def _leaves(operand: Operand) -> list[Leaf]:
    if isinstance(operand, Leaf):
        return [operand]
    return [leaf for part in operand.parts for leaf in _leaves(part)]


def stated_duration_ms(conditions: tuple[Expression, ...]) -> int | None:
    """How long events last at most for which all conditions hold, as far as one says just that."""
    found: int | None = None
    for condition in conditions:
        match condition:
            case Comparison((Name("duration"), Constant(int() as value)), ("<" | "<=" | "=",)):
                found = least(found, max(value, 0))
    return found

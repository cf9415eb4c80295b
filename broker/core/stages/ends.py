"""When a run over a chain can no longer go on.

Owns the last times that its next element can have, by `within`, anchors, bounds and relations. Must
not know runs' candidates. Invariant: no element that advances a run comes after the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from broker.core.occurrence import Occurrence
from broker.core.operands import FOLLOWS
from broker.core.stages.base import end_of, least, start_of
from broker.core.stages.joint import JointPlan

Filled = Mapping[int, Occurrence]  # by element


class Ends:
    """Of a chain of like links; `plans[i]` joins elements 0..i with element i + 1.

    `in_their_order`: elements come in the order of the text.
    """

    def __init__(self, plans: Sequence[JointPlan], *, in_their_order: bool) -> None:
        self._plans = plans
        self._in_order = in_their_order
        self._elements = [plans[0].joint.left, *(plan.joint.right for plan in plans)]

    def last_ms(self, filled: Filled) -> int | None:
        """The last end that the next element can have, by `within` and anchors."""
        start = min(start_of(item) for item in filled.values())
        ends: list[int | None] = []
        for at, plan in enumerate(self._plans):
            if at < self._first_open(filled) or any(element > at + 1 for element in filled):
                continue  # it is complete, or not all that is filled lies beneath
            if plan.joint.within_ms is not None:
                ends.append(start + longer(plan, plan.joint.within_ms))
            for place, within_ms in plan.joint.anchors:
                anchor = self._bound_at(filled, place)
                if anchor is not None:
                    ends.append(anchor.end + longer(plan, within_ms))
        return least(ends)

    def gap_end(self, filled: Filled) -> int | None:
        """The last start that the next element can have, by a bound."""
        if not self._in_order and len(self._plans) > 1:
            return None
        plan = self._plans[self._first_open(filled)]
        joint = plan.joint
        end = max(end_of(item) for item in filled.values())
        if joint.operator != "and" and joint.operator not in FOLLOWS:
            return end + plan.slack_ms  # the intervals share an instant
        if joint.bound is None or joint.bound.high_ms is None:
            return None
        return end + longer(plan, joint.bound.high_ms)

    def _first_open(self, filled: Filled) -> int:
        """The first operator that is not complete."""
        return len(filled) - 1 if self._in_order else 0

    def _bound_at(self, filled: Filled, place: int) -> Any:
        for element, item in filled.items():
            operand = self._elements[element]
            if operand.low <= place < operand.high:
                return item if item.__class__ is not tuple else item[2 + place - operand.low]
        return None


def longer(plan: JointPlan, limit_ms: int) -> int:
    """A limit by nominal times, so long that what is past it is surely past."""
    return limit_ms if plan.doubt is None else limit_ms + plan.doubt.slack_ms(limit_ms)

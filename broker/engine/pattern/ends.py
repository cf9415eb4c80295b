"""When a run over a chain can no longer go on.

Owns the last times that its next element can have, by `within`, anchors, bounds and relations. Must
not know runs' candidates. Invariant: no element that advances a run comes after the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from broker.engine.event.occurrence import Occurrence
from broker.engine.pattern.base import end_of, least, start_of
from broker.engine.pattern.joint import JointPlan
from language.relations import FOLLOWS

Filled = Mapping[int, Occurrence]  # by element
Elements = tuple[int, ...]


class Ends:
    """Of a chain of like links; `plans[i]` joins elements 0..i with element i + 1."""

    def __init__(self, plans: Sequence[JointPlan]) -> None:
        self._plans = plans
        self._elements = [plans[0].joint.left, *(plan.joint.right for plan in plans)]

    def last_ms(self, filled: Filled) -> int | None:
        """The last end that the next element can have, by `within` and anchors."""
        start = min(start_of(item) for item in filled.values())
        ends: list[int | None] = []
        for plan in self._around(filled):
            if plan.joint.within_ms is not None:
                ends.append(start + longer(plan, plan.joint.within_ms))
            for place, within_ms in plan.joint.anchors:
                anchor = self._bound_at(filled, place)
                if anchor is not None:
                    ends.append(anchor.end + longer(plan, within_ms))
        return least(ends)

    def starts(self, filled: Filled) -> list[tuple[Elements, int]]:
        """Elements of which one must begin by a time for the run to be complete, and that time."""
        found = [*self._anchors(filled)]
        for at, plan in enumerate(self._plans):
            high_ms = _high_ms(plan)
            if high_ms is None:
                continue
            lefts = range(at + 1)
            here = [element for element in lefts if element in filled]
            if len(here) == at + 1 and at + 1 not in filled:
                end = max(end_of(filled[element]) for element in here)
                found.append(((at + 1,), end + longer(plan, high_ms)))
            elif not here and at + 1 in filled:
                found.append((tuple(lefts), end_of(filled[at + 1]) + longer(plan, high_ms)))
        return found

    def _anchors(self, filled: Filled) -> Iterator[tuple[Elements, int]]:
        """What is anchored to an event that is yet to come begins after that has ended."""
        start = min(start_of(item) for item in filled.values())
        for plan in self._around(filled):
            for place, _ in plan.joint.anchors:
                element = self._element_of(place)
                if element is not None and element not in filled:
                    yield (element,), start + longer(plan, 0)

    def _around(self, filled: Filled) -> Iterator[JointPlan]:
        """The operators that are not complete, with all that is filled beneath them."""
        for at, plan in enumerate(self._plans):
            complete = all(element in filled for element in range(at + 2))
            if not complete and all(element <= at + 1 for element in filled):
                yield plan

    def _element_of(self, place: int) -> int | None:
        for element, operand in enumerate(self._elements):
            if operand.low <= place < operand.high:
                return element
        return None

    def _bound_at(self, filled: Filled, place: int) -> Any:
        element = self._element_of(place)
        if element is None or element not in filled:
            return None
        item = filled[element]
        if item.__class__ is not tuple:
            return item
        return item[2 + place - self._elements[element].low]


def _high_ms(plan: JointPlan) -> int | None:
    """The greatest gap between both sides of an operator; None: any."""
    joint = plan.joint
    if joint.operator != "and" and joint.operator not in FOLLOWS:
        return 0  # the intervals share an instant
    return None if joint.bound is None else joint.bound.high_ms


def longer(plan: JointPlan, limit_ms: int) -> int:
    """A limit by nominal times, so long that what is past it is surely past."""
    return limit_ms if plan.doubt is None else limit_ms + plan.doubt.slack_ms(limit_ms)

"""What an operator asks of a pair, one question after the other, and by how much a pair misses it.

Owns the questions' order and the measure of a miss. Must not know how pairs are found. Invariant:
each question is asked by the code that the engine itself compiles for it (join.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from broker.engine.event.event import distance_m, slot_of
from broker.engine.event.occurrence import (
    Occurrence,
    bound_events,
    end_of,
    events_of,
    flat,
    start_of,
)
from broker.engine.pattern.layout.operands import Joint
from broker.engine.pattern.layout.pattern import Layout
from broker.engine.pattern.operators.join import JoinWriter
from headwater.testing.notation import duration_text as short
from language.diagnostics import shorten
from language.printing.expressions import distance_text, duration_text, expression_text
from language.printing.patterns import bound_text
from language.relations import FOLLOWS
from language.tree import Arithmetic, Attribute, Comparison, Constant, Expression
from language.walk import descendants

_COMMON = {"timestamp": "end", "srcid": "source"}

# How far a pair is from passing, to compare with others, and in words.
Miss = tuple[float, str]


@dataclass(frozen=True, slots=True)
class Criterion:
    """One question: in words, as a test of two occurrences in a group, and the miss."""

    text: str
    test: Callable[[Occurrence, Occurrence, tuple[Any, ...]], bool]
    miss: Callable[[Occurrence, Occurrence], Miss | None]


def criteria_of(layout: Layout, joint: Joint, keys: tuple[str, ...]) -> list[Criterion]:
    """List what a joint asks, in the order in which it is told."""
    bare = replace(
        joint,
        bound=None,
        within_ms=None,
        spread_m=None,
        conjuncts=[],
        anchors=[],
        nth=None,
        next=False,
    )

    def test(**asked: Any) -> Callable[..., bool]:
        return JoinWriter(layout, replace(bare, **asked), keys, ordered=False).build_test()

    order = "of different events" if joint.operator == "and" else f"as `{joint.operator}` asks"
    order = "in this order" if joint.operator in FOLLOWS else order
    criteria = [Criterion(order, test(), _order_miss(joint))]
    if joint.bound is not None:
        text = f"with a gap of {bound_text(joint.bound)}"
        criteria.append(Criterion(text, test(bound=joint.bound), _bound_miss(joint)))
    if joint.within_ms is not None:
        text = f"within {duration_text(joint.within_ms)}"
        criteria.append(Criterion(text, test(within_ms=joint.within_ms), _within_miss(joint)))
    names = {leaf.low: leaf.name for leaf in layout.leaves}
    for place, within_ms in joint.anchors:
        text = f"within {duration_text(within_ms)} from {names.get(place, '?')}"
        criteria.append(Criterion(text, test(anchors=[(place, within_ms)]), _no_miss))
    if joint.spread_m is not None:
        text = f"spread {distance_text(joint.spread_m)}"
        criteria.append(Criterion(text, test(spread_m=joint.spread_m), _spread_miss(joint)))
    for conjunct in joint.conjuncts:
        text = f"where {shorten(expression_text(conjunct), 80)}"
        miss = _where_miss(layout, joint, conjunct)
        criteria.append(Criterion(text, test(conjuncts=[conjunct]), miss))
    return criteria


def _no_miss(left: Occurrence, right: Occurrence) -> Miss | None:  # noqa: ARG001
    return None


def _order_miss(joint: Joint) -> Callable[[Occurrence, Occurrence], Miss | None]:
    if joint.operator not in FOLLOWS:
        return _no_miss

    def miss(left: Occurrence, right: Occurrence) -> Miss:
        early_ms = end_of(left) - start_of(right)
        return early_ms, f"came {short(early_ms)} too early" if early_ms else "came at its end"

    return miss


def _bound_miss(joint: Joint) -> Callable[[Occurrence, Occurrence], Miss | None]:
    bound = joint.bound
    assert bound is not None

    def miss(left: Occurrence, right: Occurrence) -> Miss:
        gap_ms = start_of(right) - end_of(left)
        if joint.operator not in FOLLOWS:
            gap_ms = max(0, gap_ms, start_of(left) - end_of(right))
        over_ms = 0 if bound.high_ms is None else gap_ms - bound.high_ms
        under_ms = 0 if bound.low_ms is None else bound.low_ms - gap_ms
        missed_ms = max(over_ms, under_ms)
        return missed_ms, f"missed it by {short(missed_ms)}"

    return miss


def _within_miss(joint: Joint) -> Callable[[Occurrence, Occurrence], Miss | None]:
    within_ms = joint.within_ms or 0

    def miss(left: Occurrence, right: Occurrence) -> Miss:
        span_ms = max(end_of(left), end_of(right)) - min(start_of(left), start_of(right))
        return span_ms - within_ms, f"missed it by {short(span_ms - within_ms)}"

    return miss


def _spread_miss(joint: Joint) -> Callable[[Occurrence, Occurrence], Miss | None]:
    limit_m = joint.spread_m or 0.0

    def miss(left: Occurrence, right: Occurrence) -> Miss:
        far = 0.0
        for event in bound_events(left):
            for other in bound_events(right):
                apart_m = distance_m(event.position, other.position)
                if apart_m is None:
                    return float("inf"), "have no positions to compare"
                far = max(far, apart_m)
        return far - limit_m, f"missed it by {far - limit_m:,.0f} m"

    return miss


def _where_miss(
    layout: Layout, joint: Joint, conjunct: Expression
) -> Callable[[Occurrence, Occurrence], Miss | None]:
    """Return a test for what stood against what; by how much where two numbers are compared."""
    places = layout.places
    asked = [attribute for attribute in descendants(conjunct) if isinstance(attribute, Attribute)]
    sides = conjunct.operands if isinstance(conjunct, Comparison) else ()

    def value(left: Occurrence, right: Occurrence, attribute: Attribute) -> Any:
        place = places.get(attribute.base)
        if place is None:
            return None
        side, bound = (joint.left, left) if place < joint.right.low else (joint.right, right)
        events = flat([events_of(bound)[place - side.low]])
        return value_of(events[0], attribute.name) if len(events) == 1 else None

    def miss(left: Occurrence, right: Occurrence) -> Miss:
        values = {attribute: value(left, right, attribute) for attribute in asked}
        described = [
            f"{attribute.base}.{attribute.name} = {shown!r}" for attribute, shown in values.items()
        ]
        numbers = [_number(side, values) for side in sides]
        first, last = (numbers[0], numbers[-1]) if numbers else (None, None)
        apart = float("inf") if first is None or last is None else abs(first - last)
        return apart, "had " + ", ".join(dict.fromkeys(described)) if described else "failed it"

    return miss


def _number(node: Expression, values: dict[Attribute, Any]) -> float | None:
    """The value of simple arithmetic; None where it is none."""
    if isinstance(node, Constant | Attribute):
        number = node.value if isinstance(node, Constant) else values.get(node)
        plain = isinstance(number, int | float) and not isinstance(number, bool)
        return float(number) if plain and number is not None else None
    if isinstance(node, Arithmetic):
        left, right = _number(node.left, values), _number(node.right, values)
        if left is None or right is None or (node.operator == "/" and not right):
            return None
        return _ARITHMETIC[node.operator](left, right)
    return None


_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def value_of(event: Any, name: str) -> Any:
    """An attribute of an event, or what every event has."""
    if name == "duration":
        return event.end - event.start
    plain = _COMMON.get(name, name)
    if plain in {"source", "location", "position", "start", "end"}:
        return getattr(event, plain, None)
    return getattr(event, slot_of(name), None)

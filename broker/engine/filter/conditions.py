"""What must hold of an event for conditions to have a chance: the parts that can be indexed.

Owns the reading of condition trees as alternatives of ranges and choices. Must not know indexes or
contents. Invariant: whatever the conditions hold for meets at least one alternative; the converse
is not promised, so whoever finds candidates by alternatives tests the conditions themselves.

A *term* is what a range or a choice speaks of: an attribute, an expression of attributes, or a part
of the position or the location. Ranges are half open, [low, high).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import asin, cos, degrees, inf, nextafter, pi, radians, sin
from typing import Any

from broker.engine.event.event import EARTH_RADIUS_M, MetricPosition
from broker.engine.event.expressions import AtomScope, Writer, attribute_code
from broker.engine.event.source import Constants
from language.lexicon import MIRRORED
from language.tree import (
    Attribute,
    Comparison,
    Constant,
    Expression,
    Logical,
    Membership,
    Name,
    RegionLiteral,
    SetLiteral,
    Unary,
)

# An `or` of ranges is several rows of the index. A conjunction of ors multiplies: five of two sides
# each would be 32 rows for one content, all but one of them tested in vain.
ALTERNATIVES_MAX = 16  # of one content; a part that would make more is left to the test
CHOICE_VALUES_MAX = 64  # a larger set is indexed by the range it spans
EXACT_FLOAT_MAX = 2.0**53  # below, between an integer and the next float there is nothing
SLOTS_READ_MAX = 8  # parts of a key that compiled passes read
SLACK = 1e-9  # relative widening of a region's bounding box, far above rounding

PATH = "location/"  # the term of location prefixes


@dataclass(frozen=True, slots=True)
class Term:
    """Something that can be read off an event; `key` is its identity."""

    key: str
    node: Expression | None = None

    def code(self, constants: Constants) -> str:
        """Code that reads it off the event `e`, or gives None."""
        if self.node is not None:
            return Writer(AtomScope("e"), constants).value(self.node)
        part = self.key[-1]
        if self.key.startswith("degrees"):
            # Read off the list itself: a test of regions first asks a function whether the position
            # is one at all.
            return f"(p[{part}] if (p := e.position).__class__ is list else None)"
        metric = constants.helper("MetricPosition", MetricPosition)
        return f"(p.{part} if (p := e.position).__class__ is {metric} else None)"


LATITUDE, LONGITUDE = Term("degrees 0"), Term("degrees 1")
METRIC_X, METRIC_Y = Term("metres x"), Term("metres y")


@dataclass(frozen=True, slots=True)
class Range:
    """low <= term < high; None is open."""

    term: Term
    low: Any
    high: Any


@dataclass(frozen=True, slots=True)
class Choice:
    """The term is one of the values; of PATH: the location is beneath one of them."""

    term: Term
    values: tuple[Any, ...]


Literal = Range | Choice
Alternative = tuple[Literal, ...]


def alternatives_of(conditions: tuple[Expression, ...]) -> list[Alternative]:
    """The alternatives of a conjunction; `[()]` where nothing can be said, `[]`: never holds."""
    found: list[Alternative] = [()]
    for condition in conditions:
        found = _both(found, _alternatives(condition))
    return found


def _both(left: list[Alternative], right: list[Alternative]) -> list[Alternative]:
    # Leaving out a part of a conjunction only lets more through to the test, which decides: the
    # index may err to one side.
    if len(left) * len(right) > ALTERNATIVES_MAX:
        return left
    return [a + b for a, b in product(left, right)]


def _alternatives(node: Expression) -> list[Alternative]:
    if isinstance(node, Logical):
        parts = [_alternatives(part) for part in node.operands]
        if node.operator == "and":
            found: list[Alternative] = [()]
            for part in parts:
                found = _both(found, part)
            return found
        joined = [alternative for part in parts for alternative in part]
        # One side of an `or` of which nothing can be said lets everything through, so the other
        # sides say nothing either.
        return joined if () not in joined and len(joined) <= ALTERNATIVES_MAX else [()]
    if isinstance(node, Comparison):
        return [tuple(_compared(node))]
    if isinstance(node, Membership):
        return [tuple(_contained(node))]
    if isinstance(node, Name | Attribute):
        return [(Choice(term_of(node), (True,)),)]
    return [()]


# --- comparisons and sets ---------------------------------------------------------------------

_SAME = {"srcid": "source", "end": "timestamp"}


def term_of(node: Expression) -> Term:
    """The term that an expression is."""
    if isinstance(node, Name | Attribute):
        return _named(_SAME.get(node.name, node.name))
    # By the tree's own text: `a + b > 3` of two subscriptions shares one term, `b + a > 3` has
    # another, which costs a column and never a result.
    return Term(repr(node), node)


def slot_read(node: Expression | None) -> str | None:
    """The slot in which an event has what an expression is; None of all but bare attributes."""
    if not isinstance(node, Name | Attribute):
        return None
    code, _ = attribute_code("e", node.name)
    slot = code.removeprefix("e.")
    return slot if slot.isidentifier() else None


def slots_read(names: Sequence[str]) -> tuple[str, ...] | None:
    """The slots of attributes that a compiled pass reads together; None where it cannot."""
    slots = [slot_read(Name(name)) for name in names]
    known = tuple([slot for slot in slots if slot is not None])
    return known if len(known) == len(slots) <= SLOTS_READ_MAX else None


@lru_cache(maxsize=4_096)
def _named(name: str) -> Term:
    return Term(name, Name(name))


def constant_of(node: Expression) -> Any:
    """The value of a constant, also with a minus before it; None if it is none."""
    if isinstance(node, Constant):
        return node.value
    if isinstance(node, Unary) and node.operator == "-":
        value = constant_of(node.operand)
        return -value if isinstance(value, int | float) and not isinstance(value, bool) else None
    return None


def _compared(node: Comparison) -> list[Literal]:
    literals = []
    pairs = zip(node.operands, node.operators, node.operands[1:], strict=False)
    for left, operator, right in pairs:
        low, high = constant_of(left), constant_of(right)
        if high is not None and low is None:
            literals += _bounded(term_of(left), operator, high)
        elif low is not None and high is None:
            literals += _bounded(term_of(right), MIRRORED[operator], low)
    return literals


def _bounded(term: Term, operator: str, value: Any) -> list[Literal]:
    if operator == "=":
        return [Choice(term, (value,))]
    # `!=` would be two ranges that leave out next to nothing: an index over them would find nearly
    # every row.
    if isinstance(value, bool) or operator == "!=":
        return []
    if operator in {">", ">="}:
        return [Range(term, after(value) if operator == ">" else value, None)]
    return [Range(term, None, past(value) if operator == "<=" else value)]


def after(value: Any) -> Any:
    """A value that is at most everything greater than the value."""
    if isinstance(value, str):
        return value + "\0"
    # Beyond 2**53 there are integers between two floats: there the range begins at the value
    # itself, and the test takes out what is equal.
    return nextafter(value, inf) if -EXACT_FLOAT_MAX < value < EXACT_FLOAT_MAX else value


def past(value: Any) -> Any:
    """A value that is greater than the value, and as little as can be."""
    if isinstance(value, str):
        return value + "\0"
    if isinstance(value, int) and not -EXACT_FLOAT_MAX < value < EXACT_FLOAT_MAX:
        return value + 1
    return nextafter(value, inf)


def spanned(choice: Choice) -> Range | None:
    """The range that a choice's values span; None where they have no order."""
    first = choice.values[0]
    kind = str if isinstance(first, str) else (int, float)
    if choice.term.key == PATH or any(
        isinstance(value, bool) or not isinstance(value, kind) for value in choice.values
    ):
        return None
    return Range(choice.term, min(choice.values), past(max(choice.values)))


def _contained(node: Membership) -> list[Literal]:
    container = node.container
    if isinstance(container, RegionLiteral):
        return _in_region(node.item, container)
    if not isinstance(container, SetLiteral) or not container.members:
        return []
    values = tuple(dict.fromkeys(member.value for member in container.members))
    choice = Choice(term_of(node.item), values)
    if len(values) <= CHOICE_VALUES_MAX:
        return [choice]
    span = spanned(choice)
    return [] if span is None else [span]


# --- regions ----------------------------------------------------------------------------------


def _in_region(item: Expression, region: RegionLiteral) -> list[Literal]:
    name = item.name if isinstance(item, Name | Attribute) else None
    if region.shape == "path":
        prefix = region.path.rstrip("/")
        return [Choice(Term(PATH), (prefix,))] if name == "location" else []
    if name != "position":
        return []
    first, second = (METRIC_X, METRIC_Y) if region.metric else (LATITUDE, LONGITUDE)
    box = _bounding_box(region)
    return [
        Range(term, _widened(low, -1), _widened(high, 1))
        for term, (low, high) in ((first, box[0]), (second, box[1]))
        if low > -inf
    ]


_Span = tuple[float, float]
_UNBOUNDED: _Span = (-inf, inf)


def _bounding_box(region: RegionLiteral) -> tuple[_Span, _Span]:
    numbers = region.numbers
    if region.shape != "circle":
        return (min(numbers[::2]), max(numbers[::2])), (min(numbers[1::2]), max(numbers[1::2]))
    x, y, radius_m = numbers
    if region.metric:
        return (x - radius_m, x + radius_m), (y - radius_m, y + radius_m)
    # The box of a circle on a sphere is widest not at its centre but nearer to the pole: asin(sin r
    # / cos lat) there, where r / cos lat would miss events at the edge.
    angle = radius_m / EARTH_RADIUS_M
    reach = degrees(angle)
    latitudes = (x - reach, x + reach)
    if angle >= pi / 2 or latitudes[0] <= -90 or latitudes[1] >= 90:
        return latitudes, _UNBOUNDED  # it holds a pole, so every meridian
    reach = degrees(asin(min(1.0, sin(angle) / cos(radians(x)))))
    if y - reach <= -180 or y + reach >= 180:
        return latitudes, _UNBOUNDED
    return latitudes, (y - reach, y + reach)


def _widened(value: float, sign: int) -> float:
    # A box that is too large costs a test, one that is too small a result; 1e-9 of 180 degrees is
    # two centimetres.
    return value + sign * SLACK * (1.0 + abs(value))

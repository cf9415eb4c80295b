"""What compiled passes can tell of events: comparisons with constants, and cells behind a hash.

Owns the form in which conditions and indexes are given to those passes. Must not know who wants
what. Invariant: a pass tells of events what the code tells that is written from the conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from broker.engine import native
from broker.engine.event.event import Event
from broker.engine.filter.conditions import constant_of, slot_read
from broker.engine.filter.content import Found
from language.lexicon import MIRRORED
from language.tree import Comparison, Constant, Expression, Unary
from language.walk import conjuncts

Test = tuple[str, int, Any]  # a slot, an operator, a constant
Route = Callable[[list[Event], Found], int]  # how many events no content wanted
Choice = Callable[[list[Event]], "tuple[list[Event], ...] | None"]

# The numbers that Python gives to comparisons.
_OPERATORS = {"<": 0, "<=": 1, "=": 2, ">": 4, ">=": 5}


def choice_of(wanted: Sequence[tuple[Expression, ...]]) -> Choice | None:
    """Return the pass that gives what any conjunction wants, then, of several, what each wants.

    None where there is no such pass, or where a condition is more than a comparison with constants.
    """
    if native.passes is None:
        return None
    sides = [_tests(conditions) for conditions in wanted]
    known = [tuple(tests) for tests in sides if tests is not None]
    if len(known) < len(sides):
        return None
    made: Choice = native.passes.Choice(tuple(known))
    return made


def giver_of(
    slot: str, scales: Mapping[Any, Any], groups: Mapping[Any, Any], asked: Route
) -> Route:
    """Return the pass that gives events to the contents of groups found by what stands in a slot.

    `scales` are those of the groups that have a compiled one; of other events it is `asked`.
    """
    passes = native.passes
    if passes is None:
        return asked
    give = passes.give

    def given(events: list[Event], found: Found) -> int:
        missed: int = give(events, slot, scales, groups, found.made, lambda one: asked(one, found))
        return missed

    return given


def _tests(conditions: tuple[Expression, ...]) -> list[Test] | None:
    found = []
    for part in (part for condition in conditions for part in conjuncts(condition)):
        if not isinstance(part, Comparison):
            return None
        pairs = zip(part.operands, part.operators, part.operands[1:], strict=False)
        for left, operator, right in pairs:
            test = _test(left, operator, right)
            if test is None:
                return None
            found.append(test)
    return found


def _test(left: Expression, operator: str, right: Expression) -> Test | None:
    if isinstance(left, Constant | Unary):
        left, operator, right = right, MIRRORED.get(operator, ""), left
    slot, value = slot_read(left), constant_of(right)
    if slot is None or operator not in _OPERATORS:
        return None
    if value.__class__ is not float and value.__class__ is not int and value.__class__ is not str:
        return None
    return slot, _OPERATORS[operator], value

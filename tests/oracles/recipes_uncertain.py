"""Parts of generated specifications for traces whose times are uncertain.

Owns: which constructs are drawn over uncertain times, and `maybe drop`.
Must not know: the traces; their profile makes the times uncertain.
Invariant: what READINGS.md leaves open is not drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.oracles import spec as s
from tests.oracles.recipes import Builder, Op, single_atoms
from tests.oracles.recipes_defined import CASE_PARTS, WINDOW_PARTS
from tests.oracles.recipes_patterns import (
    Built,
    absent,
    finished,
    following,
    listed,
    without,
    without_time,
)
from tests.oracles.recipes_thinned import THINNED_PARTS

_RELATIONS: tuple[s.Relation, ...] = (
    *("before", "meets", "overlaps", "during", "contains", "starts", "finishes", "equals"),
    *("concat", "parallel"),
)


def _tree(*ops: Op, bounds: int = 20, suffixes: int = 45) -> Callable[[Builder], Built]:
    def build(builder: Builder) -> Built:
        draw = builder.draw
        atoms = builder.atoms(2, 3, conditions=10)
        pattern = builder.tree(atoms, ops, bounds=bounds)
        if draw.chance(suffixes):
            anchor = atoms[0].name if draw.chance(35) else None
            pattern = s.Suffixed(pattern, (s.Within(draw.integer(2, 6) * 1000, anchor),))
        return finished(builder, pattern)

    return build


def _related(builder: Builder) -> Built:
    """Two operands, one of them at times a composite."""
    draw = builder.draw
    operands: list[s.Pattern] = [*builder.atoms(2, 3, conditions=10)]
    if len(operands) == 3:
        operands = [builder.tree(operands[:2], ("and", "then")), operands[2]]
    if draw.chance(50):
        operands.reverse()
    return finished(builder, s.Pair(draw.pick(_RELATIONS), operands[0], operands[1]))


def _dropped(builder: Builder) -> Built:
    """`maybe drop`, with consumption at times: what was dropped consumes nothing."""
    draw = builder.draw
    pattern = builder.tree(builder.atoms(2, 3, conditions=10), ("then", "then", "and"))
    if draw.chance(60):
        pattern = s.Suffixed(pattern, (s.Within(draw.integer(2, 6) * 1000),))
    case = replace(builder.case(pattern), maybe_drop=True)
    if draw.chance(40):
        case = replace(case, consuming=(draw.pick(single_atoms(pattern)).name,))
    return (), case


def _either_without(builder: Builder) -> Built:
    return without(builder) if builder.draw.chance(50) else without_time(builder)


def _over_definition(builder: Builder) -> Built:
    return CASE_PARTS["definition" if builder.draw.chance(60) else "definition-twice"](builder)


def _silent(builder: Builder) -> Built:
    made, case = absent(builder)
    return made, replace(case, maybe_drop=True) if builder.draw.chance(25) else case


def _windowed(builder: Builder) -> Built:
    name = builder.draw.pick(("every", "range", "session", "window-over-definition"))
    return WINDOW_PARTS[name](builder)


def _decided_later(builder: Builder) -> Built:
    part = "one-decided-later" if builder.draw.chance(50) else "collect-decided-later"
    return THINNED_PARTS[part](builder)


def _collected(builder: Builder) -> Built:
    pattern = builder.tree(builder.atoms(2, 3, conditions=10), ("then", "then", "and"))
    return (), replace(builder.case(pattern), thin="collect")


UNCERTAIN_PARTS: dict[str, Callable[[Builder], Built]] = {
    "uncertain-then": _tree("then", "then", "and"),
    "uncertain-relations": _related,
    "uncertain-without": _either_without,
    "uncertain-absent": _silent,
    "uncertain-next": following,
    "uncertain-list": listed,
    "uncertain-definition": _over_definition,
    "uncertain-window": _windowed,
    "uncertain-collect": _collected,
    "uncertain-decided-later": _decided_later,
    "maybe-drop": _dropped,
}

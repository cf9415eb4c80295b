"""The relations of the language: what stands between two operands of a pattern.

Owns what each means, and what the checker, the grammar and the engine have to know of it. Must not
know how it is tested (broker/engine/pattern/relations.py). Invariant: the guide tells of each with
the meaning that stands here.

P is the operand on the left, Q that on the right; a reading is an interval of length zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Side = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Relation:
    """One relation of P to Q.

    `inverse`: the relation of Q to P that says the same; None where the language has none.
    `closed`: the operands that can have no later event once the other is there.
    `lasting`: the operands of which no mere reading ever is in this relation.
    `follows`: Q begins when P has ended or later. `in_order`: P cannot be complete after Q.
    `gap`: there is a time between both, which a bound, and `next`, may speak of.
    """

    name: str
    meaning: str
    inverse: str | None = None
    closed: frozenset[Side] = frozenset()
    lasting: frozenset[Side] = frozenset()
    follows: bool = False
    in_order: bool = False
    gap: bool = False


_NONE: frozenset[Side] = frozenset()
_LEFT: frozenset[Side] = frozenset(("left",))
_RIGHT: frozenset[Side] = frozenset(("right",))
_BOTH = _LEFT | _RIGHT

RELATIONS: dict[str, Relation] = {
    relation.name: relation
    for relation in (
        Relation("and", "both, in any order", inverse="and", gap=True),
        Relation(
            "then",
            "`before` or `meets`",
            closed=_LEFT,
            follows=True,
            in_order=True,
            gap=True,
        ),
        Relation(
            "before",
            "P ends before Q starts",
            closed=_LEFT,
            follows=True,
            in_order=True,
            gap=True,
        ),
        Relation(
            "meets",
            "P ends when Q starts, and an event that is longer than a point meets there, as with"
            " `then`",
            closed=_LEFT,
            in_order=True,
        ),
        Relation(
            "overlaps",
            "P starts first, and ends within Q",
            closed=_LEFT,
            lasting=_BOTH,
            in_order=True,
        ),
        Relation(
            "during",
            "P lies within Q, and touches neither of its ends",
            inverse="contains",
            closed=_LEFT,
            lasting=_RIGHT,
        ),
        Relation(
            "contains",
            "Q lies so within P",
            inverse="during",
            closed=_RIGHT,
            lasting=_LEFT,
        ),
        Relation(
            "starts",
            "both start together, and P ends first",
            closed=_LEFT,
            lasting=_RIGHT,
        ),
        Relation(
            "finishes",
            "both end together, and P starts last",
            closed=_LEFT,
            lasting=_RIGHT,
        ),
        Relation(
            "equals",
            "both start and end together",
            inverse="equals",
            closed=_BOTH,
        ),
        Relation(
            "concat",
            "Q starts within P, or when it starts or ends; where they only touch, as with `then`",
        ),
        Relation("parallel", "there is an instant that belongs to both", inverse="parallel"),
    )
}

FOLLOWS = frozenset(each.name for each in RELATIONS.values() if each.follows)
IN_ORDER = frozenset(each.name for each in RELATIONS.values() if each.in_order)
WITH_GAP = frozenset(each.name for each in RELATIONS.values() if each.gap)

LINKS = ("or", *RELATIONS, "without")
"""What may stand between operands: with `or` one is there, with `without` the right one is not."""

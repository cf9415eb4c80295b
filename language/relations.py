"""The relations of the language, which stand between two operands, and the contexts, which choose.

Owns what each means, and what the checker, the grammar and the engine have to know of it. Must not
know how a relation is tested, nor how a partner is found: that is in
broker/engine/pattern/uncertainty/relations.py.
Invariant: the guide tells of each with the meaning that stands here.

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


@dataclass(frozen=True, slots=True)
class OperatorContext:
    """Which of all the matches that an operator could report it does report.

    `chooses`: some are left out. `spends`: what is reported is in no later match of the operator.
    `runs`: one run at a time over a whole chain of like operators; what chooses without runs has
    one partner at most for each event. `replaces`: in a run the newest of several in a row for one
    step takes the place of the others. `disjoint`: successive `P{n}` share no event.
    `pairwise`: of two operands, an event without a possible partner changes no choice, so that it
    need not travel. `relations`: what it may stand with.
    """

    name: str
    meaning: str
    chooses: bool = True
    spends: bool = False
    runs: bool = False
    replaces: bool = False
    disjoint: bool = False
    pairwise: bool = True
    relations: tuple[str, ...] = tuple(RELATIONS)

    @property
    def scope(self) -> str:
        """Its relations, for messages."""
        return " and ".join(f"`{relation}`" for relation in self.relations)


CONTEXTS: dict[str, OperatorContext] = {
    context.name: context
    for context in (
        OperatorContext(
            "unrestricted", "every combination; this holds where nothing is said", chooses=False
        ),
        OperatorContext(
            "recent", "for each event of either side, the latest of the other side before it"
        ),
        OperatorContext(
            "latest",
            "one run at a time; of several in a row for one step, the newest; for chains of `then`"
            " alone",
            spends=True,
            runs=True,
            replaces=True,
            pairwise=False,
            relations=("then",),
        ),
        OperatorContext(
            "first",
            "one run at a time, each step by the first that fits; then everything up to its end is"
            " spent",
            spends=True,
            runs=True,
            disjoint=True,
        ),
        OperatorContext(
            "chronicle",
            "each with the oldest partner that is not spent; both are spent then",
            spends=True,
            disjoint=True,
        ),
    )
}

UNRESTRICTED = CONTEXTS["unrestricted"]
"""The context of an operator where none is named."""

LINKS = ("or", *RELATIONS, "without")
"""What may stand between operands: with `or` one is there, with `without` the right one is not."""

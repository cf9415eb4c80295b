"""Chains of `then` in which lists stand.

Owns what a chain's elements are. Must not know how they are read.
"""

from __future__ import annotations

from broker.engine.pattern.operands import Member, Operand
from language.tree import Bound, InRegion, Link, Pattern, Repeat, Where


def chain_of(node: Link) -> tuple[list[Pattern], list[Link]]:
    """The elements of a chain of `then`, and the links between them."""
    # Links group to the left, so that a chain is a spine; brackets on the right make another one.
    elements: list[Pattern] = []
    links: list[Link] = []
    at: Pattern = node
    while isinstance(at, Link) and at.operator == "then":
        elements.insert(0, at.right)
        links.insert(0, at)
        at = at.left
    return [at, *elements], links


def list_in(element: Pattern) -> Repeat | None:
    """The list that an element of a chain is, perhaps in brackets with a suffix of its own."""
    # These ask each member. `within` and `spread` would ask the list as a whole, of which a
    # member by itself says nothing.
    while isinstance(element, Where | InRegion):
        element = element.operand
    return element if isinstance(element, Repeat) and element.kind in {"+", "*"} else None


def member_of(
    read: list[tuple[Operand, int | None]],
    links: list[Link],
    base_at: list[int],
    at: int,
    *,
    optional: bool,
) -> Member:
    """The list at one place of a chain, between the nearest elements that are no lists."""
    after = max((other for other in base_at if other < at), default=None)
    before = min((other for other in base_at if other > at), default=None)
    # The bound of a link between two lists leads to no single event, and is not asked here.
    after_bound: Bound | None = links[at - 1].bound if after == at - 1 and at else None
    before_bound: Bound | None = links[at].bound if before == at + 1 else None
    return Member(
        read[at][0],
        optional,
        None if after is None else read[after][0],
        None if before is None else read[before][0],
        after_bound,
        before_bound,
    )

"""A detect pattern laid out for matching: places, operands and what each must test.

Owns the reading of a checked pattern tree. Must not know stores or events at run time.
Invariant: every suffix and every `where` conjunct is attached to the lowest operand that can judge
it, so what fails there is no candidate above (LANGUAGE: contexts compose bottom-up).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from broker.core.expressions import conjuncts, names_in
from language.tree import (
    Atom,
    Bound,
    Case,
    Context,
    Expression,
    InRegion,
    LinkOperator,
    Pattern,
    RegionLiteral,
    Select,
    Spread,
    Where,
    Within,
)
from language.tree import Link as LinkNode

FOLLOWS = frozenset(("then", "before"))  # the right operand comes after the left one


@dataclass(slots=True)
class Operand:
    """A part of the pattern: the places low..high-1, and what each of its occurrences must pass."""

    low: int
    high: int
    within_ms: int | None = None
    spread_m: float | None = None
    conjuncts: list[Expression] = field(default_factory=list)


@dataclass(slots=True)
class Leaf(Operand):
    """An atom: one place."""

    event_type: str = ""
    name: str = ""
    conditions: tuple[Expression, ...] = ()
    regions: list[RegionLiteral] = field(default_factory=list)


@dataclass(slots=True)
class Joint(Operand):
    """A binary operator over two operands.

    `anchors` are (place of A, T) of each `within T from A` around the operator.
    """

    operator: LinkOperator = "and"
    left: Leaf | Joint = field(default_factory=lambda: Leaf(0, 0))
    right: Leaf | Joint = field(default_factory=lambda: Leaf(0, 0))
    bound: Bound | None = None
    context: Context = "unrestricted"
    anchors: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Layout:
    """A whole pattern: the root operand, its leaves by place, and its joints bottom-up."""

    root: Leaf | Joint
    leaves: list[Leaf]
    joints: list[Joint]
    optional: frozenset[int]  # places that stay empty in some occurrences (sides of `or`)
    last: tuple[tuple[int, int], ...]  # place ranges of the operands of `last`

    @property
    def places(self) -> dict[str, int]:
        """Alias, or type without an alias → place."""
        return {leaf.name: leaf.low for leaf in self.leaves}


@dataclass(frozen=True, slots=True)
class _Above:
    """What the suffixes around an operand demand of it."""

    within_ms: int | None = None
    spread_m: float | None = None
    regions: tuple[RegionLiteral, ...] = ()
    anchors: tuple[tuple[str, int], ...] = ()


class _Reader:
    def __init__(self) -> None:
        self.leaves: list[Leaf] = []
        self.joints: list[Joint] = []
        self.last: list[tuple[int, int]] = []
        self.optional: set[int] = set()
        self.conditions: list[tuple[Expression, Leaf | Joint]] = []
        self.anchored: list[tuple[Joint, str, int]] = []

    def read(self, node: Pattern, above: _Above) -> Leaf | Joint:
        if isinstance(node, Atom):
            return self._atom(node, above)
        if isinstance(node, LinkNode):
            return self._link(node, above)
        if isinstance(node, Within):
            return self._within(node, above)
        if isinstance(node, Spread):
            spread_m = _nearest(above.spread_m, node.distance_m)
            return self.read(node.operand, replace(above, spread_m=spread_m))
        if isinstance(node, InRegion):
            if not isinstance(node.region, RegionLiteral):
                raise TypeError("region names are resolved before matching")
            regions = (*above.regions, node.region)
            return self.read(node.operand, replace(above, regions=regions))
        if isinstance(node, Where):
            operand = self.read(node.operand, above)
            self.conditions += [(part, operand) for part in conjuncts(node.condition)]
            return operand
        if isinstance(node, Select) and node.kind == "last":
            operand = self.read(node.operand, above)
            self.last.append((operand.low, operand.high))
            return operand
        if isinstance(node, Select) and node.kind == "outer":
            return self.read(node.operand, above)  # windows alone ask who may be missing
        raise AssertionError(f"not a pattern that runs yet: {type(node).__name__}")

    def _atom(self, node: Atom, above: _Above) -> Leaf:
        place = len(self.leaves)
        leaf = Leaf(place, place + 1, above.within_ms, above.spread_m)
        leaf.event_type = node.type
        leaf.name = node.alias or node.type
        leaf.conditions = node.conditions
        leaf.regions = list(above.regions)
        self.leaves.append(leaf)
        return leaf

    def _link(self, node: LinkNode, above: _Above) -> Joint:
        left = self.read(node.left, above)
        right = self.read(node.right, above)
        joint = Joint(left.low, right.high, above.within_ms, above.spread_m)
        joint.operator = node.operator
        joint.left, joint.right = left, right
        joint.bound = node.bound
        joint.context = node.context or "unrestricted"
        self.joints.append(joint)
        self.anchored += [(joint, name, within_ms) for name, within_ms in above.anchors]
        if node.operator == "or":
            self.optional.update(range(joint.low, joint.high))
        return joint

    def _within(self, node: Within, above: _Above) -> Leaf | Joint:
        if node.anchor is None:
            within_ms = _least(above.within_ms, node.within_ms)
            return self.read(node.operand, replace(above, within_ms=within_ms))
        anchors = (*above.anchors, (node.anchor, node.within_ms))
        return self.read(node.operand, replace(above, anchors=anchors))


def _least(a: int | None, b: int) -> int:
    return b if a is None else min(a, b)


def _nearest(a: float | None, b: float) -> float:
    return b if a is None else min(a, b)


def operands(root: Leaf | Joint) -> Iterator[Leaf | Joint]:
    """Every operand, those beneath before those above."""
    if isinstance(root, Joint):
        yield from operands(root.left)
        yield from operands(root.right)
    yield root


def lowest_holder(root: Leaf | Joint, places: set[int]) -> Leaf | Joint:
    """The lowest operand at or beneath the root that has all the places."""
    while isinstance(root, Joint):
        for side in (root.left, root.right):
            if all(side.low <= place < side.high for place in places):
                root = side
                break
        else:
            return root
    return root


def span_max_ms(operand: Leaf | Joint, duration_max_ms: int) -> int | None:
    """The longest span that an occurrence of the operand can have; None where unbounded."""
    if isinstance(operand, Leaf):
        return _least(operand.within_ms, duration_max_ms)
    if operand.operator == "or":
        left = span_max_ms(operand.left, duration_max_ms)
        right = span_max_ms(operand.right, duration_max_ms)
        return None if left is None or right is None else max(left, right)
    return operand.within_ms


def lay_out(case: Case) -> Layout:
    """The layout of a case's detect pattern."""
    reader = _Reader()
    root = reader.read(case.detect.pattern, _Above())
    layout = Layout(
        root, reader.leaves, reader.joints, frozenset(reader.optional), tuple(reader.last)
    )
    places = layout.places
    for condition, operand in reader.conditions:
        bound = {places[name] for name in names_in(condition) if name in places}
        holder = lowest_holder(operand, bound) if bound else operand
        holder.conjuncts.append(condition)
        if holder is not operand and bound & reader.optional:
            operand.conjuncts.append(condition)  # beside the name, where `or` leaves it empty
    for joint, name, within_ms in reader.anchored:
        joint.anchors.append((places[name], within_ms))
    return layout

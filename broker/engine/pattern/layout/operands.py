"""The operands of a detect pattern: what a layout is made of.

Owns the node classes and the walks over them. Must not know text, stores or events.
Invariant: an operand covers the places low..high-1 of the text, those beneath it included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from language.relations import RELATIONS, UNRESTRICTED, OperatorContext

if TYPE_CHECKING:
    from language.tree import Bound, Expression, RegionLiteral


# No equality by value: operands are known by identity, as `A then A` has two that say the same.
@dataclass(slots=True, eq=False)
class Operand:
    """A part of the pattern, and what each of its occurrences must pass."""

    low: int
    high: int
    # Of all suffixes around it the strictest one, as LANGUAGE (section 3, contexts) has `within`
    # and `spread` act at every operator below them: what fails beneath is no candidate above.
    within_ms: int | None = None
    spread_m: float | None = None
    # Of a `where` those that have all their names here, and beneath no operand of this one.
    conjuncts: list[Expression] = field(default_factory=list)
    # (place of A, T) of each `within T from A` around the operand
    anchors: list[tuple[int, int]] = field(default_factory=list)
    closed: bool = False  # a suffix, or a list, ends the chain of like links here
    # those beneath that are judged here, see Negation.further_out
    denied: list[Negation] = field(default_factory=list)

    @property
    def parts(self) -> tuple[Operand, ...]:
        """The operands directly beneath, in the order of the text."""
        return ()

    def lies_in(self, other: Operand) -> bool:
        """Return True where its places are those of the other operand, or some of them."""
        return other.low <= self.low and self.high <= other.high


@dataclass(slots=True, eq=False)
class Leaf(Operand):
    """An atom: one place."""

    event_type: str = ""
    name: str = ""
    conditions: tuple[Expression, ...] = ()
    regions: list[RegionLiteral] = field(default_factory=list)


# Stands where a part is still to be set; it covers no place.
NOTHING = Leaf(0, 0)


@dataclass(slots=True, eq=False)
class Joint(Operand):
    """A binary operator over two operands.

    `nth`: the right one is the so-manieth after the left one. `next`: nothing lies between.
    """

    operator: str = "and"
    left: Operand = NOTHING
    right: Operand = NOTHING
    # Inclusive at both ends; paper 004's temporal constructors have strict ones.
    bound: Bound | None = None
    context: OperatorContext = UNRESTRICTED
    nth: int | None = None
    next: bool = False

    @property
    def parts(self) -> tuple[Operand, ...]:
        """Return both operands."""
        return (self.left, self.right)


@dataclass(slots=True, eq=False)
class Negation(Operand):
    """`P without Q`; with `window_ms`, `P without[T] Q`. Conjuncts over both restrict the q."""

    left: Operand = NOTHING
    right: Operand = NOTHING
    # None: q lies within p itself. With T it may begin up to T after p did, and so come after p.
    window_ms: int | None = None
    further_out: bool = False  # it is judged where all is bound that its conjuncts name

    @property
    def parts(self) -> tuple[Operand, ...]:
        """Return both operands."""
        return (self.left, self.right)


@dataclass(slots=True, eq=False)
class Unary(Operand):
    """An operand that stands over one other."""

    operand: Operand = NOTHING

    @property
    def parts(self) -> tuple[Operand, ...]:
        """Return the one operand."""
        return (self.operand,)


@dataclass(slots=True, eq=False)
class Silence(Unary):
    """`absent P for T`: an interval, at the first place, in which there is no P."""

    for_ms: int = 0


@dataclass(slots=True, eq=False)
class Count(Unary):
    """`P{n}`: so many successive P; `disjoint`: none is in two of them."""

    # Paper 004, NLoop. Rows slide, and under `first` and `chronicle` none shares an event.
    count: int = 1
    disjoint: bool = False


@dataclass(slots=True, eq=False)
class Run(Unary):
    """`P+[a..b]`: a longest run of P with gaps of a..b ms."""

    # Paper 004, TLoop: a gap outside of these begins a new run.
    gap_low_ms: int | None = None
    gap_high_ms: int | None = None


@dataclass(slots=True, eq=False)
class Kth(Unary):
    """`nth k P` that has no left neighbour: the k-th P of the partition."""

    k: int = 1


@dataclass(slots=True, eq=False)
class Distinct(Unary):
    """`distinct(keys) P`: no P that equals an earlier one of the last `window_ms`."""

    keys: tuple[str, ...] = ()
    window_ms: int = 0


@dataclass(slots=True, eq=False)
class Member:
    """A list in a chain: what may be in it and where it stands.

    `after` and `before` are the nearest elements of the chain that are no lists; bounds are those
    of the links beside the list, where these lead to such an element.
    """

    operand: Operand
    optional: bool
    # None at the beginning of the chain, or at its end: there no element bounds the list.
    after: Operand | None
    before: Operand | None
    after_bound: Bound | None
    before_bound: Bound | None
    conjuncts: list[Expression] = field(default_factory=list)

    def leads_ms(self, within_ms: int | None) -> int | None:
        """Return how long before the chain begins one may end, all of it within so long."""
        if self.after is not None:
            return 0
        return least(within_ms, None if self.before_bound is None else self.before_bound.high_ms)


@dataclass(slots=True, eq=False)
class Gathered(Operand):
    """A chain with lists: its other elements, and the lists that are filled for each of them."""

    base: Operand = NOTHING
    members: list[Member] = field(default_factory=list)
    trailing: bool = False

    @property
    def parts(self) -> tuple[Operand, ...]:
        """Return the base and the operands of the members."""
        return (self.base, *(member.operand for member in self.members))


@dataclass(slots=True, eq=False)
class Padded(Unary):
    """An element of a chain with the empty places of the lists beside it."""


def atom_of(element: Operand) -> Leaf | None:
    """Return the atom that an element of a chain is, which may have the places of lists beside."""
    atom = element.operand if isinstance(element, Padded) else element
    return atom if isinstance(atom, Leaf) else None


def composite(operand: Operand) -> bool:
    """Tell whether its occurrences are tuples, not events as such."""
    # Both pass on their operand's occurrences as they are: of an atom, its events.
    while isinstance(operand, Kth | Distinct):
        operand = operand.operand
    return not isinstance(operand, Leaf)


def operands(root: Operand) -> Iterator[Operand]:
    """Every operand, those beneath before those above."""
    for part in root.parts:
        yield from operands(part)
    yield root


def run_of(joint: Joint) -> list[Joint]:
    """Return the like links of the chain that ends with this one, from left to right."""
    links = [joint]
    while (
        isinstance(left := links[0].left, Joint)
        and not left.closed
        and (left.context, left.operator) == (joint.context, joint.operator)
    ):
        links.insert(0, left)
    return links


def silent_places(operand: Operand) -> frozenset[int]:
    """The places beneath that bind nothing in its occurrences: of `absent`, or right of `without`.

    Seen from inside an `absent` they bind like any other.
    """
    if isinstance(operand, Silence):
        return frozenset(range(operand.low, operand.high))
    found: frozenset[int] = frozenset()
    for part in operand.parts:
        found |= silent_places(part)
    if isinstance(operand, Negation):
        found |= frozenset(range(operand.right.low, operand.right.high))
    return found


def least(a: int | None, b: int | None) -> int | None:
    """The lesser of two limits; None is no limit."""
    # `min` would have None as the least of all.
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)


def types_of(operand: Operand) -> set[str]:
    """The event types of the atoms beneath."""
    return {leaf.event_type for leaf in operands(operand) if isinstance(leaf, Leaf)}


_NO_TYPES: frozenset[str] = frozenset()  # one for all patterns, as most have none


def types_that_last(root: Operand) -> frozenset[str]:
    """The event types of which no mere reading is of use somewhere in the pattern."""
    found = set()
    for joint in operands(root):
        if isinstance(joint, Joint):
            lasting = RELATIONS[joint.operator].lasting if joint.operator in RELATIONS else ()
            sides = zip(("left", "right"), joint.parts, strict=True)
            found |= {
                one.event_type for side, one in sides if side in lasting and isinstance(one, Leaf)
            }
    return frozenset(found) or _NO_TYPES

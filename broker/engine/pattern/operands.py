"""The operands of a detect pattern: what a layout is made of.

Owns the node classes and the walks over them. Must not know text, stores or events.
Invariant: an operand covers the places low..high-1 of the text, those beneath it included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from language.relations import FOLLOWS, RELATIONS

if TYPE_CHECKING:
    from language.tree import Bound, Context, Expression, RegionLiteral

DurationMs: TypeAlias = int | Callable[[str], int | None]
SlackMs: TypeAlias = Callable[[int], int]


@dataclass(slots=True, eq=False)
class Operand:
    """A part of the pattern, and what each of its occurrences must pass."""

    low: int
    high: int
    within_ms: int | None = None
    spread_m: float | None = None
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


@dataclass(slots=True, eq=False)
class Leaf(Operand):
    """An atom: one place."""

    event_type: str = ""
    name: str = ""
    conditions: tuple[Expression, ...] = ()
    regions: list[RegionLiteral] = field(default_factory=list)


NOTHING = Leaf(0, 0)


@dataclass(slots=True, eq=False)
class Joint(Operand):
    """A binary operator over two operands.

    `nth`: the right one is the so-manieth after the left one. `next`: nothing lies between.
    """

    operator: str = "and"
    left: Operand = NOTHING
    right: Operand = NOTHING
    bound: Bound | None = None
    context: Context = "unrestricted"
    nth: int | None = None
    next: bool = False

    @property
    def parts(self) -> tuple[Operand, ...]:
        """See Operand."""
        return (self.left, self.right)


@dataclass(slots=True, eq=False)
class Negation(Operand):
    """`P without Q`; with `window_ms`, `P without[T] Q`. Conjuncts over both restrict the q."""

    left: Operand = NOTHING
    right: Operand = NOTHING
    window_ms: int | None = None
    further_out: bool = False  # it is judged where all is bound that its conjuncts name

    @property
    def parts(self) -> tuple[Operand, ...]:
        """See Operand."""
        return (self.left, self.right)


@dataclass(slots=True, eq=False)
class Unary(Operand):
    """What stands over one operand."""

    operand: Operand = NOTHING

    @property
    def parts(self) -> tuple[Operand, ...]:
        """See Operand."""
        return (self.operand,)


@dataclass(slots=True, eq=False)
class Silence(Unary):
    """`absent P for T`: an interval, at the first place, in which there is no P."""

    for_ms: int = 0


@dataclass(slots=True, eq=False)
class Count(Unary):
    """`P{n}`: so many successive P; `disjoint`: none is in two of them."""

    count: int = 1
    disjoint: bool = False


@dataclass(slots=True, eq=False)
class Run(Unary):
    """`P+[a..b]`: a longest run of P with gaps of a..b ms."""

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
    after: Operand | None
    before: Operand | None
    after_bound: Bound | None
    before_bound: Bound | None
    conjuncts: list[Expression] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Gathered(Operand):
    """A chain with lists: its other elements, and the lists that are filled for each of them."""

    base: Operand = NOTHING
    members: list[Member] = field(default_factory=list)
    trailing: bool = False

    @property
    def parts(self) -> tuple[Operand, ...]:
        """See Operand."""
        return (self.base, *(member.operand for member in self.members))


@dataclass(slots=True, eq=False)
class Padded(Unary):
    """An element of a chain with the empty places of the lists beside it."""


def composite(operand: Operand) -> bool:
    """Whether its occurrences are tuples, not events as such."""
    while isinstance(operand, Kth | Distinct):
        operand = operand.operand
    return not isinstance(operand, Leaf)


def operands(root: Operand) -> Iterator[Operand]:
    """Every operand, those beneath before those above."""
    for part in root.parts:
        yield from operands(part)
    yield root


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
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)


def _sum(*spans: int | None) -> int | None:
    known = [span for span in spans if span is not None]
    return sum(known) if len(known) == len(spans) else None


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


def span_max_ms(
    operand: Operand, duration_ms: DurationMs, slack_ms: SlackMs | None = None
) -> int | None:
    """The longest span that an occurrence of the operand can have; None where unbounded.

    `duration_ms` is how long an event may last: one number for all, or asked for each type (None
    where that is unbounded, too).
    `slack_ms`: by how much nominal times may miss a limit that is met, where they are uncertain.
    """
    return _Spans(duration_ms, slack_ms).of(operand)


class _Spans:
    """See span_max_ms."""

    def __init__(self, duration_ms: DurationMs, slack_ms: SlackMs | None) -> None:
        self._duration_ms = duration_ms
        self._slack_ms = slack_ms

    def of(self, operand: Operand) -> int | None:
        natural_ms = self._natural(operand)
        if operand.within_ms is None:
            return natural_ms
        return least(self._longer(operand.within_ms), natural_ms)

    def _longer(self, limit_ms: int) -> int:
        return limit_ms if self._slack_ms is None else limit_ms + self._slack_ms(limit_ms)

    def _event(self, event_type: str) -> int | None:
        duration_ms = self._duration_ms
        return duration_ms if isinstance(duration_ms, int) else duration_ms(event_type)

    def _natural(self, operand: Operand) -> int | None:
        if isinstance(operand, Leaf):
            return self._event(operand.event_type)
        if isinstance(operand, Silence):
            return operand.for_ms
        if isinstance(operand, Negation):
            return self.of(operand.left)
        if isinstance(operand, Kth | Distinct | Padded):
            return self.of(operand.operand)
        if isinstance(operand, Joint):
            return least(self._joint(operand), self._anchored(operand))
        if isinstance(operand, Gathered):
            return self._anchored(operand)
        return None

    def _joint(self, joint: Joint) -> int | None:
        left, right = self.of(joint.left), self.of(joint.right)
        if joint.operator == "or":
            return None if left is None or right is None else max(left, right)
        if joint.bound is not None and joint.bound.high_ms is not None:
            return _sum(left, self._longer(joint.bound.high_ms), right)
        if joint.operator != "and" and joint.operator not in FOLLOWS:
            return _sum(left, self._longer(0), right)  # they share an instant
        return None

    def _anchored(self, operand: Operand) -> int | None:
        """By `within T from A`: what is not A begins after it, and ends in time.

        An absence is no event, and not held to that; nor is A where it stands for nothing.
        """
        if isinstance(operand, Joint) and operand.operator == "or":
            return None
        parts = list(operands(operand))
        if any(isinstance(one, Silence) for one in parts):
            return None
        types = {one.low: one.event_type for one in parts if isinstance(one, Leaf)}
        spans = [
            _sum(self._event(types[place]), self._longer(within_ms), self._longer(0))
            for place, within_ms in operand.anchors
            if operand.low <= place < operand.high
        ]
        return min([span for span in spans if span is not None], default=None)

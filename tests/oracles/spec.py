"""Specifications of the Headwater language as plain data, for the reference matcher.

Owns: the tree that generators build, that `render` writes as text, that `matcher` interprets.
Must not know: the product's parser or tree; only text goes to the code under test.
Invariant: every class is frozen and hashable; times are milliseconds, distances metres.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tests.oracles.spec_expressions import (
    Aggregate,
    AllOf,
    AnyOf,
    Arith,
    AttributeType,
    Box,
    Call,
    Circle,
    Compare,
    Duration,
    Expr,
    InRegion,
    InSet,
    Lit,
    Lookup,
    Negative,
    Not,
    PathRegion,
    Polygon,
    Ref,
    Region,
    Scalar,
    Table,
)

__all__ = [
    "Aggregate",
    "AllOf",
    "AnyOf",
    "Arith",
    "AttributeType",
    "Box",
    "Call",
    "Circle",
    "Compare",
    "Duration",
    "Expr",
    "InRegion",
    "InSet",
    "Lit",
    "Lookup",
    "Negative",
    "Not",
    "PathRegion",
    "Polygon",
    "Ref",
    "Region",
    "Scalar",
    "Table",
]

Context: TypeAlias = Literal["unrestricted", "recent", "latest", "first", "chronicle"]

# --- patterns ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Atom:
    """One event of a type, primitive or defined, that meets every condition."""

    type: str
    conditions: tuple[Expr, ...] = ()
    alias: str | None = None

    @property
    def name(self) -> str:
        """What expressions and results call this place."""
        return self.alias or self.type


@dataclass(frozen=True)
class Or:
    """Either side."""

    left: Pattern
    right: Pattern


@dataclass(frozen=True)
class Bound:
    """`[low..high]` in milliseconds, ends included; None leaves a side open."""

    low_ms: int | None = None
    high_ms: int | None = None


Relation: TypeAlias = Literal[
    "and",
    "then",
    "before",
    "meets",
    "overlaps",
    "during",
    "contains",
    "starts",
    "finishes",
    "equals",
    "concat",
    "parallel",
]


@dataclass(frozen=True)
class Pair:
    """Both sides, related by `op`; context None takes that of the detect."""

    op: Relation
    left: Pattern
    right: Pattern
    bound: Bound | None = None
    context: Context | None = None
    next: bool = False


@dataclass(frozen=True)
class Without:
    """`left without right`, or `left without[T] right`."""

    left: Pattern
    right: Pattern
    ms: int | None = None


@dataclass(frozen=True)
class Absent:
    """`absent P for T`."""

    operand: Pattern
    ms: int

    @property
    def name(self) -> str:
        """A name for the place of the absence, which no text can write."""
        return f"absent:{','.join(atom.name for atom in atoms_of(self.operand))}"


@dataclass(frozen=True)
class Listed:
    """`P+` or `P*` in a `then` chain or a window; an atom's alias is written after the sign."""

    operand: Pattern
    may_be_empty: bool = False


@dataclass(frozen=True)
class Times:
    """`P{count}`."""

    operand: Pattern
    count: int


@dataclass(frozen=True)
class Run:
    """`P+[a..b]`."""

    operand: Pattern
    bound: Bound


@dataclass(frozen=True)
class Nth:
    """`nth k P`."""

    k: int
    operand: Pattern


@dataclass(frozen=True)
class Distinct:
    """`distinct(a, b) P`, or `distinct P` where no keys are given."""

    operand: Pattern
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Last:
    """`last P`."""

    operand: Pattern


@dataclass(frozen=True)
class First:
    """`first P`."""

    operand: Pattern


@dataclass(frozen=True)
class Outer:
    """`outer P` in a window."""

    operand: Atom | Distinct


@dataclass(frozen=True)
class Within:
    """`within T`, or `within T from alias`."""

    ms: int
    start: str | None = None


@dataclass(frozen=True)
class Spread:
    """`spread D`."""

    metres: float


@dataclass(frozen=True)
class In:
    """`in R` of a declared region, or of one written in place."""

    region: str | Region


@dataclass(frozen=True)
class Where:
    """`where c`."""

    condition: Expr


Suffix: TypeAlias = Within | Spread | In | Where


@dataclass(frozen=True)
class Suffixed:
    """A pattern with its suffixes; as an operand it stands in parentheses."""

    operand: Pattern
    suffixes: tuple[Suffix, ...]


Prefixed: TypeAlias = Absent | Listed | Times | Run | Nth | Distinct | Last | First | Outer
Pattern: TypeAlias = Atom | Or | Pair | Without | Prefixed | Suffixed

# --- definitions and subscriptions ------------------------------------------------------------

Assignments: TypeAlias = tuple[tuple[str, Expr], ...]


@dataclass(frozen=True)
class Case:
    """One `detect` with what follows it; context None is `unrestricted`.

    `thin` is `detect[one]` or `detect[collect]`, `maybe_drop` is `detect[maybe drop]`.
    """

    pattern: Pattern
    context: Context | None = None
    assign: Assignments = ()
    consuming: tuple[str, ...] = ()
    group_by: tuple[str, ...] = ()
    thin: Literal["one", "collect"] | None = None
    maybe_drop: bool = False


@dataclass(frozen=True)
class Every:
    """`aggr every T`, with `range R` where range_ms is given."""

    ms: int
    range_ms: int | None = None


@dataclass(frozen=True)
class Trailing:
    """`aggr range R`: a window at each input event."""

    range_ms: int


@dataclass(frozen=True)
class Session:
    """`aggr session G`, with `max M` where max_ms is given."""

    gap_ms: int
    max_ms: int | None = None


@dataclass(frozen=True)
class Days:
    """`aggr every N days in zone`."""

    count: int
    zone: str


Window: TypeAlias = Every | Trailing | Session | Days


@dataclass(frozen=True)
class Post:
    """What `post` combines the partial results to."""

    assign: Assignments
    group_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Definition:
    """A new event type: cases, or one case over a window (the `pre` where `post` is set).

    `reported_ms` is `every T` without `aggr`: it says when events are made, never which.
    """

    name: str
    cases: tuple[Case, ...]
    window: Window | None = None
    post: Post | None = None
    reported_ms: int | None = None


@dataclass(frozen=True)
class Subscription:
    """What is reported, under which name, from whom and to whom.

    `actor_of` is the attribute of the group in `to actor of group.attribute`; `for_ms` and `until`
    end it; `at_most` is (N, T in milliseconds).
    """

    name: str
    case: Case
    seq: int = 1
    subscriber: str = "tester"
    actor: str = "out"
    actor_of: str | None = None
    for_ms: int | None = None
    until: str | None = None
    at_most: tuple[int, int] | None = None


@dataclass(frozen=True)
class EventType:
    """A declared primitive type and its attributes."""

    name: str
    attributes: tuple[tuple[str, AttributeType], ...] = ()


@dataclass(frozen=True)
class Spec:
    """One file: declarations, definitions, subscriptions in the order of the text."""

    types: tuple[EventType, ...]
    subscriptions: tuple[Subscription, ...]
    definitions: tuple[Definition, ...] = ()
    sets: tuple[tuple[str, tuple[Scalar, ...]], ...] = ()
    regions: tuple[tuple[str, Region], ...] = ()
    tables: tuple[Table, ...] = ()


def parts_of(pattern: Pattern) -> tuple[Pattern, ...]:
    """What a pattern is directly made of, in the order of the text."""
    match pattern:
        case Atom():
            return ()
        case Or(left, right) | Pair(_, left, right) | Without(left, right):
            return (left, right)
    return (pattern.operand,)


def atoms_of(pattern: Pattern) -> tuple[Atom, ...]:
    """The atoms of a pattern in the order of the text, those that bind nothing as well."""
    if isinstance(pattern, Atom):
        return (pattern,)
    return tuple(atom for part in parts_of(pattern) for atom in atoms_of(part))


def bound_atoms(pattern: Pattern) -> tuple[Atom, ...]:
    """The atoms that bind events: those beneath `absent` and after `without` do not."""
    match pattern:
        case Atom():
            return (pattern,)
        case Absent():
            return ()
        case Without(left, _):
            return bound_atoms(left)
    return tuple(atom for part in parts_of(pattern) for atom in bound_atoms(part))

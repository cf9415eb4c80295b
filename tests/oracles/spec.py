"""Specifications of the Headwater language as plain data, for the reference matcher.

Owns: the tree that generators build, that `render` writes as text, that `matcher` interprets.
Must not know: the product's parser or tree; only text goes to the code under test.
Invariant: every class is frozen and hashable; times are milliseconds, distances metres.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Scalar: TypeAlias = int | float | str | bool
AttributeType: TypeAlias = Literal["int", "float", "text", "bool"]
Context: TypeAlias = Literal["unrestricted", "recent"]

# --- expressions ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lit:
    """A number, a text or a truth value as written."""

    value: Scalar


@dataclass(frozen=True)
class Duration:
    """A duration as written, worth its milliseconds."""

    ms: int


@dataclass(frozen=True)
class Ref:
    """`alias.name`; a bare `name` where alias is None; the key of the group where it is `group`."""

    alias: str | None
    name: str


@dataclass(frozen=True)
class Arith:
    """`left op right` with one of + - * /."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Negative:
    """Unary minus."""

    operand: Expr


@dataclass(frozen=True)
class Compare:
    """A comparison or a chain of them: `operands[0] ops[0] operands[1] ops[1] …`."""

    ops: tuple[str, ...]
    operands: tuple[Expr, ...]


@dataclass(frozen=True)
class InSet:
    """`item in {…}`, or `item in Name` of a declared set."""

    item: Expr
    members: tuple[Scalar, ...] | str


@dataclass(frozen=True)
class InRegion:
    """`item in Name` of a declared region, or `item in circle(…)` and the like written in place."""

    item: Expr
    region: Region | str


@dataclass(frozen=True)
class Not:
    """`not operand`."""

    operand: Expr


@dataclass(frozen=True)
class AllOf:
    """Parts joined by `and`."""

    parts: tuple[Expr, ...]


@dataclass(frozen=True)
class AnyOf:
    """Parts joined by `or`."""

    parts: tuple[Expr, ...]


@dataclass(frozen=True)
class Aggregate:
    """`Function(alias.attribute)`; attribute None counts events; `quantile` is Quantile's q."""

    function: str
    alias: str | None
    attribute: str | None = None
    quantile: float | None = None


Expr: TypeAlias = (
    Lit
    | Duration
    | Ref
    | Arith
    | Negative
    | Compare
    | InSet
    | InRegion
    | Not
    | AllOf
    | AnyOf
    | Aggregate
)

# --- regions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Circle:
    """All within `radius_m` of a point, by great circle."""

    lat: float
    lon: float
    radius_m: float


@dataclass(frozen=True)
class Box:
    """Between two opposite corners."""

    lat_1: float
    lon_1: float
    lat_2: float
    lon_2: float


@dataclass(frozen=True)
class Polygon:
    """Inside or on the border of the polygon with these (lat, lon) corners, degrees as a plane."""

    corners: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class PathRegion:
    """The location itself and all beneath it, by segment."""

    path: str


Region: TypeAlias = Circle | Box | Polygon | PathRegion

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


@dataclass(frozen=True)
class Last:
    """`last P`."""

    operand: Pattern


@dataclass(frozen=True)
class Outer:
    """`outer P` in a window."""

    operand: Atom


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
    """`in R` of a declared region."""

    region: str


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


Pattern: TypeAlias = Atom | Or | Pair | Last | Outer | Suffixed

# --- definitions and subscriptions ------------------------------------------------------------

Assignments: TypeAlias = tuple[tuple[str, Expr], ...]


@dataclass(frozen=True)
class Case:
    """One `detect` with what follows it; context None is `unrestricted`."""

    pattern: Pattern
    context: Context | None = None
    assign: Assignments = ()
    consuming: tuple[str, ...] = ()
    group_by: tuple[str, ...] = ()


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
class Post:
    """What `post` combines the partial results to."""

    assign: Assignments
    group_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Definition:
    """A new event type: cases, or one case over a window (the `pre` where `post` is set)."""

    name: str
    cases: tuple[Case, ...]
    window: Every | Trailing | None = None
    post: Post | None = None


@dataclass(frozen=True)
class Subscription:
    """What is reported, under which name, from whom and to whom."""

    name: str
    case: Case
    seq: int = 1
    subscriber: str = "tester"
    actor: str = "out"


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


def atoms_of(pattern: Pattern) -> tuple[Atom, ...]:
    """The atoms of a pattern in the order of the text."""
    match pattern:
        case Atom():
            return (pattern,)
        case Or(left, right) | Pair(_, left, right):
            return atoms_of(left) + atoms_of(right)
        case Last(operand) | Outer(operand) | Suffixed(operand):
            return atoms_of(operand)

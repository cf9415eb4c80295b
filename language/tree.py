"""The typed tree of a specification: what a text says, before it is checked.

Owns the node classes alone. Knows nothing of the grammar, of checking or of how anything runs.
Invariant: nodes are immutable, compare by meaning (spans do not count), and hold units already
converted: times in integer milliseconds, distances in metres.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from language.relations import UNRESTRICTED
from language.tree_expressions import (
    NO_SPAN,
    Arithmetic,
    Attribute,
    Call,
    Comparison,
    Constant,
    Expression,
    Logical,
    Lookup,
    Membership,
    Name,
    Node,
    RegionLiteral,
    SetLiteral,
    Span,
    Unary,
)

__all__ = [
    "NO_SPAN",
    "Absent",
    "Actor",
    "Arithmetic",
    "Assignment",
    "Atom",
    "Attribute",
    "AttributeType",
    "Bound",
    "Call",
    "Case",
    "Comparison",
    "Constant",
    "Declaration",
    "Definition",
    "Detect",
    "EventDeclaration",
    "Expression",
    "File",
    "InRegion",
    "Item",
    "Link",
    "Logical",
    "Lookup",
    "Membership",
    "Name",
    "Node",
    "Pattern",
    "Post",
    "RegionDeclaration",
    "RegionLiteral",
    "Repeat",
    "Select",
    "SetDeclaration",
    "SetLiteral",
    "Span",
    "Spread",
    "Subscription",
    "TableDeclaration",
    "Thinning",
    "Unary",
    "Where",
    "Window",
    "WindowPart",
    "Within",
]

# --- patterns --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bound(Node):
    """`[low_ms..high_ms]`, ends included; None is open."""

    low_ms: int | None
    high_ms: int | None


@dataclass(frozen=True, slots=True)
class Atom(Node):
    """`Type(conditions) as alias`; the conditions are joined by and."""

    type: str
    conditions: tuple[Expression, ...] = ()
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Link(Node):
    """A binary operator; chains of one level group to the left.

    `bound` is a gap bound on then, before, and; on `without` its `high_ms` is the T of
    `without[T]` (low_ms None). `context` (one of
    relations.CONTEXTS) None means that of the detect. `next` is contiguity.
    """

    operator: str
    left: Pattern
    right: Pattern
    bound: Bound | None = None
    context: str | None = None
    next: bool = False


@dataclass(frozen=True, slots=True)
class Absent(Node):
    """`absent P for T`."""

    operand: Pattern
    for_ms: int


@dataclass(frozen=True, slots=True)
class Repeat(Node):
    """`P+`, `P*`, `P{n}` (count), `P+[a..b]` (run, with its gap bound); `as alias` on top."""

    kind: Literal["+", "*", "count", "run"]
    operand: Pattern
    count: int | None = None
    gap: Bound | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Select(Node):
    """A prefix: `nth k P`, `last P`, `first P`, `outer P`, `distinct(keys) P`."""

    kind: Literal["nth", "last", "first", "outer", "distinct"]
    operand: Pattern
    k: int | None = None
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Within(Node):
    """`P within T`, or `P within T from anchor`."""

    operand: Pattern
    within_ms: int
    anchor: str | None = None


@dataclass(frozen=True, slots=True)
class Spread(Node):
    """`P spread D`."""

    operand: Pattern
    distance_m: float


@dataclass(frozen=True, slots=True)
class InRegion(Node):
    """`P in R`."""

    operand: Pattern
    region: RegionLiteral | Name


@dataclass(frozen=True, slots=True)
class Where(Node):
    """`P where c`."""

    operand: Pattern
    condition: Expression


Pattern = Atom | Link | Absent | Repeat | Select | Within | Spread | InRegion | Where


# --- declarations ----------------------------------------------------------------------------

AttributeType = Literal["int", "float", "text", "bool", "bytes"]


@dataclass(frozen=True, slots=True)
class EventDeclaration(Node):
    """`event Name(attribute: type, …) lasts at most T`; `lasts_ms` None: without the limit."""

    name: str
    attributes: tuple[tuple[str, AttributeType], ...]
    lasts_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SetDeclaration(Node):
    """`set Name = {…}`."""

    name: str
    members: SetLiteral


@dataclass(frozen=True, slots=True)
class RegionDeclaration(Node):
    """`region Name = circle(…)`."""

    name: str
    region: RegionLiteral


@dataclass(frozen=True, slots=True)
class TableDeclaration(Node):
    """`table Name from "file" key column`."""

    name: str
    file: str
    key: str


# --- definitions and subscriptions -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Detect(Node):
    """`detect[options] pattern`."""

    pattern: Pattern
    context: str = UNRESTRICTED.name
    maybe_drop: bool = False
    report: Literal["all", "one", "collect"] = "all"


@dataclass(frozen=True, slots=True)
class Assignment(Node):
    """`name = value`."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Case(Node):
    """One detecting case, with what it assigns and consumes and how it is partitioned.

    A definition without `case` has one case, of number 0. `consuming` holds aliases or types;
    `group_by` is "location", "source" or an attribute, several joined, in the order written.
    """

    number: int
    detect: Detect
    assign: tuple[Assignment, ...] = ()
    consuming: tuple[str, ...] = ()
    group_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Window(Node):
    """The time part of a definition's header.

    `aggregated` is the word `aggr`. every/range: durations; with `every_days` and `zone` the
    window aligns to local midnights and `every_ms` is None. session: gap and optional maximum.
    """

    aggregated: bool
    every_ms: int | None = None
    range_ms: int | None = None
    session_ms: int | None = None
    session_max_ms: int | None = None
    every_days: int | None = None
    zone: str | None = None

    @property
    def runs(self) -> bool:
        """Return True where each group has one window at a time, which its events open and span."""
        return self.run_open_ms is not None

    @property
    def run_open_ms(self) -> int | None:
        """Return how long after its newest event such a window may be open; None of others."""
        return self.session_ms

    @property
    def run_max_ms(self) -> int | None:
        """Return the longest that such a window of readings lasts; None: without limit."""
        return self.session_max_ms


@dataclass(frozen=True, slots=True)
class WindowPart:
    """A length in the header of a window: its word, and the field of Window that holds it.

    `beside`: the word that it stands with, and not without. `alone`: no part stands with it but
    those. `aggregated`: it asks for `aggr`.
    """

    word: str
    field: str
    beside: str | None = None
    alone: bool = False
    aggregated: bool = True


WINDOW_PARTS: dict[str, WindowPart] = {
    part.word: part
    for part in (
        WindowPart("every", "every_ms", aggregated=False),
        WindowPart("range", "range_ms"),
        WindowPart("session", "session_ms", alone=True),
        WindowPart("max", "session_max_ms", beside="session"),
    )
}
"""All lengths but the days of a zone, in the order of the canonical text."""


@dataclass(frozen=True, slots=True)
class Post(Node):
    """`post where …`: how partial results combine."""

    assign: tuple[Assignment, ...]
    group_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Definition(Node):
    """`define Name(attributes) …`; `attributes` are the names in the header, in order.

    `pre` is true where the detect part was written under `pre`.
    """

    name: str
    attributes: tuple[str, ...]
    cases: tuple[Case, ...]
    window: Window | None = None
    pre: bool = False
    post: Post | None = None


@dataclass(frozen=True, slots=True)
class Actor(Node):
    """The target of results: `to A`, `to A of group.x` (group_key), `to nearest A`."""

    name: str
    group_key: str | None = None
    nearest: bool = False


@dataclass(frozen=True, slots=True)
class Thinning(Node):
    """`at most count per per_ms`."""

    count: int
    per_ms: int


@dataclass(frozen=True, slots=True)
class Subscription(Node):
    """`subscription Name seq n from subscriber to actor …`; `case.number` is 0.

    `for_ms` and `until_ms` (milliseconds since the epoch) end it; at most one is given. Brokers
    that are away for longer than `wait_ms` are not waited for; None waits without end.
    """

    name: str
    seq: int
    subscriber: str
    actor: Actor
    case: Case
    for_ms: int | None = None
    until_ms: int | None = None
    at_most: Thinning | None = None
    wait_ms: int | None = None


Declaration = EventDeclaration | SetDeclaration | RegionDeclaration | TableDeclaration
Item = Declaration | Definition | Subscription


@dataclass(frozen=True, slots=True)
class File(Node):
    """A whole text, its items in the order written."""

    items: tuple[Item, ...]

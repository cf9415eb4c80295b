"""The typed tree's expressions, and what every node has.

Owns the node classes of conditions, assignments and regions. Knows nothing of patterns, of the
grammar or of how anything runs. Invariant: that of language.tree, which is where to import from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Span:
    """A place in the text: offsets in characters; line and column count from 1."""

    start: int
    end: int
    line: int
    column: int


NO_SPAN = Span(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Node:
    """Any node; `span` is where it stands and is no part of its meaning.

    `marks` are the places of those of its words that are no nodes: an alias, a grouping attribute.
    """

    span: Span = field(default=NO_SPAN, compare=False, repr=False, kw_only=True)
    marks: tuple[tuple[str, Span], ...] = field(default=(), compare=False, repr=False, kw_only=True)

    def place(self, word: str) -> Span:
        """Return the span of `word` in this node; the node's own if that was not marked."""
        for marked, span in self.marks:
            if marked == word:
                return span
        return self.span


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """A number, text or truth value.

    `unit` is "ms" for a duration and "m" for a distance (the value is converted), else None.
    """

    value: int | float | str | bool
    unit: Literal["ms", "m"] | None = None


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A bare name: an attribute of the atom around it, or an alias, set or region by context."""

    name: str


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """`base.name`: base is an alias, an unaliased type, or `group`."""

    base: str
    name: str


@dataclass(frozen=True, slots=True)
class Lookup(Node):
    """`Table[key].column`; once resolved with the column's values by key, and their digest."""

    table: str
    key: Expression
    column: str
    values: Mapping[Any, Any] | None = field(default=None, compare=False, repr=False)
    digest: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`not x` or `-x`."""

    operator: Literal["not", "-"]
    operand: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """`left operator right`; null if either is null, `/` gives a float and null by zero."""

    operator: Literal["+", "-", "*", "/"]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """A chain `a < b <= c`: operands one more than operators; false if an operand is null."""

    operands: tuple[Expression, ...]
    operators: tuple[Literal["=", "!=", "<", "<=", ">", ">="], ...]


@dataclass(frozen=True, slots=True)
class Membership(Node):
    """`item in container`; false if the item is null."""

    item: Expression
    container: SetLiteral | RegionLiteral | Name


@dataclass(frozen=True, slots=True)
class Logical(Node):
    """`a and b and …` or `a or b or …`, flattened."""

    operator: Literal["and", "or"]
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Call(Node):
    """An aggregate, a built-in or a user's function, which once resolved is `own`."""

    function: str
    arguments: tuple[Expression, ...]
    own: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SetLiteral(Node):
    """`{1, 2}`."""

    members: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class RegionLiteral(Node):
    """A region; borders included.

    circle: `numbers` = (lat, lon, radius_m); box: (lat, lon, lat, lon); polygon: lat, lon pairs;
    path: `path` is the location prefix. `metric` is true where the coordinates were written as
    distances (x, y in metres) instead of degrees.
    """

    shape: Literal["circle", "box", "polygon", "path"]
    numbers: tuple[float, ...] = ()
    path: str = ""
    metric: bool = False


Expression = (
    Constant
    | Name
    | Attribute
    | Lookup
    | Unary
    | Arithmetic
    | Comparison
    | Membership
    | Logical
    | Call
)

"""Expressions, regions and tables of the Headwater language as plain data.

Owns: the tree of conditions and assigned values, of regions, of tables.
Must not know: patterns. Invariant: every class is frozen and hashable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Scalar: TypeAlias = int | float | str | bool
AttributeType: TypeAlias = Literal["int", "float", "text", "bool"]

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


@dataclass(frozen=True)
class Call:
    """`function(arguments)` of the arithmetic and text functions."""

    function: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True)
class Lookup:
    """`table[key].column`."""

    table: str
    key: Expr
    column: str


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
    | Call
    | Lookup
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

# --- tables -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """`table name from "path" key column`; `text` is what the file at the path holds."""

    name: str
    path: str
    key: str
    text: str

"""How early an assigned time can end a window's event.

Owns the reading of assigned times as lower bounds. Must not know what is open. Invariant: no event
ends before what is said here, whatever its group's events; where nothing can be said, None is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import floor
from typing import Literal

from language.tree import (
    Arithmetic,
    Assignment,
    Attribute,
    Call,
    Constant,
    Definition,
    Expression,
    Name,
)

# From late to early: the newest event's end, the least end of an event, the least start of one.
Anchor = Literal["newest", "least end", "least start"]
ANCHORS: tuple[Anchor, ...] = ("newest", "least end", "least start")

ONE_OF_THEM = frozenset({"First", "Last", "Min", "Max", "Avg", "Median", "Quantile"})
OF_ENDS = frozenset({"timestamp", "end"})


@dataclass(frozen=True, slots=True)
class TimeBound:
    """A time is at least `offset_ms` after the anchor (before it where negative)."""

    anchor: Anchor
    offset_ms: int = 0


SPAN_END = TimeBound("newest")

BoundOf = Callable[[str], TimeBound | None]  # of a name, or of an operand's attribute


def end_bound(node: Definition, assigned: tuple[Assignment, ...]) -> TimeBound | None:
    """The bound of the end of a case's events; `assigned` is what the case itself assigns."""
    if node.post is None:
        return _end_of(assigned, _of_attribute)
    bounds = {item.name: _bound(item.value, _of_attribute) for item in assigned}

    def of_row(name: str) -> TimeBound | None:
        return bounds[name] if name in bounds else _of_attribute(name)

    return _end_of(node.post.assign, of_row)


def _end_of(assigned: tuple[Assignment, ...], bound_of: BoundOf) -> TimeBound | None:
    """The earlier of what is assigned and of the span's end, which stands where that is null."""
    found: TimeBound | None = SPAN_END
    for item in assigned:
        if item.name in OF_ENDS:
            found = _earlier(found, _bound(item.value, bound_of))
    return found


def _of_attribute(name: str) -> TimeBound | None:
    if name in OF_ENDS:
        return TimeBound("least end")
    return TimeBound("least start") if name == "start" else None


def _earlier(a: TimeBound | None, b: TimeBound | None) -> TimeBound | None:
    if a is None or b is None:
        return None
    anchor = ANCHORS[max(ANCHORS.index(a.anchor), ANCHORS.index(b.anchor))]
    return TimeBound(anchor, min(a.offset_ms, b.offset_ms))


def _bound(node: Expression, bound_of: BoundOf) -> TimeBound | None:
    if isinstance(node, Name):  # of the span
        return SPAN_END if node.name in OF_ENDS else _of_attribute(node.name)
    if isinstance(node, Call):
        return _of_call(node, bound_of)
    if isinstance(node, Arithmetic) and isinstance(node.right, Constant):
        return _moved(_bound(node.left, bound_of), node.operator, node.right)
    return None


def _of_call(node: Call, bound_of: BoundOf) -> TimeBound | None:
    if node.function in ONE_OF_THEM:
        argument = node.arguments[0]
        return bound_of(argument.name) if isinstance(argument, Attribute | Name) else None
    if node.function in ("min", "max"):
        found = _bound(node.arguments[0], bound_of)
        for argument in node.arguments[1:]:
            found = _earlier(found, _bound(argument, bound_of))
        return found
    return None


def _moved(bound: TimeBound | None, operator: str, by: Constant) -> TimeBound | None:
    if bound is None or operator not in ("+", "-") or isinstance(by.value, bool | str):
        return None
    # An assigned time loses its part of a millisecond.
    shift = floor(by.value if operator == "+" else -by.value)
    return replace(bound, offset_ms=bound.offset_ms + shift)

"""How early an assigned time can end a window's event, and how long an event may have lasted.

Owns the reading of assigned times and of conditions as bounds. Must not know what is open.
Invariant: no event ends before its anchor, whatever its group's events; where nothing can be said,
None is.

The checker lets assigned times lie within their occurrence (an end also after it), so they are
choices among times of the span and of the events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from language.tree import (
    Arithmetic,
    Assignment,
    Attribute,
    Call,
    Comparison,
    Constant,
    Definition,
    Expression,
    Name,
)
from language.walk import conjuncts

# From late to early: the newest event's end, the least end of an event, the least start of one.
Anchor = Literal["newest end", "least end", "least start"]
ANCHORS: tuple[Anchor, ...] = ("newest end", "least end", "least start")

CHOOSING_AGGREGATES = frozenset({"First", "Last", "Min", "Max"})
CHOOSING_SCALARS = frozenset({"min", "max"})
ENDS = frozenset({"timestamp", "end"})

AnchorOf = Callable[[str], Anchor | None]  # of a name


def end_anchor(node: Definition, assigned: tuple[Assignment, ...]) -> Anchor | None:
    """The anchor of the end of a case's events; `assigned` is what the case itself assigns."""
    if node.post is None:
        return _end_of(assigned, _of_attribute)
    anchors = {item.name: _anchor(item.value, _of_span, _of_attribute) for item in assigned}

    def of_row(name: str) -> Anchor | None:
        return anchors[name] if name in anchors else _of_attribute(name)

    return _end_of(node.post.assign, of_row)


def _end_of(assigned: tuple[Assignment, ...], inside: AnchorOf) -> Anchor | None:
    """The earlier of what is assigned and of the span's end, which stands where that is null."""
    values = [item.value for item in assigned if item.name in ENDS]
    return _earliest(["newest end", *(_anchor(value, _of_span, inside) for value in values)])


def _of_attribute(name: str) -> Anchor | None:
    if name in ENDS:
        return "least end"
    return "least start" if name == "start" else None


def _of_span(name: str) -> Anchor | None:
    return "newest end" if name in ENDS else _of_attribute(name)


def _earliest(anchors: list[Anchor | None]) -> Anchor | None:
    known = [ANCHORS.index(anchor) for anchor in anchors if anchor is not None]
    return ANCHORS[max(known)] if len(known) == len(anchors) else None


def _anchor(node: Expression, outside: AnchorOf, inside: AnchorOf) -> Anchor | None:
    """The anchor of a value; names mean one thing outside of aggregates and another inside."""
    if isinstance(node, Name):
        return outside(node.name)
    if isinstance(node, Attribute):
        return inside(node.name)
    if isinstance(node, Call):
        if node.function in CHOOSING_AGGREGATES:
            return _anchor(node.arguments[0], inside, inside)
        if node.function in CHOOSING_SCALARS:
            return _earliest([_anchor(one, outside, inside) for one in node.arguments])
    if isinstance(node, Arithmetic) and node.operator == "+":
        for time, added in ((node.left, node.right), (node.right, node.left)):
            if is_no_less_than_zero(added):
                return _anchor(time, outside, inside)
    return None


def is_no_less_than_zero(node: Expression) -> bool:
    """Whether what is added to a time puts it no earlier."""
    return isinstance(node, Constant) and isinstance(node.value, int | float) and node.value >= 0


# --- durations -------------------------------------------------------------------------------


def longest_asked(conditions: tuple[Expression, ...]) -> int | None:
    """The greatest duration that passes conditions as `duration <= 5 s`; None if any passes."""
    found = [
        limit
        for condition in conditions
        for part in conjuncts(condition)
        for limit in _limits(part)
    ]
    return min(found, default=None)


def _limits(condition: Expression) -> Iterator[int]:
    """What a comparison, or a chain of them, allows `duration` at most."""
    if not isinstance(condition, Comparison):
        return
    pairs = zip(condition.operands, condition.operators, condition.operands[1:], strict=False)
    for left, operator, right in pairs:
        if operator in {"=", "<", "<="} and _is_duration(left) and isinstance(right, Constant):
            yield from _whole(right.value)
        if operator in {"=", ">", ">="} and _is_duration(right) and isinstance(left, Constant):
            yield from _whole(left.value)


def _is_duration(node: Expression) -> bool:
    return isinstance(node, Name) and node.name == "duration"


def _whole(value: object) -> Iterator[int]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield max(0, int(value))

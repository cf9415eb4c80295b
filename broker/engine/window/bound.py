"""How early an assigned time can end a window's event, and how long an event may have lasted.

Owns the reading of assigned times and of conditions as bounds. Must not know what is open.
Invariant: no event ends before the earliest of its anchors, whatever its group's events; where
nothing can be said, None is.

The checker lets assigned times be choices among times of the window, of the span and of the events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import ceil
from typing import Literal

from language.functions import AGGREGATES, CHOOSING, SCALARS
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

# The last instant of the window and its first one, the end of the newest event in it, the least end
# and the least start of such an event.
Moment = Literal["window end", "window start", "newest end", "least end", "least start"]
Anchors = dict[Moment, int]  # how many milliseconds before a moment the event may end
WINDOW = "window"

ENDS = frozenset({"timestamp", "end"})

AnchorsOf = Callable[[str], Anchors | None]  # of a name


def end_anchors(node: Definition, assigned: tuple[Assignment, ...]) -> Anchors | None:
    """Return the anchors of the end of a case's events; `assigned` is what the case assigns."""
    assert node.window is not None, "anchors are of windows"
    anchors = _anchors_at_end(node, assigned)
    if anchors is None or node.window.session_ms is None:
        return anchors
    # A session is as long as its events: its edges are theirs.
    edges: dict[Moment, Moment] = {"window end": "newest end", "window start": "least start"}
    return _joined({edges.get(moment, moment): ms} for moment, ms in anchors.items())


def _anchors_at_end(node: Definition, assigned: tuple[Assignment, ...]) -> Anchors | None:
    if node.post is None:
        return _end_of(assigned, _of_attribute)
    anchors = {item.name: _anchors(item.value, _of_span, _of_attribute) for item in assigned}

    def of_row(name: str) -> Anchors | None:
        return anchors[name] if name in anchors else _of_attribute(name)

    return _end_of(node.post.assign, of_row)


def _end_of(assigned: tuple[Assignment, ...], inside: AnchorsOf) -> Anchors | None:
    """Join what is assigned and the window's end, which stands where that is null."""
    values = [item.value for item in assigned if item.name in ENDS]
    usual: Anchors = {"window end": 0}
    return _joined([usual, *(_anchors(value, _of_span, inside) for value in values)])


def _of_attribute(name: str) -> Anchors | None:
    if name in ENDS:
        return {"least end": 0}
    return {"least start": 0} if name == "start" else None


def _of_span(name: str) -> Anchors | None:
    return {"newest end": 0} if name in ENDS else _of_attribute(name)


def _joined(several: Iterable[Anchors | None]) -> Anchors | None:
    """Return the anchors of a choice: of each moment the earliest."""
    joined: Anchors = {}
    for anchors in several:
        if anchors is None:
            return None
        for moment, earlier_ms in anchors.items():
            joined[moment] = max(earlier_ms, joined.get(moment, earlier_ms))
    return joined


def _anchors(node: Expression, outside: AnchorsOf, inside: AnchorsOf) -> Anchors | None:
    """Return the anchors of a value; names mean one thing outside of aggregates, one inside."""
    if isinstance(node, Name):
        return outside(node.name)
    if isinstance(node, Attribute):
        if node.base == WINDOW and outside is not inside:
            return {"window start": 0} if node.name == "start" else {"window end": -1}
        return inside(node.name)
    if isinstance(node, Call):
        if node.function in CHOOSING and node.function in AGGREGATES:
            return _anchors(node.arguments[0], inside, inside)
        if node.function in CHOOSING:
            return _joined([_anchors(choice, outside, inside) for choice in node.arguments])
    if isinstance(node, Arithmetic) and node.operator == "+":
        for time, added in ((node.left, node.right), (node.right, node.left)):
            if is_no_less_than_zero(added):
                return _anchors(time, outside, inside)
    if isinstance(node, Arithmetic) and node.operator == "-" and is_no_less_than_zero(node.right):
        assert isinstance(node.right, Constant)
        assert isinstance(node.right.value, int | float)
        less_ms = ceil(node.right.value)
        anchors = _anchors(node.left, outside, inside)
        return anchors and {moment: ms + less_ms for moment, ms in anchors.items()}
    return None


def says_events(value: Expression, partial: Mapping[str, Expression]) -> bool:
    """Return whether a time comes of events, and not of its window alone.

    `partial` is what `pre` assigns where `post` asks: its rows are named within aggregates.
    """
    if isinstance(value, Constant):
        return False
    if isinstance(value, Attribute):
        return value.base != WINDOW
    if isinstance(value, Arithmetic):
        return says_events(value.left, partial) or says_events(value.right, partial)
    if isinstance(value, Call) and value.function in CHOOSING and value.function in SCALARS:
        return any(says_events(argument, partial) for argument in value.arguments)
    if isinstance(value, Call) and isinstance(value.arguments[0], Name):
        row = partial.get(value.arguments[0].name)
        return row is None or says_events(row, {})
    return True


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

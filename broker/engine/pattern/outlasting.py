"""How long the events of a definition may last, as far as its text says.

Owns the reading of a definition for that. Must not know what is kept for how long. Invariant: no
event of it lasts longer while its inputs keep to what is said of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from broker.engine.pattern.assigned import ENDS
from broker.engine.pattern.completion import spans_of_reported
from broker.engine.pattern.operands import Leaf, span_max_ms
from broker.engine.pattern.pattern import Layout, lay_out
from broker.engine.window.bound import is_no_less_than_zero
from language.taskgraph import Task
from language.tree import (
    Arithmetic,
    Assignment,
    Attribute,
    Call,
    Case,
    Constant,
    Definition,
    Expression,
    Name,
)

# Of a type as the task names it, and whether one event of it is all; None: unbounded.
LongestOf = Callable[[str, bool], int | None]
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def longest_made_ms(task: Task, longest_of: LongestOf, endless_ms: int | None) -> int | None:
    """The longest event of a definition's; None where nothing bounds it.

    `endless_ms`: how long what has no bound lasts at most, where that is known.
    """
    node = task.node
    assert isinstance(node, Definition), "only definitions make events"
    found = []
    for case in node.cases:
        layout = lay_out(case)
        if node.window is not None and node.window.aggregated:
            span_ms = _of_window(node, case, layout, longest_of)
            found.append(endless_ms if span_ms is None else span_ms)
            continue
        span_ms = span_max_ms(layout.root, partial(_of, longest_of, layout))
        if span_ms is not None:
            span_ms *= spans_of_reported(case, layout.root)
        if _is_reading(case.assign, layout):
            span_ms = 0
        span_ms = endless_ms if span_ms is None else span_ms
        found.append(None if span_ms is None else span_ms + later_ms(case.assign))
    known = [span_ms for span_ms in found if span_ms is not None]
    return max(known) if len(known) == len(found) else None


def _of(longest_of: LongestOf, layout: Layout, event_type: str) -> int | None:
    return longest_of(event_type, isinstance(layout.root, Leaf))


def _of_window(node: Definition, case: Case, layout: Layout, longest_of: LongestOf) -> int | None:
    """Return how long a window's events last: within it, and points where nothing is assigned."""
    window = node.window
    assert window is not None, "this definition has no window"
    if window.session_ms is not None:
        longest_ms = window.session_max_ms
        for leaf in layout.leaves:  # an event that is longer has a session of its own
            lasts_ms = longest_of(leaf.event_type, False)
            if longest_ms is None or lasts_ms is None:
                return None
            longest_ms = max(longest_ms, lasts_ms)
        return longest_ms
    assigned = case.assign if node.post is None else node.post.assign
    if not {"start", "end"} & {item.name for item in assigned}:
        return 0
    if window.range_ms is None:
        days = window.every_days or 1  # once a year a day has an hour more
        return (window.every_ms or days * DAY_MS + HOUR_MS) - 1
    if window.every_ms is None and window.every_days is None:
        return window.range_ms  # with both ends
    return window.range_ms - 1 + (HOUR_MS if window.every_days is not None else 0)


def _is_reading(assigned: tuple[Assignment, ...], layout: Layout) -> bool:
    """Whether every event gets a time, and so is a point."""
    return any(one.name == "timestamp" and _stands(one.value, layout) for one in assigned)


def _stands(value: Expression, layout: Layout) -> bool:
    """Whether a time is never null."""
    if isinstance(value, Name):
        return True
    if isinstance(value, Attribute) and value.base in layout.places:
        place = layout.places[value.base]
        return place not in layout.optional | layout.listed | layout.silent
    return False


def later_ms(assigned: tuple[Assignment, ...]) -> int:
    """How long after its occurrence an event may end."""
    return max([_added_ms(one.value) for one in assigned if one.name in ENDS], default=0)


def _added_ms(value: Expression) -> int:
    """By how much a time lies after the latest that it is chosen of, at most."""
    if isinstance(value, Constant) and is_no_less_than_zero(value):
        assert isinstance(value.value, int | float)
        return int(value.value)
    if isinstance(value, Arithmetic):
        return _added_ms(value.left) + _added_ms(value.right)
    if isinstance(value, Call):
        return max([_added_ms(one) for one in value.arguments], default=0)
    return 0

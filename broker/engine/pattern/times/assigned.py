"""Assigned times of a case: where they can end an event, and how long it may last.

Owns the reading of what a definition assigns. Must not know events, nor what is kept for how long.
Invariant: no event ends before what is said here, and none lasts longer while its inputs keep to
what is said of them; the checker lets assigned times lie within their occurrence (an end also after
it).

A reading ends as it begins. Who asks when an event of a type begins, apart from its end, has events
that last: they are taken to, before the first has come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from broker.engine.pattern.layout.operands import (
    Distinct,
    Gathered,
    Joint,
    Kth,
    Leaf,
    Negation,
    Operand,
    Padded,
)
from broker.engine.pattern.layout.pattern import Layout, lay_out
from broker.engine.pattern.times.completion import spans_of_reported
from broker.engine.pattern.times.timing import greatest, span_max_ms, total
from language.relations import FOLLOWS
from language.taskgraph import Task
from language.times import ENDS, TimeChoice, added_max_ms, choices_of
from language.tree import Assignment, Attribute, Case, Definition, Expression, Name
from language.walk import descendants

# At the end of the occurrence or later; at the end of the event that ends last, if times are
# certain; at the end of one of its events; or anywhere from its start on.
Place = Literal["end", "last event", "an event", "within"]
PLACES: tuple[Place, ...] = ("end", "last event", "an event", "within")
BEGINNINGS = frozenset({"start", "duration"})

# Of a type as the task names it, and whether one event of it is all; None: unbounded.
LongestOf = Callable[[str, bool], int | None]
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


# --- when it ends --------------------------------------------------------------------------------


def assigned_end(case: Case, layout: Layout) -> Place:
    """Return where the case's events may end, at the earliest."""
    choices = [each for item in case.assign if item.name in ENDS for each in choices_of(item.value)]
    places = [_place(choice, layout) for choice in choices]
    return max(places, key=PLACES.index, default="end")


def _place(choice: TimeChoice, layout: Layout) -> Place:
    time = choice.time
    if time is None or time.name not in ENDS or choice.added_ms < 0:
        return "within"
    if isinstance(time, Name):
        return "an event" if choice.of_many else "end"
    if time.base == "group":
        return "within"
    # Of many the end that is chosen need not be that of the last.
    last = not choice.of_many and has_last_leaf(layout.root, layout.places[time.base])
    return "last event" if last else "an event"


def later_ms(assigned: Sequence[Assignment]) -> int:
    """Return how long after its occurrence an event may end."""
    return max([added_max_ms(each.value) for each in assigned if each.name in ENDS], default=0)


def types_begun(assigned: Sequence[Assignment], layout: Layout) -> frozenset[str]:
    """Return the types of which what is assigned asks when their events begin."""
    types = {leaf.name: leaf.event_type for leaf in layout.leaves}
    return frozenset(
        types[node.base]
        for item in assigned
        for node in descendants(item.value)
        if isinstance(node, Attribute) and node.name in BEGINNINGS and node.base in types
    )


def types_begun_at_ends(case: Case, layout: Layout) -> frozenset[str]:
    """Return the same of assigned ends; the span of a single event is that event's."""
    ends = [each for each in case.assign if each.name in ENDS]
    names = {node.name for item in ends for node in descendants(item.value) if type(node) is Name}
    own = {layout.root.event_type} if isinstance(layout.root, Leaf) and names & BEGINNINGS else ()
    return types_begun(ends, layout).union(own)


def types_ended(case: Case, layout: Layout) -> frozenset[str]:
    """Return the type of the one event whose end is assigned, if it is of no other place as well.

    How long that event lasts makes the assigned end no earlier.
    """
    aliases = {
        node.base
        for item in case.assign
        if item.name in ENDS
        for node in descendants(item.value)
        if isinstance(node, Attribute)
    }
    types = [leaf.event_type for leaf in layout.leaves]
    return frozenset(
        leaf.event_type
        for leaf in layout.leaves
        if aliases == {leaf.name}
        and leaf.low not in layout.listed
        and types.count(leaf.event_type) == 1
    )


# --- how long it lasts ---------------------------------------------------------------------------


def longest_made_ms(task: Task, longest_of: LongestOf, endless_ms: int | None) -> int | None:
    """Return how long a definition's longest event lasts; None where nothing bounds it.

    `endless_ms`: how long what has no bound lasts at most, where that is known.
    """
    node = task.node
    assert isinstance(node, Definition), "only definitions make events"
    spans = [_longest_ms(node, case, longest_of, endless_ms) for case in node.cases]
    return greatest(*spans)


def _longest_ms(
    node: Definition, case: Case, longest_of: LongestOf, endless_ms: int | None
) -> int | None:
    layout = lay_out(case)
    if node.window is not None and node.window.aggregated:
        span_ms = _of_window(node, case, layout, longest_of)
        return endless_ms if span_ms is None else span_ms
    if _is_reading(case.assign, layout):
        return later_ms(case.assign)
    alone = isinstance(layout.root, Leaf)
    span_ms = span_max_ms(layout.root, lambda event_type: longest_of(event_type, alone))
    if span_ms is not None:
        # `collect` joins all that one event completes: twice as long where it may stand in the
        # middle.
        span_ms *= spans_of_reported(case, layout.root)
    span_ms = endless_ms if span_ms is None else span_ms
    return total(span_ms, later_ms(case.assign))


def _of_window(node: Definition, case: Case, layout: Layout, longest_of: LongestOf) -> int | None:
    """Return how long a window's events last: within it, and points where nothing is assigned."""
    window = node.window
    assert window is not None, "this definition has no window"
    if window.runs:
        # An event that is longer than `max` has a session of its own.
        lengths = [longest_of(leaf.event_type, False) for leaf in layout.leaves]
        return None if window.run_max_ms is None else greatest(window.run_max_ms, *lengths)
    assigned = case.assign if node.post is None else node.post.assign
    if not {"start", "end"} & {item.name for item in assigned}:
        return 0
    if window.range_ms is None:
        days = window.every_days or 1  # once a year a day has an hour more
        return (window.every_ms or days * DAY_MS + HOUR_MS) - 1
    if window.every_ms is None and window.every_days is None:
        return window.range_ms  # with both ends
    return window.range_ms - 1 + (HOUR_MS if window.every_days is not None else 0)


def _is_reading(assigned: Sequence[Assignment], layout: Layout) -> bool:
    """Return whether every event gets a time, and so is a point."""
    return any(each.name == "timestamp" and _stands(each.value, layout) for each in assigned)


def _stands(value: Expression, layout: Layout) -> bool:
    """Return whether a time is never null."""
    if isinstance(value, Attribute) and value.base in layout.places:
        # `or` may leave it empty, a list may choose of none, and what must not be is never there.
        place = layout.places[value.base]
        return place not in layout.optional | layout.listed | layout.silent
    return isinstance(value, Name)


def has_last_leaf(operand: Operand, place: int) -> bool:
    """Tell whether the place is one event that surely ends last in each of the occurrences."""
    while not isinstance(operand, Leaf):
        if isinstance(operand, Joint) and operand.operator in FOLLOWS:
            operand = operand.right
        elif isinstance(operand, Negation):
            operand = operand.left
        elif isinstance(operand, Gathered) and not operand.trailing:
            operand = operand.base
        elif isinstance(operand, Kth | Distinct | Padded):
            operand = operand.operand
        else:
            return False
    return operand.low == place

"""Where in its occurrence an assigned time can end an event.

Owns the reading of what a case assigns. Must not know events. Invariant: no event ends before what
is said here; the checker lets assigned times lie within their occurrence (an end also after it).

A reading ends as it begins. Who asks when an event of a type begins, apart from its end, has events
that last: they are taken to, before the first has come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from broker.engine.pattern.operands import Leaf
from broker.engine.pattern.pattern import Layout
from broker.engine.pattern.selection import has_last_leaf
from broker.engine.window.bound import (
    is_no_less_than_zero,
)
from language.functions import AGGREGATES, CHOOSING
from language.tree import Arithmetic, Assignment, Attribute, Call, Case, Expression, Name
from language.walk import descendants

# At the end of the occurrence or later; at the end of the event that ends last, if times are
# certain; at the end of one of its events; or anywhere from its start on.
Place = Literal["end", "last event", "an event", "within"]
PLACES: tuple[Place, ...] = ("end", "last event", "an event", "within")
ENDS = frozenset({"timestamp", "end"})
BEGINNINGS = frozenset({"start", "duration"})


def assigned_end(case: Case, layout: Layout) -> Place:
    """Where the case's events may end, at the earliest."""
    places = [_place(item.value, layout) for item in case.assign if item.name in ENDS]
    return max(places, key=PLACES.index, default="end")


def types_begun(assigned: Sequence[Assignment], layout: Layout) -> frozenset[str]:
    """The types of which what is assigned asks when their events begin."""
    types = {leaf.name: leaf.event_type for leaf in layout.leaves}
    return frozenset(
        types[node.base]
        for item in assigned
        for node in descendants(item.value)
        if isinstance(node, Attribute) and node.name in BEGINNINGS and node.base in types
    )


def types_begun_at_ends(case: Case, layout: Layout) -> frozenset[str]:
    """The same of the case's assigned ends; the span of a single event is that event's."""
    ends = [one for one in case.assign if one.name in ENDS]
    names = {node.name for item in ends for node in descendants(item.value) if type(node) is Name}
    own = {layout.root.event_type} if isinstance(layout.root, Leaf) and names & BEGINNINGS else ()
    return types_begun(ends, layout).union(own)


def types_ended(case: Case, layout: Layout) -> frozenset[str]:
    """The type of the one event whose end is assigned, if it is of no other place as well.

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


def _place(value: Expression, layout: Layout) -> Place:
    if isinstance(value, Arithmetic) and value.operator == "+":
        for time, added in ((value.left, value.right), (value.right, value.left)):
            if is_no_less_than_zero(added):
                return _place(time, layout)
    if isinstance(value, Call) and value.function in CHOOSING:
        places = [_place(one, layout) for one in value.arguments]
        if value.function in AGGREGATES:  # of a list, not always the last
            places.append("an event")
        return max(places, key=PLACES.index)
    if isinstance(value, Name) and value.name in ENDS:
        return "end"
    if isinstance(value, Attribute) and value.base != "group" and value.name in ENDS:
        last = has_last_leaf(layout.root, layout.places[value.base])
        return "last event" if last else "an event"
    return "within"

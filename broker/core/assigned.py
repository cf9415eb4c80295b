"""Where in its occurrence an assigned time can end an event.

Owns the reading of what a case assigns. Must not know events. Invariant: no event ends before what
is said here; the checker lets assigned times lie within their occurrence (an end also after it).
"""

from __future__ import annotations

from typing import Literal

from broker.core.pattern import Layout
from broker.core.selection import has_last_leaf
from broker.core.window_bound import is_no_less_than_zero
from language.tree import Arithmetic, Attribute, Case, Expression, Name

# At the end of the occurrence or later; at the end of the event that ends last, if times are
# certain; or anywhere from its start on.
Place = Literal["end", "last event", "within"]
PLACES: tuple[Place, ...] = ("end", "last event", "within")
ENDS = frozenset({"timestamp", "end"})


def assigned_end(case: Case, layout: Layout) -> Place:
    """Where the case's events may end, at the earliest."""
    places = [_place(item.value, layout) for item in case.assign if item.name in ENDS]
    return max(places, key=PLACES.index, default="end")


def _place(value: Expression, layout: Layout) -> Place:
    if isinstance(value, Arithmetic) and value.operator == "+":
        for time, added in ((value.left, value.right), (value.right, value.left)):
            if is_no_less_than_zero(added):
                return _place(time, layout)
    if isinstance(value, Name) and value.name in ENDS:
        return "end"
    if isinstance(value, Attribute) and value.base != "group" and value.name in ENDS:
        last = has_last_leaf(layout.root, layout.places[value.base])
        return "last event" if last else "within"
    return "within"

"""What is understood but not run yet, each with an error of its own.

Owns the table NOT_RUN_YET, from which a line goes when the engine can do it. Must not know names
or types. Invariant: what passes here, the engine runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from language import tree
from language.walk import descendants

if TYPE_CHECKING:
    from collections.abc import Callable

    from language.diagnostics import Collector

    Finder = Callable[[tree.Node], tree.Span | None]


def _nearest(node: tree.Node) -> tree.Span | None:
    return node.span if isinstance(node, tree.Actor) and node.nearest else None


NOT_RUN_YET: dict[type[tree.Node], dict[str, Finder]] = {
    tree.Actor: {"HW918": _nearest},
}
"""By the kind of node, the code of each construct and how to tell where it stands in the node."""


def note_pending(item: tree.Definition | tree.Subscription, collector: Collector) -> None:
    """Note all of the item that does not run yet."""
    for node in descendants(item):
        for code, find in NOT_RUN_YET.get(type(node), {}).items():
            place = find(node)
            if place is not None:
                collector.note(code, place)

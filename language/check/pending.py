"""What is understood but not run yet, each with an error of its own.

Owns the table NOT_RUN_YET, from which a line goes when the engine can do it. Must not know names
or types. Invariant: what passes here, the engine runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from language import tree
from language.functions import AGGREGATES, SCALARS
from language.walk import descendants

if TYPE_CHECKING:
    from collections.abc import Callable

    from language.check.declarations import Declared
    from language.diagnostics import Collector

    Finder = Callable[[tree.Node], tree.Span | None]

_CONTEXTS = frozenset(("latest", "first", "chronicle"))


def _without(node: tree.Node) -> tree.Span | None:
    if isinstance(node, tree.Link) and node.operator == "without":
        return node.place("operator")
    return None


def _whole(node: tree.Node) -> tree.Span | None:
    return node.span


def _prefix(kind: str) -> Finder:
    def find(node: tree.Node) -> tree.Span | None:
        return node.span if isinstance(node, tree.Select) and node.kind == kind else None

    return find


def _next(node: tree.Node) -> tree.Span | None:
    return node.place("next") if isinstance(node, tree.Link) and node.next else None


def _context(node: tree.Node) -> tree.Span | None:
    if isinstance(node, tree.Link | tree.Detect) and node.context in _CONTEXTS:
        return node.place("context")
    return None


def _thinned(node: tree.Node) -> tree.Span | None:
    if isinstance(node, tree.Detect) and node.report != "all":
        return node.place(node.report)
    return None


def _maybe(node: tree.Node) -> tree.Span | None:
    return node.place("maybe drop") if isinstance(node, tree.Detect) and node.maybe_drop else None


def _ending(node: tree.Node) -> tree.Span | None:
    if isinstance(node, tree.Subscription) and (node.for_ms, node.until_ms) != (None, None):
        return node.place("ending")
    return None


def _nearest(node: tree.Node) -> tree.Span | None:
    return node.span if isinstance(node, tree.Actor) and node.nearest else None


def _function(node: tree.Node) -> tree.Span | None:
    if isinstance(node, tree.Call) and node.function not in SCALARS | AGGREGATES:
        return node.span
    return None


NOT_RUN_YET: dict[type[tree.Node], dict[str, Finder]] = {
    tree.Link: {"HW902": _without, "HW908": _next, "HW909": _context},
    tree.Absent: {"HW903": _whole},
    tree.Repeat: {"HW904": _whole},
    tree.Select: {"HW905": _prefix("nth"), "HW906": _prefix("first"), "HW907": _prefix("distinct")},
    tree.Detect: {"HW909": _context, "HW910": _thinned, "HW911": _maybe},
    tree.Lookup: {"HW915": _whole},
    tree.Subscription: {"HW916": _ending},
    tree.Thinning: {"HW917": _whole},
    tree.Actor: {"HW918": _nearest},
    tree.Call: {"HW919": _function},
}
"""By the kind of node, the code of each construct and how to tell where it stands in the node."""

RUN_IN_WINDOWS = frozenset(("HW907",))
"""What an operand of a window may be, though no other does yet."""


def note_pending(
    item: tree.Definition | tree.Subscription, declared: Declared, collector: Collector
) -> None:
    """Note all of the item that does not run yet."""
    window = item.window if isinstance(item, tree.Definition) else None
    runs = RUN_IN_WINDOWS if window is not None and window.aggregated else frozenset()
    for node in descendants(item):
        for code, find in NOT_RUN_YET.get(type(node), {}).items():
            place = find(node)
            if place is not None and code not in runs and not _unknown_function(node, declared):
                collector.note(code, place)


def _unknown_function(node: tree.Node, declared: Declared) -> bool:
    return isinstance(node, tree.Call) and node.function not in declared.functions

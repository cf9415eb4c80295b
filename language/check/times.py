"""Whether an assigned time provably lies within its occurrence.

Owns the proof alone: what is not of a form that shows it, is refused. A task's watermark leans on
it: an event made later never has a time before what was promised. Must not know types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from language import tree

if TYPE_CHECKING:
    from collections.abc import Collection

    from language.check.expressions import Scope

TIMES = frozenset(("timestamp", "start", "end"))
_CHOOSING = frozenset(("Min", "Max", "First", "Last", "min", "max"))


def lies_within(
    node: tree.Expression, scope: Scope, partial_times: Collection[str] = (), *, later: bool = False
) -> bool:
    """Whether the value is a time of the span, a bound event, or a choice among such times.

    With `later`, a duration may be added: an `end` may lie after the occurrence.
    """
    if isinstance(node, tree.Name):
        return node.name in TIMES or (scope.place == "post" and node.name in partial_times)
    if isinstance(node, tree.Attribute):
        binding = scope.bindings.names.get(node.base)
        return binding is not None and binding.kind in {"event", "list"} and node.name in TIMES
    if isinstance(node, tree.Call):
        return node.function in _CHOOSING and all(
            lies_within(argument, scope, partial_times, later=later) for argument in node.arguments
        )
    if later and isinstance(node, tree.Arithmetic) and node.operator == "+":
        for time, added in ((node.left, node.right), (node.right, node.left)):
            if _is_duration(added) and lies_within(time, scope, partial_times, later=True):
                return True
    return False


def _is_duration(node: tree.Expression) -> bool:
    """A duration not below zero."""
    return (
        isinstance(node, tree.Constant)
        and node.unit == "ms"
        and not isinstance(node.value, str)
        and node.value >= 0
    )

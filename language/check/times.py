"""Whether an assigned time provably lies within its occurrence, or for certain outside its window.

Owns the proofs alone: what is not of a form that shows it, is refused. A task's watermark leans on
it: an event made later never has a time before what was promised. Must not know types.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from language import tree
from language.functions import CHOOSING
from language.times import TIMES, TimeChoice, choices_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from language.check.expressions import Scope

_DAY_MS = 86_400_000


def lies_within(
    node: tree.Expression, scope: Scope, partial_times: Collection[str] = (), *, later: bool = False
) -> bool:
    """Return whether the value is a time of the span, a bound event, or a choice among such times.

    With `later`, a duration may be added: an `end` may lie after the occurrence. In a window its
    own times count too, with a duration added or taken away.
    """
    if isinstance(node, tree.Name):
        return node.name in TIMES or (scope.place == "post" and node.name in partial_times)
    if _is_of_window(node, scope):
        return True
    if isinstance(node, tree.Attribute):
        binding = scope.bindings.names.get(node.base)
        return binding is not None and binding.kind in {"event", "list"} and node.name in TIMES
    if isinstance(node, tree.Call):
        return node.function in CHOOSING and all(
            lies_within(argument, scope, partial_times, later=later) for argument in node.arguments
        )
    if later and isinstance(node, tree.Arithmetic) and node.operator == "+":
        for time, added in ((node.left, node.right), (node.right, node.left)):
            if _is_duration(added) and lies_within(time, scope, partial_times, later=True):
                return True
    return False


def _is_of_window(node: tree.Expression, scope: Scope) -> bool:
    """Return whether a value is `window.start` or `window.end`, give or take a duration."""
    if isinstance(node, tree.Attribute):
        return node.base == "window" and scope.place in {"window", "post"}
    if not isinstance(node, tree.Arithmetic) or node.operator not in "+-":
        return False
    return _is_duration(node.right) and _is_of_window(node.left, scope)


def _is_duration(node: tree.Expression) -> bool:
    """A duration not below zero."""
    return (
        isinstance(node, tree.Constant)
        and node.unit == "ms"
        and not isinstance(node.value, str)
        and node.value >= 0
    )


# --- outside a window ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reach:
    """The range of a time, in milliseconds after its window's start and after its end."""

    after_start: tuple[float, float]
    after_end: tuple[float, float]

    def moved(self, ms: float) -> _Reach:
        """Return the reach of the time with a duration added."""
        (a, b), (c, d) = self.after_start, self.after_end
        return _Reach((a + ms, b + ms), (c + ms, d + ms))


_ANYWHERE = _Reach((-inf, inf), (-inf, inf))


def certainly_outside(node: tree.Expression, window: tree.Window) -> bool:
    """Return whether an assigned time lies outside its window, whatever the events are.

    A window is half open: its end is outside.
    """
    reach = _reach(node, window)
    return reach.after_start[1] < 0 or reach.after_end[0] >= 0


def _reach(node: tree.Expression, window: tree.Window) -> _Reach:
    reaches = [_reach_of(choice, window) for choice in choices_of(node)]
    return _Reach(
        _hull([reach.after_start for reach in reaches]),
        _hull([reach.after_end for reach in reaches]),
    )


def _reach_of(choice: TimeChoice, window: tree.Window) -> _Reach:
    shortest, longest = _lengths(window)
    time = choice.time
    if time is None:
        return _ANYWHERE
    if isinstance(time, tree.Attribute) and time.base == "window" and not choice.of_many:
        if time.name == "start":
            return _Reach((0, 0), (-longest, -shortest)).moved(choice.added_ms)
        return _Reach((shortest, longest), (0, 0)).moved(choice.added_ms)
    if time.name not in TIMES:
        return _ANYWHERE
    # Windows gather what ends in them: a start may lie before.
    least = -inf if time.name == "start" else 0
    return _Reach((least, longest - 1), (least - longest, -1)).moved(choice.added_ms)


def _hull(reaches: list[tuple[float, float]]) -> tuple[float, float]:
    return min(low for low, _ in reaches), max(high for _, high in reaches)


def _lengths(window: tree.Window) -> tuple[float, float]:
    """Return the length of the shortest and of the longest window, in milliseconds."""
    if window.runs:
        return 1, inf
    if window.every_days is not None:  # a zone may skip a day, or have it twice
        days_ms = window.range_ms or window.every_days * _DAY_MS
        return max(1, days_ms - _DAY_MS), days_ms + _DAY_MS
    if window.range_ms is not None:
        length = window.range_ms + (window.every_ms is None)  # `range R` has both its ends
        return length, length
    return window.every_ms or 1, window.every_ms or inf

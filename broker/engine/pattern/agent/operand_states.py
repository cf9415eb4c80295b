"""What a changed pattern takes over of the one before: operands that are the same.

Owns the finding of these and the state of a pattern as that of another. Must not know agents or
who changes texts. Invariant: an operand that is kept has found what it would have found from the
beginning; of any other only what it finds from the change on counts.

This is for patterns of atoms under unrestricted operators that report every match at once, where
what an operator holds follows from its operands alone. Of such a pattern a snapshot has, for each
operator, what its two sides have passed on, and so on beneath. A side is kept where its operand is
the same, the operator over it relates the same, and needs it for no longer than before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from broker.engine.pattern.agent.staged_partition import needs_stages
from broker.engine.pattern.layout.operands import Joint, Leaf, Operand, operands
from broker.engine.pattern.layout.pattern import lay_out
from broker.engine.pattern.times.timing import reaches_ms
from language.tree import Case, Node, Subscription
from language.walk import bindings

PLACED = frozenset(
    ("low", "high", "closed", "left", "right", "anchors")
)  # of an operand, not what it says

Signature = tuple[Any, ...]


class KeptOperands:
    """The operands of the pattern of `case` that go on from those of the pattern of `before`."""

    def __init__(self, before: Case, case: Case) -> None:
        self._before, self._root = lay_out(before).root, lay_out(case).root
        self._known = dict(reversed([(_signature(part), part) for part in operands(self._before)]))

    def names(self) -> list[str]:
        """Return the names of the atoms beneath each operand of which anything is kept."""
        return [", ".join(_names(part)) for part in self._kept(self._root, self._before)]

    def _kept(self, part: Operand, earlier: Operand | None) -> Iterator[Operand]:
        """Yield the topmost operands, from left to right, that go on or are held for another."""
        source = self._source(part, earlier)
        if isinstance(source, Joint):
            yield part
        elif isinstance(part, Joint):
            for side, beneath in enumerate(part.parts):
                beside = self._beside(part, earlier, side)
                if beside is not None and self._is_held(part, earlier, side):
                    yield beneath
                else:
                    yield from self._kept(beneath, beside)

    def state(self, state: Any) -> Any:
        """Return the state of a pattern's operators, as plain data, as that of the new pattern."""
        states: dict[int, Any] = {}
        _note(self._before, state, states)
        return self._state(self._root, self._before, states, state[0])

    def _state(
        self, part: Operand, earlier: Operand | None, states: dict[int, Any], watermark: int
    ) -> Any:
        source = self._source(part, earlier)
        if source is not None:
            return states[id(source)]
        if not isinstance(part, Joint):
            return [watermark]
        # A snapshot of an operator: its watermark, what it holds of its left and of its right side
        # and for `nth`, its facts, and for each side what waits, its limit and all beneath.
        stores: list[Any] = []
        inboxes = []
        for side, beneath in enumerate(part.parts):
            beside = self._beside(part, earlier, side)
            held = self._is_held(part, earlier, side)
            stores.append(states[id(earlier)][1][side] if held else [])
            inboxes.append([[], watermark, self._state(beneath, beside, states, watermark)])
        return [watermark, [*stores, []], [], inboxes]

    def _source(self, part: Operand, earlier: Operand | None) -> Operand | None:
        """Return the operand before that was the same, if possible the one in its place."""
        # In its place if possible: of `A and A` both sides say the same, and hold different events.
        wanted = _signature(part)
        if earlier is not None and _signature(earlier) == wanted:
            return earlier
        return self._known.get(wanted)

    def _beside(self, part: Joint, earlier: Operand | None, side: int) -> Operand | None:
        """Return what stood in the place of an operand, where the operators relate the same."""
        if isinstance(earlier, Joint) and earlier.operator == part.operator:
            return earlier.parts[side]
        return None

    def _is_held(self, part: Joint, earlier: Operand | None, side: int) -> bool:
        """Return True where the operator before held all of a side that the new one needs."""
        beside = self._beside(part, earlier, side)
        # `or` waits for no partner, and holds nothing.
        if beside is None or not isinstance(earlier, Joint) or part.operator == "or":
            return False
        if _signature(beside) != _signature(part.parts[side]):
            return False
        (end_ms, start_ms), (end_before_ms, start_before_ms) = (
            reaches_ms(joint)[side] for joint in (part, earlier)
        )
        if end_before_ms is None and start_before_ms is None:
            return True
        # What counts from a partner's start reaches back by how long the partner is.
        partners = _signature(earlier.parts[1 - side]) == _signature(part.parts[1 - side])
        if start_before_ms is not None and not partners:
            return False
        return _within(end_ms, end_before_ms) and _within(start_ms, start_before_ms)


def is_plain(case: Case, subscription: Subscription | None) -> bool:
    """Return True for a pattern of which operands can be kept; see the module."""
    layout = lay_out(case)
    if case.consuming or case.detect.maybe_drop or layout.last:
        return False
    if needs_stages(case, layout, subscription):
        return False
    return bool(layout.joints) and not any(joint.context.chooses for joint in layout.joints)


def _within(limit_ms: int | None, before_ms: int | None) -> bool:
    return before_ms is None or (limit_ms is not None and limit_ms <= before_ms)


def _note(operand: Operand, state: Any, states: dict[int, Any]) -> None:
    states[id(operand)] = state
    for part, (_, _, beneath) in zip(operand.parts, state[3] if operand.parts else (), strict=True):
        _note(part, beneath, states)


def _names(operand: Operand) -> list[str]:
    return [part.name for part in operands(operand) if isinstance(part, Leaf)]


def _signature(operand: Operand) -> Signature:
    """Return what an operand says, wherever it stands; equal ones find the same."""
    values = [
        _said(getattr(operand, each.name)) for each in fields(operand) if each.name not in PLACED
    ]
    anchors = [(place - operand.low, within_ms) for place, within_ms in operand.anchors]
    return (type(operand).__name__, *values, *anchors, *map(_signature, operand.parts))


def _said(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(map(_said, value))
    if isinstance(value, Node):
        return (repr(value), bindings(value))
    return value

"""Snapshots of operators that run as one: written as those of operators one by one.

Owns that form, and how the state of an agent is read that ran plain operators by itself, up to
version 1; nothing writes that any more. Must not know agents. Invariant: an agent whose operators
run one by one takes up the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from broker.engine.pattern.layout.operands import Joint, Negation, Operand, Padded
from broker.engine.pattern.layout.pattern import Layout

Kept = Mapping[int, list[list[Any]]]  # by the identity of an operator, the lists that it keeps


class Stateful(Protocol):
    """An operator that runs by itself beneath others."""

    def state(self) -> Any:
        """Return what it holds, as the operators one by one pack it."""

    def restore(self, state: Any) -> None:
        """Take that up again."""


Beneath = Mapping[int, Stateful]
_ATOMS: Beneath = {}


def packed_operators(root: Operand, kept: Kept, watermark: int, beneath: Beneath = _ATOMS) -> Any:
    """Return what each operator keeps, in the form of the snapshots of stages.

    `beneath` are those that run by themselves, by the identity of their operands.
    """

    def packed(operand: Operand) -> Any:
        if id(operand) in beneath:
            return beneath[id(operand)].state()
        if isinstance(operand, Padded):
            return [watermark, [], [], [[[], watermark, [watermark]]]]
        if id(operand) not in kept:
            return [watermark]
        # Nothing waits in a fused operator, so the inboxes of the general form are empty.
        inboxes = [[[], watermark, packed(part)] for part in operand.parts]
        return [watermark, kept[id(operand)], [], inboxes]

    return packed(root)


def unpacked_operators(root: Operand, state: Any, beneath: Beneath = _ATOMS) -> Kept:
    """Return what `packed_operators` was given; those beneath take up theirs."""
    kept: dict[int, list[list[Any]]] = {}

    def unpack(operand: Operand, packed: Any) -> None:
        if id(operand) in beneath:
            beneath[id(operand)].restore(packed)
        elif isinstance(operand, Joint | Negation):
            _, kept[id(operand)], _, inboxes = packed
            for part, (_, _, inner) in zip(operand.parts, inboxes, strict=True):
                unpack(part, inner)

    unpack(root, state)
    return kept


def is_of_joins(state: Mapping[str, Any]) -> bool:
    """Return True for a state of such an agent; that of every other tells of uncertain times."""
    return "doubt_ms" not in state


def staged(state: Mapping[str, Any], layout: Layout) -> dict[str, Any]:
    """Return the same state as an agent of stages packs it."""
    watermark = state["watermark"]
    return {
        **state,
        "doubt_ms": None,
        "begin": None,
        "partitions": [_partition(each, layout, watermark) for each in state["partitions"]],
    }


def _partition(packed: Mapping[str, Any], layout: Layout, watermark: int) -> list[Any]:
    """One partition, in the form of staged_partition.packed."""
    stores = [[_occurrence(item) for item in items] for items in packed["stores"]]
    waiting = [[_occurrence(item) for item in packed["found"]], [], [], [], [], 0]
    numbered = iter(stores)
    kept = {
        id(joint): [*([[], []] if joint.operator == "or" else [next(numbered), next(numbered)]), []]
        for joint in layout.joints
    }
    root = packed_operators(layout.root, kept, watermark)
    return [
        packed["group"],
        None,
        [],
        root,
        waiting,
        packed["log"],
        [],
        packed.get("reach", []),
        [],
    ]


def _occurrence(packed: Any) -> Any:
    """The number of an event, or end, start and the numbers of its places."""
    if isinstance(packed, int):
        return {"event": packed}
    end, start, *places = packed
    events = [None if place is None else {"event": place} for place in places]
    return {"tuple": [end, start, *events]}

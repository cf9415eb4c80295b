"""Snapshots of agents that ran plain operators by themselves, up to version 1 of their state.

Owns how such a state is read. Must not know agents. Nothing writes this form any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker.engine.pattern.fusion import packed_stores
from broker.engine.pattern.pattern import Layout


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
    root = packed_stores(layout, stores, watermark)
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

"""Messages and bytes over links, by what they are for.

Owns the kinds, and which frame is of which. Must not know what frames say but whether they hold
events. Invariant: every byte of a message is of one kind, and every message is of one: the first
in `KINDS` of all that it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

KINDS: Final = (
    "events",
    "leads",  # events that others wait for, told to these
    "results",
    "cells",  # what tasks that moved say to their homes, and their snapshots
    "requests",  # one broker asks another by name; functions; cancellations
    "planning",
    "operators",
    "advertisements",  # of sources, ways, actors and types
    "overlay",  # links, sessions, lives
    "progress",
    "acknowledgements",
    "heartbeat",
)

# By the tag of a frame. Those of events are progress where they hold none; `routed` see `kind_of`.
KIND_OF: Final = {
    "passed": "events",
    "adv": "events",
    "offered": "events",
    "folded": "events",
    "led": "leads",
    "awaited": "progress",
    "doubted": "progress",
    "stored": "acknowledgements",
    "stored_upto": "acknowledgements",
    "taken": "acknowledgements",
    "part": "acknowledgements",
    "copied": "results",
    "parcel": "cells",
    "planned": "planning",
    "reoffer": "operators",
    "fold": "operators",
    "want": "operators",
    "unwant": "operators",
    "advertise": "advertisements",
    "withdraw": "advertisements",
    "here": "advertisements",
    "gone": "advertisements",
    "listening": "advertisements",
    "probe": "advertisements",
    "echo": "advertisements",
    "cancelled": "requests",
    "succeeded": "requests",
    "functions_stated": "requests",
    "function_wanted": "requests",
    "function_given": "requests",
    "call": "requests",
    "hello": "overlay",
    "states": "overlay",
    "recall": "overlay",
    "recalled": "overlay",
}

Part = tuple[str, int]  # a kind and its bytes


def kind_of(body: Any) -> str:
    """Return the kind of what a frame says."""
    body = getattr(body, "message", body)  # a router's word
    kind = KIND_OF[str(body.__struct_config__.tag).lower()]
    return kind if kind != "events" or _holds_events(body) else "progress"


def _holds_events(body: Any) -> bool:
    rows = getattr(body, "rows", None)
    if rows is not None:
        return any(row.places for row in rows)
    return bool(body.what.positions) or bool(getattr(body.what, "rows", b""))


class Traffic(msgspec.Struct):
    """Messages of one kind, and their bytes."""

    messages: int = 0
    size_bytes: int = 0


class KindTraffic(msgspec.Struct):
    """Messages that went one way, by kind."""

    by_kind: dict[str, Traffic] = msgspec.field(default_factory=dict)

    def count(self, parts: Sequence[Part], size_bytes: int) -> None:
        """Count one message with these parts; where it is shorter than they, each is in part."""
        total = sum(size for _, size in parts)
        kinds = sorted({kind for kind, _ in parts}, key=KINDS.index)
        left = size_bytes
        for kind in kinds[1:]:
            share = size_bytes * sum(size for name, size in parts if name == kind) // total
            self.add(kind, 0, share)
            left -= share
        self.add(kinds[0], 1, left)

    def add(self, kind: str, messages: int, size_bytes: int) -> None:
        """Count messages of one kind."""
        traffic = self.by_kind.setdefault(kind, Traffic())
        traffic.messages += messages
        traffic.size_bytes += size_bytes


def table_of(traffics: Sequence[KindTraffic]) -> dict[str, dict[str, int]]:
    """Return the sums of each kind that was there, in the order of `KINDS`, as plain data."""
    sums = {
        kind: [traffic.by_kind[kind] for traffic in traffics if kind in traffic.by_kind]
        for kind in KINDS
    }
    return {
        kind: {
            "messages": sum(traffic.messages for traffic in traffics_of),
            "bytes": sum(traffic.size_bytes for traffic in traffics_of),
        }
        for kind, traffics_of in sums.items()
        if traffics_of
    }

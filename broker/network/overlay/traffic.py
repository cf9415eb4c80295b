"""Messages and bytes over links by what they are for, and events over links by type.

Owns the kinds, which frame is of which, and these counts. Must not know what frames say but whether
they hold events, and of which types. Invariant: every byte of a message is of one kind, and every
message is of one: the first in `KINDS` of all that it holds; of events see the room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from broker.network.replication.progress import Advanced

KINDS: Final = (
    "events",
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


TYPES_MAX = 1_000  # of a link and a direction; a network has some dozens
OTHERS = "(other types)"  # no event type has a blank in its name

Direction = Literal["sent", "received"]


class _TypeAlone(msgspec.Struct):
    type: str


_types_of = msgspec.msgpack.Decoder(list[_TypeAlone]).decode


class LinkTraffic:
    """Counts of one broker's links: by neighbour and type, since its process began."""

    def __init__(self) -> None:
        self._counts: dict[Direction, dict[str, dict[str, int]]] = {"sent": {}, "received": {}}

    def count(self, direction: Direction, peer: str, body: object) -> None:
        """Count the events of a frame's `body` that went to `peer` or came from there.

        A body without events counts as nothing; so does one that cannot be read, which is refused
        where it is handled.
        """
        rows = body.rows if isinstance(body, Advanced) else (getattr(body, "what", None),)
        for row in rows:
            if row is None or not row.events:
                continue
            try:
                types = [event.type for event in _types_of(row.events)]
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
            self.count_types(direction, peer, types)

    def count_types(self, direction: Direction, peer: str, types: Sequence[str]) -> None:
        """Count events that are decoded already, by their types."""
        if not types:
            return
        counts = self._counts[direction].setdefault(peer, {})
        for name in types:
            # A neighbour may invent types; what it sent is still all counted.
            counted = OTHERS if len(counts) >= TYPES_MAX and name not in counts else name
            counts[counted] = counts.get(counted, 0) + 1

    def by_type(self, direction: Direction, peer: str) -> dict[str, int]:
        """Return the events of each type that went to `peer` or came from there, by name."""
        counts = self._counts[direction].get(peer, {})
        return dict(sorted(counts.items()))

    def totals(self, direction: Direction) -> dict[str, int]:
        """Return the events of all types, by neighbour."""
        return {peer: sum(counts.values()) for peer, counts in self._counts[direction].items()}

"""Events over the links of a broker, by type.

Owns these counts. Must not know frames beyond their packed events. Invariant: see the room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from broker.network.replication.progress import Advanced

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

"""Events over the links of a broker, by type.

Owns these counts. Must not know frames beyond their packed events. Invariant: see the room.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from broker.network.replication.progress import Advanced

TYPES_MAX = 1_000  # of a link and a direction; a network has some dozens
OTHERS = "(other types)"  # no event type has a blank in its name

Direction = Literal["sent", "received"]


class _TypeAlone(msgspec.Struct):
    type: str


class PackedEvents(Protocol):
    """A frame's part that holds events: `positions` has one entry for each."""

    @property
    def positions(self) -> list[int]:
        """Return the places of the events at their origin."""

    @property
    def events(self) -> bytes:
        """Return the events, as `broker.engine.ingest.event_bytes` packs them."""


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
        if isinstance(body, Advanced):
            for row in body.rows:
                if row.places:
                    self._count(direction, peer, row.events)
            return
        what: PackedEvents | None = getattr(body, "what", None)
        if what is not None and what.positions:
            self._count(direction, peer, what.events)

    def _count(self, direction: Direction, peer: str, events: bytes) -> None:
        try:
            types = _types_of(events)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return
        counts = self._counts[direction].setdefault(peer, {})
        for event in types:
            # A neighbour may invent types; what it sent is still all counted.
            full = len(counts) >= TYPES_MAX and event.type not in counts
            name = OTHERS if full else event.type
            counts[name] = counts.get(name, 0) + 1

    def by_type(self, direction: Direction, peer: str) -> dict[str, int]:
        """Return the events of each type that went to `peer` or came from there, by name."""
        counts = self._counts[direction].get(peer, {})
        return dict(sorted(counts.items()))

    def totals(self, direction: Direction) -> dict[str, int]:
        """Return the events of all types, by neighbour."""
        return {peer: sum(counts.values()) for peer, counts in self._counts[direction].items()}

"""What a coordinator needs of the broker that it is part of.

Owns this interface. Must not know who fulfils it. Invariant: none of it waits for anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from broker.core.coordinator.metering import Counts
from broker.core.coordinator.statement import Piece
from broker.core.coordinator.works import Work
from broker.network.overlay.tree import Tree as Overlay


class Around(Protocol):
    """Offer what the coordinator needs of its broker."""

    def peers(self) -> Sequence[str]:
        """The neighbours with whom a session stands."""

    def via(self, broker: str) -> str | None:
        """The neighbour through whom another broker is reached."""

    def overlay(self) -> Overlay:
        """The tree of all brokers."""

    def say(self, peer: str, data: bytes) -> None:
        """Tell a neighbour with whom a session stands; in order."""

    def works(self) -> Iterable[Work]:
        """The submissions that are at home here."""

    def counted(self) -> Mapping[Piece, Counts]:
        """Of each submission, by (home, key), that runs here: what came and left."""

    def state_rate(self, takes: int, size_bytes: int) -> int:
        """Bytes a second of snapshots of that size where so many come in a second."""

    def place(self, key: str, broker: str) -> None:
        """Have a submission that is at home here run there; said again it means nothing new."""

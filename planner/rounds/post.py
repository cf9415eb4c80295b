"""A broker's post: envelopes for neighbours and for itself.

Owns the ways of messages. Must not know what they say. Invariant: on a tree each broker gets a
flooded word once; what is meant for the broker itself never leaves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.rounds import messages as m
from planner.rounds.tables import HERE

if TYPE_CHECKING:
    from planner.network import Network


@dataclass(frozen=True, slots=True)
class Send:
    """An envelope for a neighbour."""

    neighbour: int
    envelope: m.Envelope


@dataclass(frozen=True, slots=True)
class Agreed:
    """A turn that was led here is agreed: (piece, from whom, to whom)."""

    moves: tuple[tuple[int, int, int], ...]


Effect = Send | Agreed


class Post:
    """Gather what one broker has to send, in order."""

    def __init__(self, me: int) -> None:
        self.me = me
        self.epoch = -1
        self.out: list[Effect] = []
        self.own: list[m.Envelope] = []
        self.tree: Network | None = None

    def begin(self, epoch: int) -> None:
        """Go on in another epoch; what was meant for the broker itself is void."""
        self.epoch = epoch
        self.own.clear()

    def sort(self, envelope: m.Envelope) -> bool:
        """Tell whether an envelope is to be read here and now; send on what is for others."""
        if envelope.epoch != self.epoch:
            return False
        if envelope.to in {HERE, self.me}:
            return True
        self._onward(envelope)
        return False

    def send(self, to: int, body: m.Body) -> None:
        """A word for one broker."""
        envelope = m.Envelope(self.epoch, self.me, to, body)
        if to == self.me:
            self.own.append(envelope)
        else:
            self._onward(envelope)

    def tell(self, tell: m.Tell, origin: int) -> None:
        """A word for all within its hops, but those that it came by."""
        assert self.tree is not None
        before = self.tree.next_hop(self.me, origin) if origin != self.me else None
        envelope = m.Envelope(self.epoch, origin, HERE, tell)
        for neighbour in self.tree.neighbours[self.me]:
            if neighbour != before:
                self.out.append(Send(neighbour, envelope))

    def _onward(self, envelope: m.Envelope) -> None:
        assert self.tree is not None
        onward = self.tree.next_hop(self.me, envelope.to)
        # Without a way the network has changed: the epoch that says so is coming.
        if onward is not None:
            self.out.append(Send(onward, envelope))

"""A broker's post: envelopes for neighbours, for itself, and those of an epoch to come.

Owns the ways of messages. Must not know what they say. Invariant: on a tree each broker gets a
flooded word once; what is meant for the broker itself never leaves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.rounds import messages as m
from planner.rounds.settings import AHEAD_MAX
from planner.rounds.tables import HERE

if TYPE_CHECKING:
    from planner.rounds.tree import Tree


@dataclass(frozen=True, slots=True)
class Send:
    """An envelope for a neighbour."""

    neighbour: int
    envelope: m.Envelope


@dataclass(frozen=True, slots=True)
class Host:
    """Begin to run a piece; its state is with `whence`, or with nobody (HERE).

    `agreed`: it is part of a turn, whose members have laid the streams already.
    """

    piece: int
    whence: int
    agreed: bool


@dataclass(frozen=True, slots=True)
class Leave:
    """Stop to run a piece; `agreed` as above."""

    piece: int
    agreed: bool


@dataclass(frozen=True, slots=True)
class Agreed:
    """A turn that was led here is agreed: (piece, from whom, to whom)."""

    moves: tuple[tuple[int, int, int], ...]


Effect = Send | Host | Leave | Agreed


class Post:
    """Gather what one broker has to send, in order."""

    def __init__(self, me: int) -> None:
        self.me = me
        self.epoch = -1
        self.dropped = 0
        self.out: list[Effect] = []
        self.own: list[m.Envelope] = []
        self._ahead: list[m.Envelope] = []
        self.tree: Tree | None = None

    def begin(self, epoch: int, tree: Tree) -> list[m.Envelope]:
        """Another network; returns what came for it before it began here."""
        self.epoch, self.tree = epoch, tree
        self.own.clear()
        ahead, self._ahead = self._ahead, []
        return [envelope for envelope in ahead if envelope.epoch >= epoch]

    def sort(self, envelope: m.Envelope) -> bool:
        """Tell whether an envelope is to be read here and now; send on what is for others."""
        if envelope.epoch != self.epoch:
            if envelope.epoch > self.epoch and len(self._ahead) < AHEAD_MAX:
                self._ahead.append(envelope)
            else:
                self.dropped += 1
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
        if onward is None:
            self.dropped += 1  # the network has changed: the epoch that says so is on its way
        else:
            self.out.append(Send(onward, envelope))

"""What brokers tell each other of cells, brought to them.

Owns the way of such a message, also where it comes back to this very broker. Must not know what it
says. Invariant: it leaves behind all that this broker was told before; one to another broker leaves
only while there is a way, as all is said again once there is one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from broker.network.placement import cell_messages
from broker.network.placement.cell_view import home_of
from broker.network.placement.parcels import Parcel, PartTaken, Post

SAY_AGAIN_MS = 5_000  # what nobody has answered for so long is said again


class Numbered(Protocol):
    """Has the number of the last record."""

    number: int


class FrameDoor(Protocol):
    """The door by which frames leave, along the ways `via` that lead to brokers."""

    via: dict[str, str]

    def say(self, peer: str, body: Parcel | PartTaken, after: int = 0, events: int = -1) -> None:
        """Send a frame to a neighbour."""

    def pass_on(self, peer: str, to: str, body: Parcel | PartTaken, events: int = -1) -> None:
        """Send what came from a neighbour on its way to a broker."""


class CellMail:
    """Carry what is under way; `on_said` takes what came, by its type, with who said it."""

    def __init__(self, me: str, epoch: int, sender: FrameDoor, durable: Numbered) -> None:
        self.own: deque[cell_messages.Said] = deque()  # from this broker to itself
        self.on_said: dict[type[Any], Callable[[str, Any], None]] = {}
        self.withholds: Callable[[str, cell_messages.Said], bool] = lambda _to, _said: False
        # Of cells: another than the name says, where homes are taken over.
        self.home_of: Callable[[str], str] = home_of
        self._me = me
        self._post = Post(me, epoch)
        self._sender = sender
        self._durable = durable
        self.lost_way = self._post.lost_way

    def tell(self, to: str, said: cell_messages.Said) -> None:
        """Tell a broker something; this one soon, and a promise once it may be made."""
        if not isinstance(said, cell_messages.RESTING) or not self.withholds(to, said):
            self.bring(to, said)

    def bring(self, to: str, said: cell_messages.Said) -> None:
        """Bring what is said to a broker."""
        if to == self._me:
            # Not handled at once: whoever speaks is in the midst of a step of its own.
            self.own.append(said)
        elif to in self._sender.via:
            self._send_parts(to, self._post.send(to, cell_messages.encoded(said)))

    def _send_parts(self, to: str, parts: list[Parcel]) -> None:
        via = self._sender.via.get(to)
        if via is not None:
            for part in parts:  # all of one class, so that none passes another
                # Behind the last record: what is said rests on all that was handled before.
                self._sender.say(via, part, self._durable.number, 0)

    def parcel(self, peer: str, one: Parcel) -> None:
        """Take a part of a message, or pass it on. Raises ValueError where it cannot be read."""
        if one.to != self._me:
            self._sender.pass_on(peer, one.to, one, events=0)
            return
        data, taken = self._post.came(one)
        if taken is not None and one.sender in self._sender.via:
            self._sender.say(self._sender.via[one.sender], taken, 0, 0)
        if data is None:
            return
        self.heard(one.sender, cell_messages.decoded(data))

    def heard(self, sender: str, said: cell_messages.Said) -> None:
        """Hand on what a broker says."""
        self.on_said[type(said)](sender, said)

    def part_taken(self, peer: str, one: PartTaken) -> None:
        """Send what waited for that, or pass it on."""
        if one.sender == self._me:
            self._send_parts(one.to, self._post.taken(one))
        else:
            self._sender.pass_on(peer, one.sender, one, events=0)

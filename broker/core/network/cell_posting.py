"""What brokers tell each other of cells, brought to them.

Owns the way of such a message, also where it comes back to this very broker. Must not know what it
says. Invariant: it leaves behind all that this broker was told before; one to another broker leaves
only while there is a way, as all is said again once there is one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from broker.core.network import cell_frames, frames
from broker.core.network.cell_post import Post
from broker.core.network.cell_view import home_of
from broker.core.network.frames import FrameError
from broker.core.network.sessions import FrameSender

SAY_AGAIN_MS = 5_000  # what nobody has answered for so long is said again


class Numbered(Protocol):
    """Has the number of the last record."""

    number: int


class CellMail:
    """Carry what is under way; `on_said` takes what came, by its type, with who said it."""

    def __init__(
        self,
        me: str,
        epoch: int,
        sender: FrameSender,
        durable: Numbered,
        counts: dict[str, int],
    ) -> None:
        self.own: deque[cell_frames.Said] = deque()  # from this broker to itself
        self.on_said: dict[type[Any], Callable[[str, Any], None]] = {}
        self.withholds: Callable[[str, cell_frames.Said], bool] = lambda _to, _said: False
        # Of cells: another than the name says, where homes are taken over.
        self.home_of: Callable[[str], str] = home_of
        self._me = me
        self._post = Post(me, epoch)
        self._sender = sender
        self._durable = durable
        self._counts = counts
        self.lost_way = self._post.lost_way

    def tell(self, to: str, said: cell_frames.Said) -> None:
        """Tell a broker something; this one soon, and a promise once it may be made."""
        if not isinstance(said, cell_frames.RESTING) or not self.withholds(to, said):
            self.bring(to, said)

    def bring(self, to: str, said: cell_frames.Said) -> None:
        """Bring what is said to a broker."""
        if to == self._me:
            self.own.append(said)
        elif to in self._sender.via:
            self._send_parts(to, self._post.send(to, cell_frames.encoded(said)))

    def _send_parts(self, to: str, parts: list[frames.Parcel]) -> None:
        via = self._sender.via.get(to)
        if via is not None:
            for part in parts:  # all of one class, so that none passes another
                self._sender.say(via, part, self._durable.number, 0)

    def parcel(self, peer: str, one: frames.Parcel) -> None:
        """Take a part of a message, or pass it on."""
        if one.to != self._me:
            self._sender.pass_on(peer, one.to, one, events=0)
            return
        data, taken = self._post.came(one)
        if taken is not None and one.sender in self._sender.via:
            self._sender.say(self._sender.via[one.sender], taken, 0, 0)
        if data is None:
            return
        try:
            said = cell_frames.decoded(data)
        except FrameError:
            self._counts["frames_malformed"] += 1
            return
        self.heard(one.sender, said)

    def heard(self, sender: str, said: cell_frames.Said) -> None:
        """Hand on what a broker says."""
        self.on_said[type(said)](sender, said)

    def part_taken(self, peer: str, one: frames.PartTaken) -> None:
        """Send what waited for that, or pass it on."""
        if one.sender == self._me:
            self._send_parts(one.to, self._post.taken(one))
        else:
            self._sender.pass_on(peer, one.sender, one, events=0)

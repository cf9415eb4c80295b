"""What brokers tell each other of cells, brought to them.

Owns the way of such a message, also where it comes back to this very broker. Must not know what it
says. Invariant: it leaves behind all that this broker was told before; one to another broker leaves
only while there is a way, as all is said again once there is one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from broker.core.network import cell_frames, frames
from broker.core.network.cell_post import Post
from broker.core.network.frames import FrameError
from broker.core.network.listening import ListeningBroker

SAY_AGAIN_MS = 5_000  # what nobody has answered for so long is said again


class Posting(ListeningBroker):
    """See the module."""

    def _begin_posting(self, epoch: int) -> None:
        """Begin; to be called once."""
        self._post = Post(self.me, epoch)
        self._own_post: deque[cell_frames.Said] = deque()
        self._on_said: dict[type[Any], Callable[[str, Any], None]] = {}
        self._on_frame |= {frames.Parcel: self._parcel, frames.PartTaken: self._part_taken}

    def _tell_broker(self, to: str, said: cell_frames.Said) -> None:
        """Tell a broker something; this one soon."""
        if to == self.me:
            self._own_post.append(said)
        elif to in self.ways.via:
            self._send_parts(to, self._post.send(to, cell_frames.encoded(said)))

    def _send_parts(self, to: str, parts: list[frames.Parcel]) -> None:
        via = self.ways.via.get(to)
        if via is not None:
            for part in parts:  # all of one class, so that none passes another
                self._say(via, part, self.durable.number, 0)

    def _parcel(self, peer: str, one: frames.Parcel) -> None:
        if one.to != self.me:
            self._pass_on(peer, one.to, one, events=0)
            return
        data, taken = self._post.came(one)
        if taken is not None and one.sender in self.ways.via:
            self._say(self.ways.via[one.sender], taken, 0, 0)
        if data is None:
            return
        try:
            said = cell_frames.decoded(data)
        except FrameError:
            self.counts["frames_malformed"] += 1
            return
        self._heard(one.sender, said)

    def _heard(self, sender: str, said: cell_frames.Said) -> None:
        self._on_said[type(said)](sender, said)

    def _part_taken(self, peer: str, one: frames.PartTaken) -> None:
        if one.sender == self.me:
            self._send_parts(one.to, self._post.taken(one))
        else:
            self._pass_on(peer, one.sender, one, events=0)

    def _lost(self, origin: str) -> None:
        super()._lost(origin)
        self._post.lost_way(origin)

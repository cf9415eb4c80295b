"""Sources of a rehearsal: what was recorded of each, sent at its own time.

Owns what is not acknowledged yet. Must not know what the core makes of it. Invariant: a source
sends in order, has so many messages under way at most, and after a broker's end sends again what
was not acknowledged, as sources with QoS 1 do. It reaches its broker without delay.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from broker.core.messages import (
    EventsReceived,
    Message,
    Payload,
    SourceAdvertised,
    SourceWithdrawn,
    SpecificationSubmitted,
)
from simulation.network.place import Place

UNDER_WAY_MAX = 64  # of one source


class PendingPacket(Struct):
    """A message of a source, or of a client."""

    make: Callable[[str], Message]
    sent: bool = False


class Sender:
    """A client with a connection to one broker; see the module."""

    def __init__(self, place: Place, name: str) -> None:
        self.name = name
        self.refused: list[str] = []
        self._place = place
        self._packets: deque[PendingPacket] = deque()
        self._tokens = 0
        self._connection: int | None = None
        place.clients.append(self)

    @property
    def idle(self) -> bool:
        """Tell whether all that it has to say was taken."""
        return not self._packets

    # --- what it says ----------------------------------------------------------------------

    def advertise(self, types: Sequence[str], location: str | None) -> None:
        """Say what it is."""
        fields: dict[str, Any] = {"source": self.name, "types": list(types)}
        if location is not None:
            fields["location"] = location
        data = json.dumps(fields).encode()
        self.say(lambda token: SourceAdvertised(self.name, data, token))

    def withdraw(self) -> None:
        """Say that it leaves."""
        self.say(lambda token: SourceWithdrawn(self.name, token))

    def publish(self, payloads: Sequence[tuple[str, bytes]]) -> None:
        """Send events that are of one time: (type, event in msgpack)."""

        def message(token: str) -> Message:
            last = len(payloads) - 1
            return EventsReceived(
                tuple(
                    Payload(kind, self.name, data, token if index == last else None, "msgpack")
                    for index, (kind, data) in enumerate(payloads)
                )
            )

        self.say(message)

    def submit(self, text: str) -> None:
        """Ask for a text's subscriptions; what was refused stands in `refused` then."""
        self.say(lambda token: SpecificationSubmitted(self.name, token, text, token, None))

    def say(self, make: Callable[[str], Message]) -> None:
        """Have a message sent, behind those before it."""
        self._packets.append(PendingPacket(make))
        self._pump()

    # --- the connection --------------------------------------------------------------------

    def reached(self) -> None:
        """Send on, now that the broker is reached."""
        if self._connection is None and self._place.process is not None:
            self._connection = self._place.connection
            self._pump()

    def lost(self) -> None:
        """Forget the connection: all packets are unsent again."""
        self._connection = None
        for packet in self._packets:
            packet.sent = False

    def _pump(self) -> None:
        if self._connection is None:
            return
        for index, packet in enumerate(self._packets):
            if index >= UNDER_WAY_MAX:
                return
            if not packet.sent:
                packet.sent = True
                self._send(packet)

    def _send(self, packet: PendingPacket) -> None:
        self._tokens += 1
        token = f"{self.name} {self._tokens}"
        connection, world = self._connection, self._place.world

        def taken(what: Any) -> None:
            if connection == self._connection:
                self._taken(packet, what)

        def arrive() -> None:
            if connection == self._place.connection == self._connection:
                answers = {token: lambda what: world.after(0, partial(taken, what))}
                self._place.tell(packet.make(token), answers)

        world.after(0, arrive)

    def _taken(self, packet: PendingPacket, what: Any) -> None:
        if packet in self._packets:
            self._packets.remove(packet)
        if isinstance(what, bytes):
            reply = json.loads(what)
            if not reply["ok"]:
                self.refused += [error["message"] for error in reply["errors"]]
        self._pump()

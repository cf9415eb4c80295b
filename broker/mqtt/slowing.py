"""Who publishes faster than a subscriber takes it is slowed, before that one's queue overflows.

Owns which publishers are slowed, for whom and until when. Must not know packets or topics.
Invariant: nobody is slowed for a client that is away, nor for longer than `slow_publisher_ms` for
one that does not get on: then its session may end, and not stop the others.
"""

from typing import TYPE_CHECKING

from msgspec import Struct

from broker.mqtt.message import OVERHEAD_BYTES, Taker
from broker.mqtt.outgoing import Outgoing
from broker.mqtt.sharing import Share

if TYPE_CHECKING:
    from broker.mqtt.connection import Connection
    from broker.mqtt.hub import Hub
    from broker.mqtt.router import Route

LOOK_EVERY_MS = 10


class _Slowed(Struct):
    crowded: list[Outgoing]
    until_ms: int


class Slowing:
    """Of one hub."""

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        limits = hub.limits
        # As long as all queues together hold less, none of them can be crowded.
        self.from_bytes = min(
            limits.queue_bytes_max // 2, limits.queue_messages_max * OVERHEAD_BYTES // 2
        )
        self._slowed: dict[Connection, _Slowed] = {}
        self._watched = False

    def look(self, connection: "Connection", route: "Route", now_ms: int) -> None:
        """A message of this connection went this way."""
        if connection in self._slowed or connection.closed:
            return
        own = connection.session.outgoing if connection.session is not None else None
        crowded = [
            one
            for way in route.deliveries
            for one in _crowded(way.outgoing)
            if one is not own  # it could not confirm what nobody reads
        ]
        if crowded:
            until_ms = now_ms + self._hub.limits.slow_publisher_ms
            self._slowed[connection] = _Slowed(crowded, until_ms)
            self._hub.counters.slowed += 1
            self._hub.holding.slow(connection)
            self._watch(now_ms)

    def _watch(self, now_ms: int) -> None:
        if not self._watched:
            self._watched = True
            self._hub.timers.at(now_ms + LOOK_EVERY_MS, self._go_on)

    def _go_on(self, now_ms: int) -> None:
        """Let those go on whose subscribers have got on, or never will."""
        self._watched = False
        for connection, slowed in list(self._slowed.items()):
            behind = [one for one in slowed.crowded if one.pipe and not _eased(one)]
            if behind and now_ms < slowed.until_ms and not connection.closed:
                continue
            for one in behind:
                one.room.given_up = now_ms >= slowed.until_ms
            del self._slowed[connection]
            if not connection.closed:
                self._hub.holding.hasten(connection)
        if self._slowed:
            self._watch(now_ms)


def _crowded(taker: Taker) -> list[Outgoing]:
    """Those on whom a message waits; of a group where it waits on every member."""
    if isinstance(taker, Share):
        found = [_crowded(member) for member in taker.members()]
        return [one for some in found for one in some] if all(found) else []
    if isinstance(taker, Outgoing) and taker.pipe is not None:
        return [taker] if taker.room.crowded(taker.held_messages) else []
    return []


def _eased(outgoing: Outgoing) -> bool:
    return outgoing.room.eased(outgoing.held_messages)

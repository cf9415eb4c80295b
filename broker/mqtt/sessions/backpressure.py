"""Backpressure: connections that are not read for a while, and publishers that are slowed.

Owns both sets. Must not know packets' bytes, topics or what messages mean. Invariants: a connection
is held back only while it, or all together, have more pending than the limits allow, or the
application asked for it; no publisher is slowed for a client that is away, nor for longer than
`slow_publisher_ms` for one that does not get on: then its session may end, and not stop others.
"""

from typing import TYPE_CHECKING

from msgspec import Struct

from broker.mqtt.counters import Counters
from broker.mqtt.effects import Effect, ReadConnection
from broker.mqtt.limits import MqttLimits
from broker.mqtt.routing.message import OVERHEAD_BYTES, Taker
from broker.mqtt.routing.shared_groups import Share
from broker.mqtt.sessions.client_queue import ClientQueue

if TYPE_CHECKING:
    from broker.mqtt.hub import Hub
    from broker.mqtt.routing.router import TopicRoute
    from broker.mqtt.sessions.connection import Connection

LOOK_EVERY_MS = 10


class PublisherHold:
    """Holds back the publishers to the application; ordinary MQTT traffic goes on."""

    def __init__(self, limits: MqttLimits, counters: Counters, effects: list[Effect]) -> None:
        self._limits = limits
        self._counters = counters
        self._effects = effects
        self._held: dict[Connection, None] = {}
        self._slow: dict[Connection, None] = {}  # of these, those that publish too fast
        self._asked = False
        self._full = False  # all together have too much pending
        self._behind = False  # too much is to be written to disk
        self._stopped = False  # one of these three

    def hold(self, hold: bool) -> None:
        """Hold all publishers to the application, or let them go on."""
        self._asked = hold
        self._release_all()

    def behind(self, behind: bool) -> None:
        """Note that the disk is too far behind for more to be taken, or no longer."""
        if behind != self._behind:
            self._behind = behind
            self._release_all()

    def slow(self, connection: "Connection") -> None:
        """Read no further from one who publishes too fast."""
        self._slow[connection] = None
        self.look(connection)

    def hasten(self, connection: "Connection") -> None:
        """It may go on."""
        self._slow.pop(connection, None)
        self.eased(connection)

    def look(self, connection: "Connection") -> None:
        """After a read that handed something up: may this connection be read further?"""
        if self._counters.pending_bytes >= self._limits.pending_bytes_max:
            self._full = self._stopped = True
        if connection.reading and (self._stopped or self._has_to_wait(connection)):
            connection.reading = False
            self._held[connection] = None
            self._effects.append(ReadConnection(connection, on=False))

    def eased(self, connection: "Connection") -> None:
        """Less of this connection is pending."""
        if self._full and self._counters.pending_bytes < self._limits.pending_bytes_max // 2:
            self._full = False
            self._release_all()
        elif connection in self._held and not self._stopped:
            self._release(connection)

    def _has_to_wait(self, connection: "Connection") -> bool:
        return connection in self._slow or connection.overloaded()

    def gone(self, connection: "Connection") -> None:
        """The connection is closed."""
        self._held.pop(connection, None)
        self._slow.pop(connection, None)
        self.eased(connection)

    def _release_all(self) -> None:
        self._stopped = self._asked or self._full or self._behind
        if not self._stopped:
            for connection in list(self._held):
                self._release(connection)

    def _release(self, connection: "Connection") -> None:
        if not self._has_to_wait(connection):
            del self._held[connection]
            connection.reading = True
            self._effects.append(ReadConnection(connection, on=True))


class _Slowed(Struct):
    crowded: list[ClientQueue]
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

    def look(self, connection: "Connection", route: "TopicRoute", now_ms: int) -> None:
        """A message of this connection went this way."""
        if connection in self._slowed or connection.closed:
            return
        own = connection.session.outgoing if connection.session is not None else None
        crowded = [
            queue
            for delivery in route.deliveries
            for queue in _crowded(delivery.outgoing)
            if queue is not own  # it could not confirm what nobody reads
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
            behind = [queue for queue in slowed.crowded if queue.pipe and not _eased(queue)]
            if behind and now_ms < slowed.until_ms and not connection.closed:
                continue
            for queue in behind:
                queue.room.given_up = now_ms >= slowed.until_ms
            del self._slowed[connection]
            if not connection.closed:
                self._hub.holding.hasten(connection)
        if self._slowed:
            self._watch(now_ms)


def _crowded(taker: Taker) -> list[ClientQueue]:
    """Those on whom a message waits; of a group where it waits on every member."""
    if isinstance(taker, Share):
        queues = [_crowded(member) for member in taker.members()]
        return [queue for crowded in queues for queue in crowded] if all(queues) else []
    if isinstance(taker, ClientQueue) and taker.pipe is not None:
        return [taker] if taker.room.crowded(taker.held_messages) else []
    return []


def _eased(outgoing: ClientQueue) -> bool:
    return outgoing.room.eased(outgoing.held_messages)

"""Which connections are not read for a while, since too much of theirs waits for the application.

Owns that set. Must not know what the messages are. Invariant: a connection is held back only while
it, or all together, have more pending than the limits allow, or the application asked for it.
"""

from typing import TYPE_CHECKING

from broker.mqtt.counters import Counters
from broker.mqtt.effects import Effect, Reading
from broker.mqtt.limits import Limits

if TYPE_CHECKING:
    from broker.mqtt.connection import Connection


class Holding:
    """Holds back the publishers to the application; ordinary MQTT traffic goes on."""

    def __init__(self, limits: Limits, counters: Counters, effects: list[Effect]) -> None:
        self._limits = limits
        self._counters = counters
        self._effects = effects
        self._held: dict[Connection, None] = {}
        self._slow: dict[Connection, None] = {}  # of these, those that publish too fast
        self._asked = False
        self._full = False  # all together have too much pending
        self._behind = False  # too much is to be written to disk

    def hold(self, hold: bool) -> None:
        """What the application asks for."""
        self._asked = hold
        self._release_all()

    def behind(self, behind: bool) -> None:
        """Whether the disk is so far behind that no more should be taken."""
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
            self._full = True
        if connection.reading and (self._stopped() or self._has_to_wait(connection)):
            connection.reading = False
            self._held[connection] = None
            self._effects.append(Reading(connection, on=False))

    def eased(self, connection: "Connection") -> None:
        """Less of this connection is pending."""
        if self._full and self._counters.pending_bytes < self._limits.pending_bytes_max // 2:
            self._full = False
            self._release_all()
        elif connection in self._held and not self._stopped():
            self._release(connection)

    def _has_to_wait(self, connection: "Connection") -> bool:
        return connection in self._slow or connection.overloaded()

    def _stopped(self) -> bool:
        return self._asked or self._full or self._behind

    def gone(self, connection: "Connection") -> None:
        """The connection is closed."""
        self._held.pop(connection, None)
        self._slow.pop(connection, None)
        self.eased(connection)

    def _release_all(self) -> None:
        if not self._stopped():
            for connection in list(self._held):
                self._release(connection)

    def _release(self, connection: "Connection") -> None:
        if not self._has_to_wait(connection):
            del self._held[connection]
            connection.reading = True
            self._effects.append(Reading(connection, on=True))

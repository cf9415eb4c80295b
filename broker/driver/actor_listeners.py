"""Tells the core which actors listen at this broker: whose topics clients have subscribed to.

Owns when it is looked, and what was told. Must not know what the core makes of it. Invariant: when
nothing has changed for LOOK_AFTER_S, what was told is what there is.

A subscription with a wildcard listens to actors but is none. A session that its client has left
for a while and that is kept is one, as what is sent to it is kept too.
"""

import asyncio
from typing import Protocol

from broker.core import topics
from broker.core.messages import ActorsListening, Message

# Clients come in crowds after a restart; they are told of together.
LOOK_AFTER_S = 0.05


class Server(Protocol):
    """Answer what is asked of the MQTT server."""

    def subscribed_below(self, topic: str) -> list[str]:
        """The topics beneath this one to which somebody has subscribed by their very names."""


class MessageInbox(Protocol):
    """Take messages."""

    def put(self, message: Message) -> None:
        """Have the core handle a message soon."""


class ActorListeners:
    """All methods belong to the loop's thread; `changed` is to be called after each change."""

    def __init__(self, server: Server, inbox: MessageInbox, prefix: str, broker: str) -> None:
        self._server = server
        self._inbox = inbox
        self._above = f"{prefix}/{topics.ACTORS}"
        self._broker = broker
        self._told: frozenset[str] | None = None  # before the first time: the core may know others
        self._timer: asyncio.TimerHandle | None = None

    def changed(self) -> None:
        """Subscriptions have come or gone."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_AFTER_S, self.look)

    def look(self) -> None:
        """Tell what is another than at the last time."""
        self.close()
        begin = len(self._above) + 1
        listened = [topic[begin:] for topic in self._server.subscribed_below(self._above)]
        actors = frozenset(map(topics.name_of, listened))
        anew, before = self._told is None, self._told or frozenset()
        self._told = actors
        came, gone = sorted(actors - before), sorted(before - actors)
        if came or gone or anew:
            message = ActorsListening(self._broker, 0, tuple(came), tuple(gone), anew)
            self._inbox.put(message)

    def close(self) -> None:
        """Look no more, unless something changes."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

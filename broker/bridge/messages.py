"""What crosses between a join and whoever uses it.

Owns these types. Must not know how either side works. Invariant: a message that came in is answered
by `taken` or `failed` of its token, once, or never.
"""

from typing import Any

from msgspec import Struct

from broker.mqtt.codec.packets import Properties

OVERHEAD_BYTES = 200  # of a message beside its topic and payload, in memory


class JoinError(Exception):
    """A connection that is not to be had, or that ended; the text says why in one sentence."""


class Arrived(Struct, frozen=True):
    """A message as it came from a joined server; `number` is its packet identifier, 0 at QoS 0."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    dup: bool
    number: int
    properties: Properties | None = None

    @property
    def size_bytes(self) -> int:
        """Return about how many bytes it takes in memory."""
        return len(self.topic) + len(self.payload) + OVERHEAD_BYTES


class OutgoingMessage(Struct, frozen=True):
    """A message for a joined server, at QoS 1; `correlation` is for an answer.

    `offset` is its result's place in the outbox; below 0: it lies in none.
    """

    topic: str
    payload: bytes
    retain: bool = False
    correlation: bytes | None = None
    offset: int = -1

    @property
    def stored(self) -> bool:
        """Tell whether it can be had again from the outbox."""
        return self.offset >= 0

    @property
    def size_bytes(self) -> int:
        """Return about how many bytes it takes in memory."""
        return len(self.topic) + len(self.payload) + OVERHEAD_BYTES


class JoinToken(Struct, eq=False):
    """Answer one message that came in; `connection` counts those of its join."""

    join: Any
    connection: int
    number: int
    size_bytes: int
    done: bool = False

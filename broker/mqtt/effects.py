"""What the MQTT face wants done in the world: the effects of its state machines.

Owns their types. Must not know who carries them out. Invariant: they are carried out in order, once
the bytes of `Connection.flush` of every connection in `Hub.dirty` were written; these, being by
far the most, are no objects of their own.
"""

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from broker.mqtt.sessions.connection import Connection


class CloseConnection(Struct):
    """Close after what was sent; `reason` is for the log, `fault` marks what is worth a line."""

    connection: "Connection"
    reason: str
    fault: str


class CheckPassword(Struct):
    """Find out whether the login is good and tell `Hub.checked`.

    `barred`: one that is not known to be good is not to be looked at, and does not pass.
    """

    connection: "Connection"
    username: str
    password: bytes
    barred: bool


class ReadConnection(Struct):
    """Read from the connection, or stop reading from it."""

    connection: "Connection"
    on: bool


Effect: TypeAlias = CloseConnection | CheckPassword | ReadConnection

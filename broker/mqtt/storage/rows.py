"""What the MQTT face keeps on disk: its rows, and the changes of one transaction to them.

Owns the rows' fields and how changes to one row add up. Must not know SQL, files or sessions.
Invariant: a batch holds for each row only what it is to be in the end; a row that came and went
within one batch is not in it at all.

Moments are in milliseconds of the wall clock: they have to mean something after a restart.
"""

from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Struct

from broker.mqtt.codec.packets import Properties, Will
from broker.store import Part

if TYPE_CHECKING:
    from sqlalchemy import Connection


class SessionRow(Struct, frozen=True):
    """A session; `gone_ms` is when its connection ended, None while it has one.

    `expiry_ms` 0: it ends with its connection, and only its will is kept for the case of a crash.
    `will_due_ms` is when a will that waits is to be published, `will` the will as `pack` gives it.
    """

    TABLE: ClassVar = "mqtt_sessions"

    client_id: str
    user_name: str | None
    version: int
    expiry_ms: int
    gone_ms: int | None
    will: bytes | None
    will_due_ms: int | None


class SubscriptionRow(Struct, frozen=True):
    """A subscription; `identifier` 0 is none."""

    TABLE: ClassVar = "mqtt_subscriptions"

    client_id: str
    topic_filter: str
    qos: int
    no_local: bool
    retain_as_published: bool
    identifier: int


class ReplayRow(Struct, frozen=True):
    """A subscription that has not got all of what is retained yet."""

    TABLE: ClassVar = "mqtt_replays"

    client_id: str
    topic_filter: str
    qos: int
    no_local: bool
    identifier: int


class MessageRow(Struct, frozen=True):
    """A message that at least one queue holds; `body` as `pack` gives it."""

    TABLE: ClassVar = "mqtt_messages"

    number: int
    body: bytes


class QueueRow(Struct, frozen=True):
    """A message in one client's queue; `place` ascends over all queues.

    `packet_id` is 0 until it was sent, and MAYBE where nobody knows. `shared` is the shared
    subscription that it came by, if any; `identifiers` are the subscriptions', apart by spaces.
    """

    TABLE: ClassVar = "mqtt_queue"

    place: int
    client_id: str
    message: int
    qos: int
    retain: bool
    identifiers: str
    shared: str
    packet_id: int


class PacketRow(Struct, frozen=True):
    """A packet identifier in use without a message: at QoS 2, between PUBREC and PUBCOMP.

    `sender` is who published: the client ("client") or this broker ("broker").
    """

    TABLE: ClassVar = "mqtt_packets"

    client_id: str
    sender: str
    packet_id: int


class RetainedRow(Struct, frozen=True):
    """A retained message; `body` as `pack` gives it."""

    TABLE: ClassVar = "mqtt_retained"

    topic: str
    body: bytes


class MarkRow(Struct, frozen=True):
    """A number that is stored with what it counts, see `HubStorage.keep_mark`."""

    TABLE: ClassVar = "mqtt_marks"

    name: str
    value: int


Row: TypeAlias = (
    SessionRow
    | SubscriptionRow
    | ReplayRow
    | MessageRow
    | QueueRow
    | PacketRow
    | RetainedRow
    | MarkRow
)
Key: TypeAlias = tuple[Hashable, ...]
T = TypeVar("T")

# The columns of each table by which a row is found, in the order of its fields.
KEYS: dict[type[Row], tuple[str, ...]] = {
    SessionRow: ("client_id",),
    SubscriptionRow: ("client_id", "topic_filter"),
    ReplayRow: ("client_id", "topic_filter"),
    MessageRow: ("number",),
    QueueRow: ("place",),
    PacketRow: ("client_id", "sender", "packet_id"),
    RetainedRow: ("topic",),
    MarkRow: ("name",),
}
MAYBE = -1
ROW_BYTES = 100  # what a change takes in memory beside its bytes


def key_of(row: Row) -> Key:
    """Return the key by which a row is found."""
    return tuple([getattr(row, name) for name in KEYS[type(row)]])


class Batch:
    """Collect what one transaction changes: `rows` as they are to be, None for those that go.

    `born` are the keys of rows that their table cannot hold yet; `size_bytes` is about what the
    batch takes in memory.
    """

    __slots__ = ("born", "rows", "size_bytes")

    def __init__(self) -> None:
        self.rows: dict[tuple[type[Row], Key], Row | None] = {}
        self.born: set[tuple[type[Row], Key]] = set()
        self.size_bytes = 0

    def add(self, row: Row, size_bytes: int = 0) -> None:
        """A row under a key that was never used."""
        key = (type(row), key_of(row))
        self.rows[key] = row
        self.born.add(key)
        self.size_bytes += ROW_BYTES + size_bytes

    def put(self, row: Row, size_bytes: int = 0) -> None:
        """A row in the place of one that may be there."""
        self.rows[(type(row), key_of(row))] = row
        self.size_bytes += ROW_BYTES + size_bytes

    def remove(self, table: type[Row], *columns: Hashable) -> None:
        """A row that goes, if it is there."""
        key = (table, columns)
        if key in self.born:
            self.born.discard(key)
            del self.rows[key]
        else:
            self.rows[key] = None
            self.size_bytes += ROW_BYTES

    def before(self, later: "Batch") -> "Batch":
        """This batch and one that comes after it, as one."""
        for key, row in later.rows.items():
            if row is None:
                self.remove(key[0], *key[1])
            else:
                self.rows[key] = row
        self.born |= later.born
        self.size_bytes += later.size_bytes
        return self


class KeptMessage(Struct, frozen=True, array_like=True):
    """A message on disk; `expires_ms` 0 is never."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    sender: str
    properties: Properties | None
    expires_ms: int


pack = msgspec.msgpack.Encoder().encode
unpack_message = msgspec.msgpack.Decoder(KeptMessage).decode
unpack_will = msgspec.msgpack.Decoder(Will).decode


class StoredRows:
    """All rows, as they were found."""

    def __init__(self) -> None:
        self.tables: dict[type[Row], list[Row]] = {table: [] for table in KEYS}

    def of(self, table: type[T]) -> list[T]:
        """The rows of one table, in the order of their keys."""
        return cast("list[T]", self.tables[cast("type[Row]", table)])


def _create(connection: "Connection") -> None:
    from broker.mqtt.storage.tables import METADATA

    METADATA.create_all(connection)


# For `Store.open`.
KEPT = Part("mqtt", 1, _create)

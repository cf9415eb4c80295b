"""The tables of what the MQTT face keeps, and the statements on them.

Owns their columns. Must not know what rows mean. Invariant: they are of the version that
`broker.mqtt.storage.rows.KEPT` names; a change here is a new version and a step to it.

This module imports SQLAlchemy: import it where a store is open, not before.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import asdict
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Delete,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    bindparam,
    delete,
    insert,
    select,
)

from broker.mqtt.storage import rows as kept
from broker.mqtt.storage.rows import KEYS, Batch, Row, StoredRows

METADATA: Final = MetaData()

_Number = BigInteger().with_variant(Integer, "sqlite")

TABLES: Final[dict[type[Row], Table]] = {
    kept.SessionRow: Table(
        kept.SessionRow.TABLE,
        METADATA,
        Column("client_id", Text, primary_key=True),
        Column("user_name", Text),
        Column("version", Integer, nullable=False),
        Column("expiry_ms", BigInteger, nullable=False),
        Column("gone_ms", BigInteger),
        Column("will", LargeBinary),
        Column("will_due_ms", BigInteger),
    ),
    kept.SubscriptionRow: Table(
        kept.SubscriptionRow.TABLE,
        METADATA,
        Column("client_id", Text, primary_key=True),
        Column("topic_filter", Text, primary_key=True),
        Column("qos", Integer, nullable=False),
        Column("no_local", Boolean, nullable=False),
        Column("retain_as_published", Boolean, nullable=False),
        Column("identifier", Integer, nullable=False),
    ),
    kept.ReplayRow: Table(
        kept.ReplayRow.TABLE,
        METADATA,
        Column("client_id", Text, primary_key=True),
        Column("topic_filter", Text, primary_key=True),
        Column("qos", Integer, nullable=False),
        Column("no_local", Boolean, nullable=False),
        Column("identifier", Integer, nullable=False),
    ),
    kept.MessageRow: Table(
        kept.MessageRow.TABLE,
        METADATA,
        Column("number", _Number, primary_key=True, autoincrement=False),
        Column("body", LargeBinary, nullable=False),
    ),
    kept.QueueRow: Table(
        kept.QueueRow.TABLE,
        METADATA,
        Column("place", _Number, primary_key=True, autoincrement=False),
        Column("client_id", Text, nullable=False),
        Column("message", BigInteger, nullable=False),
        Column("qos", Integer, nullable=False),
        Column("retain", Boolean, nullable=False),
        Column("identifiers", Text, nullable=False),
        Column("shared", Text, nullable=False),
        Column("packet_id", Integer, nullable=False),
    ),
    kept.PacketRow: Table(
        kept.PacketRow.TABLE,
        METADATA,
        Column("client_id", Text, primary_key=True),
        Column("sender", Text, primary_key=True),
        Column("packet_id", Integer, primary_key=True, autoincrement=False),
    ),
    kept.RetainedRow: Table(
        kept.RetainedRow.TABLE,
        METADATA,
        Column("topic", Text, primary_key=True),
        Column("body", LargeBinary, nullable=False),
    ),
    kept.MarkRow: Table(
        kept.MarkRow.TABLE,
        METADATA,
        Column("name", Text, primary_key=True),
        Column("value", BigInteger, nullable=False),
    ),
}


def _deletion(row: type[Row]) -> Delete:
    table = TABLES[row]
    return delete(table).where(*(table.c[name] == bindparam(f"a_{name}") for name in KEYS[row]))


_DELETIONS: Final = {row: _deletion(row) for row in TABLES}


def write(connection: Connection, batch: Batch) -> None:
    """Make the tables what the batch says."""
    gone: dict[type[Row], list[dict[str, Any]]] = {}
    grouped: dict[type[Row], list[dict[str, Any]]] = {}
    for key, row in batch.rows.items():
        row_type, columns = key
        if key not in batch.born:
            names = KEYS[row_type]
            named = {f"a_{name}": part for name, part in zip(names, columns, strict=True)}
            gone.setdefault(row_type, []).append(named)
        if row is not None:
            grouped.setdefault(row_type, []).append(asdict(row))
    for row_type, rows in gone.items():
        connection.execute(_DELETIONS[row_type], rows)
    for row_type, rows in grouped.items():
        connection.execute(insert(TABLES[row_type]), rows)


def load(connection: Connection) -> StoredRows:
    """All rows; those of queues in their order."""
    kept = StoredRows()
    for row_type, table in TABLES.items():
        names = KEYS[row_type]
        statement = select(table).order_by(*(table.c[name] for name in names))
        kept.tables[row_type] = [
            row_type(**row) for row in connection.execute(statement).mappings()
        ]
    return kept

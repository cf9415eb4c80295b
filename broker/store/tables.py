"""The tables of results, of who has read them and of what is installed.

Owns their columns and how they are made. Must not know who fills them. Invariant: they are of the
version that `broker.store.results.RESULTS` names; a change here is a new version and a step to it.

This module imports SQLAlchemy: import it where a store is open, not before.
"""

from __future__ import annotations

import secrets
from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    insert,
)

METADATA: Final = MetaData()

# In SQLite a key of this kind is the row's own number: ranges are read in the order of the file.
_Number = BigInteger().with_variant(Integer, "sqlite")

OUTBOX: Final = Table(
    "outbox",
    METADATA,
    Column("offset", _Number, primary_key=True, autoincrement=False),
    Column("id", String(200), nullable=False, unique=True),
    Column("subscription", Text, nullable=False),
    Column("subscriber", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("end_ms", BigInteger, nullable=False),
    Column("stored_ms", BigInteger, nullable=False),
    Column("payload", LargeBinary, nullable=False),
)

# One row: what has to be known even when no result is left.
LOG: Final = Table(
    "outbox_log",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("epoch", String(32), nullable=False),
    Column("earliest", BigInteger, nullable=False),
    Column("end", BigInteger, nullable=False),
    Column("kept_bytes", BigInteger, nullable=False),
)

CONSUMERS: Final = Table(
    "consumers",
    METADATA,
    Column("name", String(200), primary_key=True),
    Column("offset", BigInteger, nullable=False),
    Column("acked_ms", BigInteger, nullable=False),
)

CATALOGUE: Final = Table(
    "catalogue",
    METADATA,
    Column("subscriber", String(200), primary_key=True),
    Column("subscription", String(200), primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("client", Text, nullable=False),
    Column("installed_ms", BigInteger, nullable=False),
    Column("text", Text, nullable=False),
)


def create(connection: Connection) -> None:
    """Make all tables, empty, and draw the epoch of this database."""
    METADATA.create_all(connection)
    row = {"number": 1, "epoch": secrets.token_hex(8), "earliest": 0, "end": 0, "kept_bytes": 0}
    connection.execute(insert(LOG), row)

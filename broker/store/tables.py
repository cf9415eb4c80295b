"""The tables of results, of who has read them and of what is installed.

Owns their columns, how they are made and how older ones are brought up. Must not know who fills
them. Invariant: they are of the version that `broker.store.results.RESULTS` names; a change here is
a new version and a step to it.

Format 1 knew neither event times of the log as a whole nor what retention took from whom. Up to
format 2 the catalogue was there and nobody filled it. Up to format 3 rows that end before one that
stands before them had no index.

This module imports SQLAlchemy: import it where a store is open, not before.
"""

from __future__ import annotations

import secrets
from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    insert,
    text,
)

from broker.store.results import ROW_BYTES

METADATA: Final = MetaData()

# In SQLite a key of this kind is the row's own number: ranges are read in the order of the file.
_Number = BigInteger().with_variant(Integer, "sqlite")

OUTBOX: Final = Table(
    "outbox",
    METADATA,
    Column("offset", _Number, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False, unique=True),
    Column("subscription", Text, nullable=False),
    Column("subscriber", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("end_ms", BigInteger, nullable=False),
    # The latest end up to and with this row: it ascends, so that a time is found by halving.
    Column("peak_ms", BigInteger, nullable=False),
    Column("stored_ms", BigInteger, nullable=False),
    Column("payload", LargeBinary, nullable=False),
)

# Of those that end before one that stands before them; most do not. SQLAlchemy would have SQLite's
# and PostgreSQL's dialects loaded, which take 2 MB, to say the same to both.
_BEHIND: Final = """
    CREATE INDEX outbox_behind ON outbox ("offset", end_ms) WHERE end_ms < peak_ms
"""

# One row: what has to be known even when no result is left.
LOG: Final = Table(
    "outbox_log",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("epoch", Text, nullable=False),
    Column("earliest", BigInteger, nullable=False),
    Column("end", BigInteger, nullable=False),
    Column("kept_bytes", BigInteger, nullable=False),
    Column("peak_ms", BigInteger),  # nothing before the first result
    Column("taken", BigInteger, nullable=False),
    Column("unread", BigInteger, nullable=False),
)

CONSUMERS: Final = Table(
    "consumers",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("offset", BigInteger, nullable=False),
    Column("acked_ms", BigInteger, nullable=False),
    Column("missed", BigInteger, nullable=False),
    Column("gap_begin", BigInteger, nullable=False),
    Column("gap_end", BigInteger, nullable=False),
)

# `place` ascends in the order in which rows were put; `text_number` is that of the row's text.
CATALOGUE: Final = Table(
    "catalogue",
    METADATA,
    Column("subscriber", Text, primary_key=True),
    Column("subscription", Text, primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("client", Text, nullable=False),
    Column("proven", Boolean, nullable=False),
    Column("installed_ms", BigInteger, nullable=False),
    Column("place", BigInteger, nullable=False),
    Column("text_number", BigInteger, nullable=False, index=True),
)

# Apart, as one text may have brought a thousand subscriptions.
TEXTS: Final = Table(
    "catalogue_texts",
    METADATA,
    Column("number", _Number, primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),
)


def create(connection: Connection) -> None:
    """Make all tables, empty, and draw the epoch of this database."""
    METADATA.create_all(connection)
    connection.execute(text(_BEHIND))
    row = {"number": 1, "epoch": secrets.token_hex(8), "earliest": 0, "end": 0}
    connection.execute(insert(LOG), row | {"kept_bytes": 0, "taken": 0, "unread": 0})


# The log's own order is that of its offsets; a word of SQL besides, hence the quotes.
_PEAKS: Final = """
    UPDATE outbox SET peak_ms = peaks.peak FROM (
        SELECT "offset" AS place, MAX(end_ms) OVER (ORDER BY "offset") AS peak FROM outbox
    ) AS peaks WHERE outbox."offset" = peaks.place
"""

# Format 1 counted payloads alone.
_SIZES: Final = f"""
    UPDATE outbox_log SET kept_bytes = kept_bytes + {ROW_BYTES} * (SELECT COUNT(*) FROM outbox)
"""  # noqa: S608


def second_of_first(connection: Connection) -> None:
    """Format 2 of format 1: the latest end so far, beside each row, and what was missed."""
    for change in (
        "ALTER TABLE outbox ADD COLUMN peak_ms BIGINT NOT NULL DEFAULT 0",
        _PEAKS,
        "ALTER TABLE outbox_log ADD COLUMN peak_ms BIGINT",
        "UPDATE outbox_log SET peak_ms = (SELECT MAX(end_ms) FROM outbox)",
        "ALTER TABLE outbox_log ADD COLUMN taken BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE outbox_log ADD COLUMN unread BIGINT NOT NULL DEFAULT 0",
        _SIZES,
        "ALTER TABLE consumers ADD COLUMN missed BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE consumers ADD COLUMN gap_begin BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE consumers ADD COLUMN gap_end BIGINT NOT NULL DEFAULT 0",
    ):
        connection.execute(text(change))


def fourth_of_third(connection: Connection) -> None:
    """Format 4 of format 3: the index."""
    connection.execute(text(_BEHIND))

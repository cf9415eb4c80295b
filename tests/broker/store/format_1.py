"""A database as the first format had it, written by hand: the program no longer can.

What must not change here: these are the tables as they stood on people's disks.
"""

import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from broker.store import Row

TABLES = """
    CREATE TABLE headwater_format (part VARCHAR(64) PRIMARY KEY, version INTEGER NOT NULL);
    CREATE TABLE outbox (
        "offset" INTEGER NOT NULL, id VARCHAR(200) NOT NULL, subscription TEXT NOT NULL,
        subscriber TEXT NOT NULL, actor TEXT NOT NULL, end_ms BIGINT NOT NULL,
        stored_ms BIGINT NOT NULL, payload BLOB NOT NULL, PRIMARY KEY ("offset"), UNIQUE (id)
    );
    CREATE TABLE outbox_log (
        number INTEGER NOT NULL, epoch VARCHAR(32) NOT NULL, earliest BIGINT NOT NULL,
        "end" BIGINT NOT NULL, kept_bytes BIGINT NOT NULL, PRIMARY KEY (number)
    );
    CREATE TABLE consumers (
        name VARCHAR(200) NOT NULL, "offset" BIGINT NOT NULL, acked_ms BIGINT NOT NULL,
        PRIMARY KEY (name)
    );
    CREATE TABLE catalogue (
        subscriber VARCHAR(200) NOT NULL, subscription VARCHAR(200) NOT NULL, seq BIGINT NOT NULL,
        client TEXT NOT NULL, installed_ms BIGINT NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (subscriber, subscription)
    );
    INSERT INTO headwater_format (part, version) VALUES ('results', 1);
"""


def write(path: Path, epoch: str, rows: Sequence[Row], consumers: dict[str, int]) -> None:
    """Make the file with these rows; the log ends behind the last."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.executescript(TABLES)
        database.executemany(
            "INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?, 1000, ?)",
            [
                (r.offset, r.id, r.subscription, r.subscriber, r.actor, r.end_ms, r.payload)
                for r in rows
            ],
        )
        end = rows[-1].offset + 1 if rows else 0
        size = sum(len(r.payload) for r in rows)
        earliest = rows[0].offset if rows else 0
        database.execute(
            "INSERT INTO outbox_log VALUES (1, ?, ?, ?, ?)", (epoch, earliest, end, size)
        )
        database.executemany("INSERT INTO consumers VALUES (?, ?, 1000)", list(consumers.items()))
        database.commit()

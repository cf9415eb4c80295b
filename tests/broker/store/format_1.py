"""A database as the first format had it, written by hand: the program no longer can.

What must not change here: these are the tables as they stood on people's disks.
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy import NullPool, create_engine, text

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


def write(url: str, epoch: str, rows: Sequence[Row], consumers: dict[str, int]) -> None:
    """Make the tables with these rows; the log ends behind the last."""
    engine = create_engine(url, poolclass=NullPool)
    kind = "BYTEA" if engine.dialect.name == "postgresql" else "BLOB"
    with engine.begin() as database:
        for statement in TABLES.replace("BLOB", kind).split(";"):
            if statement.strip():
                database.execute(text(statement))
        for row in rows:
            values = dict(zip(Row.__struct_fields__, msgspec.structs.astuple(row), strict=True))
            database.execute(
                text(
                    "INSERT INTO outbox VALUES (:offset, :id, :subscription, :subscriber, :actor,"
                    " :end_ms, 1000, :payload)"
                ),
                values,
            )
        log = {
            "epoch": epoch,
            "earliest": rows[0].offset if rows else 0,
            "behind": rows[-1].offset + 1 if rows else 0,
            "size": sum(len(row.payload) for row in rows),
        }
        told = text("INSERT INTO outbox_log VALUES (1, :epoch, :earliest, :behind, :size)")
        database.execute(told, log)
        for name, offset in consumers.items():
            told = text("INSERT INTO consumers VALUES (:name, :offset, 1000)")
            database.execute(told, {"name": name, "offset": offset})

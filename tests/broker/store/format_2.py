"""A database as the second format had it, written by hand: the program no longer can.

What must not change here: these are the tables as they stood on people's disks.
"""

from collections.abc import Sequence

from sqlalchemy import NullPool, create_engine, text

from broker.store import CatalogueEntry

TABLES = """
    CREATE TABLE headwater_format (part VARCHAR(64) PRIMARY KEY, version INTEGER NOT NULL);
    CREATE TABLE outbox (
        "offset" INTEGER NOT NULL, id TEXT NOT NULL, subscription TEXT NOT NULL,
        subscriber TEXT NOT NULL, actor TEXT NOT NULL, end_ms BIGINT NOT NULL,
        peak_ms BIGINT NOT NULL, stored_ms BIGINT NOT NULL, payload BLOB NOT NULL,
        PRIMARY KEY ("offset"), UNIQUE (id)
    );
    CREATE TABLE outbox_log (
        number INTEGER NOT NULL, epoch TEXT NOT NULL, earliest BIGINT NOT NULL,
        "end" BIGINT NOT NULL, kept_bytes BIGINT NOT NULL, peak_ms BIGINT, taken BIGINT NOT NULL,
        unread BIGINT NOT NULL, PRIMARY KEY (number)
    );
    CREATE TABLE consumers (
        name TEXT NOT NULL, "offset" BIGINT NOT NULL, acked_ms BIGINT NOT NULL,
        missed BIGINT NOT NULL, gap_begin BIGINT NOT NULL, gap_end BIGINT NOT NULL,
        PRIMARY KEY (name)
    );
    CREATE TABLE catalogue (
        subscriber TEXT NOT NULL, subscription TEXT NOT NULL, seq BIGINT NOT NULL,
        client TEXT NOT NULL, installed_ms BIGINT NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (subscriber, subscription)
    );
    INSERT INTO headwater_format (part, version) VALUES ('results', 2);
    INSERT INTO outbox_log VALUES (1, '0123', 3, 3, 0, NULL, 3, 1);
    INSERT INTO consumers VALUES ('spark', 3, 1000, 1, 0, 1)
"""


def write(url: str, entries: Sequence[CatalogueEntry]) -> None:
    """Make the tables: a log of which retention took three results, and this catalogue."""
    engine = create_engine(url, poolclass=NullPool)
    kind = "BYTEA" if engine.dialect.name == "postgresql" else "BLOB"
    with engine.begin() as database:
        for statement in TABLES.replace("BLOB", kind).split(";"):
            database.execute(text(statement))
        for one in entries:
            told = text("INSERT INTO catalogue VALUES (:a, :b, :c, :d, :e, :f)")
            row = (
                one.subscriber,
                one.subscription,
                one.seq,
                one.client,
                one.installed_ms,
                one.text,
            )
            database.execute(told, dict(zip("abcdef", row, strict=True)))

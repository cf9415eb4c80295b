"""Results into a database, each batch once.

Owns the tables and the ledger. Must not know Spark. Invariant: the rows of a batch and the ledger's
word that they are there are one transaction; a batch that the ledger has is passed over.

The ledger names the checkpoint too. Where another one begins (somebody removed the old one), batch
numbers begin anew and mean other rows: that is refused, and not taken for what is there already.
"""

import os
import string
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from server.errors import JobsError, ServerError

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]
    from sqlalchemy import Engine, MetaData, Table

LEDGER: Final = "headwater_ledger"
CHUNK_ROWS: Final = 1000  # of one statement


class Database:
    """One table, filled by one stream."""

    def __init__(self, url: str, table: str, stream: str, checkpoint: str) -> None:
        self._url = url
        self._name = table
        self._stream = stream
        self._checkpoint = checkpoint
        self._engine: Engine | None = None

    def write(self, rows: "pa.Table", batch: int) -> bool:
        """Put a batch there; whether it was not there already. Raises ServerError."""
        import sqlalchemy as sa

        engine = self._engine = self._engine or _opened(self._url)
        meta = sa.MetaData()
        table = _table(meta, self._name, rows.schema)
        ledger = _ledger(meta)
        meta.create_all(engine)
        with engine.begin() as connection:
            mine = ledger.c.stream == self._stream
            known = connection.execute(sa.select(ledger).where(mine)).mappings().one_or_none()
            if known is not None and known["checkpoint"] != self._checkpoint:
                raise ServerError(
                    f"table {self._name} was filled from another checkpoint of {self._stream}: give"
                    f" the job another table, or delete the table and its line in {LEDGER}"
                )
            if known is not None and batch <= known["batch"]:
                return False
            plain = _plain(rows)
            if engine.dialect.name == "postgresql":
                plain = map(_without_nul, plain)
            for chunk in iter(lambda: list(islice(plain, CHUNK_ROWS)), []):
                connection.execute(sa.insert(table), chunk)
            count = rows.num_rows + (0 if known is None else known["rows"])
            said = {"checkpoint": self._checkpoint, "batch": batch, "rows": count}
            if known is None:
                connection.execute(sa.insert(ledger).values(stream=self._stream, **said))
            else:
                connection.execute(sa.update(ledger).where(mine).values(**said))
        return True

    def close(self) -> None:
        """Close all connections."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None


def expanded(url: str, environ: Mapping[str, str] | None = None) -> str:
    """The URL with what stands for variables. Raises JobsError, which shows no value of any."""
    try:
        return string.Template(url).substitute(os.environ if environ is None else environ)
    except KeyError as missing:
        raise JobsError(f"the database's URL names {missing.args[0]}, which is not set") from None
    except ValueError:
        raise JobsError("the database's URL: a lone $ is written $$") from None


def understood(url: str) -> None:
    """Raise JobsError where no database could be asked by this URL; none is asked here."""
    _opened(url).dispose()


def _opened(url: str) -> "Engine":
    import sqlalchemy as sa

    try:
        engine = sa.create_engine(expanded(url))
    except ImportError as error:
        raise JobsError(f"the database's URL needs a package that is missing: {error}") from None
    except (sa.exc.ArgumentError, ValueError) as error:  # none of them shows the URL
        raise JobsError(f"the database's URL is not understood: {error}") from None
    if engine.dialect.name == "sqlite":

        @sa.event.listens_for(engine, "connect")
        def _durable(connection: Any, _record: Any) -> None:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")

    return engine


def _table(meta: "MetaData", name: str, schema: "pa.Schema") -> "Table":
    import pyarrow as pa
    import sqlalchemy as sa

    def kind(said: "pa.DataType") -> Any:
        if pa.types.is_timestamp(said):
            return sa.DateTime()
        if pa.types.is_date(said):
            return sa.Date()
        if pa.types.is_boolean(said):
            return sa.Boolean()
        if pa.types.is_integer(said):
            return sa.BigInteger()
        if pa.types.is_floating(said):
            return sa.Double()
        return sa.Text()

    return sa.Table(name, meta, *(sa.Column(one.name, kind(one.type)) for one in schema))


def _ledger(meta: "MetaData") -> "Table":
    import sqlalchemy as sa

    return sa.Table(
        LEDGER,
        meta,
        sa.Column("stream", sa.String(200), primary_key=True),
        sa.Column("checkpoint", sa.String(64), nullable=False),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
    )


def _plain(rows: "pa.Table") -> Iterator[dict[str, Any]]:
    """Rows with times in UTC, without a zone, which is what databases agree upon."""
    import pyarrow as pa

    for n, one in enumerate(rows.schema):
        if pa.types.is_timestamp(one.type) and one.type.tz is not None:
            plain = pa.timestamp(one.type.unit)
            rows = rows.set_column(n, one.name, rows.column(n).cast(plain))
    for batch in rows.to_batches(max_chunksize=CHUNK_ROWS):
        yield from batch.to_pylist()


def _without_nul(row: dict[str, Any]) -> dict[str, Any]:
    """With U+FFFD for each NUL, which is no text there: a sensor must not end a stream with it."""
    return {
        name: value.replace("\0", "\ufffd") if isinstance(value, str) else value
        for name, value in row.items()
    }

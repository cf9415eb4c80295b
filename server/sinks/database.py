"""Results into a database, each batch once.

Owns the tables and the ledger. Must not know Spark. Invariant: the rows of a batch and the ledger's
word that they are there are one transaction; a batch that the ledger has is passed over.

The ledger names the checkpoint too. Where another one begins (somebody removed the old one), batch
numbers begin anew and mean other rows: that is refused, and not taken for what is there already.
"""

import os
import re
import string
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from server.errors import JobsError, ServerError
from server.sinks.shown import TableName
from server.sinks.views import NAME_LENGTH_MAX, Views

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]
    from sqlalchemy import Engine, MetaData, Table
    from sqlalchemy.engine.interfaces import ReflectedColumn

LEDGER: Final = "headwater_ledger"
CHUNK_ROWS: Final = 1000  # of one statement
JSON_COLUMNS: Final = frozenset(("group", "values", "events", "payload"))
INDEXED: Final = ("id", "end")


class Database:
    """One table, filled by one stream."""

    def __init__(self, url: str, table: TableName, stream: str, checkpoint: str) -> None:
        self._url = url
        self._name = table.stored
        self._stream = stream
        self._checkpoint = checkpoint
        self._engine: Engine | None = None
        self._target: Table | None = None
        self._views = Views(table)

    def write(self, rows: "pa.Table", batch: int) -> bool:
        """Put a batch there; whether it was not there already. Raises ServerError."""
        import sqlalchemy as sa

        engine = self._engine = self._engine or opened(self._url)
        if self._target is None:
            self._target = _table_in(engine, self._name, rows.schema)
        table, ledger = self._target, _ledger(sa.MetaData())
        ledger.create(engine, checkfirst=True)
        with engine.begin() as connection:
            mine = ledger.c.stream == self._stream
            entry = connection.execute(sa.select(ledger).where(mine)).mappings().one_or_none()
            if entry is not None and entry["checkpoint"] != self._checkpoint:
                raise ServerError(
                    f"table {self._name} was filled from another checkpoint of {self._stream}: give"
                    f" the job another table, or delete the table and its line in {LEDGER}"
                )
            if entry is not None and batch <= entry["batch"]:
                return False
            plain = _plain(rows)
            if engine.dialect.name == "postgresql":
                plain = map(_without_nul, plain)
            for chunk in iter(lambda: list(islice(plain, CHUNK_ROWS)), []):
                connection.execute(sa.insert(table), chunk)
            count = rows.num_rows + (0 if entry is None else entry["rows"])
            values = {"checkpoint": self._checkpoint, "batch": batch, "rows": count}
            if entry is None:
                connection.execute(sa.insert(ledger).values(stream=self._stream, **values))
            else:
                connection.execute(sa.update(ledger).where(mine).values(**values))
        # Not in the same transaction, which with some databases a view would end in its middle.
        self._views.follow(engine, table, rows)
        return True

    def holds(self, batch: int) -> bool:
        """Tell whether a batch is there; it may be, where the database cannot be asked."""
        import sqlalchemy as sa

        engine = self._engine = self._engine or opened(self._url)
        ledger = _ledger(sa.MetaData())
        query = sa.select(ledger.c.batch).where(ledger.c.stream == self._stream)
        try:
            ledger.create(engine, checkfirst=True)
            with engine.connect() as connection:
                latest = connection.execute(query).scalar_one_or_none()
        except sa.exc.SQLAlchemyError:
            return True
        return latest is not None and batch <= latest

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
    opened(url).dispose()


def opened(url: str) -> "Engine":
    """The database of a URL. Raises JobsError where it is not understood."""
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


def _table_in(engine: "Engine", name: str, schema: "pa.Schema") -> "Table":
    """The table for such rows, made with its indexes where it is not there.

    One that is there keeps the types that it has.
    """
    import sqlalchemy as sa

    present = {column["name"]: column["type"] for column in _columns_in(engine, name)}
    if present and (faults := _unfit_columns(present, schema)):
        raise JobsError(
            f"table {name}: {', '.join(faults)}: it was filled by another job, or changed by hand;"
            " give this sink another `table`, or write the job's next `version` and run"
            " `headwater server migrate`, which fills a new one"
        )
    columns = []
    for field in schema:
        kind = present.get(field.name)
        if field.name in JSON_COLUMNS and (kind is None or "json" in type(kind).__name__.lower()):
            columns.append(sa.Column(field.name, _json_type()))
        else:
            columns.append(sa.Column(field.name, _kind(field.type)))
    table = sa.Table(name, sa.MetaData(), *columns)
    table.create(engine, checkfirst=True)
    indexed = {index["name"] for index in sa.inspect(engine).get_indexes(name)}
    for column in INDEXED:
        index = f"{name}_{column}_index"[:NAME_LENGTH_MAX]
        if column in table.columns and index not in indexed:
            # MySQL indexes no more than the beginning of a text.
            sa.Index(index, table.columns[column], mysql_length={"id": 64}).create(engine)
    return table


def _unfit_columns(there: Mapping[str, Any], schema: "pa.Schema") -> list[str]:
    """Return what a table lacks for such rows, or has of a type that does not hold them."""
    faults = []
    for field in schema:
        kind = there.get(field.name)
        if kind is None:
            faults.append(f"there is no column {field.name}")
        elif not _holds(kind, field.type):
            faults.append(f"column {field.name} is {kind}, and the rows have {field.type}")
    return faults


def _holds(kind: Any, of_arrow: "pa.DataType") -> bool:
    """Return whether a column of a database holds what is of such a type, as far as one can see."""
    import pyarrow as pa
    import sqlalchemy as sa

    number, integer = isinstance(kind, sa.Numeric | sa.Float), isinstance(kind, sa.Integer)
    if pa.types.is_timestamp(of_arrow) or pa.types.is_date(of_arrow):
        return not (number or integer or isinstance(kind, sa.Boolean))
    if pa.types.is_boolean(of_arrow):
        return isinstance(kind, sa.Boolean) or integer
    if pa.types.is_integer(of_arrow):
        return integer or number
    if pa.types.is_floating(of_arrow):
        return number
    return not (number or integer or isinstance(kind, sa.Boolean | sa.DateTime | sa.Date))


def _columns_in(engine: "Engine", name: str) -> "list[ReflectedColumn]":
    import sqlalchemy as sa

    inspector = sa.inspect(engine)
    return inspector.get_columns(name) if inspector.has_table(name) else []


def _kind(of_arrow: "pa.DataType") -> Any:
    """The type of a column."""
    import pyarrow as pa
    import sqlalchemy as sa

    if pa.types.is_timestamp(of_arrow):
        return sa.DateTime()
    if pa.types.is_date(of_arrow):
        return sa.Date()
    if pa.types.is_boolean(of_arrow):
        return sa.Boolean()
    if pa.types.is_integer(of_arrow):
        return sa.BigInteger()
    if pa.types.is_floating(of_arrow):
        return sa.Double()
    return sa.Text()


def _json_type() -> Any:
    """JSON that is given as a text: jsonb with PostgreSQL, a text elsewhere."""
    import sqlalchemy as sa
    from sqlalchemy.dialects.postgresql import JSONB

    class JsonText(sa.types.TypeDecorator[str]):
        """A text on the way in, whatever it is there."""

        impl = sa.Text
        cache_ok = True

        def load_dialect_impl(self, dialect: Any) -> Any:
            """The type in the database."""
            return dialect.type_descriptor(JSONB() if _has_jsonb(dialect) else sa.Text())

        def bind_processor(self, dialect: Any) -> Any:
            """Give the text as it is: the type would write it as JSON once more."""
            return (lambda value: value) if _has_jsonb(dialect) else None

    return JsonText()


def _has_jsonb(dialect: Any) -> bool:
    return str(dialect.name) == "postgresql"


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

    for n, column in enumerate(rows.schema):
        if pa.types.is_timestamp(column.type) and column.type.tz is not None:
            plain = pa.timestamp(column.type.unit)
            rows = rows.set_column(n, column.name, rows.column(n).cast(plain))
    for batch in rows.to_batches(max_chunksize=CHUNK_ROWS):
        yield from batch.to_pylist()


def _without_nul(row: dict[str, Any]) -> dict[str, Any]:
    """With U+FFFD for each NUL, which is no text there: a sensor must not end a stream with it."""
    return {
        name: _with_marks(value, name in JSON_COLUMNS) if isinstance(value, str) else value
        for name, value in row.items()
    }


def _with_marks(text: str, of_json: bool) -> str:
    """Return a text that a database takes; within JSON a NUL stands escaped."""
    text = text.replace("\0", "\ufffd")
    return _ESCAPED_NUL.sub(r"\1\\ufffd", text) if of_json and "u0000" in text else text


# Behind an even row of backslashes: of an odd one the last is itself what is escaped.
_ESCAPED_NUL: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")

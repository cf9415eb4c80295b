"""Views over a table of results: what a person or a dashboard asks, instead of JSON in a column.

Owns the catalogue of values and the making of views. Must not know streams. Invariant: a view shows
every row of its subscription; a value that is not of its column's type is null there, and is in the
table still. No view that fails to be made ends a stream.

Each subscription of a table has a view of its own, with the values that were seen in its results as
typed columns, and names that no language of queries keeps for itself. A value that was seen as a
number and as a text is JSON from then on. The catalogue lists (table, subscription, value, kind) in
the order in which values were seen first: so a view only grows at its end.
"""

import json
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from server.errors import ServerError
from server.sinks.shown import TableName, notes_in, shown_table, views_of
from server.source.log import tell

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]
    from sqlalchemy import Connection, Engine, MetaData, Table

CATALOGUE: Final = "headwater_values"
VALUES_MAX: Final = 500  # of one subscription; a table of a database has hardly more columns
NAME_LENGTH_MAX: Final = 63  # of PostgreSQL
VALUE_LENGTH_MAX: Final = 50  # longer ones are in the table's JSON alone
RENAMED: Final = {"start": "started_at", "end": "ended_at", "offset": "log_offset"}
OF_VALUES: Final = ("subscription", "values")  # a table with these has a view a subscription
# As the databases call what they hold. What is in no list here has views without values.
_NUMBER, _TEXT, _BOOL, _JSON = "number", "text", "bool", "json"
_SHOWN: Final = {
    "sqlite": {
        _NUMBER: "CASE WHEN json_type({c},{p}) IN ('integer','real') THEN {c}->>{p} END",
        _TEXT: "CASE WHEN json_type({c},{p})='text' THEN {c}->>{p} END",
        _BOOL: "CASE WHEN json_type({c},{p}) IN ('true','false') THEN {c}->>{p} END",
        _JSON: "{c}->{p}",
    },
    "postgresql": {
        _NUMBER: "CASE WHEN jsonb_typeof({j}->{p})='number' THEN ({j}->>{p})::numeric END",
        _TEXT: "CASE WHEN jsonb_typeof({j}->{p})='string' THEN {j}->>{p} END",
        _BOOL: "CASE WHEN jsonb_typeof({j}->{p})='boolean' THEN ({j}->>{p})::boolean END",
        _JSON: "{j}->{p}",
    },
}


class Views:
    """The views of one table, made anew where results hold what they do not show yet."""

    def __init__(self, table: TableName) -> None:
        self._name = table
        self._table = table.stored
        self._seen: dict[str, dict[str, str]] | None = None

    def follow(self, engine: "Engine", table: "Table", rows: "pa.Table") -> None:
        """Have views show the values of these rows as well; what cannot be is printed."""
        import sqlalchemy as sa

        try:
            self._follow(engine, table, rows)
        except sa.exc.SQLAlchemyError as error:
            self._seen = None
            tell(f"the views of table {self._table} stay as they are: {str(error).splitlines()[0]}")

    def _follow(self, engine: "Engine", table: "Table", rows: "pa.Table") -> None:
        import sqlalchemy as sa

        catalogue = catalogue_of(sa.MetaData())
        seen, first = self._seen, self._seen is None
        if seen is None:
            catalogue.create(engine, checkfirst=True)
            with engine.connect() as connection:
                seen = self._seen = seen_of(connection, catalogue, self._table)
        if not set(OF_VALUES) <= set(rows.column_names):
            if first:
                with engine.begin() as connection:
                    lead = views_of(connection, self._name)
                    views = sa.inspect(connection).get_view_names()
                    if lead is not None and view_name(lead, "") not in views:
                        _make(connection, table, view_name(lead, ""), "", {})
            return
        changed = {}
        for subscription, kinds in kinds_of(rows).items():
            merged = merged_kinds(seen.get(subscription, {}), kinds)
            if subscription not in seen or merged != seen[subscription]:
                changed[subscription] = merged
        for subscription, kinds in changed.items():
            with engine.begin() as connection:
                _put(connection, catalogue, self._table, subscription, kinds)
                lead = views_of(connection, self._name)
                if lead is not None:
                    _make(connection, table, view_name(lead, subscription), subscription, kinds)
            seen[subscription] = kinds


def show_table(engine: "Engine", table: TableName) -> str:
    """Have the views of a name show this table; return the one that they showed.

    Note and views change in one transaction, where the database has such for views. Raises
    ServerError, and then nothing has changed.
    """
    import sqlalchemy as sa

    notes = notes_in(sa.MetaData())
    notes.create(engine, checkfirst=True)
    try:
        with engine.begin() as connection:
            of_name = notes.c.name == table.name
            # SQLite begins a transaction with what changes rows, and with nothing else.
            connection.execute(sa.update(notes).where(of_name).values(name=table.name))
            former = shown_table(connection, table.name)
            connection.execute(sa.delete(notes).where(of_name))
            connection.execute(sa.insert(notes).values(name=table.name, stored=table.stored))
            _replace_views(connection, table, former)
    except sa.exc.SQLAlchemyError as error:
        raise ServerError(
            f"the views of {table.name} cannot be changed: {str(error).splitlines()[0]}"
        ) from None
    return former


def _replace_views(connection: "Connection", table: TableName, former: str) -> None:
    """Put the views of a table in the places of those that show the `former` one."""
    import sqlalchemy as sa

    inspector = sa.inspect(connection)
    catalogue = catalogue_of(sa.MetaData())
    listed = inspector.has_table(CATALOGUE)
    before = seen_of(connection, catalogue, former) if listed else {}
    after = seen_of(connection, catalogue, table.stored) if listed else {}
    stale = [(table.name, name) for name in ("", *before, *after)]
    stale += [(table.stored, name) for name in ("", *after)]
    for lead, subscription in dict.fromkeys(stale):
        _drop(connection, view_name(lead, subscription))
    if not inspector.has_table(table.stored):
        return  # it has no rows yet; the first ones bring the views
    stored = sa.Table(table.stored, sa.MetaData(), autoload_with=connection)
    if not set(OF_VALUES) <= set(stored.columns.keys()):
        _make(connection, stored, view_name(table.name, ""), "", {})
    for subscription, kinds in after.items():
        _make(connection, stored, view_name(table.name, subscription), subscription, kinds)


def _make(
    connection: "Connection",
    table: "Table",
    name: str,
    subscription: str,
    kinds: Mapping[str, str],
) -> None:
    import sqlalchemy as sa

    _drop(connection, name)
    quote = connection.dialect.identifier_preparer.quote
    query = _query(connection, table, subscription, kinds)
    # A colon in a name would be a parameter of SQLAlchemy's texts.
    statement = f"CREATE VIEW {quote(name)} AS {query}"
    connection.execute(sa.text(statement.replace(":", "\\:")))


def _drop(connection: "Connection", name: str) -> None:
    import sqlalchemy as sa

    quote = connection.dialect.identifier_preparer.quote
    connection.execute(sa.text(f"DROP VIEW IF EXISTS {quote(name)}"))


def view_name(table: str, subscription: str) -> str:
    """The name of a view, in small letters as databases take names without quotes.

    What no name may hold is `_`; names that are told apart by nothing else get a digest.
    """
    if not subscription:
        return f"{table}_view".lower()[:NAME_LENGTH_MAX]
    plain = re.sub(r"[^a-z0-9_]", "_", f"{table}_{subscription}".lower())
    if re.fullmatch(r"[A-Za-z0-9_]+", subscription) and len(plain) <= NAME_LENGTH_MAX:
        return plain
    digest = sha256(subscription.encode()).hexdigest()[:6]
    return f"{plain[: NAME_LENGTH_MAX - 7]}_{digest}"


def columns_of(table: Iterable[str], kinds: Mapping[str, str]) -> dict[str, str | None]:
    """The columns of a view: name to the value that it shows, or None for a column of the table."""
    names: dict[str, str | None] = {}
    for column in table:
        if not kinds or column != "values":
            names[RENAMED.get(column, column)] = None
    lower = {name.lower() for name in names}
    for value in kinds:
        name = value if value.lower() not in lower else f"value_{value}"
        names[name] = value
        lower.add(name.lower())
    return names


def _query(
    connection: "Connection", table: "Table", subscription: str, kinds: Mapping[str, str]
) -> str:
    dialect = connection.dialect
    quote = dialect.identifier_preparer.quote
    shown = _SHOWN.get(dialect.name)
    kinds = kinds if shown is not None else {}
    former = {new: old for old, new in RENAMED.items()}
    parts = []
    for name, value in columns_of((column.name for column in table.columns), kinds).items():
        if value is None:
            parts.append(f"{quote(former.get(name, name))} AS {quote(name)}")
        elif shown is not None:
            path = _text(
                value
                if dialect.name == "postgresql"
                else f"$.{json.dumps(value, ensure_ascii=False)}"
            )
            column = quote("values")
            # Of a table of an older version the column is a text there.
            as_json = column if _is_jsonb(table) else f"{column}::jsonb"
            form = shown[kinds[value]].format(c=column, j=as_json, p=path)
            parts.append(f"{form} AS {quote(name)}")
    # A view takes no parameters: names are quoted and texts escaped here.
    query = f"SELECT {', '.join(parts)} FROM {quote(table.name)}"  # noqa: S608
    if not subscription:
        return query
    return f"{query} WHERE {quote('subscription')} = {_text(subscription)}"


def _is_jsonb(table: "Table") -> bool:
    return "json" in type(table.columns["values"].type).__name__.lower()


def _text(value: str) -> str:
    """A text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


# --- the kinds of values ----------------------------------------------------------------------


def kinds_of(rows: "pa.Table") -> dict[str, dict[str, str]]:
    """The kinds of values by subscription, as rows hold them. A null is of no kind."""
    kinds: dict[str, dict[str, str]] = {}
    columns = (rows.column(name).to_pylist() for name in OF_VALUES)
    for subscription, values in zip(*columns, strict=True):
        if subscription is None:
            continue
        of_one = kinds.setdefault(subscription, {})
        for name, value in _object(values).items():
            kind = _kind(value)
            if kind is not None and of_one.get(name) != kind and _is_name(name):
                of_one[name] = _JSON if name in of_one else kind
    return kinds


def merged_kinds(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Both, in the order in which values were seen; of two kinds it is JSON."""
    merged = dict(before)
    for name, kind in after.items():
        if name in merged:
            merged[name] = kind if merged[name] == kind else _JSON
        elif len(merged) < VALUES_MAX:
            merged[name] = kind
    return merged


def _kind(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return _BOOL
    if isinstance(value, int | float):
        return _NUMBER
    return _TEXT if isinstance(value, str) else _JSON


def _object(text: str | None) -> dict[str, Any]:
    content = json.loads(text) if text else {}
    return content if isinstance(content, dict) else {}


def _is_name(name: str) -> bool:
    """True for what can be a column's name everywhere."""
    return re.fullmatch(r"[\w. -]+", name) is not None and len(name) <= VALUE_LENGTH_MAX


# --- the catalogue ----------------------------------------------------------------------------


def catalogue_of(meta: "MetaData") -> "Table":
    """The table of all values of all tables."""
    import sqlalchemy as sa

    return sa.Table(
        CATALOGUE,
        meta,
        sa.Column("table_name", sa.String(200), primary_key=True),
        sa.Column("subscription", sa.String(200), primary_key=True),
        sa.Column("value", sa.String(100), primary_key=True),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
    )


def seen_of(connection: "Connection", catalogue: "Table", table: str) -> dict[str, dict[str, str]]:
    """The kinds of values by subscription, as a table's views show them."""
    import sqlalchemy as sa

    of_table = catalogue.c.table_name == table
    rows = connection.execute(sa.select(catalogue).where(of_table).order_by(catalogue.c.place))
    seen: dict[str, dict[str, str]] = {}
    for row in rows.mappings():
        kinds = seen.setdefault(row["subscription"], {})
        if row["value"]:
            kinds[row["value"]] = row["kind"]
    return seen


def _put(
    connection: "Connection",
    catalogue: "Table",
    table: str,
    subscription: str,
    kinds: Mapping[str, str],
) -> None:
    """Note the values of a subscription; one without any has a row that names none."""
    import sqlalchemy as sa

    of_it = (catalogue.c.table_name == table) & (catalogue.c.subscription == subscription)
    connection.execute(sa.delete(catalogue).where(of_it))
    listed = kinds or {"": ""}
    rows = [
        {
            "table_name": table,
            "subscription": subscription,
            "value": value,
            "place": place,
            "kind": kind,
        }
        for place, (value, kind) in enumerate(listed.items())
    ]
    connection.execute(sa.insert(catalogue), rows)

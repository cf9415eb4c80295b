"""The tables, views and folders that a file of jobs fills, and what is in them at the moment.

Owns the list for `headwater server tables`, and the names of the same in Spark SQL. Must not know
streams. Invariant: it only reads; what is not there yet is listed without rows.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from server.checkpoint import begun_of
from server.config import ConfigPart, Jobs, read
from server.errors import ServerError
from server.history import LIST, check_there, files_of, shown_folder
from server.jobs.reading import options_of
from server.sinks.database import opened
from server.sinks.shown import TableName, views_of
from server.sinks.views import CATALOGUE, catalogue_of, columns_of, seen_of, view_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from sqlalchemy import Connection, Engine

_DAY: Final = re.compile(r"day=\d{4}-\d\d-\d\d")


def tables(path: Path) -> list[dict[str, Any]]:
    """List the contents of the sinks of a file of jobs, job by job. Raises ServerError."""
    jobs = read(path)
    listed: list[dict[str, Any]] = []
    for job in jobs.jobs.values():
        versions = [stream.version for stream in begun_of(jobs, job) if stream.apart]
        suffixes = ["", *dict.fromkeys(f"_v{version}" for version in sorted(versions))]
        for name in job["sink"]:
            sink = jobs.sinks[name]
            entries = []
            if sink.kind == "parquet":
                entries = [_folder(jobs.path(sink["path"] + suffix)) for suffix in suffixes]
            elif sink.kind == "database":
                tables = [TableName(sink["table"] or job.name, suffix) for suffix in suffixes]
                entries = _database(sink, tables)
            listed += [{"job": job.name, "sink": name} | entry for entry in entries]
    return listed


def name_views(spark: "SparkSession", path: Path) -> list[str]:
    """Have Spark SQL know histories by their jobs' names and brokers by their sources'.

    Return these names. Raises ServerError, also where one name would stand for two.
    """
    jobs = read(path)
    _check_names(jobs)
    views: dict[str, DataFrame] = {}
    for source in jobs.sources.values():
        if source.kind == "brokers":
            options = options_of(source, "", in_step=False)
            del options["consumer"]  # looking is no reason to keep results
            views[source.name] = spark.read.format("headwater").options(**options).load()
    for job in jobs.jobs.values():
        for sink in (jobs.sinks[name] for name in job["sink"]):
            folder = shown_folder(jobs.path(sink["path"])) if sink.kind == "parquet" else None
            if folder is not None and (folder / LIST).is_dir():
                views[job.name] = spark.read.parquet(str(folder))
    for name, frame in views.items():
        frame.createOrReplaceTempView(f"`{name}`")
    return list(views)


def _check_names(jobs: Jobs) -> None:
    """Raise ServerError where two would have one view; Spark takes no account of case."""
    named: dict[str, str] = {}
    shown = [
        (source.name, f"sources.{source.name}")
        for source in jobs.sources.values()
        if source.kind == "brokers"
    ]
    for job in jobs.jobs.values():
        folders = [name for name in job["sink"] if jobs.sinks[name].kind == "parquet"]
        shown += [(job.name, f"jobs.{job.name} with sink {name}") for name in folders]
    for name, owner in shown:
        other = named.setdefault(name.lower(), owner)
        if other != owner:
            raise ServerError(
                f"the view {name} of Spark SQL would be that of {other} and of {owner}:"
                " another name, or a job with one folder, is needed"
            )


def _folder(path: Path) -> dict[str, Any]:
    from pyarrow import (  # type: ignore[import-untyped, import-not-found, unused-ignore]
        parquet,
    )

    entry: dict[str, Any] = {"kind": "folder", "name": str(path), "rows": None}
    try:
        files = files_of(path)
    except ServerError:  # nothing was written yet
        return entry
    check_there(files)
    entry["rows"] = sum(parquet.read_metadata(file).num_rows for file in files)
    if files:
        entry["columns"] = [*parquet.read_schema(files[0]).names, "day"]
    return entry | _first_and_last(files)


def _first_and_last(files: Iterable[Path]) -> dict[str, str]:
    """Return the first and the last event time; files are parted by the day of theirs."""
    import pyarrow.compute as pc  # type: ignore[import-untyped, import-not-found, unused-ignore]
    from pyarrow import parquet

    days: dict[str, list[Path]] = {}
    for path in files:
        if _DAY.fullmatch(path.parent.name):
            days.setdefault(path.parent.name, []).append(path)
    times: list[Any] = []
    for day in {min(days), max(days)} if days else ():
        for path in days[day]:
            with parquet.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
                ends = pc.min_max(file.read(columns=["end"]).column("end")).as_py()
            times += [end for end in ends.values() if end is not None]
    if not times:
        return {}
    first, last = (time.replace(tzinfo=None) for time in (min(times), max(times)))
    return {
        "first": first.isoformat(" ", "microseconds"),
        "last": last.isoformat(" ", "microseconds"),
    }


def _database(sink: ConfigPart, tables: Iterable[TableName]) -> list[dict[str, Any]]:
    """The tables of a job, each with its views."""
    import sqlalchemy as sa

    engine = opened(sink["url"])
    try:
        with engine.connect() as connection:
            return [entry for table in tables for entry in _listed(engine, connection, table)]
    except sa.exc.SQLAlchemyError as error:
        raise ServerError(f"sinks.{sink.name}: {str(error).splitlines()[0]}") from None
    finally:
        engine.dispose()


def _listed(engine: "Engine", connection: "Connection", table: TableName) -> list[dict[str, Any]]:
    """List a table and the views that show it."""
    import sqlalchemy as sa

    inspector, name, lead = sa.inspect(engine), table.stored, views_of(connection, table)
    if not inspector.has_table(name):
        return [{"kind": "table", "name": name, "rows": None}]
    columns = [column["name"] for column in inspector.get_columns(name)]
    views = set(inspector.get_view_names())
    listed = [_counted(connection, "table", name, columns, "end")]
    for subscription, kinds in _subscriptions(engine, connection, name).items():
        view = view_name(lead or "", subscription)
        if lead is not None and view in views:
            shown = list(columns_of(columns, kinds))
            entry = _counted(connection, "view", view, shown, "ended_at")
            listed.append(entry | {"subscription": subscription})
    whole = view_name(lead or "", "")
    if lead is not None and whole in views:
        shown = list(columns_of(columns, {}))
        listed.append(_counted(connection, "view", whole, shown, "ended_at"))
    return listed


def _subscriptions(
    engine: "Engine", connection: "Connection", table: str
) -> dict[str, dict[str, str]]:
    import sqlalchemy as sa

    if not sa.inspect(engine).has_table(CATALOGUE):
        return {}
    return seen_of(connection, catalogue_of(sa.MetaData()), table)


def _counted(
    connection: "Connection", kind: str, name: str, columns: list[str], end: str
) -> dict[str, Any]:
    """An entry with its rows, and with the first and the last event time in them."""
    import sqlalchemy as sa

    entry: dict[str, Any] = {"kind": kind, "name": name, "columns": columns}
    time: sa.ColumnClause[Any] = sa.column(end)
    asked = [sa.func.count(), sa.func.min(time), sa.func.max(time)][: 3 if end in columns else 1]
    row = connection.execute(sa.select(*asked).select_from(sa.table(name))).one()
    entry["rows"] = row[0]
    if row[1:] and row[1] is not None:
        entry |= {"first": str(row[1]), "last": str(row[2])}
    return entry

"""The versions of what stands in a database: made where it is missing, brought up where it is old.

Owns the table of formats. Must not know what a part's tables hold. Invariant: a database that was
opened is of exactly the versions that this program writes; one that is newer is left as it was.

Each part of the broker that keeps tables describes them as a `Part`. A part of version 3 has steps
{1: …, 2: …}, each of which makes of a database of that version one of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from broker.store.errors import StoreError

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

Change = Callable[["Connection"], None]

FORMATS: Final = "headwater_format"
COMMITS: Final = "headwater_commit"


class Part(msgspec.Struct, frozen=True):
    """Some tables that change together: their version, how they are made and brought up.

    `create` makes the tables of `version`; `steps[n]` makes version n + 1 of version n.
    """

    name: str
    version: int
    create: Change
    steps: Mapping[int, Change] = {}


def bring_up(connection: Connection, parts: Sequence[Part], called: str) -> None:
    """Make or migrate all parts, within the transaction that is open. Raises StoreError."""
    from sqlalchemy import text

    versions = _versions(connection, called)
    _count_commits(connection)
    for part in parts:
        version = versions.get(part.name)
        if version is None:
            part.create(connection)
            statement = text(f"INSERT INTO {FORMATS} (version, part) VALUES (:version, :part)")  # noqa: S608
        elif version == part.version:
            continue
        else:
            _migrate(connection, part, version, called)
            statement = text(f"UPDATE {FORMATS} SET version = :version WHERE part = :part")  # noqa: S608
        connection.execute(statement, {"version": part.version, "part": part.name})


def _versions(connection: Connection, called: str) -> dict[str, int]:
    from sqlalchemy import inspect, text

    names = inspect(connection).get_table_names()
    if FORMATS in names:
        # Changes nothing, but is refused at once where nothing may be changed.
        connection.execute(text(f"DELETE FROM {FORMATS} WHERE 1 = 0"))  # noqa: S608
        rows = connection.execute(text(f"SELECT part, version FROM {FORMATS}"))  # noqa: S608
        return {str(part): int(version) for part, version in rows}
    if names and connection.dialect.name == "sqlite":
        raise StoreError(
            f"{called} is another program's: it has a table {min(names)} and none of ours; "
            "name another file, or move this one away"
        )
    connection.execute(
        text(f"CREATE TABLE {FORMATS} (part VARCHAR(64) PRIMARY KEY, version INTEGER NOT NULL)")
    )
    return {}


def _count_commits(connection: Connection) -> None:
    """The number of the last commit, by which a writer knows one whose outcome it was not told."""
    from sqlalchemy import text

    connection.execute(text(f"CREATE TABLE IF NOT EXISTS {COMMITS} (number BIGINT NOT NULL)"))
    if connection.execute(text(f"SELECT number FROM {COMMITS}")).first() is None:  # noqa: S608
        connection.execute(text(f"INSERT INTO {COMMITS} (number) VALUES (0)"))  # noqa: S608


def _migrate(connection: Connection, part: Part, there: int, called: str) -> None:
    if there > part.version:
        raise StoreError(
            f"{called} was written by a newer Headwater (format {there} of {part.name}, this one "
            f"knows up to {part.version}); run the newer one, or name another database"
        )
    for version in range(there, part.version):
        step = part.steps.get(version)
        if step is None:
            raise StoreError(
                f"{called} is of a format that is too old (format {there} of {part.name}); "
                "open it with an older Headwater that still knows it first"
            )
        step(connection)

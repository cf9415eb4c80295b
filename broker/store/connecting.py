"""How connections to a database are made: durable, and held by one process.

Owns what differs between databases. Must not know what is stored. Invariant: a transaction that the
writing connection committed outlasts a loss of power, and no second broker writes beside it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from broker.store.errors import StoreError, name_of

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Engine

BUSY_WAIT_S: Final = 5.0  # another program may be looking at the file; a backup takes moments
ENDING_WAIT_S: Final = 2.0  # a server notices soon that the process at the other end is gone
SPARE_LOG_BYTES: Final = 16 * 2**20  # a long read lets SQLite's own log grow; then it shrinks again
# One for each database of a PostgreSQL server: advisory locks are told apart by database.
ADVISORY: Final = 0x48656164  # spells `Head`


def parse(url: str) -> URL:
    """The parsed URL of a database. Raises StoreError."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError

    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
        parsed.get_dialect()
    except (ArgumentError, NoSuchModuleError, ValueError):
        raise StoreError(
            "the database's URL cannot be read; expected one like sqlite:///headwater.db "
            "or postgresql+psycopg://user@host/name"
        ) from None
    if backend == "sqlite" and parsed.database in {None, "", ":memory:"}:
        raise StoreError("a database in memory keeps nothing; name a file, as sqlite:///FILE")
    return parsed


def engine_of(url: URL, *, writes: bool) -> Engine:
    """An engine whose connections are opened anew, each for one thread. Raises StoreError."""
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    options: dict[str, Any] = {}
    if url.get_backend_name() == "sqlite":
        options["connect_args"] = {"timeout": BUSY_WAIT_S}
    elif not writes:
        options["isolation_level"] = "REPEATABLE READ"  # a read sees one moment, as in SQLite
    try:
        engine = create_engine(url, poolclass=NullPool, **options)
    except ModuleNotFoundError as error:
        raise StoreError(
            f"{name_of(url)} needs the Python package {error.name}, which is not installed"
        ) from None
    if engine.dialect.name == "sqlite":
        _prepare_sqlite(engine, "BEGIN IMMEDIATE" if writes else "BEGIN")
    elif engine.dialect.name == "postgresql" and writes:
        _prepare_postgresql(engine, name_of(url))
    return engine


def _prepare_sqlite(engine: Engine, begin: str) -> None:
    """The library's own BEGIN would come too late, or not at all before a savepoint."""
    from sqlalchemy import event

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        # Where there can be no log beside the file, its directory has to be synced as well.
        level = "FULL" if mode == "wal" else "EXTRA"
        connection.execute(f"PRAGMA synchronous={level}")
        connection.execute(f"PRAGMA journal_size_limit={SPARE_LOG_BYTES}")

    @event.listens_for(engine, "begin")
    def begun(connection: Any) -> None:
        connection.exec_driver_sql(begin)


def _prepare_postgresql(engine: Engine, called: str) -> None:
    from sqlalchemy import event

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit TO on")
            held = _locked(cursor)
        connection.commit()
        if not held:
            raise StoreError(f"{called} is in use by another broker; give each one of its own")


def _locked(cursor: Any) -> bool:
    """Take the lock; who held it may have ended just now, and the server not have noticed yet."""
    until = time.monotonic() + ENDING_WAIT_S
    while True:
        cursor.execute(f"SELECT pg_try_advisory_lock({ADVISORY})")
        if cursor.fetchone()[0]:
            return True
        if time.monotonic() > until:
            return False
        time.sleep(0.05)


@contextlib.contextmanager
def held(url: URL) -> Iterator[Callable[[], None]]:
    """Hold a SQLite file for this process alone. Raises StoreError.

    Gives a check, which raises StoreError once the file that was opened is no longer in its place:
    whatever is written to one that was deleted goes with it. The lock is a file beside it: closing
    a descriptor of the database itself would take away the locks that SQLite has on it.
    """
    if url.get_backend_name() != "sqlite" or url.database is None:
        yield lambda: None
        return
    path = url.database
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StoreError(
            f"{name_of(url)} cannot be opened: its directory cannot be written: {reason}"
        ) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StoreError(
                f"{name_of(url)} is in use by another broker; give each one of its own"
            ) from None
        with contextlib.suppress(OSError):  # what sensors say concerns nobody else
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        yield _same_file(path, name_of(url))
    finally:
        os.close(lock)


def _same_file(path: str, called: str) -> Callable[[], None]:
    def identity() -> tuple[int, int] | None:
        try:
            status = os.stat(path)  # noqa: PTH116  (each commit asks: no object is made for it)
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    opened = identity()

    def check() -> None:
        if opened is not None and identity() != opened:
            raise StoreError(
                f"{called} was moved or deleted while in use; put it back, or start the broker anew"
            )

    return check

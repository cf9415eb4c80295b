"""A database that fails while a broker runs: nothing is lost, and the sentence says what to do.

The disk is full, the file locked or an error of the disk met in the middle of work. Each piece of
work is then carried out later, in order and once, and its author told only then.
"""

import asyncio
import contextlib
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, text

from broker.store import RESULTS, Outbox, Part, Row, Store, StoreError
from broker.store import store as store_module

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 15.0


def _create(connection: Connection) -> None:
    connection.execute(text("CREATE TABLE kept (number INTEGER PRIMARY KEY, told BLOB)"))


KEPT = Part("kept", 1, _create)


def put(number: int, size: int = 10):
    def work(connection: Connection) -> None:
        told = {"number": number, "told": b"x" * size}
        connection.execute(text("INSERT INTO kept VALUES (:number, :told)"), told)

    return work


def numbers(connection: Connection) -> list[int]:
    return list(connection.scalars(text("SELECT number FROM kept ORDER BY number")))


class Told:
    """What a store says of its trouble, to be waited for."""

    def __init__(self, store: Store) -> None:
        self.all: list[str] = []
        self._more = asyncio.Event()
        store.on_trouble = self._hear

    def _hear(self, sentence: str) -> None:
        self.all.append(sentence)
        self._more.set()

    async def next(self) -> str:
        async with asyncio.timeout(PATIENCE_S):
            while not self.all:
                self._more.clear()
                await self._more.wait()
        return self.all.pop(0)


@contextlib.asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Store]:
    store = Store.open(f"sqlite:///{folder / 'headwater.db'}", parts=[KEPT, RESULTS])
    try:
        yield store
    finally:
        await store.close()


def submitted(store: Store, work) -> "asyncio.Future[BaseException | None]":
    future = asyncio.get_running_loop().create_future()
    store.submit(work, future.set_result)
    return future


def limited(store: Store, pages: int) -> None:
    """The writing connection's disk has room for so many pages: SQLite's own measure of full.

    To be said before the first piece of work, as it holds for connections that are made later.
    """
    engine = store._writer._engine

    @event.listens_for(engine, "connect")
    def connected(connection, _record) -> None:
        connection.execute(f"PRAGMA max_page_count={LIMITS[engine]}")

    LIMITS[engine] = pages


LIMITS: dict[object, int] = {}


def test_a_full_disk_is_waited_for_and_nothing_is_lost(tmp_path):
    """What fitted stays; what did not is written once there is room, in order, each once."""

    async def run() -> None:
        async with opened(tmp_path) as store:
            limited(store, 60)
            told = Told(store)
            outcomes = [submitted(store, put(n, 20_000)) for n in range(20)]
            assert await told.next() == (
                f"the database {tmp_path / 'headwater.db'} has no more room: the disk is full"
            )
            assert not outcomes[-1].done()
            assert store.waiting_items > 0
            LIMITS[store._writer._engine] = 100_000
            assert await asyncio.gather(*outcomes) == [None] * 20
            assert await told.next() == ""
            assert store.trouble == ""
            assert await store.read(numbers) == list(range(20))

    asyncio.run(run())


def test_results_wait_for_a_full_disk_and_keep_their_offsets(tmp_path):
    async def run() -> None:
        async with opened(tmp_path) as store:
            outbox = await Outbox.open(store)
            limited(store, 60)
            told, done = Told(store), []
            for n in range(30):
                row = Row(n, f"id-{n}", "Frost", "team", "alerts", n, b"x" * 20_000)
                outbox.append([row], n, lambda error, n=n: done.append((n, error)))
            assert "the disk is full" in await told.next()
            assert outbox.end == len(done) < 30
            LIMITS[store._writer._engine] = 100_000
            assert await told.next() == ""
            await outbox.forget("nobody")  # done after them
            assert done == [(n, None) for n in range(30)]
            assert outbox.end == 30
            assert [row.offset for row in await outbox.read(0, 30)] == list(range(30))

    asyncio.run(run())


def test_work_with_a_savepoint_of_its_own_waits_for_a_full_disk_too(tmp_path):
    """The database ends the transaction: that the savepoint is gone is no fault of the work."""

    async def run() -> None:
        def guarded(number: int):
            def work(connection: Connection) -> None:
                with connection.begin_nested():
                    put(number, 20_000)(connection)

            return work

        async with opened(tmp_path) as store:
            limited(store, 60)
            told = Told(store)
            outcomes = [submitted(store, guarded(n)) for n in range(20)]
            assert "the disk is full" in await told.next()
            LIMITS[store._writer._engine] = 100_000
            assert await asyncio.gather(*outcomes) == [None] * 20
            assert await store.read(numbers) == list(range(20))

    asyncio.run(run())


def test_a_file_that_another_program_locks_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("broker.store.connecting.BUSY_WAIT_S", 0.05)

    async def run() -> None:
        async with opened(tmp_path) as store:
            told = Told(store)
            await submitted(store, put(1))
            with contextlib.closing(
                sqlite3.connect(tmp_path / "headwater.db", isolation_level=None)
            ) as other:
                other.execute("BEGIN IMMEDIATE")
                waiting = submitted(store, put(2))
                assert "is locked by another process" in await told.next()
                assert not waiting.done()
                other.execute("ROLLBACK")
            assert await waiting is None
            assert await told.next() == ""
            assert await store.read(numbers) == [1, 2]

    asyncio.run(run())


def test_a_file_that_is_moved_away_is_missed_at_once_and_nothing_is_lost(tmp_path):
    """SQLite itself would go on writing to what nobody finds again."""

    async def run() -> None:
        path, away = tmp_path / "headwater.db", tmp_path / "away.db"
        async with opened(tmp_path) as store:
            told = Told(store)
            await submitted(store, put(1))
            path.rename(away)
            waiting = submitted(store, put(2))
            assert await told.next() == (
                f"the database {path} was moved or deleted while in use; "
                "put it back, or start the broker anew"
            )
            assert not waiting.done()
            assert not path.exists()
            away.rename(path)
            assert await waiting is None
            assert await store.read(numbers) == [1, 2]

    asyncio.run(run())


def test_who_reads_is_told_that_the_database_fails(tmp_path):
    async def run() -> None:
        async with opened(tmp_path) as store:

            def broken(connection: Connection) -> None:
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorname = "SQLITE_IOERR_READ"
                raise error

            with pytest.raises(StoreError, match="the disk fails"):
                await store.read(broken)
            await submitted(store, put(1))
            assert await store.read(numbers) == [1]  # by a new connection

    asyncio.run(run())


def test_a_store_that_cannot_write_can_be_closed_and_says_what_was_lost(tmp_path, monkeypatch):
    """Each who waits is told: nobody may take what is not there for stored."""
    monkeypatch.setattr(store_module, "CLOSE_WAIT_S", 0.1)

    async def run() -> None:
        store = Store.open(f"sqlite:///{tmp_path / 'headwater.db'}", parts=[KEPT])
        limited(store, 10)
        told = Told(store)
        outcomes = [submitted(store, put(n, 50_000)) for n in range(3)]
        assert "the disk is full" in await told.next()
        async with asyncio.timeout(PATIENCE_S):
            await store.close()
        for outcome in outcomes:
            error = await outcome
            assert isinstance(error, StoreError)
            assert "the disk is full" in str(error)

    asyncio.run(run())


def test_work_that_breaks_its_transaction_harms_no_other(tmp_path):
    """Such as one that rolls back by itself: the others of its group are carried out anyway."""

    async def run() -> None:
        def meddles(connection: Connection) -> None:
            connection.exec_driver_sql("ROLLBACK")

        async with opened(tmp_path) as store:
            outcomes = [submitted(store, work) for work in (put(1), meddles, put(2))]
            first, other, second = await asyncio.gather(*outcomes)
            assert (first, second) == (None, None)
            assert other is not None
            assert await store.read(numbers) == [1, 2]

    asyncio.run(run())


@pytest.mark.parametrize("took_place", [True, False])
def test_a_commit_whose_outcome_is_not_told_is_carried_out_once(tmp_path, took_place):
    """As of a disk that fails in the middle of a sync, or a server that goes away then."""

    async def run() -> None:
        async with opened(tmp_path) as store:
            await submitted(store, put(0))
            dialect = store._writer._engine.dialect
            commit = dialect.do_commit

            def fails(connection) -> None:
                if took_place:
                    commit(connection)
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
                dialect.do_commit = commit
                raise error

            dialect.do_commit = fails
            outcomes = [submitted(store, work) for work in (put(1), put(0), put(2))]
            first, twice, second = await asyncio.gather(*outcomes)
            assert (first, second) == (None, None)
            assert "IntegrityError" in type(twice).__name__
            assert await submitted(store, put(3)) is None
            assert await store.read(numbers) == [0, 1, 2, 3]

    asyncio.run(run())


KILLED = """
import asyncio, sys
from broker.store import RESULTS, Outbox, Row, Store
async def run():
    store = Store.open(f"sqlite:///{sys.argv[1]}", parts=[RESULTS])
    outbox = await Outbox.open(store)
    at = outbox.end
    while True:
        stored = asyncio.get_running_loop().create_future()
        rows = [Row(at + n, f"id-{at + n}", "s", "t", "a", at + n, b"{}") for n in range(7)]
        outbox.append(rows, 0, lambda error: stored.set_result(error))
        assert await stored is None
        at += 7
        print(outbox.end, flush=True)
asyncio.run(run())
"""


def test_what_was_reported_outlasts_a_kill(tmp_path):
    """A process that is killed has told of no result that is not there; none is there in part."""
    path, reported = tmp_path / "headwater.db", 0
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        try:
            assert process.stdout is not None
            for _ in range(5):
                reported = int(process.stdout.readline())
        finally:
            process.send_signal(signal.SIGKILL)
            rest = process.stdout.read().split()
            process.stdout.close()
            process.wait()
        reported = max([reported, *(int(one) for one in rest if one)])

        async def look() -> tuple[int, list[int]]:
            store = Store.open(f"sqlite:///{path}", parts=[RESULTS])
            outbox = await Outbox.open(store)
            rows = await outbox.read(0, outbox.end)
            await store.close()
            return outbox.end, [row.offset for row in rows]

        end, offsets = asyncio.run(look())
        assert end >= reported
        assert end % 7 == 0
        assert offsets == list(range(end))


NO_ROOM = """
import asyncio, resource, signal, sys
from broker.store import Part, Store, StoreError
from sqlalchemy import text
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def create(connection):
    connection.execute(text("CREATE TABLE kept (number INTEGER PRIMARY KEY, told BLOB)"))
def put(number):
    told = {"number": number, "told": b"x" * 30_000}
    return lambda one: one.execute(text("INSERT INTO kept VALUES (:number, :told)"), told)
async def run():
    store = Store.open(f"sqlite:///{sys.argv[1]}", parts=[Part("kept", 1, create)])
    heard = asyncio.Event()
    store.on_trouble = lambda sentence: (print(sentence or "well again", flush=True), heard.set())
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    done, last = [], asyncio.Event()
    for number in range(20):
        store.submit(put(number), done.append)
    store.submit(lambda one: None, lambda error: last.set())
    await heard.wait()
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    await last.wait()
    print(done == [None] * 20, await store.read(
        lambda one: one.execute(text("SELECT COUNT(*) FROM kept")).scalar()))
    await store.close()
asyncio.run(asyncio.wait_for(run(), 15))
"""


def test_a_write_that_the_system_refuses_is_tried_again(tmp_path):
    """The system's own limit on files stands for a disk that takes no more."""
    path = tmp_path / "headwater.db"
    done = subprocess.run(
        [sys.executable, "-c", NO_ROOM, str(path)],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=18,
    )
    assert done.returncode == 0, done.stderr
    *troubles, well, outcome = done.stdout.splitlines()
    # More than one, where connecting again meets it elsewhere.
    assert troubles
    for told in troubles:
        assert told.startswith(f"the database {path} "), told
    assert "look at the system's log" in troubles[0] or "the disk is full" in troubles[0]
    assert (well, outcome) == ("well again", "True 20")

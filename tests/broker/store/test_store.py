"""The store: groups, savepoints, order, reading, and what a failing database does to it."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from broker.store import Part, Store, StoreError


def _create(connection: Connection) -> None:
    connection.execute(text("CREATE TABLE kept (number INTEGER PRIMARY KEY, told TEXT)"))


KEPT = Part("kept", 1, _create)


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder / 'headwater.db'}"


@contextlib.asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Store]:
    store = Store.open(url_of(folder), parts=[KEPT])
    try:
        yield store
    finally:
        await store.close()


def put(number: int, told: str = ""):
    def work(connection: Connection) -> None:
        connection.execute(
            text("INSERT INTO kept VALUES (:number, :told)"), {"number": number, "told": told}
        )

    return work


def numbers(connection: Connection) -> list[int]:
    return list(connection.scalars(text("SELECT number FROM kept ORDER BY number")))


def submitted(store: Store, work) -> "asyncio.Future[BaseException | None]":
    future = asyncio.get_running_loop().create_future()
    store.submit(work, future.set_result)
    return future


def test_what_is_reported_as_done_is_there_for_others(tmp_path):
    """Another program reads it at the moment of the report: it is committed, not only written."""

    async def run() -> None:
        async with opened(tmp_path) as store:
            assert await submitted(store, put(1)) is None
            with contextlib.closing(sqlite3.connect(tmp_path / "headwater.db")) as other:
                assert other.execute("SELECT number FROM kept").fetchall() == [(1,)]
            assert await store.read(numbers) == [1]

    asyncio.run(run())


def test_each_commit_is_synced(tmp_path):
    async def run() -> None:
        found = {}

        def look(connection: Connection) -> None:
            for pragma in ("journal_mode", "synchronous"):
                found[pragma] = connection.exec_driver_sql(f"PRAGMA {pragma}").scalar()

        async with opened(tmp_path) as store:
            await submitted(store, look)
        assert found == {"journal_mode": "wal", "synchronous": 2}  # 2 is FULL

    asyncio.run(run())


def test_a_piece_of_work_fails_alone(tmp_path):
    """In one transaction, in every position; what it had changed before it failed is undone."""

    async def run() -> None:
        def half(connection: Connection) -> None:
            put(100)(connection)
            put(1)(connection)  # is there already

        def broken(connection: Connection) -> None:
            put(200)(connection)
            raise ValueError("of its own")

        async with opened(tmp_path) as store:
            all_of_them = [
                submitted(store, one) for one in (broken, put(1), half, put(2), broken, put(3))
            ]
            outcomes = [type(await one).__name__ for one in all_of_them]
            expected = ["ValueError", "NoneType", "IntegrityError", "NoneType", "ValueError"]
            assert outcomes == [*expected, "NoneType"]
            assert await store.read(numbers) == [1, 2, 3]

    asyncio.run(run())


def test_what_gathers_while_a_commit_runs_is_one_transaction(tmp_path):
    async def run() -> None:
        transactions: list[int] = []

        def count(connection: Connection) -> None:
            transactions.append(id(connection.get_transaction()))

        async with opened(tmp_path) as store:
            first = submitted(store, count)
            rest = [submitted(store, count) for _ in range(200)]
            await asyncio.gather(first, *rest)
        assert len(transactions) == 201
        assert len(dict.fromkeys(transactions)) < 20

    asyncio.run(run())


def test_reports_come_in_the_order_of_submission_in_the_loops_thread(tmp_path):
    async def run() -> None:
        told: list[int] = []
        loop = asyncio.get_running_loop()
        async with opened(tmp_path) as store:
            for number in range(50):

                def done(_: BaseException | None, number: int = number) -> None:
                    assert asyncio.get_running_loop() is loop
                    told.append(number)

                store.submit(put(number), done)
        assert told == list(range(50))

    asyncio.run(run())


def test_closing_carries_out_what_waits_and_takes_nothing_more(tmp_path):
    async def run() -> None:
        async with opened(tmp_path) as store:
            for number in range(30):
                store.submit(put(number))
        with pytest.raises(StoreError, match="is closed"):
            store.submit(put(99))
        async with opened(tmp_path) as again:
            assert await again.read(numbers) == list(range(30))

    asyncio.run(run())


def test_a_report_that_fails_stops_no_other(tmp_path):
    async def run() -> None:
        def fails(_: BaseException | None) -> None:
            raise RuntimeError("a fault of its own")

        async with opened(tmp_path) as store:
            store.submit(put(1), fails)
            assert await submitted(store, put(2)) is None

    asyncio.run(run())


def test_a_full_queue_asks_to_hold_and_says_when_there_is_room(tmp_path):
    """Asked through `full`; what is submitted all the same is kept, and room is told once."""

    async def run() -> None:
        async with opened(tmp_path) as store:
            room = asyncio.Event()
            store.on_room = room.set
            assert not store.full()
            store.submit(put(1), size_bytes=2**40)
            assert store.full()
            assert await submitted(store, put(2)) is None
            async with asyncio.timeout(5):
                await room.wait()
            assert not store.full()
            assert (store.waiting_items, store.waiting_bytes) == (0, 0)

    asyncio.run(run())

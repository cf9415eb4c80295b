"""The format before is brought up with all that it holds; the next one is left alone."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from itertools import accumulate
from pathlib import Path

import pytest

from broker.store import RESULTS, Consumer, Outbox, Row, Store, StoreError
from broker.store.results import ROW_BYTES
from tests.broker.store import format_1, format_2

ENDS_MS = [5, 3, 9, 9, 2, 40, 0, 41]


def rows_from(offset: int) -> list[Row]:
    return [
        Row(offset + n, f"id-{n}", "Frost", "team", "alerts", end_ms, b"{}" * (n + 1))
        for n, end_ms in enumerate(ENDS_MS)
    ]


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


@contextlib.asynccontextmanager
async def opened(path: Path) -> AsyncIterator[tuple[Store, Outbox]]:
    store = Store.open(url_of(path), parts=[RESULTS])
    try:
        yield store, await Outbox.open(store)
    finally:
        await store.close()


@pytest.mark.parametrize("first", [0, 17])
def test_the_first_format_keeps_results_epoch_and_consumers(tmp_path, first):
    """The event times of the log as a whole, which it did not have, are those of its rows."""
    path, rows = tmp_path / "headwater.db", rows_from(first)
    format_1.write(url_of(path), "0123", rows, {"spark": first + 3})

    async def run() -> None:
        async with opened(path) as (_, outbox):
            assert (outbox.epoch, outbox.earliest, outbox.end) == ("0123", first, first + 8)
            assert await outbox.read(first, first + 8) == rows
            assert await outbox.consumers() == [Consumer("spark", first + 3, 1000)]
            peaks = [await outbox.ts_at(row.offset) for row in rows]
            assert peaks == list(accumulate(ENDS_MS, max))
            assert await outbox.first_offset_after(9) == first + 5
            assert await outbox.earliest_end(first + 2, 0) == 2
        async with opened(path) as (_, outbox):  # and it is done once
            assert await outbox.read(first, first + 8) == rows

    asyncio.run(run())


def test_the_first_format_can_be_written_on(tmp_path):
    """Nothing that an emptied or added row counts on is missing."""
    path, rows = tmp_path / "headwater.db", rows_from(0)
    format_1.write(url_of(path), "0123", rows, {})

    async def run() -> None:
        async with opened(path) as (store, outbox):
            future = asyncio.get_running_loop().create_future()
            added = Row(8, "new", "Frost", "team", "alerts", 1, b"{}")
            outbox.append([added], 5, future.set_result)
            assert await future is None
            assert await outbox.ts_at(8) == max(ENDS_MS)
            size = await store.read(
                lambda one: one.exec_driver_sql("SELECT kept_bytes FROM outbox_log").scalar()
            )
            assert size == sum(len(row.payload) for row in [*rows, added]) + 9 * ROW_BYTES

    asyncio.run(run())


def test_an_empty_first_format(tmp_path):
    path = tmp_path / "headwater.db"
    format_1.write(url_of(path), "0123", [], {})

    async def run() -> None:
        async with opened(path) as (_, outbox):
            assert (outbox.earliest, outbox.end) == (0, 0)
            assert await outbox.first_offset_after(0) == 0

    asyncio.run(run())


def test_an_old_and_a_new_database_have_the_same_tables(tmp_path):
    """Or else what is written next would work on one and fail on the other."""

    def columns(path: Path) -> dict[str, list[str]]:
        with contextlib.closing(sqlite3.connect(path)) as database:
            names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            return {
                name: sorted(row[1] for row in database.execute(f"PRAGMA table_info({name})"))
                for (name,) in names.fetchall()
            }

    async def run() -> None:
        format_1.write(url_of(tmp_path / "old.db"), "0123", rows_from(0), {})
        format_2.write(url_of(tmp_path / "older.db"), [])
        for name in ("old.db", "older.db", "new.db"):
            async with opened(tmp_path / name):
                pass

    asyncio.run(run())
    assert columns(tmp_path / "old.db") == columns(tmp_path / "new.db")
    assert columns(tmp_path / "older.db") == columns(tmp_path / "new.db")


def test_a_newer_format_is_refused_and_nothing_of_it_is_lost(tmp_path):
    path = tmp_path / "headwater.db"
    update = "UPDATE headwater_format SET version = ? WHERE part = 'results'"

    def set_version(version: int) -> None:
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute(update, (version,))
            database.commit()

    async def run() -> None:
        async with opened(path) as (_, outbox):
            future = asyncio.get_running_loop().create_future()
            outbox.append(rows_from(0), 5, future.set_result)
            await future
        set_version(RESULTS.version + 1)
        with pytest.raises(StoreError, match="written by a newer Headwater"):
            async with opened(path):
                pass
        set_version(RESULTS.version)
        async with opened(path) as (_, outbox):
            assert await outbox.read(0, 8) == rows_from(0)

    asyncio.run(run())

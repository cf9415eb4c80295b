"""What readers of a log have not read is read back in pages, and no more than a copy holds."""

import asyncio
import contextlib
import json

import pytest

from broker.site import unread as reading
from broker.store import RESULTS, GoneError, Retention, Store
from broker.store import Outbox as StoreOutbox
from broker.store.results import Standing
from tests.broker.rows import row_of

NOW_MS = 1_700_000_000_000


@contextlib.asynccontextmanager
async def opened(tmp_path, count, length=0):
    store = Store.open(f"sqlite:///{tmp_path}/log.db", parts=(RESULTS,))
    try:
        outbox = await StoreOutbox.open(store, Retention())
        rows = [
            row_of(
                offset,
                "Hot",
                "anna",
                "log",
                json.dumps({"id": f"r{offset}", "end": NOW_MS, "x": "x" * length}).encode(),
            )
            for offset in range(count)
        ]
        done = asyncio.Event()
        outbox.append(rows, NOW_MS, lambda _error: done.set())
        await done.wait()
        yield outbox
    finally:
        await store.close()


def run(scene):
    return asyncio.run(scene())


@pytest.mark.parametrize(("least", "first"), [(None, 25), (0, 0), (7, 7), (25, 25), (30, 25)])
def test_all_is_read_that_somebody_may_not_have(tmp_path, monkeypatch, least, first):
    monkeypatch.setattr(reading, "PAGE_ROWS", 10)

    async def scene():
        async with opened(tmp_path, 25) as log:
            return await reading.unread(log, least, 25)

    results, begins = run(scene)
    assert begins == first
    assert [result.offset for result in results] == list(range(first, 25))
    assert all(result.payload for result in results)


def test_no_more_is_in_memory_than_a_copy_holds(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "PAGE_BYTES", 2_500)
    monkeypatch.setattr(reading, "GIVEN_BYTES_MAX", 5_000)
    sizes = []

    async def scene():
        async with opened(tmp_path, 40, 1_000) as log:
            read = log.read

            async def measured(*arguments):
                rows = await read(*arguments)
                sizes.append(sum(len(row.payload) for row in rows))
                return rows

            monkeypatch.setattr(log, "read", measured)
            return await reading.unread(log, 0, 40)

    results, first = run(scene)
    assert max(sizes) <= 2_500
    assert sum(len(result.payload) for result in results) <= 5_000
    assert [result.offset for result in results] == [36, 37, 38, 39]
    assert first == 36


@pytest.mark.parametrize("earliest", [7, 99])
def test_what_retention_takes_meanwhile_is_passed_over(tmp_path, monkeypatch, earliest):
    monkeypatch.setattr(reading, "PAGE_ROWS", 5)

    async def scene():
        async with opened(tmp_path, 20) as log:
            read = log.read

            async def taken(begin, *arguments):
                if begin == 5:
                    raise GoneError(Standing("log", earliest, 20, 0, 0))
                return await read(begin, *arguments)

            monkeypatch.setattr(log, "read", taken)
            return await reading.unread(log, 0, 20)

    results, first = run(scene)
    assert first == min(earliest, 20)
    assert [result.offset for result in results] == list(range(first, 20))

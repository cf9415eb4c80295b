"""The outbox: what is appended can be read for ever the same, once, and after a restart too."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.store import (
    RESULTS,
    GoneError,
    NotYetError,
    Outbox,
    Retention,
    Row,
    Store,
    StoreError,
    TooLargeError,
)


def row(offset: int, *, name: str = "", end_ms: int = 0, size: int = 10) -> Row:
    return Row(offset, name or f"id-{offset}", "Frost", "team", "alerts", end_ms, b"x" * size)


@contextlib.asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Outbox]:
    store = Store.open(f"sqlite:///{folder / 'headwater.db'}", parts=[RESULTS])
    try:
        yield await Outbox.open(store)
    finally:
        await store.close()


async def appended(outbox: Outbox, *rows: Row, now_ms: int = 0) -> BaseException | None:
    future = asyncio.get_running_loop().create_future()
    outbox.append(rows, now_ms, future.set_result)
    return await future


def test_what_was_appended_is_read_again_after_a_restart(tmp_path):
    async def run() -> None:
        rows = [row(n) for n in range(7)]
        async with opened(tmp_path) as outbox:
            assert (outbox.earliest, outbox.end) == (0, 0)
            epoch = outbox.epoch
            assert await appended(outbox, *rows[:3]) is None
            assert await appended(outbox, *rows[3:]) is None
            assert outbox.end == 7
            assert await outbox.read(2, 5) == rows[2:5]
        async with opened(tmp_path) as outbox:
            assert (outbox.epoch, outbox.earliest, outbox.end) == (epoch, 0, 7)
            assert await outbox.read(0, 7) == rows

    asyncio.run(run())


def test_two_databases_have_two_epochs(tmp_path):
    async def run() -> None:
        epochs = []
        for name in "ab":
            (tmp_path / name).mkdir()
            async with opened(tmp_path / name) as outbox:
                epochs.append(outbox.epoch)
        assert len(dict.fromkeys(epochs)) == 2

    asyncio.run(run())


def test_what_is_offered_again_is_stored_once(tmp_path):
    """As after a crash between the outbox's commit and the journal's next snapshot."""

    async def run() -> None:
        rows = [row(n) for n in range(6)]
        async with opened(tmp_path) as outbox:
            await appended(outbox, *rows[:4])
            assert await appended(outbox, *rows[1:6]) is None
            assert outbox.repeats == 3
            assert await appended(outbox, *rows[1:3]) is None  # and long before the end
            assert outbox.end == 6
            assert await outbox.read(0, 6) == rows
            assert (await outbox.read(5, 6), outbox.repeats) == (rows[5:], 5)

    asyncio.run(run())


def test_an_id_that_is_there_already_is_passed_over_and_its_offset_left_empty(tmp_path):
    async def run() -> None:
        async with opened(tmp_path) as outbox:
            await appended(outbox, row(0, name="a"), row(1, name="b"))
            await appended(outbox, row(2, name="a"), row(3, name="c"), row(4, name="c"))
            assert outbox.repeats == 2
            assert outbox.end == 5
            assert [(r.offset, r.id) for r in await outbox.read(0, 5)] == [
                (0, "a"),
                (1, "b"),
                (3, "c"),
            ]

    asyncio.run(run())


def test_another_result_under_an_offset_that_is_taken_is_an_error(tmp_path):
    """Were it passed over in silence, a journal that was lost would take all new results along."""

    async def run() -> None:
        async with opened(tmp_path) as outbox:
            await appended(outbox, row(0), row(1))
            error = await appended(outbox, row(1, name="other"), row(2))
            assert isinstance(error, StoreError)
            assert "not of one history" in str(error)
            assert outbox.end == 2
            with pytest.raises(NotYetError):
                await outbox.read(0, 3)

    asyncio.run(run())


def test_a_range_that_is_not_all_there_is_refused_whole(tmp_path):
    async def run() -> None:
        async with opened(tmp_path) as outbox:
            await appended(outbox, row(0), row(1))
            for begin, end in ((0, 3), (2, 3), (3, 3)):
                with pytest.raises(NotYetError, match="ends at offset 2"):
                    await outbox.read(begin, end)
            with pytest.raises(GoneError, match="begins at offset 0"):
                await outbox.read(-1, 1)
            assert await outbox.read(2, 2) == []

    asyncio.run(run())


def test_offsets_that_do_not_ascend_are_a_fault_of_the_caller(tmp_path):
    async def run() -> None:
        async with opened(tmp_path) as outbox:
            assert isinstance(await appended(outbox, row(1), row(1, name="b")), ValueError)
            assert outbox.end == 0

    asyncio.run(run())


def test_whoever_waits_is_woken_by_the_next_result_and_not_before(tmp_path):
    async def run() -> None:
        async with opened(tmp_path) as outbox:
            await appended(outbox, row(0))
            async with asyncio.timeout(2):
                await outbox.beyond(0)  # is beyond already
            waiting = asyncio.create_task(outbox.beyond(1))
            await asyncio.sleep(0)
            assert not waiting.done()
            await appended(outbox, row(1))
            async with asyncio.timeout(2):
                await waiting

    asyncio.run(run())


def test_a_range_that_is_too_large_names_one_that_is_not(tmp_path):
    async def run() -> None:
        async with opened(tmp_path) as outbox:
            rows = [row(0, size=100), row(1, size=5), row(2, size=5), row(3, size=1)]
            await appended(outbox, *rows)
            assert await outbox.read(0, 4, 111) == rows
            for begin, end, bytes_max, fits in ((0, 4, 110, 3), (0, 4, 20, 1), (1, 4, 9, 2)):
                with pytest.raises(TooLargeError) as caught:
                    await outbox.read(begin, end, bytes_max)
                assert caught.value.fits == fits
                expected = [one for one in rows if begin <= one.offset < fits]
                assert await outbox.read(begin, fits, bytes_max) == expected

    asyncio.run(run())


def test_an_acknowledgement_never_goes_back(tmp_path):
    async def run() -> None:
        async with opened(tmp_path) as outbox:
            await appended(outbox, *[row(n) for n in range(9)])
            offsets = [(await outbox.acknowledge("spark", n, n)).offset for n in (0, 5, 3, 9, 0)]
            assert offsets == [0, 5, 5, 9, 9]
            with pytest.raises(NotYetError):
                await outbox.acknowledge("spark", 10, 0)
            assert [(one.offset, one.acked_ms) for one in await outbox.consumers()] == [(9, 0)]

    asyncio.run(run())


def test_the_time_that_the_log_has_reached_goes_on_from_batch_to_batch(tmp_path):
    async def run() -> None:
        async with opened(tmp_path) as outbox:
            for offset, end_ms in enumerate((10, 30, 20, 40)):
                await appended(outbox, row(offset, end_ms=end_ms))
            assert [await outbox.ts_at(n) for n in range(4)] == [10, 30, 30, 40]
            assert await outbox.first_offset_after(20) == 1
            assert await outbox.first_offset_after(30) == 3

    asyncio.run(run())


def test_results_grow_old_while_none_are_added(tmp_path, monkeypatch):
    """By the clock that the broker goes by, at the start and from time to time."""
    monkeypatch.setattr("broker.store.outbox.LOOK_MS", 1)

    async def run() -> None:
        async with opened(tmp_path) as outbox:
            await appended(outbox, row(0), row(1))
        store = Store.open(f"sqlite:///{tmp_path / 'headwater.db'}", parts=[RESULTS])
        now_ms = [500]
        outbox = await Outbox.open(store, Retention(age_ms_max=1000), lambda: now_ms[0])
        await outbox.forget("nobody")  # done after it
        assert (outbox.earliest, outbox.end) == (0, 2)
        now_ms[0] = 2000
        async with asyncio.timeout(5):
            while outbox.earliest < 2:
                await outbox.forget("nobody")
        await store.close()

    asyncio.run(run())


def test_large_results_are_looked_at_before_there_are_many(tmp_path, monkeypatch):
    monkeypatch.setattr("broker.store.outbox.LOOK_BYTES", 10_000)

    async def run() -> None:
        store = Store.open(f"sqlite:///{tmp_path / 'headwater.db'}", parts=[RESULTS])
        outbox = await Outbox.open(store, Retention(size_bytes_max=5000))
        for n in range(20):
            await appended(outbox, row(n, size=1000), now_ms=1)
        await outbox.forget("nobody")  # done after it
        assert outbox.earliest >= 5
        assert outbox.end == 20
        counts = {"taken": outbox.earliest, "unread": outbox.earliest, "repeated": 0}
        assert outbox.counts() == counts
        await store.close()

    asyncio.run(run())

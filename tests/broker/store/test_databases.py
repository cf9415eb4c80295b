"""What the store promises, on every database that is at hand."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine, text

from broker.store import (
    RESULTS,
    CatalogueEntry,
    Consumer,
    Outbox,
    Part,
    Retention,
    Row,
    Store,
    StoredCatalogue,
    StoreError,
    tables,
)
from tests.broker.store import format_1, format_2
from tests.broker.store.databases import KINDS, PostgreSQL, postgresql
from tests.broker.store.test_log_model import Model, doings

PATIENCE_S = 15.0


def _create(connection: Connection) -> None:
    connection.execute(text("CREATE TABLE kept (number INTEGER PRIMARY KEY)"))


KEPT = Part("kept", 1, _create)


@pytest.fixture(scope="module")
def server():
    """One for all, as it takes a second to start."""
    if "postgresql" not in KINDS:
        yield None
        return
    with postgresql() as running:
        yield running


@pytest.fixture(params=KINDS)
def url(request, tmp_path, server: PostgreSQL | None) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'headwater.db'}"
    assert server is not None
    return server.url(server.database())


@contextlib.asynccontextmanager
async def opened(url: str, retention: Retention | None = None) -> AsyncIterator[Outbox]:
    store = Store.open(url, parts=[RESULTS, KEPT])
    try:
        yield await Outbox.open(store, retention)
    finally:
        await store.close()


def row(offset: int, end_ms: int = 0) -> Row:
    return Row(offset, f"id-{offset}", "Frost", "team", "alerts", end_ms, b'{"v":"\xc3\xa9"}')


async def appended(outbox: Outbox, *rows: Row, now_ms: int = 0) -> BaseException | None:
    future = asyncio.get_running_loop().create_future()
    outbox.append(rows, now_ms, future.set_result)
    async with asyncio.timeout(PATIENCE_S):
        return await future


def put(number: int) -> Callable[[Connection], None]:
    def work(connection: Connection) -> None:
        connection.execute(text("INSERT INTO kept VALUES (:number)"), {"number": number})

    return work


def test_results_are_there_after_a_restart(url):
    async def run() -> None:
        rows = [row(n, n * 10) for n in range(50)]
        async with opened(url) as outbox:
            epoch = outbox.epoch
            assert await appended(outbox, *rows[:30]) is None
            assert await appended(outbox, *rows[20:]) is None
        async with opened(url) as outbox:
            assert (outbox.epoch, outbox.earliest, outbox.end) == (epoch, 0, 50)
            assert await outbox.read(0, 50) == rows
            assert await outbox.ts_at(7) == 70
            assert await outbox.first_offset_after(70) == 8

    asyncio.run(run())


def test_a_piece_of_work_fails_alone(url):
    async def run() -> None:
        async with opened(url) as outbox:
            store, outcomes = outbox._store, []
            for number in (1, 1, 2, 2, 3):
                store.submit(put(number), outcomes.append)
            assert await appended(outbox, row(0)) is None
            assert [error is None for error in outcomes] == [True, False, True, False, True]
            found = await store.read(lambda one: list(one.scalars(text("SELECT * FROM kept"))))
            assert sorted(found) == [1, 2, 3]

    asyncio.run(run())


def test_consumers_and_age_bound_the_log(url):
    async def run() -> None:
        async with opened(url, Retention(acked_age_ms=0, age_ms_max=100)) as outbox:
            await appended(outbox, *[row(n) for n in range(10)])
            assert (await outbox.acknowledge("spark", 4, 5)).offset == 4
            outbox.retain(10)
            assert (await outbox.acknowledge("spark", 2, 6)).offset == 4
            assert outbox.earliest == 4
            outbox.retain(200)
            assert not await outbox.forget("nobody")
            assert (outbox.earliest, outbox.end, outbox.unread) == (10, 10, 6)
            assert [one.missed for one in await outbox.consumers()] == [6]

    asyncio.run(run())


def test_who_is_moved_by_retention_is_told_of(url):
    async def run() -> None:
        async with opened(url, Retention(age_ms_max=100)) as outbox:
            await appended(outbox, *[row(n) for n in range(10)])
            await outbox.acknowledge("spark", 4, 5)
            told: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
            outbox.on_read = told.set_result
            outbox.retain(200)
            assert await asyncio.wait_for(told, 10) == 10

    asyncio.run(run())


def test_results_stay_until_the_slowest_consumer_has_them(url):
    async def run() -> None:
        async with opened(url, Retention(acked_age_ms=0, age_ms_max=1_000)) as outbox:
            await appended(outbox, *[row(n) for n in range(10)])
            await outbox.acknowledge("fast", 8, 5)
            await outbox.acknowledge("slow", 3, 5)
            outbox.retain(10)
            assert not await outbox.forget("nobody")  # behind the former
            assert outbox.earliest == 3
            await outbox.acknowledge("slow", 9, 11)
            outbox.retain(12)
            assert not await outbox.forget("nobody")  # behind the former
            assert outbox.earliest == 8

    asyncio.run(run())


def test_a_second_broker_is_told_of_the_first(url):
    async def run() -> None:
        async with opened(url) as outbox:
            await appended(outbox, row(0))
            with pytest.raises(StoreError, match="in use by another broker"):
                Store.open(url, parts=[RESULTS])
            assert await appended(outbox, row(1)) is None
        async with opened(url) as outbox:
            assert outbox.end == 2

    asyncio.run(run())


def test_a_newer_format_is_refused(url):
    async def run() -> None:
        newer = Part("kept", 2, _create)
        await Store.open(url, parts=[newer]).close()
        with pytest.raises(StoreError, match="newer Headwater"):
            Store.open(url, parts=[KEPT])

    asyncio.run(run())


def test_the_first_format_is_brought_up(url):
    async def run() -> None:
        rows = [row(n, end_ms) for n, end_ms in enumerate((5, 3, 9, 2), 7)]
        format_1.write(url, "0123", rows, {"spark": 8})
        async with opened(url) as outbox:
            assert (outbox.epoch, outbox.earliest, outbox.end) == ("0123", 7, 11)
            assert await outbox.read(7, 11) == rows
            assert [await outbox.ts_at(n) for n in range(7, 11)] == [5, 5, 9, 9]
            assert [one.offset for one in await outbox.consumers()] == [8]
            assert await appended(outbox, row(11, 10)) is None
            assert await outbox.first_offset_after(9) == 11

    asyncio.run(run())


# --- of PostgreSQL alone ------------------------------------------------------------------------

if "postgresql" in KINDS:

    def test_the_log_is_a_list_in_postgresql(server):
        engine = create_engine(server.url(server.database()))
        with engine.begin() as connection:
            tables.create(connection)

        @settings(max_examples=25)
        @given(doings=st.lists(doings, min_size=5, max_size=30))
        def holds(doings):
            with engine.connect() as connection, connection.begin() as transaction:
                model = Model(connection)
                for name, *arguments in doings:
                    getattr(model, name)(*arguments)
                    model.check()
                transaction.rollback()

        holds()
        engine.dispose()

    def test_a_server_that_goes_and_comes_again_loses_nothing(server):
        """Its restart is waited for; what was submitted meanwhile is stored once, in order."""

        async def run() -> None:
            url = server.url(server.database())
            async with opened(url) as outbox:
                await appended(outbox, row(0))
                troubles: list[str] = []
                heard = asyncio.Event()
                outbox._store.on_trouble = lambda told: (troubles.append(told), heard.set())
                server.stop()
                outcomes = []
                for n in range(1, 6):
                    outbox.append([row(n)], 0, outcomes.append)
                async with asyncio.timeout(PATIENCE_S):
                    await heard.wait()
                assert outcomes == []
                assert "sesame" not in troubles[0]
                with pytest.raises(StoreError):
                    await outbox.read(0, 1)
                await asyncio.to_thread(server.start)
                assert await appended(outbox, row(6)) is None
                assert outcomes == [None] * 5
                assert troubles[-1] == ""
                assert await outbox.read(0, 7) == [row(n) for n in range(7)]

        asyncio.run(run())

    def test_a_read_only_server_is_told_of_and_waited_for(server):
        async def run() -> None:
            name = server.database()
            async with opened(server.url(name)) as outbox:
                await appended(outbox, row(0))
            server.command(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
            with pytest.raises(StoreError, match="is read-only"):
                Store.open(server.url(name), parts=[RESULTS])
            server.command(f"ALTER DATABASE {name} SET default_transaction_read_only = off")
            async with opened(server.url(name)) as outbox:
                assert await outbox.read(0, 1) == [row(0)]

        asyncio.run(run())

    def test_what_is_not_there_is_told_in_a_sentence(server):
        async def run() -> None:
            with pytest.raises(StoreError, match="does not exist"):
                Store.open(server.url("nosuch"))
            with pytest.raises(StoreError, match="cannot be"):
                Store.open("postgresql+psycopg://tests:sesame@127.0.0.1:1/x")

        asyncio.run(run())


# --- the catalogue ----------------------------------------------------------------------------


def entry(
    name: str, text: str = "event A(v: int)", seq: int = 1, installed_ms: int = 5
) -> CatalogueEntry:
    return CatalogueEntry("team", name, seq, "alerts", "cli", True, installed_ms, text)


def test_the_catalogue_is_what_was_put_last(url):
    async def run() -> None:
        async with opened(url) as outbox:
            catalogue = StoredCatalogue(outbox._store)
            catalogue.change([entry("A"), entry("B"), entry("half \ud800 and \0")])
            catalogue.change([entry("A", "another", seq=2)], [("team", "B")])
        async with opened(url) as outbox:
            found = await StoredCatalogue(outbox._store).all()
            assert found == [entry("half \ud800 and \0"), entry("A", "another", seq=2)]

    asyncio.run(run())


def test_the_second_format_keeps_its_catalogue_and_its_log(url):
    """It knew no actors, and not who had shown who they were."""
    before = [entry("Late", "text", 3, 9), entry("First", "text", 1, 2), entry("Other", "ü", 2, 4)]
    format_2.write(url, before)

    async def run() -> None:
        for _ in range(2):
            async with opened(url) as outbox:
                assert (outbox.epoch, outbox.earliest, outbox.end) == ("0123", 3, 3)
                assert await outbox.consumers() == [Consumer("spark", 3, 1000, 1, 0, 1)]
                found = await StoredCatalogue(outbox._store).all()
                assert [one.subscription for one in found] == ["First", "Other", "Late"]
                assert [one.text for one in found] == ["text", "ü", "text"]
                assert [(one.actor, one.proven) for one in found] == [("", False)] * 3
        async with opened(url) as outbox:
            catalogue = StoredCatalogue(outbox._store)
            catalogue.change([entry("First", "text")])
            assert await appended(outbox, row(3)) is None
            assert [one.subscription for one in await catalogue.all()][-1] == "First"

    asyncio.run(run())

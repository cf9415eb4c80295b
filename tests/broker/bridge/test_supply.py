"""From the outbox to a joined server: none left out, however far the server is behind."""

import asyncio
import contextlib
import json
import random

import pytest
from msgspec.structs import replace

from broker.bridge import supply as supplying
from broker.bridge.supply import CONSUMER
from broker.core.effects import Emission, Emit
from broker.store import RESULTS, Retention, Store
from broker.store import Outbox as StoreOutbox
from broker.store.results import ROW_BYTES
from tests.broker.bridge.scene import Scene, client, section, take, until
from tests.broker.bridge.servers import Line, Mosquitto
from tests.broker.bridge.test_join import SEEDS
from tests.broker.rows import row_of

TOPIC = "headwater/results/anna/Hot"
NOW_MS = 1_700_000_000_000


@pytest.fixture
def mosquitto(tmp_path, find_program):
    find_program("mosquitto")
    folder = tmp_path / "mosquitto"
    folder.mkdir()
    with Mosquitto(folder) as running:
        yield running


@contextlib.asynccontextmanager
async def opened(tmp_path):
    store = Store.open(f"sqlite:///{tmp_path}/log.db", parts=(RESULTS,))
    try:
        yield await StoreOutbox.open(store, Retention())
    finally:
        await store.close()


def emission(offset):
    said = {"id": f"r{offset}", "end": NOW_MS + offset, "subscription": "Hot"}
    return Emission(
        said["id"], said["end"], "anna", "Hot", "alerts", json.dumps(said).encode(), offset
    )


async def detected(site, outbox, offsets):
    """Results are stored, and then given to whoever carries them out, as a broker does it."""
    results = [emission(offset) for offset in offsets]
    rows = [
        row_of(one.offset, one.subscription, one.subscriber, one.actor, one.payload)
        for one in results
    ]
    done = asyncio.Event()
    outbox.append(rows, NOW_MS, lambda _error: done.set())
    await done.wait()
    if site is not None:
        site.emit(Emit(tuple(results)))


def ids(found):
    return [told["id"] for _, told in found]


def results(offsets):
    return [f"r{offset}" for offset in offsets]


async def reached(outbox):
    return {one.name: one.offset for one in await outbox.consumers()}


def test_results_go_out_as_they_are_stored_and_how_far_is_written_down(tmp_path, mosquitto):
    async def scene():
        async with opened(tmp_path) as outbox, client(mosquitto, TOPIC) as one:
            await detected(None, outbox, range(3))  # before it was joined
            async with Scene(section(mosquitto), outbox=outbox) as site:
                await site.up()
                await until(lambda: site.joined.servers[0].supply._next == 3)
                assert await reached(outbox) == {f"{CONSUMER}j0": 3}
                for begin in range(3, 30, 9):
                    await detected(site, outbox, range(begin, begin + 9))
                found = await take(one, lambda found: len(found) == 27)
                assert ids(found) == results(range(3, 30))
            assert await reached(outbox) == {f"{CONSUMER}j0": 30}

    asyncio.run(scene())


def test_how_far_the_server_has_come_is_not_written_down_before_it_has(tmp_path, mosquitto):
    async def scene():
        async with (
            opened(tmp_path) as outbox,
            Line(mosquitto.port) as line,
            client(mosquitto, TOPIC) as one,
            Scene(section(line), outbox=outbox) as site,
        ):
            await site.up()
            await detected(site, outbox, range(3))
            await take(one, lambda found: len(found) == 3)
            await until(lambda: not site.join.counts()["waiting"])
            line.silence(on=True)
            await detected(site, outbox, range(3, 6))
            await until(lambda: site.join._outbound.under_way == 6)
            await site.joined.servers[0].supply.write()
            assert await reached(outbox) == {f"{CONSUMER}j0": 3}
            line.silence(on=False)
            found = await take(one, lambda found: len(found) == 3)
            assert ids(found) == results(range(3, 6))
            await until(lambda: not site.join.counts()["waiting"])
            await site.joined.servers[0].supply.write()
            assert await reached(outbox) == {f"{CONSUMER}j0": 6}

    asyncio.run(scene())


def test_without_a_lost_connection_each_result_comes_once(tmp_path, mosquitto, monkeypatch):
    """Whether it is handed on as it comes or fetched, and where one follows the other."""
    monkeypatch.setattr(supplying, "ROWS_MAX", 7)

    async def scene():
        async with opened(tmp_path) as outbox, client(mosquitto, TOPIC) as one:
            async with Scene(section(mosquitto), outbox=outbox) as site:
                await site.up()
                await until(lambda: site.joined.servers[0].supply._next == 0)
            await detected(None, outbox, range(50))
            async with Scene(section(mosquitto), outbox=outbox) as site:
                for begin in range(50, 100, 5):
                    await detected(site, outbox, range(begin, begin + 5))
                found = await take(one, lambda found: "r99" in ids(found))
                assert ids(found) == results(range(100))

    asyncio.run(scene())


def test_what_was_stored_and_not_taken_there_comes_after_a_restart(tmp_path, mosquitto):
    """The broker was killed before the server had them, or before it was told of them."""

    async def scene():
        async with opened(tmp_path) as outbox, client(mosquitto, TOPIC) as one:
            async with Scene(section(mosquitto), outbox=outbox) as site:
                await site.up()
                await detected(site, outbox, range(5))
                await take(one, lambda found: len(found) == 5)
            await detected(None, outbox, range(5, 9))
            async with Scene(section(mosquitto), outbox=outbox) as site:
                await detected(site, outbox, range(9, 12))
                found = await take(one, lambda found: len(found) == 7)
                assert ids(found) == results(range(5, 12))

    asyncio.run(scene())


@SEEDS
def test_a_server_that_is_away_for_long_gets_all_of_it_in_order(
    tmp_path, mosquitto, seed, monkeypatch
):
    """Also of more than the queue has room for, which stays on the disk."""
    monkeypatch.setattr(supplying, "ROWS_MAX", 7)
    monkeypatch.setattr(supplying, "BYTES_MAX", 300)
    draw = random.Random(seed)

    async def scene():
        async with (
            opened(tmp_path) as outbox,
            Line(mosquitto.port) as line,
            client(mosquitto, TOPIC) as one,
        ):
            small = section(line, queue_messages_max=20, inflight_max=5)
            async with Scene(small, outbox=outbox, seed=seed) as site:
                await site.up()
                offset, found = 0, []
                for _ in range(6):
                    line.silence(on=True)
                    for _ in range(draw.randrange(1, 5)):
                        end = offset + draw.randrange(1, 40)
                        await detected(site, outbox, range(offset, end))
                        offset = end
                    assert len(site.join._outbound) <= 20 + 5 + 1
                    line.cut()
                    line.silence(on=False)
                    upto = results([offset - 1])[0]
                    found += await take(one, lambda found, upto=upto: upto in ids(found))
                first = list(dict.fromkeys(ids(found)))
                assert first == results(range(offset))
                assert site.join.counted()["dropped"] == 0
            assert await reached(outbox) == {f"{CONSUMER}j0": offset}

    asyncio.run(scene())


def test_what_retention_took_is_counted_and_the_rest_goes_on(tmp_path, mosquitto):
    async def scene():
        async with opened(tmp_path) as outbox, client(mosquitto, TOPIC) as one:
            async with Scene(section(mosquitto), outbox=outbox) as site:
                await site.up()
                await until(lambda: site.joined.servers[0].supply._next == 0)
            await detected(None, outbox, range(20))

            # As if these were too many bytes: the oldest go, whoever has not read them.
            few = Retention(size_bytes_max=5 * (ROW_BYTES + len(emission(10).payload)))
            outbox._retention = few
            outbox.retain(NOW_MS)
            await until(lambda: outbox.earliest)
            gone = outbox.earliest
            assert gone < 20
            async with Scene(section(mosquitto), outbox=outbox) as site:
                found = await take(one, lambda found: "r19" in ids(found))
                assert ids(found) == results(range(gone, 20))

    asyncio.run(scene())


def test_a_server_that_is_joined_no_more_is_forgotten(tmp_path, mosquitto):
    """Else the outbox would keep for it what nobody will ever fetch."""

    async def scene():
        async with opened(tmp_path) as outbox:
            for name in (f"{CONSUMER}gone", "spark"):
                await outbox.acknowledge(name, 0, NOW_MS)
            async with Scene(section(mosquitto), outbox=outbox) as site:
                await site.up()
                await until(lambda: site.joined.servers[0].supply._next == 0)
            for _ in range(1_000):  # that goes on beside the supplying
                if len(await reached(outbox)) < 3:
                    break
                await asyncio.sleep(0.01)
            assert sorted(await reached(outbox)) == [f"{CONSUMER}j0", "spark"]

    asyncio.run(scene())


class Near:
    """A join whose server takes whatever comes."""

    name = "j0"
    room = 100

    def oldest_offset(self):
        return None


def test_what_another_broker_gives_out_is_passed_over(tmp_path):
    async def scene():
        async with opened(tmp_path) as outbox:
            put = []
            supply = supplying.Supply(Near(), outbox, put.append, lambda: NOW_MS)
            running = asyncio.create_task(supply.run())
            await until(lambda: supply._next == 0)
            first, silent, void, last = [emission(offset) for offset in range(4)]
            supply.offer([first, replace(silent, is_silent=True), replace(void, payload=b"")])
            supply.offer([last])
            assert [result.offset for result in put] == [0, 3]
            running.cancel()

    asyncio.run(scene())

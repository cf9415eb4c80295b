"""What the MQTT face keeps goes to a real database and comes back as it was."""

import asyncio
import random
import weakref

import pytest
from hypothesis import settings
from sqlalchemy import create_engine

from broker.mqtt.codec import packets as p
from broker.mqtt.server import MqttServer
from broker.mqtt.storage import writer as writing
from broker.mqtt.storage.batches import HubStorage
from broker.mqtt.storage.rows import (
    KEPT,
    KEYS,
    Batch,
    MarkRow,
    QueueRow,
    RetainedRow,
    SessionRow,
    key_of,
)
from broker.mqtt.storage.tables import TABLES, load, write
from broker.mqtt.storage.writer import Writing
from broker.store import Store, StoreError
from tests.broker.mqtt.sockets import until
from tests.broker.mqtt.test_fuzz import siege
from tests.broker.mqtt.test_hub_model import KeptHub
from tests.broker.mqtt.world import Disk, World, kept


class Database(Disk):
    """A disk that is a database, too: both have to hold the same after each batch."""

    def __init__(self):
        super().__init__()
        self.engine = create_engine("sqlite://")
        weakref.finalize(self, self.engine.dispose)
        with self.engine.begin() as connection:
            KEPT.create(connection)

    def take(self, batch):
        super().take(batch)
        with self.engine.begin() as connection:
            write(connection, batch)

    def kept(self):
        with self.engine.begin() as connection:
            found = load(connection)
        for table, rows in found.tables.items():
            assert {key_of(row): row for row in rows} == self.tables[table]
            assert rows == [self.tables[table][key] for key in sorted(self.tables[table])]
        return found


class StoredHub(KeptHub):
    disk = Database


TestStoredHub = pytest.mark.timeout(60)(StoredHub.TestCase)
TestStoredHub.settings = settings(max_examples=15, stateful_step_count=30)


def test_what_hostile_clients_leave_goes_through_the_database():
    disk = Database()
    siege(77, 400, disk)
    disk.kept()


def test_whatever_a_message_holds_comes_back():
    world = World(disk=Database())
    chance = random.Random(5)
    client = kept(world, p.V5)
    client.subscribe("#", qos=2, properties=p.Properties(subscription_identifier=(268_435_455,)))
    client.lose()
    publisher = world.client(p.V5, "p ü \u6c34 \U0001f600")
    said = {
        "response_topic": "r/ü",
        "correlation_data": bytes(range(256)),
        "content_type": "\U0001f600",
        "payload_format_indicator": 0,
        "user_property": (("a", "1"), ("a", "2"), ("", "")),
    }
    payload = chance.randbytes(100_000)
    publisher.publish("t/ü/\U0001f600", payload, qos=2, retain=True, **said)
    world = world.after(orderly=False)
    got = kept(world, p.V5).take_one(p.Publish)
    assert (got.topic, got.payload, got.qos) == ("t/ü/\U0001f600", payload, 2)
    properties = p.Properties(subscription_identifier=(268_435_455,), **said)
    assert got.properties == properties
    (retained,) = world.hub.retained("#")
    assert retained.payload == payload


def test_every_table_has_the_fields_of_its_rows():
    for row, table in TABLES.items():
        assert [column.name for column in table.columns] == list(row.__struct_fields__)
        assert {column.name for column in table.primary_key} == set(KEYS[row])


def test_rows_that_are_not_of_one_piece_are_a_sentence_and_no_traceback(tmp_path):
    half, odd = Batch(), Batch()
    half.put(SessionRow("c", None, 5, 1000, None, None, None))
    half.put(QueueRow(1, "c", 7, 1, False, "", "", 0))
    odd.put(SessionRow("c", None, 5, 1000, None, b"\xff", None))

    async def scene(batch, name):
        store = Store.open(f"sqlite:///{tmp_path}/{name}.db", parts=(KEPT,))
        done = asyncio.get_running_loop().create_future()
        store.submit(lambda connection: write(connection, batch), done.set_result)
        await done
        with pytest.raises(StoreError, match="cannot be understood; restore it, or move it away"):
            await MqttServer(None, listeners=()).keep_in(store)
        await store.close()

    asyncio.run(scene(half, "half"))
    asyncio.run(scene(odd, "odd"))


# --- the way there --------------------------------------------------------------------------------


class Halting:
    """A store whose work is done when the test says so."""

    def __init__(self):
        self.submitted = []

    def submit(self, work, done, size_bytes):
        self.submitted.append((work, done))

    def finish(self, error=None):
        self.submitted.pop(0)[1](error)


def test_one_batch_is_under_way_and_what_gathers_goes_with_the_next():
    async def scene():
        keeping, store, told = HubStorage(lambda: 0), Halting(), []
        way = Writing(keeping, store, told.append)
        for number in range(3):
            keeping.batch.put(MarkRow("m", number))
            way.look()
        assert len(store.submitted) == 1
        store.finish()
        assert told == [1]
        assert len(store.submitted) == 1
        way.look()
        store.finish()
        assert told == [1, 2]
        assert store.submitted == []
        await way.drain(1)

    asyncio.run(scene())


def test_an_empty_batch_for_which_somebody_waits_needs_no_disk():
    async def scene():
        keeping, store, told = HubStorage(lambda: 0), Halting(), []
        way = Writing(keeping, store, told.append)
        keeping.awaited = 1
        way.look()
        assert (told, store.submitted) == ([1], [])
        keeping.batch.put(MarkRow("m", 1))
        way.look()
        keeping.awaited = keeping.number
        way.look()
        assert told == [1]  # in order: not before the one under way
        store.finish()
        assert told == [1, 2, 3]

    asyncio.run(scene())


def test_a_batch_that_failed_is_tried_again_with_what_came_after_it(monkeypatch, caplog):
    monkeypatch.setattr(writing, "AGAIN_S", 0.01)

    async def scene():
        keeping, store, told = HubStorage(lambda: 0), Halting(), []
        way = Writing(keeping, store, told.append)
        keeping.batch.put(MarkRow("a", 1))
        keeping.batch.put(MarkRow("b", 1))
        way.look()
        keeping.batch.remove(MarkRow, "a")
        keeping.batch.put(MarkRow("b", 2))
        store.finish(ValueError("planted"))
        assert told == []
        way.look()
        await until(lambda: store.submitted)
        (work, _), disk = store.submitted[0], Database()
        with disk.engine.begin() as connection:
            work(connection)
            found = load(connection)
        assert found.of(MarkRow) == [MarkRow("b", 2)]
        store.finish()
        assert told == [2]
        await way.drain(1)

    asyncio.run(scene())
    assert [record.message for record in caplog.records] == [
        "sessions of MQTT clients could not be written"
    ]


def test_a_disk_that_does_not_answer_does_not_hold_up_the_end_for_ever(caplog):
    async def scene():
        keeping, store = HubStorage(lambda: 0), Halting()
        way = Writing(keeping, store, lambda _number: None)
        keeping.batch.put(MarkRow("m", 1))
        way.look()
        await way.drain(0.05)

    asyncio.run(scene())
    assert "could not be written in time" in caplog.text


def test_a_store_keeps_the_tables_and_refuses_those_of_a_newer_format(tmp_path):
    url = f"sqlite:///{tmp_path}/kept.db"

    async def scene():
        store = Store.open(url, parts=(KEPT,))
        batch = Batch()
        batch.put(RetainedRow("a", b"1"))
        done = asyncio.get_running_loop().create_future()
        store.submit(lambda connection: write(connection, batch), done.set_result)
        assert await done is None
        await store.close()
        store = Store.open(url, parts=(KEPT,))
        assert (await store.read(load)).of(RetainedRow) == [RetainedRow("a", b"1")]
        await store.close()
        newer = type(KEPT)(KEPT.name, KEPT.version + 1, KEPT.create, {KEPT.version: lambda _: None})
        await Store.open(url, parts=(newer,)).close()
        with pytest.raises(StoreError, match="newer Headwater"):
            Store.open(url, parts=(KEPT,))

    asyncio.run(scene())

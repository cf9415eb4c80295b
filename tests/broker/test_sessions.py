"""What results kept MQTT sessions still miss is queued for them before the first client comes."""

import asyncio
import json

import pytest

from broker.core.effects import Emission, Emit
from broker.driver.mqtt_face import Delivery
from broker.driver.mqtt_sessions import go_on
from broker.mqtt.codec import packets as p
from broker.mqtt.listeners import Listener
from broker.mqtt.server import MqttServer
from broker.mqtt.storage.rows import KEPT
from broker.store import RESULTS, Outbox, Retention, Store
from tests.broker.mqtt.sockets import RawClient
from tests.broker.rows import row_of

KEPT_5 = p.Properties(session_expiry_interval=3600)


def rows(begin, end):
    return [
        row_of(
            *(offset, "Hot", "anna", "alerts"),
            json.dumps({"id": f"r{offset}", "end": offset}).encode(),
        )
        for offset in range(begin, end)
    ]


class Site:
    """An MQTT server on a database, and a log of results."""

    def __init__(self, url, retention=None):
        self.url = url
        self.retention = retention

    async def __aenter__(self):
        self.store = Store.open(self.url, parts=(RESULTS, KEPT))
        self.log = await Outbox.open(self.store, self.retention)
        self.server = MqttServer(None, listeners=(Listener(port=0),))
        self.delivery = Delivery(self.server, "headwater")
        await go_on(self.server, self.delivery, self.store, self.log)
        await self.server.start()
        return self

    async def __aexit__(self, *_):
        await self.server.stop()
        await self.store.close()

    async def stored(self, some):
        done = asyncio.get_running_loop().create_future()
        self.log.append(some, 0, done.set_result)
        assert await done is None

    async def looked(self):
        """Have retention look, now that all that was submitted is stored."""
        await self.log.consumers()
        await self.stored([])
        self.log.retain(0)
        await self.stored([])

    async def reader(self):
        return await RawClient.open(
            self.server.addresses()[0][1],
            client_id="reader",
            clean_start=False,
            properties=KEPT_5,
        )


def emission(row):
    who = row.subscriber, row.subscription, row.actor
    return Emission(row.id, row.end_ms, *who, row.payload, row.offset)


async def heard(reader):
    await reader.send(p.Pingreq())
    found = []
    while not isinstance(packet := await reader.next(), p.Pingresp):
        found.append(json.loads(packet.payload)["id"])
        await reader.send(p.Puback(packet.packet_id))
    return found


@pytest.mark.parametrize("count", [3, 700])
def test_results_that_were_stored_and_not_queued_are_queued_at_the_start(tmp_path, count):
    url = f"sqlite:///{tmp_path}/x.db"

    async def scene():
        async with Site(url) as site:
            reader = await site.reader()
            await reader.send(p.Subscribe(1, (p.Filter("headwater/results/anna/#", 1),)))
            await reader.next()
            await reader.close()
            await site.stored(rows(0, count))  # the process ends before they are given out
        async with Site(url) as site:
            reader = await site.reader()
            assert reader.welcome.session_present
            assert await heard(reader) == [f"r{offset}" for offset in range(count)]
            await reader.close()
        async with Site(url) as site:
            reader = await site.reader()
            assert await heard(reader) == []
            await reader.close()

    asyncio.run(scene())


def test_retention_waits_until_kept_sessions_have_their_results(tmp_path):
    """However small the log is to be, and whenever the process ends."""
    url, least = f"sqlite:///{tmp_path}/x.db", Retention(size_bytes_max=1)

    async def scene():
        async with Site(url, least) as site:
            reader = await site.reader()
            await reader.send(p.Subscribe(1, (p.Filter("headwater/results/anna/#", 1),)))
            await reader.next()
            await reader.close()
            await site.stored(rows(0, 700))
            await site.looked()
            assert site.log.earliest == 0
        async with Site(url, least) as site:
            reader = await site.reader()
            assert await heard(reader) == [f"r{offset}" for offset in range(700)]
            await reader.close()
            await site.looked()
            assert site.log.earliest == 700

    asyncio.run(scene())


def test_the_first_session_that_is_kept_misses_nothing_that_was_before_it(tmp_path):
    """Where nobody is kept nothing is read, and no mark is written; the session brings it."""
    url = f"sqlite:///{tmp_path}/x.db"

    async def scene():
        async with Site(url) as site:
            await site.stored(rows(0, 5))
        async with Site(url) as site:
            assert site.server.results_needed() is None
            await site.stored(rows(5, 7))
            site.delivery.emit(Emit(tuple(map(emission, rows(5, 7)))))
            reader = await site.reader()
            await reader.send(p.Subscribe(1, (p.Filter("headwater/results/anna/#", 1),)))
            await reader.next()
            await reader.close()
            await site.stored(rows(7, 9))  # the process ends before they are given out
        async with Site(url) as site:
            reader = await site.reader()
            assert await heard(reader) == ["r7", "r8"]
            await reader.close()

    asyncio.run(scene())

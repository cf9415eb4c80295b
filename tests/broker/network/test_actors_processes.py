"""Real brokers in a line: results find their actors, and follow those that go elsewhere."""

import asyncio
import itertools
import json

import pytest

from tests.broker.network.fleet import Fleet
from tests.broker.running import PATIENCE_S, ask, client

LINE = {"b1": "b0", "b2": "b1"}
TEXT = """
event Alarm(room: text)
subscription Plain from x to alerts
detect Alarm
subscription Room from x to Air of group.room
detect Alarm
group by room
subscription Near from x to nearest Tablet
detect Alarm
"""


class Town:
    """Three brokers; the subscriptions are at home at b0, and the sensor is at b2."""

    def __init__(self, folder):
        self.fleet = Fleet(folder, LINE)
        self.numbers = itertools.count()
        self.heard = []  # (actor, broker, event)

    async def ready(self):
        fleet = await self.fleet.start()
        await fleet.until(lambda: all(len(fleet.network(n)["known"]) == 2 for n in fleet.names))
        async with client(fleet.brokers["b2"].port()) as one:
            said = json.dumps({"types": ["Alarm"]})
            await one.publish("headwater/sources/s", said, qos=1, timeout=PATIENCE_S)
        async with client(fleet.brokers["b0"].port()) as one:
            assert (await ask(one, "submit", TEXT))["state"] == "active"
        await fleet.until(lambda: "b2" in fleet.network("b0")["origins"])

    async def listen(self, actor, broker):
        """Have an actor listen at a broker; to be awaited, and the task cancelled at the end."""
        task = asyncio.create_task(self._hear(actor, broker))
        await self._known(actor, broker, there=True)
        return task

    async def leave(self, task, actor, broker):
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self._known(actor, broker, there=False)

    async def _known(self, actor, broker, *, there):
        fleet = self.fleet

        def known():
            told = [fleet.network(name)["actors"].get(broker, []) for name in fleet.names]
            return all((actor in one) == there for one in told)

        await fleet.until(known)

    async def _hear(self, actor, broker):
        port = self.fleet.brokers[broker].port()
        async with client(port, f"headwater/actors/{actor}") as one:
            async for message in one.messages:
                (events,) = json.loads(message.payload)["events"].values()
                self.heard.append((actor, broker, *events))

    async def alarm(self, room="r"):
        name = f"e{next(self.numbers)}"
        async with client(self.fleet.brokers["b2"].port()) as one:
            said = json.dumps({"id": name, "room": room})
            await one.publish("headwater/events/Alarm/s", said, qos=1, timeout=PATIENCE_S)
        return name

    async def comes_to(self, *expected):
        """These, each once, and nothing else."""
        await self.fleet.until(lambda: len(self.heard) >= len(expected))
        await self.fleet.until(lambda: not self.fleet.network("b0")["copies"])
        assert sorted(self.heard) == sorted(expected)
        self.heard.clear()


async def walk(folder):
    town = Town(folder)
    try:
        await town.ready()
        alerts = await town.listen("alerts", "b2")
        kitchen = await town.listen("Air/kitchen", "b1")
        near = await town.listen("Tablet/b", "b1")
        far = await town.listen("Tablet/a", "b2")
        one = await town.alarm("kitchen")
        await town.comes_to(
            ("alerts", "b2", one), ("Air/kitchen", "b1", one), ("Tablet/b", "b1", one)
        )
        # The actor of all is on its way to another broker; the nearest tablet is gone.
        await town.leave(alerts, "alerts", "b2")
        await town.leave(near, "Tablet/b", "b1")
        two = await town.alarm("hall")
        await town.comes_to(("Tablet/a", "b2", two))
        alerts = await town.listen("alerts", "b1")
        await town.comes_to(("alerts", "b1", two))
        # Equally near ones: the least name. The actor of all is at the home itself now.
        near = [await town.listen(name, "b1") for name in ("Tablet/d", "Tablet/c")]
        await town.leave(alerts, "alerts", "b1")
        alerts = await town.listen("alerts", "b0")
        three = await town.alarm("kitchen")
        await town.comes_to(
            ("alerts", "b0", three), ("Air/kitchen", "b1", three), ("Tablet/c", "b1", three)
        )
        for task in (alerts, kitchen, far, *near):
            task.cancel()
        await asyncio.gather(alerts, kitchen, far, *near, return_exceptions=True)
    finally:
        await town.fleet.stop()


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_result_is_published_once_and_where_its_actor_listens_by_then(tmp_path):
    asyncio.run(walk(tmp_path))

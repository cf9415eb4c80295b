"""Real brokers that decide where tasks run: a task goes to its sources, and its host may die."""

import asyncio
import json
import random
import time
from collections import Counter

import pytest

import headwater
from headwater.cli import main
from tests.broker.network.fleet import NAMES, Fleet
from tests.broker.running import PATIENCE_S, ask, client

HOME, SENSORS = "b5", {"t3": ("b3", "Temp"), "w4": ("b4", "Wind")}
BETWEEN = "b1"  # the sources' brokers and home meet there
TEXT = """event Temp(val: float)
event Wind(val: float)
subscription Apart from five to alerts
detect[recent] Temp as t and Wind as w within 1 s where t.val > w.val + 8
"""
BEGIN_MS = 1_700_000_000_000
RARE = (0, 9, *[5] * 18)  # values of which few pairs make a result
SPEED = 20  # of the events' time; two readings a second apart are 50 ms apart
COORDINATED = "\n[coordinator]\nenabled = true\nmeasure_ms = 3000\n"


class PlannedFleet(Fleet):
    """Six brokers whose tasks follow the load."""

    more = COORDINATED

    def plan(self, name=HOME):
        status, told = self.brokers[name].get("/v1/plan")
        assert status == 200
        return told

    def host(self):
        tasks = self.plan()["tasks"]
        return tasks[0]["host"] if tasks else ""

    def serving(self):
        """Where the task runs by its home's own account."""
        (cell,) = self.network(HOME)["cells"]
        return cell["host"] if cell["state"] == "active" else ""

    def term(self):
        """How often the task has begun somewhere."""
        (cell,) = self.network(HOME)["cells"]
        return cell["term"]


class Load:
    """Sensors that publish one message after the other, each acknowledged before the next.

    They share a clock, as sensors do: whoever is ahead by its own would have a host keep all
    that it said, and what a task keeps counts where it is placed.
    """

    def __init__(self, fleet, seed):
        self.fleet = fleet
        self.sent = {name: [] for name in SENSORS}
        self.stopping = asyncio.Event()
        self.draw = random.Random(seed)
        self.gaps_s = dict.fromkeys(SENSORS, 0.01)  # between two messages
        self.batch = 1  # readings in one message
        self.values = tuple(range(10))

    async def publish(self, name):
        broker, type_name = SENSORS[name]
        topic = f"headwater/events/{type_name}/{name}"
        begin_s, last_ms = time.monotonic(), BEGIN_MS
        async with client(self.fleet.brokers[broker].port(), identifier=f"sensor-{name}") as one:

            async def send(events):
                self.sent[name] += events
                await one.publish(topic, json.dumps(events), qos=1, timeout=PATIENCE_S)

            while not self.stopping.is_set():
                await asyncio.sleep(self.gaps_s[name])
                now_ms = BEGIN_MS + int((time.monotonic() - begin_s) * 1000 * SPEED)
                times_ms = self.draw.sample(range(last_ms, now_ms), self.batch)
                last_ms = now_ms
                await send([self.reading(name, at_ms) for at_ms in sorted(times_ms)])
            # Of no result: nothing passes it, so that a pair with it would not be settled.
            await send([self.reading(name, BEGIN_MS + 10**9) | {"val": 5.0}])

    def reading(self, name, at_ms):
        value = float(self.draw.choice(self.values))
        return {"id": f"{name}-{at_ms}", "timestamp": at_ms, "val": value}

    def expected(self):
        """Ids of what one engine finds."""
        events = [
            {"type": SENSORS[name][1], "source": name, **one}
            for name, some in self.sent.items()
            for one in some
        ]
        events.sort(key=lambda one: one["timestamp"])
        engine = headwater.Engine(TEXT)
        found = [*engine.push(events), *engine.finish()]
        return Counter(one["id"] if isinstance(one, dict) else one.to_dict()["id"] for one in found)


async def ready(fleet):
    await fleet.until(
        lambda: all(len(one["known"]) == len(NAMES) - 1 for one in map(fleet.network, NAMES))
    )
    for name, (broker, type_name) in SENSORS.items():
        async with client(fleet.brokers[broker].port()) as one:
            said = json.dumps({"source": name, "types": [type_name]})
            await one.publish(f"headwater/sources/{name}", said, qos=1)
    async with client(fleet.brokers[HOME].port()) as one:
        assert (await ask(one, "submit", TEXT))["state"] in {"accepted", "active"}
    await fleet.until(
        lambda: fleet.subscribed(HOME) == ["active"]
    )  # what comes earlier is not for it


async def run(folder, seed, disturb, gaps_s=None, first=BETWEEN, batch=1, values=()):
    fleet = PlannedFleet(folder)
    try:
        await fleet.start()
        await ready(fleet)
        await fleet.until(lambda: fleet.serving() == HOME)
        load = Load(fleet, seed)
        load.gaps_s |= gaps_s or {}
        load.batch = batch
        load.values = values or load.values
        publishing = [asyncio.create_task(load.publish(name)) for name in SENSORS]
        await fleet.until(lambda: fleet.serving() == first)
        await disturb(fleet, load)
        load.stopping.set()
        await asyncio.gather(*publishing)
        wanted = load.expected()
        assert wanted.total() > 5
        await fleet.until(lambda: len(fleet.results(HOME)) >= wanted.total())
        assert Counter(row["id"] for row in fleet.results(HOME)) == wanted
        await fleet.until(lambda: not any(fleet.network(name)["retained"] for name in NAMES))
    finally:
        await fleet.stop()


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(3))
def test_the_host_of_a_task_is_killed_under_load_and_nothing_is_lost_or_doubled(tmp_path, seed):
    async def disturb(fleet, _load):
        await asyncio.sleep(2)
        await fleet.kill(BETWEEN)
        await asyncio.sleep(5)
        await fleet.until(lambda: fleet.serving() == BETWEEN)

    asyncio.run(run(tmp_path, seed, disturb))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_rate_doubles_and_the_task_follows_it_once_and_nothing_is_lost_or_doubled(tmp_path):
    gaps_s = {"w4": 0.17, "t3": 0.28}

    async def disturb(fleet, load):
        load.gaps_s["t3"] /= 2
        await fleet.until(lambda: fleet.serving() in {BETWEEN, "b3"})
        await asyncio.sleep(10)  # a step more, perhaps
        term = fleet.term()
        await asyncio.sleep(15)
        assert fleet.term() == term
        assert fleet.serving() in {BETWEEN, "b3"}

    asyncio.run(run(tmp_path, 11, disturb, gaps_s, first="b4", batch=20, values=RARE))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_drained_broker_is_rid_of_its_tasks_and_what_is_known_of_them_is_told(tmp_path, capsys):
    async def disturb(fleet, _load):
        url = f"http://127.0.0.1:{fleet.brokers[BETWEEN].port('http')}"
        told = fleet.plan()
        assert {one["broker"] for one in told["brokers"]} == set(NAMES)
        (task,) = told["tasks"]
        assert (task["home"], task["host"]) == (HOME, BETWEEN)
        assert task["next"]["broker"] != BETWEEN
        drained = await asyncio.to_thread(main, ["drain", "--broker", url, "--wait", "60"])
        assert drained == 0
        assert fleet.host() != BETWEEN
        assert await asyncio.to_thread(main, ["plan", "--broker", url]) == 0
        assert "drained" in capsys.readouterr().out
        assert await asyncio.to_thread(main, ["drain", "--broker", url, "--undo"]) == 0
        await fleet.until(lambda: fleet.serving() == BETWEEN)

    asyncio.run(run(tmp_path, 7, disturb))

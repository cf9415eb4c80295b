"""Real brokers in a tree: what is detected is what one engine detects, whatever happens between."""

import asyncio
import json
import random
from collections import Counter

import pytest

import headwater
from tests.broker.network.fleet import NAMES, Fleet
from tests.broker.running import PATIENCE_S, ask, client

TYPES = "event Temp(val: float)\nevent Wind(val: float)\n"
TEXTS = {
    "b3": TYPES + "subscription Rise from three to alerts\n"
    "detect Temp(val < 4) as a then[..3 s] Temp(val > 6) as b group by source\n",
    "b5": TYPES + "subscription Gust from five to alerts\n"
    "detect Temp(val > 5) as t and Wind(val > 5) as w within 2 s\n",
    "b4": TYPES + "subscription Calm from four to alerts\n"
    "detect Temp(val > 7) as t without[1 s] Wind(val > 4)\n",
}
SENSORS = {"t3": ("b3", "Temp"), "t5": ("b5", "Temp"), "w4": ("b4", "Wind"), "w5": ("b5", "Wind")}
BEGIN_MS = 1_700_000_000_000


def readings(seed, count):
    """By source, in order of time; all end with a reading that nothing is made of."""
    draw = random.Random(seed)
    found = {}
    for name in SENSORS:
        times = sorted(draw.sample(range(0, count * 400, 7), count))
        found[name] = [
            {"id": f"{name}-{at}", "timestamp": BEGIN_MS + ms, "val": float(draw.randint(0, 9))}
            for at, ms in enumerate(times)
        ]
        last = BEGIN_MS + count * 400 + 20_000
        found[name].append({"id": f"{name}-end", "timestamp": last, "val": 0.0})
    return found


def expected(sent):
    """(subscription, id) of what one engine finds."""
    events = [
        {"type": SENSORS[name][1], "source": name, **one} for name in sent for one in sent[name]
    ]
    events.sort(key=lambda one: one["timestamp"])
    found = Counter()
    for text in TEXTS.values():
        engine = headwater.Engine(text)
        for result in [*engine.push(events), *engine.finish()]:
            said = result if isinstance(result, dict) else result.to_dict()
            if not any(name.endswith("-end") for some in said["events"].values() for name in some):
                found[said["subscription"], said["id"]] += 1
    return found


def found_in(fleet):
    rows = [row for name in TEXTS for row in fleet.results(name)]
    return Counter((row["subscription"], row["id"]) for row in rows)


async def publish(fleet, name, events, pace_s):
    """Publish readings one after the other at QoS 1: each is acknowledged before the next."""
    broker, type_name = SENSORS[name]
    async with client(fleet.brokers[broker].port(), identifier=f"sensor-{name}") as one:
        for event in events:
            topic = f"headwater/events/{type_name}/{name}"
            await one.publish(topic, json.dumps(event), qos=1, timeout=PATIENCE_S)
            await asyncio.sleep(pace_s)


async def listen(fleet, heard):
    """Listen where no subscription is at home to the actor of all, and note the results' ids."""
    async with client(fleet.brokers["b0"].port(), "headwater/actors/alerts") as one:
        async for message in one.messages:
            heard.add(json.loads(message.payload)["id"])


class Reader:
    """Asks the brokers where subscriptions are at home how far their logs are settled."""

    def __init__(self, fleet):
        self.fleet = fleet
        self.told = []  # (broker, end of its log, settled)

    def ask(self):
        """What they say now, by broker."""
        found = {}
        for name in TEXTS:
            _, said = self.fleet.brokers[name].get("/v1/log/offsets?settled=0")
            self.told.append((name, said["end"], said["settled"]))
            found[name] = said["settled"] or 0
        return found

    async def follow(self):
        while True:
            await asyncio.to_thread(self.ask)
            await asyncio.sleep(0.1)

    def check(self):
        """Nothing came behind what was promised."""
        rows = {name: self.fleet.results(name) for name in TEXTS}
        for name, end, settled in self.told:
            if settled is not None:
                assert all(row["end"] > settled for row in rows[name][end:])


async def ready(fleet):
    """All know each other, all sources are known, and all subscriptions are active."""

    def linked():
        return all(
            len(one["known"]) == len(NAMES) - 1 and not one["unreachable"]
            for one in map(fleet.network, NAMES)
        )

    await fleet.until(linked)
    for name, (broker, type_name) in SENSORS.items():
        async with client(fleet.brokers[broker].port()) as one:
            said = json.dumps({"source": name, "types": [type_name]})
            await one.publish(f"headwater/sources/{name}", said, qos=1)
    for broker, text in TEXTS.items():
        async with client(fleet.brokers[broker].port()) as one:
            assert (await ask(one, "submit", text))["state"] == "active"
    wanted = {"b3": 1, "b4": 2, "b5": 2}  # origins besides itself
    await fleet.until(
        lambda: all(
            sum(one["answered"] for one in fleet.network(name)["origins"].values()) == count
            for name, count in wanted.items()
        )
    )


async def run(folder, seed, count, disturb, builds=None):
    fleet = Fleet(folder)
    fleet.builds |= builds or {}
    try:
        await fleet.start()
        await ready(fleet)
        sent = readings(seed, count)
        heard = set()
        listener = asyncio.create_task(listen(fleet, heard))
        await fleet.until(lambda: all("b0" in fleet.network(name)["actors"] for name in TEXTS))
        load = [
            asyncio.create_task(publish(fleet, name, sent[name][:-1], 0.02)) for name in SENSORS
        ]
        reader = Reader(fleet)
        following = asyncio.create_task(reader.follow())
        await disturb(fleet)
        await asyncio.gather(*load)
        following.cancel()
        await asyncio.wait([following])
        for name in SENSORS:
            await publish(fleet, name, sent[name][-1:], 0)
        wanted = expected(sent)
        assert len({name for name, _ in wanted}) == len(TEXTS)
        await fleet.until(lambda: found_in(fleet).total() >= wanted.total())
        assert found_in(fleet) == wanted
        # The last readings come long after all that results are made of. No task waits for their
        # time, but the reader does, so that no hop owes it for a minute.
        await fleet.until(lambda: min(reader.ask().values()) >= BEGIN_MS + count * 400)
        reader.check()
        if not listener.done():  # its broker was not killed
            await fleet.until(lambda: heard == {name for _, name in wanted})
            listener.cancel()
        await asyncio.gather(listener, return_exceptions=True)
        # Nothing is kept for anybody once all have stored it.
        await fleet.until(lambda: not any(fleet.network(name)["retained"] for name in NAMES))
        _, metrics = fleet.brokers["b1"].get("/metrics")
        assert 'headwater_link_up{peer="b0"} 1.0' in metrics
    finally:
        await fleet.stop()


@pytest.mark.long
@pytest.mark.timeout(400)
def test_an_inner_broker_that_is_killed_and_a_link_that_is_cut_cost_no_result(tmp_path):
    async def disturb(fleet):
        await asyncio.sleep(0.3)
        fleet.gaps["b2"].cut()
        await fleet.kill("b1")
        fleet.gaps["b2"].mend()

    asyncio.run(run(tmp_path, 1, 60, disturb))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(10))
def test_any_inner_broker_may_be_killed_and_any_link_cut(tmp_path, seed):
    draw = random.Random(seed)

    async def disturb(fleet):
        for _ in range(6):
            await asyncio.sleep(draw.uniform(0.1, 1.0))
            child = draw.choice(list(fleet.gaps))
            fleet.gaps[child].cut()
            if draw.random() < 0.7:
                await fleet.kill(draw.choice(["b0", "b1", "b2"]))
            await asyncio.sleep(draw.uniform(0.1, 4.0))
            fleet.gaps[child].mend()

    asyncio.run(run(tmp_path, seed, 400, disturb))

"""Runs the laboratory on six real brokers, which decide by themselves where its tasks run.

Owns who is at which broker, and the course. Temperature and humidity are measured, people and
pictures made up, as replay_laboratory.py says. Invariant: ends with status 0 where the brokers have
found what one engine finds, each result once, else with 1; it leaves no process and no file.

    python examples/placement/run_laboratory.py
"""  # noqa: INP001  (a script, run by hand)

import asyncio
import json
import re
import sys
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

import aiomqtt  # noqa: E402
from replay_laboratory import Event, made, measured  # noqa: E402

import headwater  # noqa: E402
from broker.own_functions import load_functions  # noqa: E402
from headwater.cli import mqtt_client, network_plan  # noqa: E402
from headwater.cli.reach import BrokerAddress  # noqa: E402
from headwater.demo.process import HOST, RunningBroker, running_network  # noqa: E402

PARENTS = {"n2": "n1", "n3": "n1", "n4": "n2", "n5": "n3", "n6": "n4"}
ROOMS = {"lab/hall": "n1", "lab/office": "n2", "lab/meeting": "n4", "lab/kitchen": "n5"}
CAMERA = "n6"
HOMES = {"TempOut": "n3", "HumidOut": "n4", "FaceOfArrival": "n4"}
ACTORS = {"AirController": "n3", "Gateway": "n4"}
FUNCTIONS = HERE / "laboratory_functions.py"
SETTINGS = f"functions = {json.dumps(str(FUNCTIONS))}"
TABLES = """\
[coordinator]
enabled = true
measure_ms = 1000
"""
FASTER = 60  # than it was measured
CHUNK_S = 0.1
PATIENCE_S = 30.0
MARK_MS = 3_600_000  # a last reading of each, so that all before it is decided

Brokers = Mapping[str, RunningBroker]

_SENT = re.compile(r'^headwater_link_events_total\{peer="(\w+)"\} (\S+)$', re.MULTILINE)


def events() -> list[Event]:
    """Half an hour of the laboratory, in order, and behind it one last event of each source."""
    readings = measured()
    times = [event["timestamp"] for event in readings]
    found = readings + made(min(times), max(times), Random(6))
    found.sort(key=lambda event: (event["timestamp"], event["id"]))
    last = {(event["source"], event["type"]): event for event in found}
    mark = {"timestamp": found[-1]["timestamp"] + MARK_MS}
    return [*found, *({**one, **mark, "id": f"mark-{at}"} for at, one in enumerate(last.values()))]


def wanted(text: str, all_events: list[Event]) -> Counter[str]:
    """What one engine finds: the ids of results by subscription, up to the last real event."""
    functions = load_functions(str(FUNCTIONS))
    found = headwater.Engine(text, functions=functions).push(all_events)
    return Counter(f"{one['subscription']} {one['id']}" for one in found)


def broker_of(event: Event) -> str:
    """The broker to which an event's source sends."""
    if event["type"] == "Video":
        return CAMERA
    return ROOMS[event.get("location") or event["right"]]


def text_for(text: str, subscription: str) -> str:
    """All declarations and the one subscription: what is submitted together moves together."""
    items = re.split(r"\n(?=\S)", text)
    named = [(item, re.match(r"subscription (\w+)", item)) for item in items]
    return "\n".join(item for item, name in named if name is None or name[1] == subscription)


class Course:
    """One run; `results` counts what came to the actors."""

    def __init__(self, brokers: Brokers, text: str) -> None:
        self.brokers = brokers
        self.text = text
        self.results: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()

    def client(self, broker: str, name: str) -> aiomqtt.Client:
        """A connection to a broker."""
        port = self.brokers[broker].mqtt_port
        version = aiomqtt.ProtocolVersion.V5
        return aiomqtt.Client(HOST, port, identifier=f"{name}-{broker}", protocol=version)

    async def run(self, all_events: list[Event], count: int) -> None:
        """Subscribe, submit, play, and wait for so many results."""
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
            listening = []
            for actor, at in ACTORS.items():
                client = await stack.enter_async_context(self.client(at, actor))
                await client.subscribe(f"headwater/actors/{actor}", qos=1)
                listening.append(tasks.create_task(self._listen(client)))
            sensors = {
                name: await stack.enter_async_context(self.client(name, "sensors"))
                for name in dict.fromkeys(map(broker_of, all_events))
            }
            for subscription, home in HOMES.items():
                await self._submit(subscription, home)
            await self._advertise(sensors, all_events)
            await self._settled()
            await self._play(sensors, all_events)
            for _ in range(round(PATIENCE_S / CHUNK_S)):
                if self.results.total() >= count:
                    break
                await asyncio.sleep(CHUNK_S)
            await asyncio.sleep(1)  # whether more come
            for one in listening:
                one.cancel()

    async def _listen(self, client: aiomqtt.Client) -> None:
        async for message in client.messages:
            result = json.loads(bytes(message.payload))
            self.results[f"{result['subscription']} {result['id']}"] += 1

    async def _submit(self, subscription: str, home: str) -> None:
        port = self.brokers[home].mqtt_port
        to = BrokerAddress("mqtt", HOST, port, "", None, None, "laboratory", PATIENCE_S)
        reply = await mqtt_client.ask(to, "submit", text_for(self.text, subscription), last=True)
        print(f"{subscription} at {home}: {reply.get('state') or reply}", file=sys.stderr)  # noqa: T201

    async def _advertise(self, sensors: Mapping[str, aiomqtt.Client], some: list[Event]) -> None:
        for source, one in {event["source"]: event for event in some}.items():
            types = sorted({event["type"] for event in some if event["source"] == source})
            told = {"source": source, "types": types, "location": one.get("location")}
            said = json.dumps({key: what for key, what in told.items() if what is not None})
            topic = f"headwater/sources/{source}"
            await sensors[broker_of(one)].publish(topic, said, qos=1, retain=True)

    async def _settled(self) -> None:
        """Return when the tasks have heard of all sources, wherever they run by now."""
        deadline_s = time.perf_counter() + PATIENCE_S
        while not await self._all_heard():
            if time.perf_counter() > deadline_s:
                raise SystemExit("the brokers do not find each other")
            await asyncio.sleep(CHUNK_S)

    async def _all_heard(self) -> bool:
        rooms = set(ROOMS.values())
        count = 0
        for broker in self.brokers.values():
            network = json.loads((await broker.get("/v1/status"))[1])["network"]
            for cell in network["run_here"].values():
                known = {one for one, at in cell["origins"].items() if at is not None}
                needed = rooms | ({CAMERA} if "Video" in cell["waits"] else set())
                if not known >= needed:
                    return False
                count += 1
        return count >= len(HOMES)

    async def _play(self, sensors: Mapping[str, aiomqtt.Client], some: list[Event]) -> None:
        begin_ms, began_s = some[0]["timestamp"], time.perf_counter()
        for event in some:
            due_s = began_s + min((event["timestamp"] - begin_ms) / 1000, 1800) / FASTER
            if due_s - time.perf_counter() > CHUNK_S:
                await asyncio.sleep(due_s - time.perf_counter())
            body = dict(event)
            if "frame" in body:
                body["frame"] = b64encode(body["frame"]).decode()
            where = broker_of(event)
            self.sent[where] += 1
            topic = f"headwater/events/{event['type']}/{event['source']}"
            await sensors[where].publish(topic, json.dumps(body), qos=1)

    async def say(self) -> None:
        """Where the tasks run in the end, and what went over links."""
        plan = json.loads((await next(iter(self.brokers.values())).get("/v1/plan"))[1])
        network_plan.show(plan)
        over: Counter[str] = Counter()
        for name, broker in self.brokers.items():
            for peer, count in _SENT.findall((await broker.get("/metrics"))[1]):
                over[f"{name} -> {peer}"] = int(float(count))
        went = ", ".join(f"{link} {count:,}" for link, count in over.items() if count)
        print(f"events over links: {went}")  # noqa: T201


async def main() -> int:
    """The exit status."""
    text = (HERE / "laboratory.hw").read_text(encoding="utf-8")
    all_events = events()
    expected = wanted(text, all_events)
    async with running_network(PARENTS, SETTINGS, TABLES) as brokers:
        course = Course(brokers, text)
        await course.run(all_events, expected.total())
        await course.say()
    missing, extra = expected - course.results, course.results - expected
    by_name = Counter(name.split()[0] for name in expected.elements())
    said = ", ".join(f"{name} {count}" for name, count in sorted(by_name.items()))
    print(f"one engine finds: {said}; {missing.total()} missing, {extra.total()} more")  # noqa: T201
    return 1 if missing or extra else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

"""A described network and its recording on broker processes of this machine, at default settings.

Owns the processes' clients and what is read of the brokers at the end. Must not know what a setting
is. Invariant: all sources are advertised and all subscriptions active before the first reading; the
readings of one moment are acknowledged before those of the next are sent.

Time goes faster than in the recording: `pace` moments a second. What brokers do after so many
seconds is thereby seldom, as seen from the readings; what they do with each reading is not.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Mapping
from itertools import groupby
from typing import Any, NamedTuple

import aiomqtt
import msgspec

from headwater.cli.network.picture import NetworkPicture
from headwater.client import Client
from headwater.demo.process import HOST, RunningBroker, running_network
from simulation.rehearsal.material import Material, end_of, texts_by_home

PREFIX = "headwater"
COORDINATED = "[coordinator]\nenabled = true\n"
START_S_MAX = 300.0  # twenty processes on two cores
READY_S_MAX = 120.0
QUIET_S = 5.0  # without a result, the last one has come
LOOK_S = 0.1
IN_FLIGHT_MAX = 256


Placed = list[tuple[int, dict[str, str]]]


class Ran(NamedTuple):
    """What came of a run: events by (from, to), results by subscription, and what was kept back.

    `placed` is where each subscription ran from how many readings on, `moves` how often one began
    elsewhere.
    """

    events: dict[tuple[str, str], int]
    results: list[tuple[str, str]]
    kept_back: dict[str, int]
    kinds: dict[str, int]
    placed: Placed
    moves: int


def run_on_processes(material: Material, pace: float, *, coordinated: bool = False) -> Ran:
    """Run it, with a coordinator at each broker, or with none.

    Raises BrokerFailedError, OSError, TimeoutError.
    """
    return asyncio.run(_run(material, pace, COORDINATED if coordinated else ""))


def parents_of(links: list[tuple[str, str]], root: str) -> dict[str, str]:
    """Return by broker the one that it dials, toward a root."""
    parents: dict[str, str] = {}
    order = [root]
    for name in order:
        for link in links:
            if name in link:
                other = link[1] if link[0] == name else link[0]
                if other != root and other not in parents:
                    parents[other] = name
                    order.append(other)
    return parents


async def _run(material: Material, pace: float, tables: str) -> Ran:
    network = material.network
    parents = parents_of(list(network.delays), network.brokers[0])
    started = running_network(parents, tables=tables, intake="", ready_s_max=START_S_MAX)
    async with started as brokers, contextlib.AsyncExitStack() as stack:
        results: list[tuple[str, str]] = []
        clients: dict[str, aiomqtt.Client] = {}
        for name, broker in brokers.items():
            client = _client(name, broker)
            clients[name] = await stack.enter_async_context(client)
            await client.subscribe(f"{PREFIX}/results/#", qos=1)
        listening = [asyncio.create_task(_listen(one, results)) for one in clients.values()]
        stack.callback(lambda: [task.cancel() for task in listening])
        await _begin(material, brokers, clients)
        placed: Placed = []
        sent = 0
        for _, moment in groupby(material.events, key=end_of):
            readings = list(moment)
            if tables:
                hosts, _ = await _hosts(brokers)
                if not placed or hosts != placed[-1][1]:
                    placed.append((sent, hosts))
            sent += len(readings)
            async with asyncio.timeout(READY_S_MAX):
                await asyncio.gather(
                    asyncio.sleep(1 / pace),
                    *(
                        clients[str(network.broker_of(one["source"]))].publish(
                            f"{PREFIX}/events/{one['type']}/{one['source']}",
                            msgspec.json.encode(one),
                            qos=1,
                        )
                        for one in readings
                    ),
                )
        count = -1
        while count != len(results):
            count = len(results)
            await asyncio.sleep(QUIET_S)
        return await _seen(brokers, results, placed)


async def _begin(
    material: Material,
    brokers: Mapping[str, RunningBroker],
    clients: Mapping[str, aiomqtt.Client],
) -> None:
    """Advertise all sources and submit all subscriptions; return when all are active."""
    network = material.network
    types: dict[str, dict[str, None]] = {}
    for one in material.events:
        types.setdefault(one["source"], {})[one["type"]] = None
    for source, names in types.items():
        said = msgspec.json.encode({"source": source, "types": list(names)})
        client = clients[str(network.broker_of(source))]
        await client.publish(f"{PREFIX}/sources/{source}", said, qos=1, retain=True)
    for home, text in texts_by_home(material.specification, network).items():
        address = f"http://{HOST}:{brokers[home].http_port}"
        await asyncio.to_thread(Client(address, timeout_s=READY_S_MAX).submit, text)
    for broker in brokers.values():
        await _ready(broker)


async def _ready(broker: RunningBroker) -> None:
    """Wait until no question is open, all is active, and it is sure whom events wait for."""
    deadline_s = time.monotonic() + READY_S_MAX
    while time.monotonic() < deadline_s:
        _, text = await broker.get("/v1/status")
        status = msgspec.json.decode(text)["network"]
        _, text = await broker.get("/v1/network")
        links = msgspec.json.decode(text)["neighbours"].values()
        answered = all(one.get("answered", True) for one in status["origins"].values())
        if answered and not status["inactive"] and not any(link.get("unsure") for link in links):
            return
        await asyncio.sleep(LOOK_S)
    raise TimeoutError(f"the network is not at rest after {READY_S_MAX:.0f} s")


def _client(name: str, broker: RunningBroker) -> aiomqtt.Client:
    return aiomqtt.Client(
        HOST,
        broker.mqtt_port,
        identifier=f"settings-{name}",
        protocol=aiomqtt.ProtocolVersion.V5,
        timeout=READY_S_MAX,
        max_inflight_messages=IN_FLIGHT_MAX,
    )


async def _listen(client: aiomqtt.Client, results: list[tuple[str, str]]) -> None:
    async for message in client.messages:
        said: dict[str, Any] = json.loads(bytes(message.payload))
        results.append((said["subscription"], said["id"]))


async def _hosts(brokers: Mapping[str, RunningBroker]) -> tuple[dict[str, str], int]:
    """Return where subscriptions that may move run, and how often one began elsewhere."""
    hosts: dict[str, str] = {}
    moves = 0
    for broker in brokers.values():
        network = json.loads((await broker.get("/v1/status"))[1])["network"]
        for cell in network["cells"]:
            if cell["host"] and cell["term"] > 0:
                hosts |= {name: cell["host"] for _, name in cell["subscriptions"]}
        moves += network["counts"].get("cells_moved", 0)
    return hosts, moves


async def _seen(
    brokers: Mapping[str, RunningBroker], results: list[tuple[str, str]], placed: Placed
) -> Ran:
    views = [json.loads((await broker.get("/v1/network"))[1]) for broker in brokers.values()]
    flows = NetworkPicture(views).flows()
    kept: dict[str, int] = {}
    for view in views:
        for name, count in view["kept_back"].items():
            kept[name] = kept.get(name, 0) + count
    kinds: dict[str, int] = {}
    for flow in flows:
        for kind, row in flow.kinds.items():
            kinds[kind] = kinds.get(kind, 0) + row["bytes"]
    _, moves = await _hosts(brokers)
    events = {(one.sender, one.receiver): one.total for one in flows}
    return Ran(events, results, kept, kinds, placed, moves)

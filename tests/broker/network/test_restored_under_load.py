"""A broker whose directory is replaced by an older backup while a client goes on sending to all."""

import asyncio
import contextlib
import json
from typing import NamedTuple

import aiomqtt
import pytest

from headwater.cli import main
from tests.broker.network.test_rewound_processes import begun, linked, stopped
from tests.broker.running import client

BEGIN_MS = 1_700_000_000_000
LINE = {"b1": "b0", "b2": "b1"}


class Load:
    """Sends to each broker with QoS 1, one event after the other, each until it is acknowledged."""

    def __init__(self, fleet):
        self.fleet = fleet
        self.acknowledged = {name: [] for name in fleet.names}
        self.stopping = False

    async def send(self, name):
        while not self.stopping:
            with contextlib.suppress(aiomqtt.MqttError, OSError, KeyError):
                async with client(self.fleet.brokers[name].port()) as connection:
                    while not self.stopping:
                        await self._next(name, connection)
            await asyncio.sleep(0.05)

    async def _next(self, name, connection):
        number = len(self.acknowledged[name])
        event = {"id": f"{name}-{number}", "val": number, "timestamp": BEGIN_MS + 10 * number}
        topic = f"headwater/events/Dust/{name}"
        await connection.publish(topic, json.dumps(event), qos=1, timeout=5.0)
        self.acknowledged[name].append(event["id"])
        await asyncio.sleep(0.005)

    async def until(self, name, count):
        await self.fleet.until(lambda: len(self.acknowledged[name]) >= count)


def heard(fleet):
    return [row["events"]["Dust"][0] for row in fleet.results("b0")]


class Outcome(NamedTuple):
    """What was acknowledged by broker, what was heard, and what may be lost of b2's: a range."""

    acknowledged: dict[str, list[str]]
    results: list[str]
    doubted: list[str]
    incarnation: dict[str, object]


async def restored_under_load(folder, each):
    """Back b2 up, go on, and put the backup in its place; nobody stops sending."""
    fleet = await linked(folder, LINE)
    copy = folder / "copy"
    restored = ["restore", str(copy), "--config", str(folder / "b2" / "broker.toml"), "--replace"]
    load = Load(fleet)
    sending = [asyncio.ensure_future(load.send(name)) for name in fleet.names]
    try:
        await load.until("b2", each)
        backed_up = len(load.acknowledged["b2"])
        url = f"http://127.0.0.1:{fleet.brokers['b2'].port('http')}"
        assert await asyncio.to_thread(main, ["backup", str(copy), "--broker", url]) == 0
        await load.until("b2", len(load.acknowledged["b2"]) + each)
        await stopped(fleet, "b2")
        assert await asyncio.to_thread(main, restored) == 0
        ended = len(load.acknowledged["b2"])
        await begun(fleet, "b2")
        counts = {name: len(ids) for name, ids in load.acknowledged.items()}
        for name, count in counts.items():
            await load.until(name, count + each)
        load.stopping = True
        await asyncio.gather(*sending)
        last = {ids[-1] for ids in load.acknowledged.values()}
        await fleet.until(lambda: last <= set(heard(fleet)))
        doubted = load.acknowledged["b2"][backed_up:ended]
        incarnation = fleet.network("b2")["incarnation"]
        return Outcome(load.acknowledged, heard(fleet), doubted, incarnation)
    finally:
        load.stopping = True
        for task in sending:
            task.cancel()
        await fleet.stop()


def check(outcome):
    """Each that was acknowledged is there once, but for what only the replaced disk had."""
    assert len(outcome.results) == len(set(outcome.results))
    missing = {event for ids in outcome.acknowledged.values() for event in ids}
    missing -= set(outcome.results)
    assert missing <= set(outcome.doubted)
    (gap,) = [gap for gap in outcome.incarnation["rewound"] if gap["seen_by"] == "b0"]
    assert len(missing) <= gap["to"] - gap["from"] + 1
    assert len(set(outcome.doubted) - missing) > 0  # others had seen more than the backup


@pytest.mark.timeout(120)
def test_what_still_exists_anywhere_is_delivered_once_and_the_rest_is_reported(tmp_path):
    check(asyncio.run(restored_under_load(tmp_path, 30)))


@pytest.mark.long
@pytest.mark.timeout(600)
def test_so_it_is_under_more_load(tmp_path):
    check(asyncio.run(restored_under_load(tmp_path, 600)))

"""The three texts that stopped a broker, in real processes: others go on, and SIGTERM is obeyed."""

import asyncio
import json
import sys
import time
from pathlib import Path

import pytest

from tests.broker.engine.wild import WILD
from tests.broker.running import CONFIG, RunningBroker, client

COUNTS = {"chain": 60, "quadruples": 60, "lists": 30_000}
MEMORY_MB_MAX = 256


def memory_mb(broker):
    status = Path(f"/proc/{broker.process.pid}/status").read_text(encoding="ascii")
    return next(int(s.split()[1]) for s in status.splitlines() if s.startswith("VmHWM")) / 1024


async def calm(port, waits_s, done):
    """Publish once in 50 ms and wait for each acknowledgement."""
    async with client(port) as one:
        while not done.is_set():
            before = time.perf_counter()
            await one.publish("plain/calm", b"x", qos=1)
            waits_s.append(time.perf_counter() - before)
            await asyncio.sleep(0.05)


async def wild(port, name):
    """Send what the text is not made for: readings of one type, and at last what ends its list."""
    async with client(port) as one:
        begin_ms = int(time.time() * 1000) - 600_000
        events = [
            {"timestamp": begin_ms + at * (500_000 // COUNTS[name]), "val": 1.0}
            for at in range(COUNTS[name])
        ]
        size = 1 if len(events) < 100 else 1_000
        for at in range(0, len(events), size):
            data = json.dumps(events[at : at + size])
            await one.publish("headwater/events/Temp/t1", data, qos=1)
        for at_ms in (550_000, 599_000):
            key = json.dumps({"timestamp": begin_ms + at_ms, "k": 50.0})
            await one.publish("headwater/events/Key/k1", key, qos=1)
        late = json.dumps({"timestamp": begin_ms + 599_000, "val": 0.0})
        await one.publish("headwater/events/Temp/t1", late, qos=1)


async def together(port, name, broker):
    waits_s, done = [], asyncio.Event()
    watching = asyncio.create_task(calm(port, waits_s, done))
    await wild(port, name)
    deadline = time.monotonic() + 12
    listed = []
    while time.monotonic() < deadline:
        _, answer = await asyncio.to_thread(broker.get, "/v1/subscriptions")
        listed = answer["subscriptions"]
        if listed[0]["state"] == "suspended":
            break
        await asyncio.sleep(0.2)
    done.set()
    await watching
    return waits_s, listed


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "name",
    ["quadruples", *(pytest.param(name, marks=pytest.mark.long) for name in ("chain", "lists"))],
)
def test_a_text_without_limit_is_suspended_and_nobody_else_waits(tmp_path, name):
    config = CONFIG.replace("[broker]", '[broker]\ndata_dir = "data"')
    with RunningBroker(tmp_path, config) as broker:
        idle_mb = memory_mb(broker)
        status, answer = broker.get("/v1/subscriptions?client=anna", "POST", WILD[name].encode())
        assert status == 200, answer
        waits_s, listed = asyncio.run(together(broker.port(), name, broker))
        waits_s.sort()
        sys.stdout.write(
            f"{name}: p50 {1000 * waits_s[len(waits_s) // 2]:.0f} ms,"
            f" p99 {1000 * waits_s[-1 - len(waits_s) // 100]:.0f} ms,"
            f" {memory_mb(broker) - idle_mb:.0f} MB above idle\n"
        )
        assert [one["state"] for one in listed] == ["suspended"]
        assert memory_mb(broker) - idle_mb < MEMORY_MB_MAX
        _, metrics = broker.get("/metrics")
        assert "headwater_subscriptions_suspended 1.0" in metrics
        began_s = time.monotonic()
        assert broker.end() == 0
        ended_s = time.monotonic() - began_s
        sys.stdout.write(f"SIGTERM obeyed in {ended_s:.2f} s\n")
        assert ended_s < 5
        assert any(line.get("event") == "too_much_work" for line in broker.lines)
    with RunningBroker(tmp_path, config) as broker:
        _, answer = broker.get("/v1/subscriptions")
        assert [one["state"] for one in answer["subscriptions"]] == ["suspended"]
        status, answer = broker.get("/v1/subscriptions/Wild/resume?client=anna", "POST", b"")
        assert (status, answer["ok"]) == (200, True)
        _, answer = broker.get("/v1/subscriptions")
        assert [one["state"] for one in answer["subscriptions"]] == ["active"]
        assert broker.end() == 0

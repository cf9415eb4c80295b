"""A real broker in a control group of the test's own: what it states follows from its share."""

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from tests.broker.network.fleet import Fleet
from tests.broker.running import ask, client

GROUPS = Path("/sys/fs/cgroup")
PERIOD_US = 20_000
TEXT = """event Temp(val: float)
subscription Hot from anna to fan detect Temp(val > 0)
"""


class CoordinatedFleet(Fleet):
    """Two brokers that measure what they can take in."""

    more = "\n[coordinator]\nenabled = true\nmeasure_ms = 1000\n"


class Group:
    """A control group with a share of a processor, of either version."""

    def __init__(self):
        single = (GROUPS / "cgroup.controllers").exists()
        self.folder = (GROUPS if single else GROUPS / "cpu") / f"headwater-test-{os.getpid()}"
        self.single = single

    def __enter__(self):
        try:
            self.folder.mkdir()
            self.limit(50)
        except OSError as error:
            if self.folder.exists():
                self.folder.rmdir()
            pytest.skip(f"no control group with a share of the CPU can be made here: {error}")
        return self

    def limit(self, percent):
        quota_us = PERIOD_US * percent // 100
        if self.single:
            (self.folder / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        else:
            (self.folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (self.folder / "cpu.cfs_quota_us").write_text(str(quota_us))

    def take(self, pid):
        (self.folder / "cgroup.procs").write_text(str(pid))

    def __exit__(self, *_):
        self.folder.rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes control groups")
@pytest.mark.long
@pytest.mark.timeout(150)
def test_a_broker_states_what_its_control_group_lets_it_take_in(tmp_path):
    async def scene(group):
        fleet = CoordinatedFleet(tmp_path, {"b1": "b0"})
        try:
            await fleet.start()
            group.take(fleet.brokers["b0"].process.pid)
            async with client(fleet.brokers["b0"].port()) as one:
                assert (await ask(one, "submit", TEXT))["ok"]
            sending = asyncio.create_task(send(fleet.brokers["b0"].port()))
            first = await stated(fleet, lambda capacity: capacity > 0)
            assert fleet.brokers["b0"].get("/v1/status")[1]["process"]["cpus"] == 0.5
            group.limit(20)
            # Two fifths of the share, and what is measured meanwhile may be a little another.
            second = await stated(fleet, lambda capacity: capacity not in {0, first})
            assert 0.25 < second / first < 0.6
            sample = f'headwater_capacity_bytes_per_second{{how="measured"}} {second}'
            assert sample in fleet.brokers["b0"].get("/metrics")[1]
            sending.cancel()
        finally:
            await fleet.stop()

    async def send(port):
        async with client(port) as one:
            for number in range(1_000_000):
                said = {
                    "id": f"{number}",
                    "timestamp": int(time.time() * 1000),
                    "val": float(number % 2),
                }
                await one.publish("headwater/events/Temp/t1", json.dumps(said), qos=1)

    async def stated(fleet, holds):
        while True:
            status = (await asyncio.to_thread(fleet.brokers["b0"].get, "/v1/status"))[1]
            coordinator = status["network"]["coordinator"]
            capacity = coordinator["capacity_bytes_per_s"] or 0
            assert coordinator["capacity_measured"] == (capacity > 0)
            if holds(capacity):
                return capacity
            await asyncio.sleep(0.5)

    with Group() as group:
        asyncio.run(asyncio.wait_for(scene(group), 120))

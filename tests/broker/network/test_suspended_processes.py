"""Real brokers: a task that is too much work at another broker than its home is told of there."""

import asyncio
import json

import pytest

from headwater.cli import main
from tests.broker.engine.wild import QUADRUPLES
from tests.broker.network.fleet import Fleet
from tests.broker.running import PATIENCE_S, client

HOME, OTHER = "b0", "b1"
BEGIN_MS = 1_700_000_000_000


class Pair(Fleet):
    """Two brokers that decide where tasks run."""

    more = """
[coordinator]
enabled = true
measure_ms = 3000
[limits]
step_candidates_max = 20000
"""

    def state(self):
        told = self.brokers[HOME].get("/v1/subscriptions")[1]["subscriptions"]
        return told[0]["state"]

    def cell(self):
        (cell,) = self.network(HOME)["cells"]
        return cell["host"], cell["state"]


async def read(fleet, first):
    async with client(fleet.brokers[OTHER].port()) as one:
        for at in range(first, first + 60):
            event = {"id": f"t{at}", "timestamp": BEGIN_MS + at * 1_000, "val": 1.0}
            topic = "headwater/events/Temp/t1"
            await one.publish(topic, json.dumps(event), qos=1, timeout=PATIENCE_S)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("killed", [None, OTHER, HOME])
def test_a_home_tells_and_resumes_what_its_host_has_suspended(tmp_path, killed):
    async def run():
        fleet = Pair(tmp_path, {OTHER: HOME})
        try:
            await fleet.start()
            await fleet.until(lambda: len(fleet.network(HOME)["known"]) == 1)
            url = f"http://127.0.0.1:{fleet.brokers[HOME].port('http')}"
            assert await asyncio.to_thread(main, ["drain", "--broker", url]) == 0
            home = fleet.brokers[HOME]
            status, answer = home.get("/v1/subscriptions?client=anna", "POST", QUADRUPLES.encode())
            assert status == 200, answer
            await fleet.until(lambda: fleet.cell() == (OTHER, "active"))
            async with client(home.port()) as watch:
                await watch.subscribe("headwater/suspended/anna/#", qos=1)
                await read(fleet, 0)
                async with asyncio.timeout(PATIENCE_S):
                    said = json.loads((await anext(aiter(watch.messages))).payload)
            assert (said["subscription"], said["reason"]) == ("Wild", "too_much_work")
            await fleet.until(lambda: fleet.state() == "suspended")
            assert "headwater_subscriptions_suspended 1.0" in home.get("/metrics")[1]
            assert home.line("too_much_work")["name"] == "Wild"
            if killed is not None:
                await fleet.kill(killed)
                await fleet.until(lambda: fleet.cell() == (OTHER, "active"))
                assert fleet.state() == "suspended"
            home = fleet.brokers[HOME]
            status, answer = home.get("/v1/subscriptions/Wild/resume?client=anna", "POST", b"")
            assert (status, answer["ok"]) == (200, True)
            await fleet.until(lambda: fleet.state() == "active")
            await read(fleet, 100)  # it runs there again, and is too much work again
            await fleet.until(lambda: fleet.state() == "suspended")
        finally:
            await fleet.stop()

    asyncio.run(run())

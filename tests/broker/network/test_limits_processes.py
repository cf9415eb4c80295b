"""Real brokers whose plan breaks a limit: whichever is asked says so."""

import asyncio
import json
import time

import pytest

from headwater.cli import main
from tests.broker.network.fleet import Fleet
from tests.broker.running import ask, client

TEXT = """event Temp(val: float)
event Wind(val: float)
subscription Apart from five to alerts
detect[recent] Temp as t and Wind as w within 1 s where t.val > w.val + 8
"""


class LimitedFleet(Fleet):
    """Three brokers in a line, each with room for next to nothing."""

    more = "\n[coordinator]\nenabled = true\nmeasure_ms = 1000\ncapacity_bytes_per_s = 100\n"


@pytest.mark.long
@pytest.mark.timeout(120)
def test_each_of_three_brokers_says_that_a_limit_is_broken(tmp_path, capsys):
    """The exit status is what scripts go by: 0 at those that are not concerned would mislead."""

    async def scene():
        fleet = LimitedFleet(tmp_path, {"b1": "b0", "b2": "b1"})
        try:
            await fleet.start()
            await fleet.until(
                lambda: all(len(fleet.network(name)["known"]) == 2 for name in fleet.names)
            )
            async with client(fleet.brokers["b0"].port()) as one:
                assert (await ask(one, "submit", TEXT))["ok"]
            sending = asyncio.create_task(send(fleet.brokers["b2"].port()))
            await fleet.until(lambda: all(breaks(fleet, name) for name in fleet.names))
            for name in fleet.names:
                await asyncio.to_thread(fleet.brokers[name].line, "limits_broken")
            sending.cancel()
        finally:
            await fleet.stop()

    async def send(port):
        async with client(port) as one:
            for number in range(100_000):
                now_ms = int(time.time() * 1000)
                said = {"id": f"{number}", "timestamp": now_ms, "val": 1.0}
                await one.publish("headwater/events/Temp/t1", json.dumps(said), qos=1)
                await asyncio.sleep(0.02)

    def breaks(fleet, name):
        broker = fleet.brokers[name]
        status, told = broker.get("/v1/plan")
        if status != 200 or not told["limits_broken"]:
            return False
        assert told["infeasible"]
        url = f"http://127.0.0.1:{broker.port('http')}"
        if main(["plan", "--broker", url]) != 1:
            return False
        assert "capacity_bytes_per_s of b" in capsys.readouterr().out
        coordinator = broker.get("/v1/status")[1]["network"]["coordinator"]
        metrics = broker.get("/metrics")[1]
        return bool(coordinator["limits_broken"]) and "headwater_plan_limits_broken{" in metrics

    asyncio.run(asyncio.wait_for(scene(), 100))

"""Real brokers of which one is stopped: who waits, who goes on, and what people hear of it."""

import asyncio
import json
import time
from typing import ClassVar

import pytest

from headwater.cli import main
from tests.broker.network.fleet import Fleet
from tests.broker.running import ask, client

TEXT = """event Temp(val: float)
define Count(n) aggr every 1 s
detect Temp
assign n = Count(Temp)
subscription Patient from anna to alerts
detect Count as c
subscription Hasty from anna to alerts
detect Count as c
wait 3 s
"""


class StoppedFleet(Fleet):
    """Three brokers in a line, of which the last promises to be back within twenty seconds."""

    links: ClassVar[dict[str, str]] = {"b2": "back_within_ms = 20000"}

    def windows(self, subscription):
        return [row for row in self.results("b0") if row["subscription"] == subscription]


async def send(fleet, name, stopping):
    """A reading every 0.1 s, from one source at a broker."""
    async with client(fleet.brokers[name].port()) as one:
        number = 0
        while not stopping.is_set():
            number += 1
            said = {"id": f"{name}-{number}", "timestamp": int(time.time() * 1000), "val": 1.0}
            await one.publish(f"headwater/events/Temp/s-{name}", json.dumps(said), qos=1)
            await asyncio.sleep(0.1)


@pytest.mark.timeout(180)
def test_one_of_three_is_stopped_with_a_promise_and_later_forgotten(tmp_path, capsys):
    async def scene():
        fleet = StoppedFleet(tmp_path, {"b1": "b0", "b2": "b1"})
        stopping = {name: asyncio.Event() for name in fleet.names}
        sending = []
        try:
            await fleet.start()
            await fleet.until(
                lambda: all(len(fleet.network(name)["known"]) == 2 for name in fleet.names)
            )
            async with client(fleet.brokers["b0"].port()) as one:
                assert (await ask(one, "submit", TEXT))["ok"]
            await fleet.until(lambda: set(fleet.subscribed("b0")) == {"active"})
            sending = [asyncio.create_task(send(fleet, n, stopping[n])) for n in fleet.names]
            await fleet.until(lambda: len(fleet.windows("Patient")) >= 3)

            stopping["b2"].set()
            await sending[2]
            status = await asyncio.to_thread(fleet.brokers["b2"].end)
            assert status == 0
            line = await asyncio.to_thread(fleet.brokers["b0"].line, "waited_for")
            assert (line["about_broker"], line["subscriptions"], line["level"]) == (
                *("b2", "Patient, Hasty"),
                "info",
            )
            assert 0 < line["back_in_s"] <= 20
            held = fleet.windows("Patient")[-1]["end"]
            await fleet.until(
                lambda: any(row.get("without") == ["b2"] for row in fleet.windows("Hasty"))
            )
            await fleet.until(lambda: fleet.windows("Hasty")[-1]["end"] > held + 3_000)
            assert all(row["partial"] for row in fleet.windows("Hasty") if "without" in row)
            assert not any("without" in row for row in fleet.windows("Patient"))
            assert fleet.windows("Patient")[-1]["end"] <= held + 1_000

            home = fleet.brokers["b0"]
            away = fleet.network("b0")["away"]
            assert away["b2"]["subscriptions"] == ["Patient"]
            assert 'headwater_waited_for{broker="b2"}' in home.get("/metrics")[1]
            url = f"http://127.0.0.1:{home.port('http')}"
            assert await asyncio.to_thread(main, ["ls", "--broker", url]) == 0
            shown = capsys.readouterr().out
            assert "WAITS FOR" in shown
            assert "b2" in shown
            assert main(["forget", "nobody", "--broker", url]) == 1
            assert main(["forget", "b2", "--broker", url]) == 0
            await fleet.until(lambda: fleet.windows("Patient")[-1]["end"] > held + 3_000)
            assert fleet.network("b0")["away"] == {}
        finally:
            for one in stopping.values():
                one.set()
            await asyncio.gather(*sending, return_exceptions=True)
            await fleet.stop()

    asyncio.run(asyncio.wait_for(scene(), 150))

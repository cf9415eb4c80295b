"""A specification that takes seconds to check stops no broker."""

import asyncio
import json
import time

import pytest

from broker.driver.requests import HOLD_S_MAX
from tests.broker.running import PATIENCE_S, RunningBroker, ask, client

HEAD = "event Temp(val: float) event Wind(val: float)\n"
SLACK_S = 2.0  # of a machine that does other things as well


def text_of(count):
    return HEAD + "\n".join(
        f"subscription S{n} seq 1 from me to log detect Temp(val > {n}) as a then Wind(val > {n})"
        f" as b within {n + 1} s where a.val + {n} < b.val group by source"
        for n in range(count)
    )


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("count", "ok"), [(4_500, False), (1_000, True)])
def test_events_are_answered_while_a_long_text_is_checked_and_installed(tmp_path, count, ok):
    """Of 700 kB it is found after the check that installing would take too long."""
    text = text_of(count)
    assert len(text) < 1_048_576

    async def scene(port):
        async with client(port, identifier="asks") as asking, client(port) as sensor:
            began = time.monotonic()
            asked = asyncio.create_task(ask_for(asking))
            waits = []
            while not asked.done():
                at = time.monotonic()
                event = json.dumps({"id": f"e{len(waits)}", "val": 1.0})
                await asyncio.wait_for(
                    sensor.publish("headwater/events/Temp/t1", event, qos=1), PATIENCE_S
                )
                waits.append(time.monotonic() - at)
                await asyncio.sleep(0.02)
            return await asked, waits, time.monotonic() - began

    async def ask_for(asking):
        async with asyncio.timeout(100):
            return await ask(asking, "submit", text)

    with RunningBroker(tmp_path) as broker:
        reply, waits, seconds = asyncio.run(scene(broker.port()))
    assert reply["ok"] is ok, reply
    if not ok:
        assert reply["errors"][0]["code"] == "HW504"
        assert "submit it in parts" in reply["errors"][0]["message"]
        assert seconds > HOLD_S_MAX + SLACK_S  # else nothing was learnt
    assert max(waits) < HOLD_S_MAX + SLACK_S

"""Sources that say nothing of themselves: their first events count at other brokers, too."""

import asyncio
import json

import pytest

from tests.broker.network.fleet import Fleet
from tests.broker.running import PATIENCE_S, ask, client

TEXT = (
    "event Dust(val: int)\nevent Noise(val: int)\n"
    "subscription Heard from one to alerts\ndetect Dust(val > 0)\n"
    "subscription Both from one to alerts\n"
    "detect Noise as n then[..1 min] Dust as d where n.val = d.val\n"
)
LINE = {"b1": "b0", "b2": "b1"}
COUNT = 10
BEGIN_MS = 1_700_000_000_000


def reading(name, number):
    at_ms = BEGIN_MS + 1_000 * number + (name == "Dust")
    return {"id": f"{name}-{number}", "val": number, "timestamp": at_ms}


async def publish(fleet, numbers, *, batch=False, advertised=False):
    """By a source of both types that never says what it is, or says so just before."""
    async with client(fleet.brokers["b2"].port()) as one:
        if advertised:
            said = json.dumps({"types": ["Noise", "Dust"]})
            await one.publish("headwater/sources/mute", said, qos=1, retain=True)
        for number in numbers:
            for name in ("Noise", "Dust"):
                event = reading(name, number)
                said = json.dumps([event] if batch else event)
                topic = f"headwater/events/{name}/mute"
                await one.publish(topic, said, qos=1, timeout=PATIENCE_S)


async def submitted(fleet):
    async with client(fleet.brokers["b0"].port()) as one:
        assert (await ask(one, "submit", TEXT))["state"] == "active"


async def results_of(fleet, numbers):
    """Checks that there are results of these readings, and of no others."""

    def found():
        return sorted((row["subscription"], row["end"]) for row in fleet.results("b0"))

    ends = [reading("Dust", number)["timestamp"] for number in numbers]
    wanted = sorted((name, end) for name in ("Heard", "Both") for end in ends)
    await fleet.until(lambda: len(found()) >= len(wanted))
    assert found() == wanted


async def linked(folder):
    fleet = Fleet(folder, LINE)
    await fleet.start()
    await fleet.until(lambda: all(len(fleet.network(n)["known"]) == 2 for n in fleet.names))
    return fleet


async def asked_first(folder, **more):
    fleet = await linked(folder)
    try:
        await submitted(fleet)
        await publish(fleet, range(1, COUNT + 1), **more)
        await results_of(fleet, range(1, COUNT + 1))
    finally:
        await fleet.stop()


async def asked_last(folder):
    fleet = await linked(folder)
    try:
        await publish(fleet, range(1, 4))
        await submitted(fleet)
        await publish(fleet, range(4, COUNT + 1))
        await results_of(fleet, range(4, COUNT + 1))
    finally:
        await fleet.stop()


@pytest.mark.timeout(120)
def test_the_first_events_of_types_that_nobody_sent_before_reach_who_asked_for_them(tmp_path):
    asyncio.run(asked_first(tmp_path))


@pytest.mark.long
@pytest.mark.timeout(120)
def test_so_do_those_of_a_source_that_says_what_it_sends_just_before(tmp_path):
    asyncio.run(asked_first(tmp_path, advertised=True))


@pytest.mark.long
@pytest.mark.timeout(120)
def test_so_do_first_batches(tmp_path):
    asyncio.run(asked_first(tmp_path, batch=True))


@pytest.mark.long
@pytest.mark.timeout(120)
def test_what_came_before_a_subscription_does_not_count_for_it(tmp_path):
    asyncio.run(asked_last(tmp_path))

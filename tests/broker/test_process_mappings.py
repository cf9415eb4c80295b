"""A broker as a real process that maps foreign topics: from zigbee2mqtt's and Homie's messages."""

import asyncio

import pytest

from tests.broker.running import CONFIG, RunningBroker, ask, client, take

MAPPINGS = """
[mappings.climate]
preset = "zigbee2mqtt"
type = "Climate"
location = "home/{source}"
attributes = { temp = "temperature" }
[mappings.homie]
preset = "homie"
"""
TEXT = """
event Climate(temp: float)
event temperature(value: float)
subscription Room from anna to alerts
detect Climate(temp > 30)
subscription Boiler from anna to alerts
detect temperature(value > 90)
"""


@pytest.mark.parametrize("kept", [True, pytest.param(False, marks=pytest.mark.long)])
def test_what_others_publish_becomes_events_and_stays_what_it_was(tmp_path, kept):
    folder = f"{tmp_path}/data" if kept else ""
    flags = ("--set", f"broker.data_dir={folder}")

    async def scene(running):
        async with (
            client(running.port(), "zigbee2mqtt/#", "homie/#") as plain,
            client(running.port(), "headwater/results/#") as results,
            client(running.port(), "headwater/rejected") as refused,
            client(running.port()) as sensor,
        ):
            assert (await ask(sensor, "submit", TEXT))["ok"]
            sent = [
                ("zigbee2mqtt/kitchen", '{"temperature": 31.5, "battery": 97}'),
                ("zigbee2mqtt/kitchen/availability", '{"state": "online"}'),
                ("zigbee2mqtt/kitchen", '{"temperature": {"is": "warm"}}'),
                ("homie/boiler/tank/temperature", "95.5"),
                ("homie/boiler/tank/$name", '"Tank"'),
            ]
            for topic, payload in sent:
                await sensor.publish(topic, payload, qos=1, retain=topic.startswith("homie"))
            assert [topic for topic, _ in await take(plain, 5)] == [topic for topic, _ in sent]
            found = {said["subscription"]: said for _, said in await take(results, 2)}
            assert found["Room"]["values"] == {"Climate": {"temp": 31.5}}
            assert found["Boiler"]["values"] == {"temperature": {"value": 95.5}}
            ((_, told),) = await take(refused)
            assert told["topic"] == "zigbee2mqtt/kitchen"
            assert told["reason"] == "not_mapped"
            assert told["message"].startswith("[mappings.climate] found an object at `temperature`")
            async with client(running.port(), "homie/boiler/tank/temperature") as late:
                assert await take(late) == [("homie/boiler/tank/temperature", 95.5)]

    with RunningBroker(tmp_path, CONFIG + MAPPINGS, *flags) as running:
        asyncio.run(scene(running))
        events = running.get("/v1/status")[1]["events"]
        assert (events["received"], events["notes"]["payloads_not_mapped"]) == (2, 1)
        assert running.end() == 0
    assert [one["reason"] for one in running.lines if one.get("event") == "rejected"] == [
        "not_mapped"
    ]

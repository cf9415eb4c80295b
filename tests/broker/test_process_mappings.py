"""A broker as a real process that maps foreign topics: from zigbee2mqtt's and Homie's messages."""

import asyncio

import pytest
from aiomqtt import Will
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from tests.broker.running import (
    CONFIG,
    PATIENCE_S,
    ROOT,
    RunningBroker,
    ask,
    client,
    refused,
    take,
)
from tests.broker.sparkplug.encoder import payload, read

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


SPARKPLUG = """
[mappings.press]
preset = "sparkplug-b"
type = "Press"
attributes = { pressure = "Hydraulics/Pressure", count = "Count" }
rebirth = true
"""
PRESSES = """
event Press(pressure: float, count: int)
subscription High from anna to alerts
detect Press(pressure > 200)
"""
BORN = payload(
    {"name": "Hydraulics/Pressure", "alias": 7, "datatype": 9, "float_value": 120.0},
    {"name": "Count", "alias": 8, "datatype": 3, "int_value": 2**32 - 1},
    timestamp=1_700_000_000_000,
    seq=1,
)
HIGH = payload({"alias": 7, "float_value": 250.0}, timestamp=1_700_000_060_000, seq=2)
SESSION = {"name": "bdSeq", "datatype": 4, "long_value": 0}


def test_an_edge_node_of_sparkplug_is_asked_for_its_births_understood_and_missed(tmp_path):
    async def scene(running):
        will = Will("spBv1.0/plant/NDEATH/hall", payload(SESSION), qos=1)
        async with (
            client(running.port(), "headwater/results/#") as results,
            client(running.port(), "headwater/rejected") as refused,
            client(running.port(), "headwater/sources/#") as sources,
        ):
            assert (await ask(results, "submit", PRESSES))["ok"]
            commands = "spBv1.0/plant/NCMD/hall"
            async with client(running.port(), commands, will=will) as node:
                await node.publish("spBv1.0/plant/DDATA/hall/left", HIGH)
                ((_, told),) = await take(refused)
                assert told["message"].startswith(
                    "[mappings.press] found the alias 7, and only a birth"
                )
                async with asyncio.timeout(PATIENCE_S):
                    command = await anext(aiter(node.messages))
                _, (_, metric) = read(command.payload)
                assert read(metric)[0] == (1, b"Node Control/Rebirth")
                await node.publish("spBv1.0/plant/NBIRTH/hall", payload(SESSION, seq=0))
                await node.publish("spBv1.0/plant/DBIRTH/hall/left", BORN)
                await node.publish("spBv1.0/plant/DDATA/hall/left", HIGH)
                ((_, result),) = await take(results)
                assert result["values"] == {"Press": {"pressure": 250.0}}
                assert result["start"] == 1_700_000_060_000
                known = "headwater/sources/plant/hall/known"
                await node.publish(known, '{"location": "hall"}', qos=1)
                assert await take(sources) == [(known, {"location": "hall"})]
                for message in ("DDATA", "DDEATH"):  # it stays
                    await node.publish(f"spBv1.0/plant/{message}/hall/known", payload(timestamp=1))
                right = payload({"name": "Count", "datatype": 3, "int_value": 1}, seq=3)
                await node.publish("spBv1.0/plant/DDATA/hall/right", right, qos=1)
                dead = payload(timestamp=1_700_000_070_000, seq=4)
                await node.publish("spBv1.0/plant/DDEATH/hall/left", dead, qos=1)
                assert await take(sources) == [("headwater/sources/plant/hall/left", None)]
                node._client.disconnect(
                    ReasonCode(PacketTypes.DISCONNECT, identifier=4)
                )  # with will
            assert await take(sources) == [("headwater/sources/plant/hall/right", None)]

    with RunningBroker(tmp_path, CONFIG + SPARKPLUG) as running:
        asyncio.run(scene(running))
        assert running.get("/v1/status")[1]["events"]["notes"]["payloads_not_mapped"] == 1
        assert running.end() == 0
    (line,) = [one for one in running.lines if one.get("event") == "births_asked_for"]
    assert line["topic"] == "spBv1.0/plant/NCMD/hall"
    assert line["reason"].startswith("found the alias 7")


@pytest.mark.parametrize("at", ["", "[joins.hall]\nport = 1\n"])
def test_without_the_library_for_its_payloads_a_broker_does_not_start_and_says_why(tmp_path, at):
    (tmp_path / "google").mkdir()
    (tmp_path / "google" / "__init__.py").touch()  # hides the one that is installed
    file = tmp_path / "broker.toml"
    file.write_text(CONFIG + SPARKPLUG + at)
    environ = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    status, errors = refused(["--config", str(file)], environ)
    assert status == 2
    assert errors.count("install headwater with its extra, headwater[sparkplug]") == 1
    assert "Traceback" not in errors

"""The page about mappings shows what works, and tells what there is."""

import json
import re
from pathlib import Path

from broker.bridge.mapping import Mappings
from broker.bridge.sparkplug import births, messages, wire
from broker.config import load
from broker.config import mappings as settings
from broker.core.messages import EventsReceived, Payload, SourceWithdrawn
from broker.engine.limits import Limits
from broker.mqtt.application import ClientInfo, InboundMessage
from tests.broker.core.machine import Machine
from tests.broker.sparkplug.encoder import payload as encoded

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "mappings.md").read_text(encoding="utf-8")


def block(name):
    """The file of that name that the page shows."""
    (found,) = re.findall(rf"^```\w+ {re.escape(name)}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return found


def mappings(folder, name):
    """Those of a configuration that the page shows."""
    file = folder / name
    file.write_text(block(name))
    return load(file).config.mappings


def said(topic, payload):
    data = payload if isinstance(payload, bytes) else payload.encode()
    client = ClientInfo("c", None, "test:1", 5)
    return InboundMessage(topic, data, 1, False, False, client, None, None)


def test_of_each_message_that_is_shown_its_mapping_makes_an_event_of_the_type_that_is_shown(
    tmp_path,
):
    sections = mappings(tmp_path, "broker.toml")
    machine = Machine()
    assert machine.submit(block("home.hw"))["ok"]
    taken = Mappings(sections, Limits())
    shown = re.findall(r"^# (\S+) (.*)\n\[mappings\.(\w+)\]", block("broker.toml"), re.MULTILINE)
    assert [name for _, _, name in shown] == list(sections)
    shown += [(topic, text.strip("'"), "") for topic, text in MESSAGES.findall(PAGE)]
    for topic, payload, _ in shown:
        (event,) = taken.read(said(topic, payload))
        assert json.loads(event.data)
        machine.now += 1  # else one that says the same again would be a repeat
        machine.tell(EventsReceived((event,)))
    account = machine.broker.ledger.events
    assert (account.received, account.dropped) == (len(shown), {})
    assert len(shown) == 7
    assert machine.broker.ledger.results == 4, "two of the room and of the boiler each"


def test_at_home_an_opened_door_and_a_cold_room_are_detected(tmp_path):
    file = tmp_path / "rooms.toml"
    file.write_text(block("rooms.toml"))
    config = load(file).config
    machine = Machine(idle_timeout_ms=config.intake.idle_timeout_ms)
    assert machine.submit(block("rooms.hw"))["ok"]
    taken = Mappings(config.mappings, Limits(), joined=True)
    (lines,) = re.findall(r"^```text\n(zigbee2mqtt/.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for line in lines.splitlines():
        machine.now += 1
        for one in taken.read(said(*line.split(" ", 1))):
            machine.tell(EventsReceived((one,)))
    assert machine.broker.ledger.results == 0, "another may still come in between"
    effects = machine.wait(2_500)
    emitted = [one for effect in effects for one in getattr(effect, "results", ())]
    results = [json.loads(one.payload) for one in emitted]
    assert sorted(one["subscription"] for one in results) == ["ColdRoom", "DoorOpened"]
    (cold,) = [one["values"] for one in results if one["subscription"] == "ColdRoom"]
    assert cold == {"room": "hall", "temp": 16.4}
    for topic in ("bridge/devices", "bridge/info", "hall/climate/availability"):
        assert taken.read(said(f"zigbee2mqtt/{topic}", '[{"state": "online"}]')) == []


def test_of_each_message_of_sparkplug_come_the_events_that_are_shown(tmp_path):
    machine = Machine()
    machine.now = 1_767_225_800_000  # shortly after what is shown
    assert machine.submit(block("plant.hw"))["ok"]
    taken = Mappings(mappings(tmp_path, "plant.toml"), Limits())
    rows = re.findall(r"^\| `(spBv1\.0/\S+)` \| `(\{.*\})` \| `(\[.*\])` \|$", PAGE, re.MULTILINE)
    assert len(rows) == 4
    for topic, payload, events in rows:
        whole = json.loads(payload)
        made = taken.read(said(topic, encoded(*whole.pop("metrics", ()), **whole)))
        found = []
        for one in made:
            if isinstance(one, Payload):
                machine.tell(EventsReceived((one,)))
                several = json.loads(one.data)
                several = several if isinstance(several, list) else [several]
                found += [{"type": one.type_name, "source": one.source, **each} for each in several]
        assert found == json.loads(events)
    assert made == [SourceWithdrawn("plant/hall/press-1")], "of the last, who is gone"
    account = machine.broker.ledger.events
    assert (account.received, account.dropped) == (4, {})
    assert machine.broker.ledger.results == 1


MESSAGES = re.compile(r"mosquitto_pub -q 1 -t ((?!headwater)\S+) -m ('.*?'|\S+)$", re.MULTILINE)


def test_presets_and_bounds_are_those_of_the_code():
    for preset, says in settings.PRESETS.items():
        if preset != "none":
            topic = re.escape(says["topic"])
            (row,) = re.findall(rf"^\| `{preset}` \| `{topic}` \|.*", PAGE, re.MULTILINE)
            assert all(f"`{value}`" in row or f'= "{value}"' in row for value in says.values())
    bounds = dict(re.findall(r"^\| ([A-Za-z ]+) \| (\d+) \|", PAGE, re.MULTILINE))
    assert bounds == {
        "mappings": str(settings.MAPPINGS_MAX),
        "levels of a topic": str(settings.LEVELS_MAX),
        "attributes of a mapping": str(settings.ATTRIBUTES_MAX),
        "keys of a path": str(settings.PATH_LEVELS_MAX),
        "metrics of a payload of Sparkplug B": str(wire.METRICS_MAX),
        "characters of its topic": str(messages.TOPIC_CHARS_MAX),
        "entries of all births": str(births.WEIGHT_MAX),
    }

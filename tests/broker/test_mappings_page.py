"""The page about mappings shows what works, and tells what there is."""

import json
import re
from pathlib import Path

from broker.config import load
from broker.config import mappings as settings
from broker.core.limits import Limits
from broker.core.messages import EventsReceived
from broker.mqtt.application import ClientInfo, InboundMessage
from broker.wiring.mapping import Mappings
from tests.broker.core.machine import Machine

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "mappings.md").read_text(encoding="utf-8")


def block(language):
    (found,) = re.findall(rf"^```{language}[^\n]*\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return found


def test_of_each_message_that_is_shown_its_mapping_makes_an_event_of_the_type_that_is_shown(
    tmp_path,
):
    file = tmp_path / "broker.toml"
    file.write_text(block("toml"))
    config = load(file).config
    machine = Machine()
    assert machine.submit(block("headwater"))["ok"]
    taken = Mappings(config.mappings, Limits())
    shown = re.findall(r"^# (\S+) (.*)\n\[mappings\.(\w+)\]", block("toml"), re.MULTILINE)
    assert [name for _, _, name in shown] == list(config.mappings)
    shown += [(topic, said.strip("'"), "") for topic, said in MESSAGES.findall(PAGE)]
    for topic, payload, _ in shown:
        client = ClientInfo("c", None, "test:1", 5)
        came = InboundMessage(topic, payload.encode(), 1, False, False, client, None, None)
        (event,) = taken.read(came)
        assert json.loads(event.data)
        machine.now += 1  # else one that says the same again would be a repeat
        machine.tell(EventsReceived((event,)))
    account = machine.broker.ledger.events
    assert (account.received, account.dropped) == (len(shown), {})
    assert machine.broker.ledger.results == len(shown) - 1, "all but the one in the hall"


MESSAGES = re.compile(r"mosquitto_pub -q 1 -t ((?!headwater)\S+) -m ('.*?'|\S+)$", re.MULTILINE)


def test_presets_and_bounds_are_those_of_the_code():
    for preset, says in settings.PRESETS.items():
        if preset != "none":
            (row,) = re.findall(rf"^\| `{preset}` \|.*", PAGE, re.MULTILINE)
            assert all(f"`{value}`" in row or f'= "{value}"' in row for value in says.values())
    bounds = dict(re.findall(r"^\| ([a-z ]+) \| (\d+) \|", PAGE, re.MULTILINE))
    assert bounds == {
        "mappings": str(settings.MAPPINGS_MAX),
        "levels of a topic": str(settings.LEVELS_MAX),
        "attributes of a mapping": str(settings.ATTRIBUTES_MAX),
        "keys of a path": str(settings.PATH_LEVELS_MAX),
    }

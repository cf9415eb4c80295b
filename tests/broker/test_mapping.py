"""What mappings make of messages: events, nothing, or a refusal with its reason; never a fault."""

import base64
import json
import logging

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.bridge.mapping import Mappings
from broker.config.mappings import MappingSection
from broker.core.messages import EventsReceived, Payload, TopicRefused
from broker.driver.mqtt_face import Arrivals
from broker.engine.limits import Limits
from broker.mqtt.application import ClientInfo, InboundMessage
from tests.broker.core.machine import NOW, Machine

NOBODY = ClientInfo("c", None, "test:1", 5)


def message(topic, payload, token=None, *, retain=False):
    data = payload if isinstance(payload, bytes) else payload.encode()
    return InboundMessage(topic, data, 1, retain, False, NOBODY, None, token)


def mappings(*, joined=False, limits=None, **sections):
    return Mappings(sections, limits or Limits(), joined=joined)


def said(made):
    """Type, source and event of each that was made."""
    return [(one.type_name, one.source, json.loads(one.data)) for one in made]


def events(data, /, **keys):
    keys = {"topic": "a/{source}", "type": "T", **keys}
    return said(mappings(m=MappingSection(**keys)).read(message("a/s", data)))


def event(data, /, **keys):
    ((_, _, one),) = events(data, **keys)
    return one


def refusal(data, /, **keys):
    keys = {"topic": "a/{source}", "type": "T", **keys}
    (one,) = mappings(m=MappingSection(**keys)).read(message("a/s", data))
    assert isinstance(one, TopicRefused)
    assert (one.topic, one.mapping) == ("a/s", "m")
    return one.found


# --- topics -------------------------------------------------------------------------------------


def test_zigbee2mqtt():
    section = MappingSection(preset="zigbee2mqtt", type="Climate", location="home/{source}")
    payload = (
        '{"temperature": 21.5, "battery": 97, "last_seen": "2026-01-02T03:04:05Z", "tamper": null,'
        ' "update": {"state": "idle"}}'
    )
    assert said(mappings(m=section).read(message("zigbee2mqtt/kitchen", payload))) == [
        (
            "Climate",
            "kitchen",
            {
                "temperature": 21.5,
                "battery": 97,
                "last_seen": "2026-01-02T03:04:05Z",
                "location": "home/kitchen",
                "timestamp": "2026-01-02T03:04:05Z",
            },
        )
    ]
    for topic in ("zigbee2mqtt/bridge/state", "zigbee2mqtt", "zigbee2mqtt/", "zigbee/kitchen"):
        assert mappings(m=section).read(message(topic, payload)) == []


def test_what_zigbee2mqtt_tells_again_with_its_time_is_a_repeat():
    machine = Machine()
    machine.submit("event C(t: float)\nsubscription Hot from a to b\ndetect C(t > 30)\n")
    section = MappingSection(preset="zigbee2mqtt", type="C", attributes={"t": "temperature"})
    taken = mappings(m=section)
    for seen in ('"2023-11-14T22:13:19Z"', '"2023-11-14T22:13:19Z"', "1700000000000"):
        machine.now += 1
        (one,) = taken.read(message("zigbee2mqtt/x", f'{{"temperature": 31, "last_seen": {seen}}}'))
        machine.tell(EventsReceived((one,)))
    account = machine.broker.ledger.events
    assert (account.received, account.dropped) == (3, {"repeat": 1})


def test_zigbee2mqtt_that_sends_each_attribute_by_itself():
    topic = "zigbee2mqtt/{source}/{attribute}"
    section = MappingSection(preset="zigbee2mqtt", topic=topic, type="{attribute}")
    taken = mappings(m=section)
    for attribute, payload, value in [("temperature", "21.5", 21.5), ("contact", "false", False)]:
        made = taken.read(message(f"zigbee2mqtt/kitchen/{attribute}", payload))
        assert said(made) == [(attribute, "kitchen", {"value": value})]


def test_what_is_left_out_is_not_taken():
    section = MappingSection(topic="a/{room}/{source}", type="T", without="a/b/#, +/+/set,a/c/d")
    taken = mappings(m=section)
    for topic, number in {"a/b/x": 0, "a/c/set": 0, "a/c/d": 0, "a/c/e": 1, "a/bb/d": 1}.items():
        assert len(taken.read(message(topic, "1"))) == number
    rooms = MappingSection(preset="zigbee2mqtt", topic="zigbee2mqtt/{room}/{source}", type="T")
    assert mappings(m=rooms).read(message("zigbee2mqtt/bridge/devices", "[1]")) == []
    assert len(mappings(m=rooms).read(message("zigbee2mqtt/hall/lamp", '{"v": 1}'))) == 1


def test_homie_says_type_and_source_by_its_levels_and_nothing_by_what_it_says_of_itself():
    homie = mappings(m=MappingSection(preset="homie"))
    made = homie.read(message("homie/boiler/tank/temperature", "61.25"))
    assert said(made) == [("temperature", "boiler/tank", {"value": 61.25})]
    for topic in (
        "boiler/tank/$name",
        "boiler/$stats/uptime",
        "boiler/tank/t/set",
        "boiler/$state",
    ):
        assert homie.read(message(f"homie/{topic}", "1")) == []


def test_home_assistant_values_and_what_stands_for_none():
    section = MappingSection(preset="home-assistant", type="Temp", attributes={"val": "value"})
    topic = "homeassistant/sensor/hall/state"
    taken = mappings(m=section)
    assert said(taken.read(message(topic, "21.5"))) == [("Temp", "hall", {"val": 21.5})]
    assert taken.read(message(topic, "unavailable")) == []
    assert taken.read(message(topic, "unknown")) == []


def test_a_name_in_a_topic_is_never_read_as_one_of_the_configuration():
    section = MappingSection(topic="a/{x}/{y}", type="{x}", source="{y}")
    assert said(mappings(m=section).read(message("a/{y}/{x}", "1"))) == [
        ("{y}", "{x}", {"value": 1})
    ]


@pytest.mark.parametrize(
    ("wanted", "topic", "taken"),
    [
        ("a/+/{source}", "a/b/c", True),
        ("a/+/{source}", "a/$b/c", False),
        ("a/{source}/#", "a/b", True),
        ("a/{source}/#", "a/b/$c/d", True),
        ("a/{source}/#", "a", False),
        ("a/{source}", "a/b/c", False),
    ],
)
def test_wildcards(wanted, topic, taken):
    section = MappingSection(topic=wanted, type="T", source="x")
    assert bool(mappings(m=section).read(message(topic, "1"))) == taken


def test_several_mappings_may_take_one_message_each_what_it_names():
    both = mappings(
        climate=MappingSection(preset="zigbee2mqtt", type="C", attributes={"t": "temperature"}),
        contact=MappingSection(preset="zigbee2mqtt", type="D", attributes={"open": "contact"}),
    )
    one = '{"temperature": 20}'
    assert said(both.read(message("zigbee2mqtt/x", one))) == [("C", "x", {"t": 20})]
    two = '{"temperature": 20, "contact": false}'
    made = both.read(message("zigbee2mqtt/x", two, "token"))
    assert said(made) == [("C", "x", {"t": 20}), ("D", "x", {"open": False})]
    assert [one.token for one in made] == [None, "token"]


def test_who_waits_hears_of_an_event_that_is_in_the_journal_where_another_mapping_refuses():
    both = mappings(
        good=MappingSection(topic="a/{source}", type="T", attributes={"v": "v"}),
        bad=MappingSection(topic="a/{source}", type="T", attributes={"w": "w"}),
    )
    refused, taken = both.read(message("a/s", '{"v": 1, "w": []}', "token"))
    assert isinstance(refused, TopicRefused)
    assert isinstance(taken, Payload)
    assert (refused.token, taken.token) == (None, "token")


def test_what_is_subscribed_at_a_joined_server_never_comes_twice_for_its_filters():
    topics = ["a/{x}", "a/{y}", "a/b", "a/+/c", "a/#", "b/{x}", "c/d"]
    sections = {f"m{n}": MappingSection(topic=one, type="T") for n, one in enumerate(topics)}
    assert mappings(**sections).filters() == ["a/#", "b/+", "c/d"]


# --- payloads -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "form", "value"),
    [
        ("21.5", "any", 21.5),
        (" 21\n", "any", 21),
        ("true", "any", True),
        ("on", "any", "on"),
        ("1_000", "any", "1_000"),
        ("nan", "any", "nan"),
        ("٣", "any", "٣"),
        ("-1e3", "number", -1000.0),
        ("123456789012345678901", "number", 123456789012345678901.0),
        ("21.5", "text", "21.5"),
        ("21.5", "json", 21.5),
        ('"on"', "json", "on"),
    ],
)
def test_a_plain_payload_is_the_attribute_value(payload, form, value):
    found = event(payload, payload=form)["value"]
    assert (found, type(found)) == (value, type(value))


def test_bytes():
    found = event(b"\xff\x00", payload="bytes")["value"]
    assert base64.b64decode(found) == b"\xff\x00"


def test_paths_and_what_is_not_there():
    keys = {"val": "tmp.tC", "battery": "power.level"}
    assert event('{"tmp": {"tC": 3}, "power": 1}', attributes=keys) == {"val": 3}
    assert events('{"tmp": {"tC": null}}', attributes=keys) == []
    assert events("{}") == []


def test_no_payload_speaks_for_another_type_source_or_time():
    payload = '{"type": "U", "source": "x", "id": "1", "timestamp": 5, "location": "l", "v": 1}'
    assert events(payload) == [("T", "s", {"v": 1})]
    assert events('{"srcid": "x", "v": 1}') == [("T", "s", {"v": 1})]


@pytest.mark.parametrize(
    ("said_time", "unit", "found"),
    [
        ("1700000000000", "ms", 1_700_000_000_000),
        ("1700000000", "s", 1_700_000_000_000),
        ("1700000000.25", "s", 1_700_000_000_250),
        ('"2026-01-02T03:04:05Z"', "s", "2026-01-02T03:04:05Z"),
        ("null", "s", None),
    ],
)
def test_times(said_time, unit, found):
    keys = {"timestamp": "at.t", "timestamp_unit": unit}
    made = event(f'{{"v": 1, "at": {{"t": {said_time}}}}}', **keys)
    assert made.get("timestamp") == found


SECONDS = {"timestamp": "t", "timestamp_unit": "s"}


@pytest.mark.parametrize(
    ("payload", "keys", "says"),
    [
        ("{", {}, "found no JSON that can be read"),
        ("[1]", {}, "found an array"),
        ("  ", {"payload": "json"}, "found no JSON"),
        (b"\xff", {}, "no UTF-8"),
        ("warm", {"payload": "number"}, 'found "warm", expected a number'),
        ("1e999", {"payload": "number"}, "beyond all numbers"),
        ('{"v": {}}', {"attributes": {"v": "v"}}, "found an object at `v`"),
        ('{"v": [1]}', {"attributes": {"v": "v"}}, "found an array at `v`"),
        ('{"v": 1, "t": true}', {"timestamp": "t"}, "found no time at `t`"),
        ('{"v": 1, "t": 1%s}' % ("0" * 400), {"timestamp": "t"}, "a time beyond all numbers"),
        ('{"v": 1, "t": -1%s}' % ("0" * 4_290), SECONDS, "a time beyond all numbers"),
        ('{"v": 1, "t": 1%s}' % ("0" * 4_400), SECONDS, "found no JSON that can be read"),
        ('{"v": 1, "t": 1e300}', SECONDS, "a time beyond all numbers"),
        ("[" * 100_000, {}, "too deep nesting"),
        ('{"v": ' * 100_000, {}, "too deep nesting"),
    ],
)
def test_what_cannot_be_mapped_is_refused_with_what_was_found(payload, keys, says):
    found = refusal(payload, **keys)
    assert found.startswith("[mappings.m] ")
    assert says in found
    assert len(found) < 400


def test_a_fault_of_ours_on_a_message_costs_neither_those_beside_it_nor_another_mapping(caplog):
    class Faulty:
        def event(self, data, location):
            raise ZeroDivisionError(data)

    keys = {"topic": "a/{source}", "type": "T"}
    taken = mappings(good=MappingSection(**keys), bad=MappingSection(**keys))
    taken._mappers[1].reader = Faulty()
    inbox = []
    arrivals = Arrivals("headwater", inbox.append, inbox.append, inbox.append, lambda: None)
    arrivals.mappings = taken
    with caplog.at_level(logging.ERROR):
        arrivals.on_publish([message("a/s", "1", "1"), message("a/s", "2", "2")])
    assert [(type(one), one.token) for one in inbox] == [
        (TopicRefused, None),
        (Payload, "1"),
        (TopicRefused, None),
        (Payload, "2"),
    ]
    assert inbox[0].found == "[mappings.bad] a fault of the broker: ZeroDivisionError"
    (line,) = caplog.records
    assert line.exc_info is not None, "told once, with where it happened"


def test_a_payload_that_is_too_large_is_not_even_read():
    limits = Limits(payload_bytes_max=10)
    taken = mappings(limits=limits, m=MappingSection(topic="a/{source}", type="T", payload="text"))
    assert said(taken.read(message("a/s", "1234567890")))
    (one,) = taken.read(message("a/s", "12345678901"))
    assert "found 11 bytes, at most 10" in one.found


# --- what is old, and who waits -------------------------------------------------------------------


def test_what_a_joined_server_had_retained_is_passed_over_unless_it_is_wanted():
    old = message("a/s", "1", retain=True)
    section = MappingSection(topic="a/{source}", type="T")
    wanting = msgspec.structs.replace(section, retained=True)
    assert mappings(joined=True, m=section).read(old) == []
    assert len(mappings(joined=True, m=wanting).read(old)) == 1
    assert len(mappings(m=section).read(old)) == 1, "a client publishes it now"


def test_who_waits_is_answered_even_where_there_is_nothing():
    section = MappingSection(topic="a/{source}", type="T")
    for topic, payload in (("a/s", ""), ("a/$s", "1"), ("a/s", "{}")):
        (one,) = mappings(m=section).read(message(topic, payload, "token"))
        machine = Machine()
        machine.tell(EventsReceived((one,)))
        assert [effect.tokens for effect in machine.effects] == [("token",)]
        account = machine.broker.ledger.events
        assert (account.received, account.dropped) == (0, {})


def test_events_go_the_way_of_any_other_and_refusals_are_told_counted_and_logged_once():
    machine = Machine()
    machine.submit(
        "event T(v: float)\nsubscription Hot from anna to alerts\ndetect T(v > 30)\n", "anna"
    )
    inbox = []
    arrivals = Arrivals("headwater", inbox.append, inbox.append, inbox.append, lambda: None)
    section = MappingSection(topic="a/{source}", type="T", attributes={"v": "v"})
    arrivals.mappings = mappings(m=section)
    arrivals.on_publish(
        [
            message("a/s", '{"v": 31}', "1"),
            message("a/s", "{", "2"),
            message("a/s", "{", "3"),
            message("headwater/events/T/t", '{"v": 32}', "4"),
            message("headwater", "1", "5"),
        ]
    )
    effects = []
    for one in inbox:
        effects += machine.tell(EventsReceived((one,)) if isinstance(one, Payload) else one)
    results = [json.loads(r.payload) for e in effects for r in getattr(e, "results", ())]
    assert [one["values"]["T"]["v"] for one in results] == [31, 32]
    assert results[0]["start"] == NOW, "stamped on arrival"
    told = [
        json.loads(one.payload)
        for effect in effects
        for one in getattr(effect, "publications", ())
        if one.topic == "rejected"
    ]
    assert [(one["topic"], one["reason"], one["payload"]) for one in told] == [
        ("a/s", "not_mapped", "{"),
        ("a/s", "not_mapped", "{"),
        ("", "unknown_topic", "1"),
    ]
    assert machine.broker.ledger.notes["payloads_not_mapped"] == 2
    lines = [e for e in effects if getattr(e, "event", "") == "rejected"]
    assert [line.fields["reason"] for line in lines] == ["not_mapped", "unknown_topic"]
    answered = [t for e in effects for t in getattr(e, "tokens", ())]
    assert answered == ["1", "2", "3", "4", "5"]


# --- any payload ----------------------------------------------------------------------------------

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
KEYED = st.dictionaries(st.sampled_from(["v", "t", "x", "type", "location"]), TREES)
PAYLOADS = (
    st.binary(max_size=40)
    | st.text(max_size=20).map(lambda text: text.encode("utf-8", "replace"))
    | (KEYED | TREES).map(lambda tree: json.dumps(tree).encode())
    | st.sampled_from([b'{"v": 1e999}', b'{"v": "\\ud800"}', b'{"v": 9e307, "t": 9e307}'])
)


@given(
    payload=PAYLOADS,
    form=st.sampled_from(["any", "json", "number", "text", "bytes"]),
    attributes=st.sampled_from([{}, {"v": "v"}, {"w": "x.v", "v": "value"}]),
    unit=st.sampled_from(["ms", "s"]),
)
def test_of_any_payload_comes_an_event_nothing_or_a_refusal(payload, form, attributes, unit):
    section = MappingSection(
        topic="a/{source}",
        type="T",
        location="l",
        payload=form,
        attributes=attributes,
        timestamp="t",
        timestamp_unit=unit,
    )
    (one,) = mappings(m=section).read(message("a/s", payload, "token"))
    assert one.token == "token"
    if isinstance(one, TopicRefused):
        assert 0 < len(one.found) < 400
        assert one.found.isprintable()
        return
    found = json.loads(one.data)
    if found == []:
        return
    assert found.pop("location") == "l"
    assert isinstance(found.pop("timestamp", 0), int | str)
    assert found
    assert not any(isinstance(value, dict | list) for value in found.values())
    if attributes:
        assert set(found) <= set(attributes)
    machine = Machine()
    machine.submit("event T(v: float)\nsubscription Hot from a to b\ndetect T(v > 30)\n")
    effects = machine.tell(EventsReceived((one,)))
    assert ("token",) in [getattr(effect, "tokens", None) for effect in effects]

"""The broker's machine: what sources say of themselves."""

import json

import pytest

from broker.core.effects import Acknowledge, Publication, Publish
from broker.core.messages import SourceAdvertised, SourceWithdrawn
from broker.engine.limits import Limits
from tests.broker.core.machine import DECLARED, HOT, Machine, event, subscription

TOPIC = "sources/t1"


@pytest.fixture
def machine():
    return Machine()


def advertise(machine, source="t1", **said):
    machine.tell(SourceAdvertised(source, json.dumps(said).encode(), "token"))


def retained(machine):
    """What of advertisements is retained from now on: topic → payload, None where it is gone."""
    return {
        one.topic: one.payload or None
        for effect in machine.effects
        if isinstance(effect, Publish)
        for one in effect.publications
        if one.retain
    }


def test_an_advertisement_supplies_what_events_leave_out(machine):
    near = DECLARED + subscription("Near", 'Temp(val > 30) in path("hall")')
    machine.submit(near)
    assert machine.send(event(0, 31)) == []
    advertise(machine, source="t1", location="hall/1", types=["Temp"])
    assert Acknowledge(("token",)) in machine.effects
    assert len(machine.send(event(1, 31))) == 1
    assert machine.send(event(2, 31, location="yard")) == []
    machine.tell(SourceWithdrawn("t1"))
    assert machine.send(event(3, 31)) == []


def test_what_is_null_in_an_advertisement_is_left_out(machine):
    advertise(machine, types=None, location=None, position=None, uncertainty=None, ttl_s=None)
    assert TOPIC in retained(machine)


def test_an_advertisement_stands_retained_on_its_topic_until_it_is_withdrawn(machine):
    advertise(machine, location="a")
    assert retained(machine) == {TOPIC: b'{"location": "a"}'}
    machine.tell(SourceWithdrawn("t1", "token"))
    assert retained(machine) == {TOPIC: None}
    assert machine.effects[0] == Publish((Publication(TOPIC, b"", retain=True),))
    assert Acknowledge(("token",)) in machine.effects


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"[]", "not_an_event"),
        (b"{", "not_json"),
        (b"\xff", "not_json"),
        (b'{"source": "t2"}', "topic_mismatch"),
        (b'{"location": 1}', "wrong_type"),
        (b'{"position": [1]}', "bad_position"),
        (b'{"position": [91, 0]}', "bad_advertisement"),
        (b'{"uncertainty": -1}', "bad_advertisement"),
        (b'{"uncertainty": 1e400}', None),
        (b'{"lasts_ms_max": -1}', "bad_advertisement"),
        (b'{"lasts_ms_max": 604800001}', "bad_advertisement"),
        (b'{"lasts_ms_max": "1 h"}', "wrong_type"),
        (b'{"rate": -1}', "bad_advertisement"),
        (b'{"ttl_s": 0}', "bad_advertisement"),
        (b'{"ttl_s": 1e300}', "bad_advertisement"),
        (b'{"ttl_s": "1"}', "wrong_type"),
        (b'{"types": [""]}', "text_too_long"),
        (b'{"x": ' + b"[" * 5_000 + b"]" * 5_000 + b"}", "too_deep"),
        (b'{"x": "' + b"x" * 20_000 + b'"}', "too_large"),
    ],
)
def test_a_bad_advertisement_is_refused_and_the_earlier_one_stands(said, reason):
    machine = Machine(Limits(payload_bytes_max=15_000))
    near = DECLARED + subscription("Near", 'Temp(val > 30) in path("hall")')
    machine.submit(near)
    advertise(machine, location="hall")
    machine.tell(SourceAdvertised("t1", said, "t"))
    (told,) = machine.published("rejected")
    assert told["topic"] == TOPIC
    assert reason is None or told["reason"] == reason
    assert Acknowledge(("t",), "refused") in machine.effects
    assert retained(machine) == {}
    assert len(machine.send(event(1, 31))) == 1


def test_too_many_sources_cannot_be_advertised():
    machine = Machine(Limits(sources_max=1))
    advertise(machine)
    advertise(machine, source="t2")
    assert machine.published("rejected")[0]["reason"] == "too_many_sources"


def test_an_advertisement_ends_when_its_source_is_silent_for_its_time_to_live(machine):
    machine.submit(HOT)
    advertise(machine, ttl_s=10)
    machine.wait(9_000)
    machine.send(event(9_000))
    machine.wait(9_999)
    assert retained(machine) == {}
    machine.wait(1)
    assert retained(machine) == {TOPIC: None}
    machine.wait(1_000_000)
    assert retained(machine) == {}


def test_advertising_again_renews_or_lifts_the_time_to_live(machine):
    advertise(machine, ttl_s=10)
    machine.wait(9_999)
    advertise(machine, ttl_s=10)
    machine.wait(9_999)
    assert retained(machine) == {}
    advertise(machine)
    machine.wait(1_000_000)
    assert retained(machine) == {}


def test_refused_events_renew_nothing(machine):
    machine.submit(HOT)
    advertise(machine, ttl_s=10)
    machine.wait(9_000)
    machine.send_bytes(b"{")
    machine.wait(1_000)
    assert retained(machine) == {TOPIC: None}


def test_one_advertisement_with_a_time_to_live_after_the_other_takes_bounded_memory(machine):
    for number in range(1_000):
        advertise(machine, source=f"t{number % 3}", ttl_s=10)
    assert len(machine.broker._lives.due) < 50


def test_an_advertised_source_is_waited_for_until_it_speaks_or_is_idle(machine):
    window = """
define Mean(val) aggr every 10 s
detect Temp
assign val = Avg(Temp.val)
subscription Warm from anna to alerts
detect Mean as m
"""
    machine.submit(DECLARED + window)
    advertise(machine, source="quiet", types=["Temp"])
    machine.send(event(0, 10))
    machine.wait(30_000)
    assert machine.send(event(25_000, 10)) == []
    machine.wait(29_999)
    assert machine.results() == []
    machine.wait(1)
    assert [one["values"]["m"]["val"] for one in machine.results()] == [10.0]

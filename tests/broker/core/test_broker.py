"""The broker's machine: events, results, what is refused, time."""

import json

import pytest

from broker.core.effects import Acknowledge, Emission, Emit, Publication, Publish
from broker.core.messages import (
    EventsReceived,
    Payload,
    Started,
    Stopped,
    TopicRefused,
    Woken,
)
from broker.engine.limits import Limits
from broker.network.effects import Note
from tests.broker.core.machine import HOT, NOW, Machine, event

WINDOWED = """
event Temp(val: float)
define Mean(val) aggr every 10 s
detect Temp
assign val = Avg(Temp.val)
group by source
subscription Warm from anna to alerts
detect Mean(val > 0) as m
"""


@pytest.fixture
def machine():
    return Machine()


def test_a_result_goes_out_with_the_event_that_completes_it(machine):
    machine.submit(HOT)
    machine.now += 7
    (result,) = machine.send(event(0, 31.5, id="a"), token="t")
    assert result["subscription"] == "Hot"
    assert result["subscriber"] == "anna"
    assert result["actor"] == "alerts"
    assert result["start"] == result["end"] == NOW
    assert result["values"] == {"Temp": {"val": 31.5}}
    assert result["detected_at"] == NOW + 7
    emit, acknowledge = machine.effects
    assert isinstance(emit, Emit)
    assert [(one.subscriber, one.subscription, one.actor) for one in emit.results] == [
        ("anna", "Hot", "alerts")
    ]
    assert acknowledge == Acknowledge(("t",))


def test_all_payloads_of_a_message_are_one_batch(machine):
    machine.submit(HOT)
    payloads = tuple(
        Payload("Temp", f"t{i}", json.dumps(event(i, 30.0 + i)).encode(), f"token {i}")
        for i in range(4)
    )
    effects = machine.tell(EventsReceived(payloads))
    assert [type(effect) for effect in effects] == [Emit, Acknowledge]
    assert [r["start"] - NOW for r in machine.results()] == [1, 2, 3]
    assert effects[1].tokens == ("token 0", "token 1", "token 2", "token 3")
    assert machine.ledger["out"] == 3
    assert machine.ledger["filtered"] == 1


def test_nobody_is_answered_who_does_not_wait(machine):
    machine.submit(HOT)
    machine.send(event(0))
    assert machine.effects == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", "not_json"),
        (b"\xff\xfe", "not_json"),
        (b"", "not_json"),
        (b'"text"', "not_an_event"),
        (b'{"timestamp": 1, "val": NaN}', "not_finite"),
        (b'{"timestamp": 1, "val": 1e999}', "not_finite"),
        (b'{"timestamp": 1, "val": "warm"}', "wrong_type"),
        (b'{"timestamp": "yesterday", "val": 1}', "bad_time"),
        (b'{"start": 2, "end": 1, "val": 1}', "start_after_end"),
        (b'{"timestamp": 1, "uncertainty": -1, "val": 1}', "negative_uncertainty"),
        (b'{"timestamp": 1, "source": "t2", "val": 1}', "topic_mismatch"),
        (b'{"timestamp": 1, "x": ' + b"[" * 500 + b"]" * 500 + b"}", "too_deep"),
        (b'{"timestamp": 1, "val": 1, "x": "' + b"x" * 2_000 + b'"}', "too_large"),
        (json.dumps(event(61_000)).encode(), "too_far_in_future"),
    ],
)
def test_a_bad_payload_is_refused_with_its_reason_and_harms_nothing(data, reason):
    machine = Machine(Limits(payload_bytes_max=1_500))
    machine.submit(HOT)
    machine.send_bytes(data, token="t")
    (told,) = machine.published("rejected")
    assert told["reason"] == reason
    assert told["topic"] == "events/Temp/t1"
    assert told["count"] == 1
    assert told["payload_bytes"] == len(data)
    assert Acknowledge(("t",), "refused") in machine.effects
    assert machine.ledger["dropped"] == {reason: 1}
    assert len(machine.send(event(0, 31))) == 1


def test_a_refused_payload_is_told_with_a_bounded_part_of_it(machine):
    machine.submit(HOT)
    machine.send_bytes(b"x" * 100_000)
    (told,) = machine.published("rejected")
    assert told["payload"] == "x" * 1024
    machine.send_bytes(b"\xff" * 100_000)
    (told,) = machine.published("rejected")
    assert "payload" not in told
    assert len(told["payload_base64"]) < 1_500
    # A character that the cut divides does not make a text into bytes.
    machine.send_bytes(b"x" + "é".encode() * 1_000)
    assert machine.published("rejected")[0]["payload"] == "x" + "é" * 511


def test_bad_events_of_a_batch_are_told_together_and_the_good_ones_are_taken(machine):
    machine.submit(HOT)
    bad = [event(i, "warm") for i in range(25)]
    results = machine.send(event(0, 31), *bad, event(1, 32), token="t")
    assert [one["start"] - NOW for one in results] == [0, 1]
    (told,) = machine.published("rejected")
    assert told["count"] == 25
    assert [one["index"] for one in told["errors"]] == list(range(1, 11))
    assert Acknowledge(("t",)) in machine.effects


def test_one_log_line_however_often_it_comes(machine):
    machine.submit(HOT)
    lines = []
    for _ in range(50):
        machine.send_bytes(b"{")
        lines += machine.notes()
    assert [(line.level, line.event, line.fields["reason"]) for line in lines] == [
        ("warning", "rejected", "not_json")
    ]
    assert machine.ledger["dropped"] == {"not_json": 50}


def test_log_lines_of_one_kind_end_at_a_maximum_of_causes(machine):
    machine.submit(HOT)
    machine.send(event(100_000 - 100_000), source="first")
    lines = []
    for number in range(300):
        source = f"s{number}"
        machine.send(event(0), source=source)
        machine.send(event(-50_000), source=source)
        lines += [line for line in machine.notes() if line.event == "late"]
    assert len(lines) == 200
    assert machine.ledger["dropped"] == {"late": 300}


def test_events_of_undeclared_types_are_counted_and_told_once_by_type(machine):
    for _ in range(3):
        assert machine.send(event(0), token="t") == []
        assert Acknowledge(("t",)) in machine.effects
    machine.send(event(0), type_name="Humidity")
    assert [line.fields["type"] for line in machine.notes()] == ["Humidity"]
    assert machine.ledger["dropped"] == {"undeclared_type": 4}


def test_a_late_event_is_published_whole_and_matched_by_nothing(machine):
    machine.submit(HOT)
    machine.send(event(0, 20, id="first"))
    # The lateness of one second ends there.
    assert machine.send(event(-1_000, 40, id="on time"))
    assert machine.published("late/Temp") == []
    said = event(-1_001, 50, id="late", location="a/b")
    assert machine.send(said, token="t") == []
    assert Acknowledge(("t",)) in machine.effects
    (told,) = machine.published("late/Temp")
    assert {**said, "type": "Temp", "source": "t1"}.items() <= told.items()
    assert machine.ledger["dropped"] == {"late": 1}


def test_repeats_are_counted_and_give_no_second_result(machine):
    machine.submit(HOT)
    assert len(machine.send(event(0, 31, id="a"))) == 1
    assert machine.send(event(0, 31, id="a")) == []
    assert machine.send(event(0, 32, id="a")) == []
    assert [line.event for line in machine.notes()] == ["conflicting_repeat"]
    assert machine.ledger["dropped"] == {"conflicting_repeat": 1, "repeat": 1}


def test_a_source_for_which_no_place_is_left_is_told_so():
    machine = Machine(Limits(sources_max=2))
    machine.submit(HOT)
    for source in ("t1", "t2", "t3", "t1"):
        machine.send(event(0, 31, id=f"{source} {len(machine.effects)}"), source=source)
        told = machine.published("rejected")
        assert [one["reason"] for one in told] == ["too_many_sources"] * (source == "t3")


def test_publishing_where_nothing_is_published_is_refused(machine):
    machine.tell(TopicRefused("results/anna/Hot", b"{}", "t"))
    assert Acknowledge(("t",), "no_such_topic") in machine.effects
    (told,) = machine.published("rejected")
    assert told["reason"] == "unknown_topic"


# --- time -------------------------------------------------------------------------------------


def test_a_window_is_reported_when_time_alone_has_closed_it(machine):
    """The source falls silent; past its idle timeout its clock runs on."""
    machine.submit(WINDOWED)
    machine.send(event(0, 10), event(5_000, 30))
    effects = machine.wait(59_999)
    assert effects == []
    assert machine.wait(1_000_000)
    (result,) = machine.results()
    assert result["values"] == {"m": {"val": 20.0}}
    assert machine.broker.next_wake() is None


def test_a_withdrawn_source_is_not_waited_for(machine):
    from broker.core.messages import SourceWithdrawn

    machine.submit(WINDOWED)
    machine.send(event(0, 10), source="t1")
    machine.send(event(25_000, 30), source="t2")
    assert machine.results() == []
    machine.tell(SourceWithdrawn("t1"))
    assert [one["values"]["m"]["val"] for one in machine.results()] == [10.0]


def test_when_the_last_source_is_withdrawn_all_that_is_open_is_decided(machine):
    from broker.core.messages import SourceWithdrawn

    machine.submit(WINDOWED)
    machine.send(event(0, 10), event(25_000, 30), source="t1")
    assert [one["values"]["m"]["val"] for one in machine.results()] == [10.0]
    machine.tell(SourceWithdrawn("t1"))
    assert [one["values"]["m"]["val"] for one in machine.results()] == [30.0]
    assert machine.broker.next_wake() is None
    machine.send(event(31_000, 50), event(45_000, 1), source="t2")  # another takes its place
    assert [one["values"]["m"]["val"] for one in machine.results()] == [50.0]


def test_waking_early_or_often_changes_nothing():
    """`next_wake` is a convenience: results depend on the time of messages alone."""
    calm, nervous = Machine(), Machine()
    for machine in (calm, nervous):
        machine.submit(WINDOWED)
        machine.send(event(0, 10), event(5_000, 30))
    calm.wait(120_000)
    found = []
    for _ in range(1_200):
        nervous.now += 100
        nervous.tell(Woken())
        found += nervous.results()
    plain = [{k: v for k, v in one.items() if k != "detected_at"} for one in found]
    assert plain == [{k: v for k, v in one.items() if k != "detected_at"} for one in calm.results()]
    assert len(plain) == 1


def test_time_must_not_go_back(machine):
    machine.tell(Woken())
    with pytest.raises(ValueError, match="time went back"):
        machine.broker.handle(Woken(), NOW - 1)


# --- beginning and end ------------------------------------------------------------------------


def test_the_state_of_the_broker_stands_on_its_topic():
    machine = Machine(name="site-1")
    machine.tell(Started())
    (publish,) = machine.effects
    payload = json.dumps({"state": "ready", "at": NOW}, separators=(",", ":")).encode()
    assert publish == Publish((Publication("status/site-1", payload, retain=True),))
    machine.tell(Stopped())
    assert machine.published("status/site-1")[0]["state"] == "stopped"
    assert [note.event for note in machine.notes()] == ["account"]


def test_effects_are_plain_data_that_can_be_written_down(machine):
    """A journal and the simulation write them; nothing in them is alive."""
    import msgspec

    machine.submit(HOT)
    machine.send(event(0, 31), token="t")
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(machine.effects))
    assert len(again) == 2
    (emission,) = machine.effects[0].results
    said = msgspec.json.decode(emission.payload)
    assert emission == Emission(said["id"], said["end"], "anna", "Hot", "alerts", emission.payload)
    assert msgspec.msgpack.decode(
        msgspec.msgpack.encode(machine.effects[0]), type=Emit
    ).results == (emission,)
    assert Note("info", "x", {"a": 1}) == msgspec.msgpack.decode(
        msgspec.msgpack.encode(Note("info", "x", {"a": 1})), type=Note
    )


def test_cases_of_a_definition_that_fire_at_once_are_both_seen(machine):
    machine.submit("""
event A(x: int)
event B(x: int)
event C(x: int)
define Any(x)
case 0:
  detect A
  assign x = A.x
case 1:
  detect B
  assign x = B.x
subscription S from anna to alerts
detect Any as a and C as c within 10 s
""")
    payloads = tuple(
        Payload(name, "t1", json.dumps({"timestamp": NOW + x, "x": x}).encode())
        for x, name in enumerate("CAB")
    )
    machine.tell(EventsReceived(payloads))
    assert [one["values"]["a"]["x"] for one in machine.results()] == [1, 2]

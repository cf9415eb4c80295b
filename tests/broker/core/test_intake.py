"""What the door lets in, what it refuses and why: payload by payload."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.core.intake import Intake, IntakeOptions, to_mapping
from broker.engine.event.event import MetricPosition
from broker.engine.ingest.advertised import Advertisement
from broker.engine.ingest.reasons import REASONS
from broker.engine.ingest.times import parse_time
from broker.engine.limits import make_limits
from language.specification import EventType

NOW = 1_200_000_000_000
TYPES = [
    EventType(
        "Temp", {"val": "float", "count": "int", "note": "text", "on": "bool", "raw": "bytes"}
    ),
    EventType("Hum", {"val": "float"}),
]
SMALL = make_limits(
    text_chars_max=20,
    bytes_max=6,
    name_chars_max=12,
    nesting_max=4,
    batch_events_max=5,
    payload_bytes_max=2_000,
    event_duration_ms_max=1_000,
    future_ms_max=100,
    uncertainty_ms_max=50,
)


def door(limits: Any = None, **options: Any) -> Intake:
    intake = Intake(IntakeOptions(**options), limits)
    intake.declare(TYPES)
    return intake


def payload(**fields: Any) -> bytes:
    return json.dumps({"type": "Temp", "id": "t1", "timestamp": NOW, **fields}).encode()


def plain(events: Any) -> list[dict[str, Any]]:
    return [to_mapping(event) for event in events]


# --- what is let in ---------------------------------------------------------------------------


def test_a_reading_is_typed_named_and_placed_in_time():
    [event] = door().decode(payload(source="t7", location="a/b", val=21, count=3)).events
    assert (event.event_type, event.id, event.source, event.location) == (
        "Temp",
        "t1",
        "t7",
        "a/b",
    )
    assert (event.start, event.end, event.uncertainty) == (NOW, NOW, 0)
    assert (event.a_val, event.a_count, event.a_note) == (21.0, 3, None)
    assert isinstance(event.a_val, float)


def test_a_batch_is_an_array_and_white_space_does_not_matter():
    both = b" \n\t[" + payload() + b" , " + payload(id="t2") + b"]\n"
    assert [event.id for event in door().decode(both).events] == ["t1", "t2"]
    assert door().decode(b"[]").events == []
    assert door().decode(b"\r\n" + payload()).events[0].id == "t1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2007-10-01T10:56:07Z", datetime(2007, 10, 1, 10, 56, 7, tzinfo=UTC)),
        ("2007-10-01T12:56:07+02:00", datetime(2007, 10, 1, 10, 56, 7, tzinfo=UTC)),
        ("2007-10-01T10:56:07", datetime(2007, 10, 1, 10, 56, 7, tzinfo=UTC)),
        ("2007-10-01 10:56", datetime(2007, 10, 1, 10, 56, tzinfo=UTC)),
        ("2007-10-01", datetime(2007, 10, 1, tzinfo=UTC)),
        ("2007-10-01T10:56:07.123999Z", datetime(2007, 10, 1, 10, 56, 7, 123_000, tzinfo=UTC)),
        ("1969-12-31T23:59:59.9999Z", datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59.999Z", datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
    ],
)
def test_a_time_may_be_an_iso_8601_text(text, expected):
    [event] = door().decode(payload(timestamp=text)).events
    assert event.start == event.end == round(expected.timestamp() * 1000)


def test_times_before_the_epoch_are_times():
    assert door().decode(payload(timestamp=-1)).events[0].end == -1


def test_start_and_end_win_over_a_timestamp():
    one = door().decode(payload(start=5, end="1970-01-01T00:00:01Z", timestamp="nonsense"))
    assert plain(one.events) == [
        {"type": "Temp", "id": "t1", "start": 5, "end": 1000, "uncertainty": 0}
    ]


def test_an_explicit_null_is_a_missing_value():
    nothing = dict.fromkeys(
        ["source", "location", "position", "start", "end", "uncertainty", "val", "raw"]
    )
    assert plain(door().decode(payload(**nothing)).events) == plain(door().decode(payload()).events)
    [event] = door().decode(payload(id=None, timestamp=None), arrival_ms=NOW).events
    assert (event.end, len(event.id)) == (NOW, 32)


@pytest.mark.parametrize("form", ["json", "msgpack"])
def test_a_null_type_is_that_of_the_topic(form):
    encode = msgspec.json.encode if form == "json" else msgspec.msgpack.encode
    item = {"type": None, "id": "t1", "timestamp": NOW, "val": 2.0}
    for said, count in ((item, 1), ([item, item], 2)):
        found = door().decode(encode(said), type_name="Temp", format=form).events
        assert [(one.event_type, one.a_val) for one in found] == [("Temp", 2.0)] * count
    assert door().decode(encode(item), format=form).rejections[0].reason == "not_an_event"


def test_unknown_keys_are_passed_over_whatever_they_hold():
    odd = payload(val=2.0, zz={"a": [1, {"b": None}]}, unit="°C")
    assert plain(door().decode(odd).events) == plain(door().decode(payload(val=2.0)).events)


def test_bytes_are_base64_in_json_and_raw_in_msgpack():
    [one] = door().decode(payload(raw="aGVsbG8=")).events
    packed = msgspec.msgpack.encode({"type": "Temp", "id": "t1", "timestamp": 5, "raw": b"hello"})
    [two] = door().decode(packed, format="msgpack").events
    assert one.a_raw == two.a_raw == b"hello"


def test_positions_are_in_degrees_or_in_metres():
    for said, held in [
        ([45.87, 7], [45.87, 7.0]),
        ([-90, 180, 2469.5], [-90.0, 180.0, 2469.5]),
        ({"x": 1, "y": -2}, MetricPosition(x=1.0, y=-2.0)),
        ({"x": 1, "y": -2, "z": 3.5}, MetricPosition(x=1.0, y=-2.0, z=3.5)),
    ]:
        assert door().decode(payload(position=said)).events[0].position == held


def test_srcid_is_accepted_for_source():
    assert door().decode(payload(srcid="t9")).events[0].source == "t9"
    assert door().decode(payload(srcid="t9", source="t7")).events[0].source == "t7"
    assert door().decode(b"[" + payload(srcid="t9") + b"]").events[0].source == "t9"
    intake = Intake()
    intake.declare(EventType("Temp", {"srcid": "text"}))
    [event] = intake.decode(payload(srcid="t9")).events
    assert (event.source, event.a_srcid) == (None, "t9")


# --- what the topic says ----------------------------------------------------------------------


def test_the_topic_supplies_type_and_source():
    bare = b'{"id": "1", "timestamp": 5, "val": 2}'
    [event] = door().decode(bare, type_name="Hum", source="h1").events
    assert (event.event_type, event.source, event.a_val) == ("Hum", "h1", 2.0)
    [event] = door().decode(payload(source="t7"), type_name="Temp", source="t7").events
    assert event.source == "t7"


@pytest.mark.parametrize(
    "fields", [{"source": "other"}, {"srcid": "other"}, {"source": "other", "id": None}]
)
def test_a_payload_may_not_speak_for_another_source_than_its_topics(fields):
    decoded = door().decode(payload(**fields), type_name="Temp", source="t7", arrival_ms=NOW)
    assert [one.reason for one in decoded.rejections] == ["topic_mismatch"]
    assert "other" in decoded.rejections[0].message


def test_a_payload_may_not_name_another_type_than_its_topic():
    for type_name in ("Hum", "Undeclared"):
        decoded = door().decode(payload(), type_name=type_name, source="t7")
        assert [one.reason for one in decoded.rejections] == ["topic_mismatch"]


def test_an_undeclared_type_is_skipped_and_no_rejection():
    batch = b"[" + payload(type="Zz", val="x") + b"," + payload() + b"]"
    decoded = door().decode(batch)
    assert (len(decoded.events), decoded.skipped, decoded.rejections) == (1, 1, [])
    assert door().decode(b'[{"v": 1}, {"v": 2}]', type_name="Zz").skipped == 2


# --- what is refused, and why -----------------------------------------------------------------

DEEP = 100_000
MALFORMED: list[tuple[bytes, str]] = [
    (b"", "not_json"),
    (b"   ", "not_json"),
    (b"nonsense", "not_json"),
    (b'{"type": "Temp"', "not_json"),
    (payload() + b"}", "not_json"),
    (payload() + payload(), "not_json"),
    (b"[" + payload() + b",]", "not_json"),
    (b"\xef\xbb\xbf" + payload(), "not_json"),
    (payload()[:-1] + b', "note": "\xff"}', "not_json"),
    (payload()[:-1] + b', "note": "\\ud800"}', "not_json"),
    (payload()[:-1] + b', "note": "tab\there"}', "not_json"),
    (b"null", "not_an_event"),
    (b"17", "not_an_event"),
    (b'"Temp"', "not_an_event"),
    (b"{}", "not_an_event"),
    (b'{"val": 3}', "not_an_event"),
    (payload(type=3), "not_an_event"),
    (payload(type=None), "not_an_event"),
    (payload(val="21.5"), "wrong_type"),
    (payload(val=True), "wrong_type"),
    (payload(val=[1]), "wrong_type"),
    (payload(count=7.0), "wrong_type"),
    (payload(count=True), "wrong_type"),
    (payload(note=7), "wrong_type"),
    (payload(on=1), "wrong_type"),
    (payload(raw="###"), "wrong_type"),
    (payload(id=17), "wrong_type"),
    (payload(source=7), "wrong_type"),
    (payload(location=["a"]), "wrong_type"),
    (payload(uncertainty=1.5), "wrong_type"),
    (payload(val=0)[:-2] + b"NaN}", "not_finite"),
    (payload(val=0)[:-2] + b"-Infinity}", "not_finite"),
    (payload(val=0)[:-2] + b"1e999}", "not_finite"),
    (payload(zz=0)[:-2] + b"NaN}", "not_finite"),
    (payload(count=2**63), "int_range"),
    (payload(count=-(2**63) - 1), "int_range"),
    (payload(count=0)[:-2] + b"9" * 400 + b"}", "int_range"),
    (payload(timestamp=None), "no_time"),
    (payload(timestamp=float(NOW)), "bad_time"),
    (payload(timestamp="yesterday"), "bad_time"),
    (payload(timestamp="10:00"), "bad_time"),
    (payload(timestamp="2007-10-01T10:56:60Z"), "bad_time"),
    (payload(timestamp="2007-10-01T10:56:07Z" + " " * 100), "bad_time"),
    (payload(timestamp=True), "bad_time"),
    (payload(timestamp={"s": 1}), "bad_time"),
    (payload(timestamp=NOW * 1000), "bad_time"),
    (payload(timestamp=2**70), "bad_time"),
    (payload(start=5), "bad_time"),
    (payload(end=5), "bad_time"),
    (payload(start=5, end="later"), "bad_time"),
    (payload(start=6, end=5), "start_after_end"),
    (payload(start=0, end=1_001), "duration_too_long"),
    (payload(uncertainty=-1), "negative_uncertainty"),
    (payload(uncertainty=51), "uncertainty_too_large"),
    (payload(position=[1]), "bad_position"),
    (payload(position=[1, 2, 3, 4]), "bad_position"),
    (payload(position=["1", 2]), "bad_position"),
    (payload(position=[90.1, 7]), "bad_position"),
    (payload(position=[45, -180.5]), "bad_position"),
    (payload(position={"x": 1}), "bad_position"),
    (payload(position={"x": 1, "y": "2"}), "bad_position"),
    (payload(position="45,7"), "bad_position"),
    (payload(note="x" * 21), "text_too_long"),
    (payload(raw="A" * 12), "text_too_long"),
    (payload(id="x" * 13), "text_too_long"),
    (payload(source="x" * 13), "text_too_long"),
    (payload(srcid="x" * 13), "text_too_long"),
    (payload(location="x" * 13), "text_too_long"),
    (payload(note="x" * 3_000), "too_large"),
    (b"[" + b",".join([payload()] * 6) + b"]", "batch_too_long"),
    (payload(zz=[[[[1]]]]), "too_deep"),
    (payload(zz={"a": {"b": {"c": {}}}}), "too_deep"),
    (payload(id=None, zz=[[[["]]]]"]]]]), "too_deep"),
]


@pytest.mark.parametrize(
    ("bad", "reason"), MALFORMED, ids=[f"{n}-{r}" for n, (_, r) in enumerate(MALFORMED)]
)
def test_what_is_wrong_is_refused_with_its_reason(bad, reason):
    intake = door(SMALL)
    decoded = intake.decode(bad)
    assert decoded.events == []
    assert [one.reason for one in decoded.rejections] == [reason]
    assert decoded.rejections[0].index is None
    assert 10 < len(decoded.rejections[0].message) < 500
    assert decoded.rejections[0].message.isprintable()
    assert intake.ledger.events.dropped == {reason: 1}


def test_every_reason_of_decoding_is_among_the_malformed_examples():
    judged_later = {"undeclared_type", "repeat", "conflicting_repeat", "late", "too_many_sources"}
    by_origin = {"topic_mismatch", "too_far_in_future"}
    assert {reason for _, reason in MALFORMED} == set(REASONS) - judged_later - by_origin


def test_what_stays_within_the_limits_is_let_in():
    """Each limit of the malformed examples, reached and not passed."""
    for fields in [
        {"note": "é" * 20},
        {"raw": "AAAAAAAA"},
        {"id": "x" * 12, "source": "x" * 12, "location": "x" * 12},
        {"zz": [[[1]]]},
        {"zz": "[[[[[[[["},
        {"start": 0, "end": 1_000},
        {"uncertainty": 50},
        {"count": 2**63 - 1},
        {"count": -(2**63)},
        {"position": [90, -180]},
    ]:
        assert len(door(SMALL).decode(payload(**fields)).events) == 1, fields
    assert len(door(SMALL).decode(b"[" + b",".join([payload()] * 5) + b"]").events) == 5


def test_nesting_without_end_is_refused_and_harms_nothing():
    """Deep in a known key, in an unknown one and around everything, and in msgpack too."""
    intake = door(make_limits(payload_bytes_max=10_000_000))
    for bad in [
        payload()[:-1] + b', "zz": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        payload()[:-1] + b', "zz": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
        payload()[:-1] + b', "position": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        b"[" * DEEP + b"]" * DEEP,
        b"[" + payload() + b"," + b"[" * DEEP + b"]" * DEEP + b"]",
    ]:
        decoded = intake.decode(bad)
        assert decoded.events == []
        assert [one.reason for one in decoded.rejections] in (["too_deep"], ["bad_position"])
    head = b"\x84\xa4type\xa4Temp\xa2id\xa21a\xa9timestamp\x05\xa2zz"
    assert intake.decode(head + b"\xc0", format="msgpack").events != []
    decoded = intake.decode(head + b"\x91" * DEEP + b"\xc0", format="msgpack")
    assert [one.reason for one in decoded.rejections] == ["too_deep"]
    decoded = intake.decode(head + b"\x91" * 20 + b"\xc0", format="msgpack")
    assert [one.reason for one in decoded.rejections] == ["too_deep"]


def test_the_future_is_believed_up_to_a_limit_past_arrival():
    intake = door(SMALL)
    for fields in ({}, {"id": None}, {"start": NOW - 5, "end": NOW}):
        assert intake.decode(payload(**fields), arrival_ms=NOW - 100).rejections == []
        decoded = intake.decode(payload(**fields), arrival_ms=NOW - 101)
        assert [one.reason for one in decoded.rejections] == ["too_far_in_future"]
    assert intake.decode(payload(), arrival_ms=None).rejections == []


def test_a_reading_without_a_time_is_stamped_on_arrival_and_counted():
    intake = door()
    decoded = intake.decode(payload(timestamp=None), arrival_ms=NOW + 5)
    assert decoded.events[0].start == decoded.events[0].end == NOW + 5
    assert decoded.stamped == 1
    refused = intake.decode(payload(timestamp=None, position=[91, 0]), arrival_ms=NOW)
    assert refused.stamped == 0
    assert intake.ledger.notes == {"stamped_on_arrival": 1}


def test_a_time_can_be_required():
    decoded = door(require_timestamp=True).decode(payload(timestamp=None), arrival_ms=NOW)
    assert [one.reason for one in decoded.rejections] == ["no_time"]


# --- ids --------------------------------------------------------------------------------------


def test_an_id_that_is_missing_is_a_digest_of_what_the_event_says():
    def named(intake: Intake | None = None, **fields: Any) -> str:
        [event] = (intake or door()).decode(payload(id=None, **fields)).events
        return event.id

    assert named(val=1.0) == named(val=1) == named(val=1.0, note=None, zz=3)
    others = [
        named(val=2.0),
        named(val=1.0, timestamp=NOW + 1),
        named(val=1.0, source="t1"),
        named(val=1.0, note=""),
        named(val=1.0, start=NOW - 1, end=NOW),
        named(val=1.0, type="Hum"),
        named(val=1.0),
    ]
    assert len(set(others)) == len(others)
    assert door().decode(payload(val=1.0, id="")).events[0].id == named(val=1.0)
    again = Intake()
    again.declare(EventType("Temp", {"note": "text", "extra": "int", "val": "float"}))
    assert named(again, val=1.0) == named(val=1.0)


# --- advertisements ---------------------------------------------------------------------------


def test_an_advertisement_supplies_what_the_event_does_not_say():
    intake = door(by_source=True)
    intake.advertise(
        Advertisement(source="t7", location="a/b", position=[45.0, 7.0], uncertainty=20), NOW
    )
    [event] = intake.decode(payload(), source="t7").events
    assert (event.location, event.position, event.uncertainty) == ("a/b", [45.0, 7.0], 20)
    [event] = intake.decode(payload(source="t7", uncertainty=0, location="c"), source="t7").events
    assert (event.location, event.position, event.uncertainty) == ("c", [45.0, 7.0], 0)
    [event] = intake.decode(payload(source="t8")).events
    assert (event.location, event.position, event.uncertainty) == (None, None, 0)
    intake.withdraw("t7", NOW)
    [event] = intake.decode(payload(source="t7")).events
    assert (event.location, event.uncertainty) == (None, 0)


def test_a_batch_of_many_sources_is_supplied_source_by_source():
    intake = door(by_source=True)
    intake.advertise(Advertisement(source="a", location="here"), NOW)
    batch = b"[" + b",".join(payload(source=s) for s in ("a", "b", "a")) + b"]"
    assert [event.location for event in intake.decode(batch).events] == ["here", None, "here"]
    intake.advertise(Advertisement(source="b", uncertainty=5), NOW)
    assert [event.uncertainty for event in intake.decode(batch).events] == [0, 5, 0]


def test_what_holds_when_an_event_arrives_is_recorded_with_it():
    intake = door(by_source=True)
    intake.advertise(Advertisement(source="t7", location="a"), NOW)
    [event] = intake.decode(payload(source="t7")).events
    intake.advertise(Advertisement(source="t7", location="b"), NOW)
    assert event.location == "a"
    assert intake.advertisement("t7") == Advertisement(source="t7", location="b")


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": ""},
        {"source": "x" * 2_000},
        {"uncertainty": -1},
        {"position": [100.0, 0.0]},
        {"position": MetricPosition(x=math.nan, y=0.0)},
        {"location": "x" * 2_000},
    ],
)
def test_an_advertisement_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match=r"\w"):
        door().advertise(Advertisement(**{"source": "s", **wrong}), NOW)


# --- the same by every way --------------------------------------------------------------------

GOOD = [
    payload(),
    payload(val=3, source="t1"),
    payload(id=None, val=1.5),
    payload(timestamp="2007-10-01T10:56:07Z"),
    payload(start=NOW - 5, end=NOW),
    payload(zz={"a": [1]}),
    payload(zz=[[1]], position=[45, 7]),
    payload(srcid="t9"),
    payload(type="Hum", val=80),
    payload(type="Zz", val=80),
    payload(position={"x": 1.0, "y": 2.0}, uncertainty=7),
    payload(note="NaN Infinity é"),
]
ITEMS = GOOD + [
    bad
    for bad, reason in MALFORMED
    if reason not in {"not_json", "too_large", "batch_too_long", "no_time"}
]


def in_full(decoded: Any) -> Any:
    return plain(decoded.events), [(one.reason, one.message) for one in decoded.rejections]


@given(st.lists(st.sampled_from(ITEMS), max_size=8))
@example([payload(val=0)[:-2] + b"NaN}", payload(zz=0)[:-2] + b"1e999}"])
@example([payload(val=0)[:-2] + b"NaN}", payload(note="x" * 30), payload(count=2**80)])
def test_an_event_of_a_batch_fares_as_it_would_alone(items):
    """One bad event refuses only itself, wherever in the batch it is and whatever the others."""
    limits = msgspec.structs.replace(SMALL, batch_events_max=50, payload_bytes_max=100_000)
    batch = door(limits).decode(b"[" + b",".join(items) + b"]", source=None)
    alone = [door(limits).decode(item) for item in items]
    assert plain(batch.events) == [said for one in alone for said in plain(one.events)]
    expected = [
        (index, one.rejections[0].reason, one.rejections[0].message)
        for index, one in enumerate(alone)
        if one.rejections
    ]
    assert [(one.index, one.reason, one.message) for one in batch.rejections] == expected
    assert batch.skipped == sum(one.skipped for one in alone)
    lines = door(limits).decode_lines(items)
    assert in_full(lines) == in_full(batch)
    assert [one.index for one in lines.rejections] == [index for index, _, _ in expected]


def test_lines_are_numbered_with_the_empty_ones_and_may_be_arrays():
    lines = [b"", payload(), b"", payload(val="x"), b"[" + payload() + b"," + payload() + b"]"]
    decoded = door().decode_lines(lines)
    assert len(decoded.events) == 3
    assert [(one.index, one.reason) for one in decoded.rejections] == [(3, "wrong_type")]
    decoded = door().decode_lines([b"", payload(), payload(position=[91, 0])])
    assert [(one.index, one.reason) for one in decoded.rejections] == [(2, "bad_position")]


def test_two_events_on_a_line_or_one_on_two_are_bad_lines():
    decoded = door().decode_lines([payload() + b"," + payload(), payload()])
    assert [(one.index, one.reason) for one in decoded.rejections] == [(0, "not_json")]
    halves = [payload()[:10], payload()[10:]]
    decoded = door().decode_lines(halves)
    assert [one.index for one in decoded.rejections] == [0, 1]


values = st.fixed_dictionaries(
    {"type": st.sampled_from(["Temp", "Hum"])},
    optional={
        "id": st.none() | st.text(max_size=5),
        "source": st.none() | st.sampled_from(["a", "é"]),
        "location": st.none() | st.text(max_size=3),
        "position": st.none()
        | st.tuples(st.floats(-100, 100), st.floats(-190, 190)).map(list)
        | st.just({"x": 1.0, "y": 2.0}),
        "timestamp": st.none()
        | st.integers()
        | st.sampled_from(["2007-10-01T10:56:07Z", "x", ""])
        | st.floats(),
        "start": st.none() | st.integers(0, 10),
        "end": st.none() | st.integers(0, 10),
        "uncertainty": st.none() | st.integers(-1, 100),
        "val": st.none() | st.floats() | st.integers(),
        "count": st.none() | st.integers() | st.booleans(),
        "note": st.none() | st.text(max_size=4),
        "on": st.none() | st.booleans(),
        "zz": st.lists(st.integers(-5, 5), max_size=2),
    },
)


@given(st.lists(values, max_size=5), st.none() | st.just(NOW))
def test_json_msgpack_and_mappings_say_the_same(items, arrival_ms):
    """NaN is written as Python's json does, and refused by all three (JSON says no more of it)."""
    text = json.dumps(items).encode()
    by_json = door().decode(text, arrival_ms=arrival_ms)
    by_mapping = door().from_mappings(items, arrival_ms)
    kinds = [(one.index, one.reason) for one in by_json.rejections]
    assert plain(by_mapping.events) == plain(by_json.events)
    assert [one.index for one in by_mapping.rejections] == [index for index, _ in kinds]
    if not any(_beyond_int64(item) for item in items):
        packed = door().decode(
            msgspec.msgpack.encode(items), format="msgpack", arrival_ms=arrival_ms
        )
        assert plain(packed.events) == plain(by_json.events)
        for other in (by_mapping, packed):
            assert [(one.index, one.reason) for one in other.rejections] == kinds


def _beyond_int64(item: dict[str, Any]) -> bool:
    """What JSON and Python write and msgpack cannot (and what is no number for JSON either)."""
    return any(
        (isinstance(value, int) and not -(2**63) <= value < 2**64)
        or (isinstance(value, float) and not math.isfinite(value))
        for value in item.values()
    )


@given(st.lists(values, max_size=3))
def test_an_event_written_out_is_the_same_event_when_read_again(items):
    once = door().from_mappings(items, NOW).events
    again = door().from_mappings(once).events
    by_text = door().decode(msgspec.json.encode(plain(once))).events
    assert plain(again) == plain(by_text) == plain(once)
    assert [type(event).__name__ for event in again] == [type(event).__name__ for event in once]


def test_what_only_python_can_say_is_refused():
    intake = door()
    base = {"type": "Temp", "id": "1", "timestamp": 5}
    for wrong, reason in [
        ({"val": math.nan}, "not_finite"),
        ({"val": math.inf}, "not_finite"),
        ({"note": "\ud800"}, "wrong_type"),
        ({"id": "\ud800"}, "wrong_type"),
        ({"count": 2**70}, "int_range"),
        ({"position": [math.nan, 0.0]}, "bad_position"),
        ({"position": {"x": math.inf, "y": 0.0}}, "bad_position"),
        ({"position": [0.0, 0.0, math.inf]}, "bad_position"),
    ]:
        for items in ([{**base, **wrong}], [{**base, **wrong, "zz": 1}]):
            decoded = intake.from_mappings(items)
            assert [one.reason for one in decoded.rejections] == [reason], wrong
    for nonsense in [None, 3, "x", [base], {1: 2}, object()]:
        decoded = intake.from_mappings([nonsense, base])
        assert [(one.index, one.reason) for one in decoded.rejections] == [(0, "not_an_event")]
        assert len(decoded.events) == 1


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "id", "timestamp", "val", "position", "zz"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(
    st.binary(max_size=60) | json_like.map(lambda value: json.dumps(value).encode()),
    st.sampled_from(["json", "msgpack"]),
    st.none() | st.sampled_from(["Temp", "Zz"]),
)
def test_no_payload_raises_and_every_event_of_it_is_accounted_for(data, form, type_name):
    intake = door(SMALL)
    decoded = intake.decode(data, format=form, type_name=type_name, source="s", arrival_ms=NOW)
    total = len(decoded.events) + len(decoded.rejections) + decoded.skipped
    try:
        parsed = json.loads(data) if form == "json" else None
    except (ValueError, RecursionError):
        parsed = None
    if isinstance(parsed, list) and len(parsed) <= 5 and len(data) <= 2_000:
        assert total == len(parsed) or total == 1
    elif form == "json":
        assert total == 1
    account = intake.ledger.events
    assert account.received == len(decoded.events) + account.dropped_count
    assert all(one.reason in REASONS for one in decoded.rejections)


@given(st.text(max_size=70))
def test_a_text_is_a_time_or_none_and_never_an_error(text):
    found = parse_time(text)
    assert found is None or isinstance(found, int)


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("2026-01-10T24:00:00Z", "2026-01-11T00:00:00Z"),
        ("20260110T2400+0530", "2026-01-11T00:00:00+05:30"),
        ("2026-W02-6T24", "2026-01-11"),
        ("2026-010", "2026-01-10"),
        ("2024366T050100.5Z", "2024-12-31T05:01:00.500Z"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
        ("2017-01-01T05:29:60.25+05:30", "2017-01-01T00:00:00.250Z"),
        ("2026-01-10t05:01:00z", "2026-01-10T05:01:00Z"),
        ("2026-01-10T24:00:01Z", None),
        ("2026-01-10T24:30Z", None),
        ("2026-366", None),
        ("2026-000", None),
        ("2016-12-31T23:58:60Z", None),
        ("9999-12-31T24:00Z", None),
        ("1191234567000", None),
    ],
)
def test_the_rarer_forms_of_iso_8601_are_read_whatever_the_python(text, usual):
    """3.11 leaves out the end of a day, days of a year, leap seconds and small letters."""
    assert parse_time(text) == (None if usual is None else parse_time(usual))
    assert usual is None or parse_time(usual) is not None

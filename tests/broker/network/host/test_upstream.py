"""What comes of an origin is taken whole, or as if it had not come: neighbours may say anything."""

import datetime as dt
import random

import msgspec
import pytest

from broker.engine.ingest.event_bytes import packed, unpacked
from broker.network.frames.frames import Reoffer
from broker.network.frames.told import Forwarded
from broker.network.host import upstream as upstream_module
from broker.network.host.upstream import Upstream

ROWS = [{"type": "Temp", "id": "a", "timestamp": 5}, {"type": "Temp", "id": "b", "timestamp": 6}]


def forwarded(events, *, after=0, upto=2, whole=False):
    return Forwarded("hall", 1, after, upto, [1, 2], events, {}, whole)


def standing():
    return Upstream(life=1, position=0)


def passed(_type_name):
    return -1


SPOILT = {
    "cut off": msgspec.msgpack.encode(ROWS)[:-3],
    "no text": msgspec.msgpack.encode(ROWS).replace(b"Temp", b"Te\x8dp", 1),
    "no list": msgspec.msgpack.encode(ROWS[0]),
    "too few": msgspec.msgpack.encode(ROWS[:1]),
    "too many": msgspec.msgpack.encode([*ROWS, ROWS[0]]),
    "without a type": msgspec.msgpack.encode([ROWS[0], {"timestamp": 6}]),
    "a type that is none": msgspec.msgpack.encode([ROWS[0], {"type": 7, "timestamp": 6}]),
    "without a time": msgspec.msgpack.encode([ROWS[0], {"type": "Temp"}]),
    "a time that is none": msgspec.msgpack.encode([ROWS[0], {"type": "Temp", "timestamp": None}]),
}


@pytest.mark.parametrize("events", SPOILT.values(), ids=SPOILT)
@pytest.mark.parametrize("whole", [False, True])
def test_events_that_make_no_sense_change_nothing(events, whole):
    upstream = standing()
    assert upstream.take(forwarded(events, whole=whole), passed) is None
    assert upstream.state() == standing().state()


def test_what_comes_again_behind_them_is_taken():
    upstream, whole = standing(), msgspec.msgpack.encode(ROWS)
    assert upstream.take(forwarded(SPOILT["cut off"]), passed) is None
    assert upstream.take(forwarded(whole), passed) == (ROWS, {})
    assert upstream.take(forwarded(whole), passed) == ([], {})
    assert upstream.position == 2


def test_a_question_names_what_has_come_behind_the_position_whatever_its_order():
    upstream, whole = standing(), msgspec.msgpack.encode(ROWS)
    upstream.take(Forwarded("hall", 1, 0, 9, [7, 9], whole, {}, held_after=2), passed)
    upstream.take(Forwarded("hall", 1, 9, 12, [5, 12], whole, {}, held_after=4), passed)
    question = Reoffer("h", "hall", 1, 1, upstream.position, {}, taken=upstream.gaps())
    assert question.taken == (1, 2, 2, 3)
    assert {5, 7, 9, 12} == question.positions_taken(1) - {upstream.position}
    assert not question.positions_taken(2)


def test_a_question_names_no_more_than_goes_into_a_frame(monkeypatch):
    monkeypatch.setattr(upstream_module, "GAPS_MAX", 1)
    upstream = standing()
    upstream.take(
        Forwarded("hall", 1, 0, 9, [7, 9], msgspec.msgpack.encode(ROWS), {}, held_after=2), passed
    )
    assert upstream.gaps() == (5,)


def test_a_gap_is_left_and_an_answer_that_begins_behind_it_says_what_is_lost():
    upstream, whole = standing(), msgspec.msgpack.encode(ROWS)
    beyond = Forwarded("hall", 1, 7, 9, [8, 9], whole, {})
    assert upstream.take(beyond, passed) is None
    answer = Forwarded("hall", 1, 7, 9, [8, 9], whole, {}, True)
    assert upstream.take(answer, passed) == (ROWS, {"positions_lost": 7})
    assert (upstream.position, upstream.lost) == (9, 7)


VALUES = (
    None, True, 0, -1, 2**63, 0.0, -0.0, 1e300, float("inf"), "", "ü", b"\x00\xff", [], [1, [None]],
    {"a": {"b": 1.5}}, {1: "x"}, dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    msgspec.msgpack.Ext(7, b"ext"),
)  # fmt: skip


def drawn_event(draw, number):
    """An event as any neighbour may write it, with attributes that no type declares."""
    end = draw.choice([-5, 6, 2**53])
    row = {"type": draw.choice(["Temp", "Door"]), "id": f"e{number}", "timestamp": end}
    optional = {
        "start": draw.choice([end, end - 3, None]),
        "source": draw.choice(["s", None]),
        "location": "a/b",
        "position": draw.choice([None, [46.0, 7.0], {"x": 1.0, "y": 2.0, "z": None}]),
        "uncertainty": draw.choice([0, 7]),
        "a-b": draw.choice(VALUES),
        "val": draw.choice(VALUES),
        "class": draw.choice(VALUES),
    }
    return row | {key: value for key, value in optional.items() if draw.random() < 0.5}


def test_events_that_are_decoded_already_are_taken_as_their_bytes_are():
    """Or a broker that recovers would have other events than before."""
    for seed in range(300):
        draw = random.Random(seed)
        rows = [drawn_event(draw, number) for number in range(draw.randrange(1, 6))]
        events = unpacked(msgspec.msgpack.encode(rows))
        positions = sorted(draw.sample(range(1, 20), len(rows)))
        one = Forwarded(
            "hall", 1, 0, 20, positions, packed(events), {}, held_after=draw.choice([3, None])
        )
        of_bytes, of_events = standing(), standing()
        taken = of_bytes.take(one, passed)
        assert taken is not None
        again = of_events.take(one, passed, events)
        assert msgspec.msgpack.encode(again) == msgspec.msgpack.encode(taken)
        assert of_events.state() == of_bytes.state()

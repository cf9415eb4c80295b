"""Windows against a naive recomputation, over generated events, orders, watermarks, snapshots."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.engine.event.agent import WATERMARK_END
from broker.engine.event.event import Detected, Event
from broker.engine.window.agent import WindowAgent
from tests.broker.core.window_support import (
    AGGREGATES,
    Defined,
    History,
    Leaf,
    again,
    agent_of,
    alike,
    expected,
    histories,
    run,
    told,
    traces,
)

# Many shapes share a property, so a few cases of each do in the fast run.
FEW = settings(max_examples=(settings.default or settings()).max_examples // 4)

A = Leaf("A", "A")
SHAPES = {
    "one operand, no group": ((A,), ()),
    "one operand, one key": ((A,), ("g",)),
    "one outer operand": ((Leaf("outer A", "A", outer=True),), ("location",)),
    "two operands, two keys": ((A, Leaf("B", "B")), ("location", "g")),
    "one operand outer": ((A, Leaf("outer B as b", "B", outer=True)), ("location",)),
    "the first outer": ((Leaf("outer A", "A", outer=True), Leaf("B", "B")), ()),
    "all outer": (
        (Leaf("outer A", "A", outer=True), Leaf("outer B", "B", outer=True)),
        ("location",),
    ),
    "an event at two operands": (
        (
            Leaf("A as A", "A"),
            Leaf("outer A(i > 0) as q", "A", outer=True, own=lambda e: (e.a_i or 0) > 0),
        ),
        ("g",),
    ),
    "one distinct operand": ((Leaf("distinct(i) A", "A", distinct=("i",)),), ("location",)),
    "distinct by two keys, and outer": (
        (
            Leaf("distinct(g, s) A", "A", distinct=("g", "s")),
            Leaf("outer distinct B as b", "B", outer=True, distinct=("end",)),
        ),
        (),
    ),
    "an event that counts at one operand alone": (
        (
            Leaf("A as A", "A"),
            Leaf(
                "distinct(location) A(i > 0) as q",
                "A",
                own=lambda e: (e.a_i or 0) > 0,
                distinct=("location",),
            ),
        ),
        (),
    ),
}
WINDOWS = [
    ("every 7 ms", 7, None),
    ("every 10 ms range 10 ms", 10, 10),
    ("every 10 ms range 4 ms", 10, 4),
    ("every 10 ms range 30 ms", 10, 30),
    ("every 7 ms range 23 ms", 7, 23),
    ("every 2 ms range 25 ms", 2, 25),
    ("every 3 ms range 30 ms", 3, 30),
    ("every 1 ms range 40 ms", 1, 40),
    ("range 1 ms", None, 1),
    ("range 12 ms", None, 12),
]
# What grows with the events is merged in another way than what does not.
GROWING = ("Median", "Quantile", "CountDistinct")
WITHOUT_VALUES = tuple(
    name for name, (text, *_) in AGGREGATES.items() if not text.startswith(GROWING)
)


@pytest.mark.parametrize("shape", SHAPES)
@FEW
@given(data=st.data())
def test_windows_are_what_a_naive_recomputation_gives(shape: str, data: st.DataObject) -> None:
    """Whatever the order of arrival, the batches, the watermarks and the snapshots."""
    windows(shape, data)


def windows(shape: str, data: st.DataObject) -> None:
    leaves, group_by = SHAPES[shape]
    assign = data.draw(st.sampled_from([tuple(AGGREGATES), WITHOUT_VALUES]))
    defined = Defined(*data.draw(st.sampled_from(WINDOWS)), leaves, group_by, assign)
    events = data.draw(traces())
    hold(defined, events, data.draw(histories(events)))


def hold(defined: Defined, events: list[Event], history: History, **limits: int) -> list[Detected]:
    """Hold an agent to the naive recomputation."""
    made = run(defined, history, lambda: agent_of(defined.text, **limits))
    wanted = [(window, *rest) for window, _, *rest in expected(defined, events)]
    assert alike(told(defined, made)) == alike(wanted)
    ids = [event.id for event in made]
    assert len(set(ids)) == len(ids)
    return made


@pytest.mark.parametrize("shape", SHAPES)
@FEW
@given(data=st.data())
def test_sessions_are_what_a_naive_recomputation_gives(shape: str, data: st.DataObject) -> None:
    """As above; besides, each event tells the gap."""
    sessions(shape, data)


def sessions(shape: str, data: st.DataObject) -> None:
    leaves, group_by = SHAPES[shape]
    gap = data.draw(st.sampled_from([1, 3, 8, 20]))
    most = data.draw(st.sampled_from([None, 1, 10, 40]))
    text = f"session {gap} ms" + ("" if most is None else f" max {most} ms")
    defined = Defined(text, None, None, leaves, group_by, WITHOUT_VALUES, session=(gap, most))
    events = data.draw(traces())
    longest = max(event.end - event.start for event in events)
    made = hold(defined, events, data.draw(histories(events)), duration_max_ms=longest)
    assert all(event.a_interval == gap for event in made)  # type: ignore[attr-defined]


ZONES = ["UTC", "Europe/Zurich", "America/Sao_Paulo", "Asia/Kathmandu", "Pacific/Apia"]


@pytest.mark.parametrize("shape", ["one operand, no group", "one distinct operand"])
@FEW
@given(data=st.data())
def test_local_days_are_what_a_naive_recomputation_gives(shape: str, data: st.DataObject) -> None:
    """Also where clocks change, at midnight too, and where a whole day is skipped (Apia, 2011)."""
    days(shape, data)


def days(shape: str, data: st.DataObject) -> None:
    leaves, group_by = SHAPES[shape]
    zone = data.draw(st.sampled_from(ZONES))
    every = data.draw(st.sampled_from([1, 2, 7]))
    reach = data.draw(st.sampled_from([None, None, 1, 3, 14]))
    text = f'every {every} days in "{zone}"' + ("" if reach is None else f" range {reach} days")
    defined = Defined(text, None, None, leaves, group_by, WITHOUT_VALUES, days=(every, reach, zone))
    noon = data.draw(st.sampled_from(MOMENTS))
    around = st.integers(-5 * 86_400, 5 * 86_400).map(lambda s: noon + 1_000 * s)
    near = st.sampled_from([-1, 0, 1, -3_600_000, 3_600_000, 3_599_999]).map(lambda ms: noon + ms)
    events = data.draw(traces(most=8))
    for event in events:
        length = event.end - event.start
        event.end = data.draw(st.one_of(around, near))
        event.start = event.end - length
    hold(defined, events, data.draw(histories(events)))


# Midnights, in UTC, of days on which one of the zones changes its clocks or its date.
MOMENTS = [
    int(datetime.fromisoformat(text).timestamp()) * 1_000
    for text in (
        "2024-03-31T01:00+00:00",  # Zurich: 23 hours
        "2024-10-27T01:00+00:00",  # 25 hours
        "2018-11-04T03:00+00:00",  # Sao Paulo: the day begins at one
        "2018-02-18T02:00+00:00",  # its clocks go back at midnight
        "2011-12-30T10:00+00:00",  # Apia: no 30 December
        "1969-12-31T23:00+00:00",
    )
]


@pytest.mark.parametrize("group_by", [(), ("g",), ("location", "g")])
@pytest.mark.parametrize("window", WINDOWS)
@settings(max_examples=FEW.max_examples // 3)
@given(data=st.data())
def test_plain_streams_are_windowed_like_any_other(
    window: Any, group_by: tuple[str, ...], data: st.DataObject
) -> None:
    """Points in order, a few at a time, the watermark some way behind: what most streams are."""
    leaves = (A, Leaf("outer B as b", "B", outer=True))
    defined = Defined(
        *window, leaves, group_by, data.draw(st.sampled_from([("sx", "hx"), ("mi",)]))
    )
    events = data.draw(traces(most=30))
    for event in events:
        event.start, event.uncertainty = event.end, 0
    behind = data.draw(st.sampled_from([1, 8, 30, 200]))
    history = History()
    ordered = sorted(events, key=lambda event: event.end)
    while ordered:
        size = data.draw(st.integers(1, 6))
        batch, ordered = ordered[:size], ordered[size:]
        history.batches.append((batch, batch[-1].end - behind))
    history.batches.append(([], WATERMARK_END))
    hold(defined, events, history)


KINDS = ["every 9 ms", "every 5 ms range 12 ms", "range 12 ms", "session 6 ms max 30 ms"]


@pytest.mark.parametrize("window", KINDS)
@pytest.mark.parametrize("operand", ["A", "distinct(i) A"])
@FEW
@given(data=st.data())
def test_a_snapshot_changes_nothing_that_shows(
    window: str, operand: str, data: st.DataObject
) -> None:
    """Neither what comes out, nor what is held, dropped, due and promised; near the limits too."""
    assign = data.draw(st.sampled_from([("nx", "mx"), ("hx", "fx")]))
    defined = Defined(window, None, None, (Leaf(operand, "A"),), ("g",), assign)
    events = data.draw(traces())
    history = data.draw(histories(events))
    limits = {"groups_max": 2, "events_max": 7, "duration_max_ms": 30}

    def make() -> WindowAgent:
        return agent_of(defined.text, **limits)

    one, other = make(), make()
    for batch, watermark in history.batches:
        own = [event for event in batch if event.event_type == "A"]
        fed = [(0, own)] if own else []
        other = again(other, make)
        assert [e.order for e in one.feed(fed, watermark)] == [
            e.order for e in other.feed(fed, watermark)
        ]
        for name in ("held", "dropped", "next_due"):
            assert getattr(one, name)() == getattr(other, name)()
        assert one.watermark_out(watermark) == other.watermark_out(watermark)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_many_windows_sessions_and_days(shape: str, data: st.DataObject) -> None:
    """The properties above over many more cases."""
    what = data.draw(st.sampled_from([windows, sessions, days]))
    what(shape, data)

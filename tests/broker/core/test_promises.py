"""What is promised of assigned times holds, also of what lasts for the first time.

Owns texts whose windows wait for times that lie before the events that bring them. What is promised
too far shows as an event that comes to a window that is closed.
"""

from __future__ import annotations

from typing import Any

import pytest

import headwater
from broker.core.intake import IntakeOptions
from broker.engine.pattern.layout.pattern import lay_out
from broker.engine.pattern.times.assigned import assigned_end
from headwater.engine import Extent, Pipeline
from language import check_text
from tests.streams import Events, end_of

WEEK_MS = 7 * 86_400_000
TYPES = "event A() event B() event C() event D() event L()\ndefine Y() detect B then C\n"
EACH_SECOND = """
define W(n) aggr every 1 s detect X assign n = Count(X)
subscription S from a to b detect W
"""
BESIDE = "case 0: detect D assign n = 1, timestamp = D.timestamp\n case 1: "
Z = "define Z() detect B then[..5 s] A\n"
TEXTS = {
    "begins with a detected one": f"define X(n) {BESIDE}detect Y assign n = 1, timestamp = Y.start",
    "beneath one that is bounded": f"define Z() detect Y within 12 s\ndefine X(n) {BESIDE}"
    "detect Z assign n = 1, timestamp = Z.start",
    "beneath one that is not": f"define Z() detect Y then[..5 s] A\ndefine X(n) {BESIDE}"
    "detect Z assign n = 1, timestamp = Z.start",
    "the least start in a window": "define X(n) aggr every 100 ms detect D and outer Y\n"
    " assign n = Count(D), timestamp = min(First(D.timestamp), Min(Y.start))",
    "begins with a primitive one": f"define X(n) {BESIDE}"
    "detect L assign n = 1, timestamp = L.start",
    "begins with a primitive one that is detected": f"define Z() detect L\ndefine X(n) {BESIDE}"
    "detect Z assign n = 1, timestamp = Z.start",
    "begins with what is made of what is detected": "define V() detect L\ndefine Z() detect V\n"
    f"define X(n) {BESIDE}detect Z assign n = 1, timestamp = Z.start",
    "begins with two of which one lasts": "define Z() detect L and A within 20 s\n"
    f"define X(n) {BESIDE}detect Z assign n = 1, timestamp = Z.start",
    "its own start": f"define X(n) {BESIDE} detect L assign n = 1, timestamp = start",
    "in what lasts": f"define X(n) {BESIDE} detect A during L assign n = 1, timestamp = start",
    "the least start of primitive ones": "define X(n) aggr every 100 ms detect D and outer L\n"
    " assign n = Count(D), timestamp = min(First(D.timestamp), Min(L.start))",
    "ends with the first of two": f"define X(n) {BESIDE}"
    "detect B then C assign n = 1, timestamp = B.timestamp",
}


def reading(kind: str, at: int) -> dict[str, Any]:
    return {"type": kind, "id": f"{kind}{at}", "timestamp": at}


EVENTS: Events = [
    *(reading("B", 0), reading("D", 200), reading("A", 500), reading("D", 1_500)),
    *(reading("A", 3_000), reading("C", 10_000)),
    {"type": "L", "id": "l", "start": 100, "end": 10_000},
    *(reading("D", 10_000), reading("A", 12_000), reading("A", 13_000)),
]


def replayed(text: str) -> list[dict[str, Any]]:
    engine = headwater.Engine(text, lateness_ms=None)
    return engine.push(EVENTS) + engine.finish()


def streamed(text: str, longest_ms: int | None = None) -> tuple[list[dict[str, Any]], Any]:
    engine = headwater.Engine(text, longest_ms=longest_ms)
    found = []
    for event in EVENTS:
        found += engine.push([event]) + engine.advance(end_of(event) - 1)
    return found + engine.finish(), engine._pipeline.matcher.dropped()


def foreseen(text: str) -> list[dict[str, Any]]:
    """A stream of which it is known beforehand what is in it."""
    pipeline = Pipeline(check_text(text).demand(), IntakeOptions())
    extent = Extent()
    extent.add(
        Pipeline(check_text(text).demand(), IntakeOptions()).intake.from_mappings(EVENTS).events
    )
    pipeline.foresee(extent)
    found = [
        one
        for event in EVENTS
        for one in pipeline.admit(pipeline.intake.from_mappings([event]).events)
    ]
    return [one.to_dict() for one in found + pipeline.finish()]


@pytest.mark.parametrize("name", TEXTS)
def test_the_first_that_lasts_comes_to_a_window_that_is_open(name: str) -> None:
    text = TYPES + TEXTS[name] + EACH_SECOND
    expected = replayed(text)
    assert any(one["end"] < 1_000 for one in expected), "nothing is assigned an early time"
    for longest_ms in (None, 20_000):
        found, dropped = streamed(text, longest_ms)
        assert dropped.get("window_closed", 0) == 0
        assert found == expected
    assert foreseen(text) == expected


@pytest.mark.parametrize(
    "defined",
    [
        "detect B then[..5 s] A assign n = 1, timestamp = B.timestamp",
        "detect Y then[..5 s] A assign n = 1, timestamp = Y.timestamp",
        "detect Y as y then[..5 s] A assign n = 1, timestamp = min(y.timestamp, end)",
        "detect Y+ as y then[..5 s] A within 6 s assign n = 1, timestamp = Max(y.timestamp)",
    ],
)
def test_the_end_of_an_event_is_waited_for_until_that_event_is_of_no_more_use(
    defined: str,
) -> None:
    """However long events may last before that: nothing bounds Y."""
    engine = headwater.Engine(TYPES + f"define X(n) {defined}" + EACH_SECOND)
    for kind, at in (("B", 100), ("C", 200), ("A", 400), ("D", 1_000)):
        assert engine.push([reading(kind, at)]) == []
    found = engine.advance(7_000)
    assert [one["values"] for one in found] == [{"W": {"n": 1}}]


@pytest.mark.parametrize(
    "defined",
    [
        "detect B then[..5 s] A assign n = 1, timestamp = min(A.timestamp, B.timestamp)",
        "detect Z assign n = 1, timestamp = Z.start",
        "detect Z assign n = 1, timestamp = start",
    ],
)
def test_what_several_readings_make_is_waited_for_for_as_long_as_its_text_says(
    defined: str,
) -> None:
    engine = headwater.Engine(TYPES + Z + f"define X(n) {defined}" + EACH_SECOND)
    for kind, at in (("B", 100), ("A", 400), ("D", 1_000)):
        assert engine.push([reading(kind, at)]) == []
    found = engine.advance(7_000)
    assert [one["values"] for one in found] == [{"W": {"n": 1}}]


@pytest.mark.parametrize(
    ("defined", "place"),
    [
        ("A then B* then C", "an event"),
        ("A then C without B", "an event"),
        ("A without B then C", "an event"),
        ("C then B* then A", "last event"),
        ("C then A without B", "last event"),
        ("C then A without[5 s] B", "last event"),
        ("C then (A without B)", "last event"),
        ("C then nth 2 A", "last event"),
        ("C then A then B+ within 5 s", "an event"),
        ("A without B", "last event"),
        ("(A and C) without B", "an event"),
    ],
)
def test_the_event_that_ends_last_is_told_from_one_that_begins(defined: str, place: str) -> None:
    text = TYPES + f"define X(n) detect {defined} assign n = 1, timestamp = A.timestamp"
    graph = check_text(text + "\nsubscription S from a to b detect X").demand().graph
    (task,) = [one for one in graph.tasks.values() if one.name == "X"]
    (case,) = task.node.cases
    assert assigned_end(case, lay_out(case)) == place


@pytest.mark.parametrize("lateness_ms", [None, 0, 20_000])
@pytest.mark.parametrize(
    "defined", ["A then L* then B", "A then B without L", "A without L then B", "A then B"]
)
@pytest.mark.parametrize("within", [" within 9 s", ""])
@pytest.mark.parametrize(
    ("detect", "expected"),
    [
        ("C then P within 3 s", [(3_000, 5_000)]),  # P is the point 5 s, known at 9 s
        ("C then P within 1 s", []),
        ("C then[2 s..2 s] P within 3 s", [(3_000, 5_000)]),
        ("C and[..2 s, chronicle] P", [(3_000, 5_000)]),
        ("P+ as p then[recent, ..1 s] D", [(5_000, 6_000)]),
        ("P then[..1 s] D", [(5_000, 6_000)]),
    ],
)
def test_an_event_put_into_the_past_finds_its_partners(
    detect: str, expected: list[tuple[int, int]], within: str, defined: str, lateness_ms: int | None
) -> None:
    text = (
        f"{TYPES}define P(n) detect {defined}{within} assign n = 1, timestamp = A.timestamp\n"
        f"subscription S from a to b detect {detect}"
    )
    engine = headwater.Engine(text, lateness_ms)
    told = (("C", 3_000), ("A", 5_000), ("D", 6_000), ("B", 9_000))
    found = [one for kind, at in told for one in engine.push([reading(kind, at)])]
    assert [(one["start"], one["end"]) for one in found + engine.finish()] == expected

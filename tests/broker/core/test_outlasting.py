"""How long detected events last: by their texts, in recordings, and past the limit, counted.

Owns the property that nothing is lost in silence because an event of a definition lasts long.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import headwater
from broker.engine.pattern.agent.staged_agent import OUTLASTING
from broker.engine.pattern.times.assigned import longest_made_ms
from language import check_text
from tests.oracles import spec as s
from tests.oracles.compare import compare
from tests.oracles.generate import CONTEXTS_WHOLE, random_case
from tests.oracles.matcher import run
from tests.oracles.render import text_of
from tests.streams import Events, end_of, lasted

DAY_MS = 86_400_000
TYPES = "event A(n: int) event B(n: int) event C(n: int)\n"
DEFINED = (
    *("definition", "cases", "nested-definitions", "definition-twice", "every-reported"),
    *("window-over-definition", "assigned-interval", "definition-whole", "definition-open"),
)


@pytest.mark.parametrize(
    ("definition", "longest_ms"),
    [
        ("define X() detect A", 10),
        ("define X(n) detect A assign n = A.n, end = timestamp + 5 mins", 300_010),
        ("define X(n) detect A assign n = A.n, end = max(A.end + 5 mins, timestamp)", 300_010),
        ("define X(n) detect A assign n = A.n, timestamp = A.start", 0),
        ("define X() detect A then B within 12 days", 12 * DAY_MS),
        ("define X() detect A then[..5 s] B", 5_020),
        ("define X() detect A and B within 4 s from A", 4_010),
        ("define X() detect A then B", None),
        ("define X() detect (A then B as x within 1 s) or (B as y then C within 3 s)", 3_000),
        ("define X() detect A during B", 20),
        ("define X() detect absent A for 7 s", 7_000),
        ("define X(n) aggr every 12 days detect A assign n = Count(A)", 0),
        ("define X(n) aggr every 1 s range 5 s detect A assign n = Count(A)", 0),
        ("define X(n) aggr range 5 s detect A assign n = Count(A), timestamp = Min(A.start)", 0),
        # What lies outside of its window is dropped.
        ("define X(n) aggr every 1 s detect A assign n = Count(A), start = Min(A.start)", 999),
        ("define X(n) aggr every 1 s range 5 s detect A assign n = 1, start = start", 4_999),
        ("define X(n) aggr range 5 s detect A assign n = 1, start = window.start", 5_000),
        (
            "define X(n) aggr every 5 s detect A assign n = Count(A), end = Max(A.end + 1 s)",
            4_999,
        ),
        (
            (
                "define X(n) aggr every 5 s pre detect A assign n = Count(A), "
                "timestamp = Max(A.timestamp) post where n = Sum(n), start = Max(timestamp)"
            ),
            4_999,
        ),
        (
            (
                "define X(n) aggr every 5 s pre detect A assign n = Count(A), "
                "start = Max(A.timestamp) post where n = Sum(n)"
            ),
            0,
        ),
        ("define X(n) aggr session 3 s max 60 s detect A assign n = Count(A)", 60_000),
        ("define X(n) aggr session 3 s detect A assign n = Count(A)", None),
        (
            'define X(n) aggr every 2 days in "Europe/Zurich" detect A assign n = 1, start = start',
            2 * DAY_MS + 3_599_999,
        ),
    ],
)
def test_a_text_tells_how_long_its_events_last(definition: str, longest_ms: int | None) -> None:
    """Primitive ones last for 10 ms here."""
    text = TYPES + definition + "\nsubscription S from a to b detect X"
    graph = check_text(text).demand().graph
    (task,) = [one for one in graph.tasks.values() if one.kind == "definition"]
    assert longest_made_ms(task, lambda *_: 10, None) == longest_ms
    if longest_ms is None:  # then it is the recording that bounds it
        assert longest_made_ms(task, lambda *_: 10, 77) == 77


def test_where_an_input_has_no_bound_its_users_have_none() -> None:
    text = TYPES + "define X() detect A then B\nsubscription S from a to b detect X"
    graph = check_text(text).demand().graph
    (task,) = [one for one in graph.tasks.values() if one.kind == "definition"]
    assert longest_made_ms(task, lambda name, _: None if name == "A" else 10, None) is None


def event(kind: str, day: float) -> dict[str, Any]:
    return {"type": kind, "id": f"{kind}{day}", "timestamp": int(day * DAY_MS)}


RECENT = (
    TYPES + "define X() detect B then C{}\nsubscription S from a to b\n"
    "  detect A then[recent, ..2 days] X"
)
LONG = [event("A", 0), event("B", 1), event("C", 10)]


@pytest.mark.parametrize("within", ["", " within 12 days"])
def test_a_recording_misses_nothing_however_long_an_event_lasts(within: str) -> None:
    engine = headwater.Engine(RECENT.format(within), lateness_ms=None)
    engine.push(LONG)
    (found,) = engine.finish()
    assert found["events"]["A"] == ["A0"]


def test_what_the_text_bounds_is_waited_and_kept_for() -> None:
    engine = headwater.Engine(RECENT.format(" within 12 days"))
    found = [one for event in LONG for one in engine.push([event])] + engine.advance(11 * DAY_MS)
    assert [one["events"]["A"] for one in found] == [["A0"]]
    assert engine._pipeline.matcher.dropped()[OUTLASTING] == 0


def test_what_outlasts_the_limit_is_counted_and_goes_on_being_in_a_snapshot() -> None:
    engine = headwater.Engine(RECENT.format(""))
    found = [one for event in LONG for one in engine.push([event])] + engine.advance(11 * DAY_MS)
    assert found == []
    assert engine._pipeline.matcher.dropped()[OUTLASTING] == 1
    there = headwater.Engine(RECENT.format(""))
    there.restore(engine.state())
    assert there._pipeline.matcher.dropped()[OUTLASTING] == 1


@pytest.mark.parametrize("longest_ms", [None, 0])
def test_what_is_added_in_a_choice_is_kept_for(longest_ms: int | None) -> None:
    """X lasts from 1 min to 1 h 1 min, and is known at 1 min: the A before it is still there."""
    text = (
        TYPES + "define X(n) detect B assign n = B.n, end = max(B.end + 1 h, timestamp)\n"
        "subscription S from a to b detect A then[recent, ..2 mins] X"
    )
    engine = headwater.Engine(text, longest_ms=longest_ms)
    minute = 1 / 1_440
    events = [event("A", 0), event("B", minute), event("A", 10 * minute), event("C", 1)]
    found = [one for each in events for one in engine.push([each])] + engine.finish()
    assert [one["events"]["A"] for one in found] == [["A0"]]


def test_silence_waits_for_what_a_text_lets_begin_earlier() -> None:
    """The first X lasts 3 s, and begins before the silence would be over."""
    text = (
        TYPES + "define X() detect B then C within 3 s\n"
        "subscription S from a to b detect A without[2 s] X"
    )
    engine = headwater.Engine(text)
    found = [
        *engine.push([{"type": "A", "id": "a", "timestamp": 0}]),
        *engine.push([{"type": "B", "id": "b", "timestamp": 1_000}]),
        *engine.push([{"type": "C", "id": "c", "timestamp": 3_500}]),
        *engine.advance(9_000),
    ]
    assert found == []


# --- what nothing bounds, and waits ---------------------------------------------------------------

SECOND_MS = 1_000
WAITING = ["A then X* then B", "A without X then B", "A then B"]


def pushed(text: str, told: str, lateness_ms: int | None) -> list[tuple[Any, ...]]:
    """Readings `a2` (an A at 2 s), one at a time: the spans and what is bound."""
    engine = headwater.Engine("event A() event B() event C() event X()\n" + text, lateness_ms)
    events = [
        {"type": one[0].upper(), "id": one, "timestamp": int(one[1:]) * SECOND_MS}
        for one in told.split()
    ]
    found = [one for event in events for one in engine.push([event])] + engine.finish()
    return [(one["start"] // SECOND_MS, one["end"] // SECOND_MS, *one["events"]) for one in found]


@pytest.mark.parametrize("lateness_ms", [None, 0, 20_000])
@pytest.mark.parametrize("defined", WAITING)
@pytest.mark.parametrize(
    ("detect", "told", "expected"),
    [
        ("C without[1 s] P", "c1 a2 x4 b6", []),  # P = [2, 6] begins in (1, 2]
        ("C without[1 s] P", "c1 a3 x4 b6", [(1, 1, "C")]),
        ("absent P for 1 s", "c1 a2 x4 b6", [(6, 7)]),
        ("C then[..2 s] P+", "c1 a2 x4 b6", [(1, 6, "C", "P")]),
        ("C then[..2 s, first] P", "c1 a2 x4 b6", [(1, 6, "C", "P")]),
        ("C then[..2 s, first] P", "c1 a4 x5 b6", []),
        ("A parallel[first] P", "a2 x4 b6", [(2, 6, "A", "P")]),
        ("A starts[first] P", "a2 x4 b6", [(2, 6, "A", "P")]),
    ],
)
def test_what_began_and_is_not_complete_is_waited_for(
    detect: str, told: str, expected: list[tuple[Any, ...]], defined: str, lateness_ms: int | None
) -> None:
    text = f"define P(k) detect {defined} assign k = 1\nsubscription S from a to b detect {detect}"
    assert pushed(text, told, lateness_ms) == expected


@pytest.mark.parametrize("longest_ms", [None, 10_000])
def test_what_nothing_bounds_is_waited_for_for_the_limit(longest_ms: int | None) -> None:
    text = TYPES + "define P() detect A then B\nsubscription S from a to b detect C without[1 s] P"
    engine = headwater.Engine(text, longest_ms=longest_ms)
    limit_ms = longest_ms or 7 * DAY_MS
    assert engine.push([{"type": "C", "id": "c", "timestamp": 0}]) == []
    assert engine.advance(limit_ms) == []  # a P of (0, 1 s] may yet come
    assert len(engine.advance(limit_ms + 2_000)) == 1


# --- generated ---------------------------------------------------------------------------------


def streamed(text: str, events: Events) -> tuple[list[dict[str, Any]], bool]:
    """Instant by instant, with as much foresight of readings as there is; whether some outlast."""
    engine = headwater.Engine(text, longest_ms=max(map(lasted, events)))
    found = []
    for end in sorted({end_of(one) for one in events}):
        found += engine.push([one for one in events if end_of(one) == end])
        found += engine.advance(end)
    found += engine.finish()
    return found, engine._pipeline.matcher.dropped().get(OUTLASTING, 0) > 0


def held_to_the_reference(construct: str, context: s.Context, seeds: range) -> Counter[str]:
    counts: Counter[str] = Counter()
    for seed in seeds:
        spec, events = random_case(seed, construct, context)
        text = text_of(spec)
        if not events or {"absent", "for"} & set(text.split()):
            continue  # counted from when the task began
        found, outlasting = streamed(text, events)
        expected = run(spec, events)
        wrong = [one for one in compare(spec, expected, found) if not one.endswith("was due")]
        assert outlasting or not wrong, f"{construct}/{context}/{seed}: {wrong}"
        counts += Counter(runs=1, results=bool(expected), outlasting=outlasting)
    return counts


def test_in_generated_streams_nothing_is_lost_in_silence() -> None:
    counts: Counter[str] = Counter()
    for number, construct in enumerate(DEFINED):
        context = CONTEXTS_WHOLE[number % len(CONTEXTS_WHOLE)]
        counts += held_to_the_reference(construct, context, range(3))
    assert counts["results"] > counts["runs"] / 2


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("context", CONTEXTS_WHOLE)
@pytest.mark.parametrize("construct", DEFINED)
def test_in_many_generated_streams_nothing_is_lost_in_silence(
    construct: str, context: s.Context, record_property: Any
) -> None:
    counts = held_to_the_reference(construct, context, range(3, 60))
    what = "streams of detected events that last"
    record_property("generated", [what, construct, context, counts["runs"], counts["results"]])
    assert counts["outlasting"] < counts["runs"] / 3


def test_what_a_subscription_calls_a_time_holds_nothing_back() -> None:
    text = TYPES + "subscription S from a to b detect A then B assign timestamp = A.timestamp"
    engine = headwater.Engine(text)
    engine.push([event("A", 0), event("C", 3)])
    assert engine._pipeline.frontier() == 3 * DAY_MS - 1


def test_what_is_open_alone_holds_an_assigned_time_back() -> None:
    """The pair that began is over after 5 s; nothing else may yet end where it did."""
    text = (
        TYPES + "define X(n) detect A then B within 1 day assign n = A.n, timestamp = A.timestamp\n"
        "define W(n) aggr every 1 s detect X assign n = Count(X)\n"
        "subscription S from a to b detect W"
    )
    engine = headwater.Engine(text)
    second = 1_000
    engine.push([{"type": "A", "id": "a", "timestamp": 0}])
    engine.push([{"type": "B", "id": "b", "timestamp": 5 * second}])
    assert engine.advance(DAY_MS - 1) == []  # another B may come
    (found,) = engine.advance(DAY_MS + second)
    assert (found["start"], found["end"]) == (999, 999)
    chronicle = headwater.Engine(text.replace("then B", "then[chronicle] B"))
    chronicle.push([{"type": "A", "id": "a", "timestamp": 0}])
    chronicle.push([{"type": "B", "id": "b", "timestamp": 5 * second}])
    (found,) = chronicle.advance(5 * second)  # it is spent
    assert (found["start"], found["end"]) == (999, 999)

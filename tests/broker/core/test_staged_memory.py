"""What stages keep: no more than can still matter, and no group that has nothing open."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from broker.core.intake import IntakeOptions
from broker.engine.pattern.agent.staged_partition import LOG_MAX
from headwater.engine import Extent, Pipeline
from language import check_text

DECLARED = """
event A(tag: text, val: int)
event B(tag: text, val: int)
event C(tag: text, val: int)
subscription S from u to a
detect """


def pipeline_of(detect: str, **options: Any) -> Pipeline:
    return Pipeline(check_text(DECLARED + detect).demand(), IntakeOptions(**options))


def admitted(pipeline: Pipeline, events: list[dict[str, Any]]) -> list[Any]:
    return pipeline.admit(pipeline.intake.from_mappings(events).events)


def held_groups(detect: str, tags: int, step_ms: int) -> tuple[int, int]:
    """Groups known and events held after so many groups in a row, each soon silent."""
    pipeline = pipeline_of(f"{detect}\ngroup by tag")
    for number in range(tags):
        kind = "AB"[number % 2]
        event = {"type": kind, "id": str(number), "timestamp": number * step_ms}
        event["tag"] = f"tag-{number // 3}"
        admitted(pipeline, [event])
    (seat,) = pipeline.matcher._seats.values()
    return len(seat.agent._partitions), pipeline.matcher.held()


@pytest.mark.parametrize(
    "detect",
    [
        "A then[chronicle] B within 10 s",
        "[first] A then B within 10 s",
        "A without[5 s] B",
        "A then B+ within 5 s",
        "A{2} within 5 s",
        "A+[..5 s]",
        "[one] A and B within 5 s",
        "A then nth 2 B within 10 s",
    ],
)
def test_groups_that_are_silent_are_forgotten(detect):
    groups, held = held_groups(detect, 3_000, 1_000)
    assert groups < 100
    assert held < 100


# Of these the readings alone say what is out of reach: no `within` does. The first are joins.
JOINS = [
    "A then[..5 s] B",
    "A then[recent, ..5 s] B",
    "A then[1 s..5 s] B consuming A",
    "A then[recent, ..5 s] B consuming A",
    "A and[..5 s] B",
    "A equals B",
    "A then[..5 s] last B",
]
BOUNDED = [
    *JOINS,
    "[chronicle] A then[..5 s] B",
    "[first] A then[..5 s] B",
    "[latest] A then[..5 s] B",
    "[chronicle] A then[1 s..5 s] B then[..5 s] C",
    "[chronicle] A equals B",
    "[chronicle] A parallel B",
    "[first] A parallel B",
    "A then[..5 s] nth 2 B",
    "A then[..5 s, next] B without C",
    "(A then[..5 s] B) without C",
    "A then[..5 s] absent B for 3 s",
    "A then[..5 s] (B and C within 3 s)",
    "[one] A then[..5 s] B",
    "[collect] A then[..5 s] B",
    "first A then[..5 s] B",
    "[latest] A then B then C within 5 s",
    "A then[..5 s] first B",
]
# No older ones can be the latest; and no list is there where its neighbours are too far apart.
EXACT = [
    "A then[recent] B* then[recent] C",
    "[recent] A then B then C",
    "[recent] A and B and C",
    "A then[..5 s] B+ then[..5 s] C",
    "[recent] A then[..5 s] B+ then[..5 s] C",
]

# Where these consume, events are kept to find all again without some of them.
CONSUMING = [
    "[first] A then B consuming A",
    "[chronicle] A then B then[..5 s] C consuming B",
    "(A then[..5 s] B) without C consuming A",
    "(A then[recent, ..5 s] B) without C consuming A",
    "A then[recent, ..5 s] nth 2 B consuming B",
    "A{3} within 10 s consuming A",
    "distinct A then[..5 s] B within 8 s consuming B",
    "A then B+ then C within 5 s consuming B",
]


def readings(seconds: int, draw: random.Random, kinds: str = "ABC") -> Iterator[dict[str, Any]]:
    """A reading each second or so, sometimes two at one instant."""
    at = 1_700_000_000_000
    for number in range(seconds):
        at += draw.choice((0, 500, 1_000, 2_000))
        kind = draw.choice(kinds)
        yield {"type": kind, "id": f"e{number}", "timestamp": at, "val": number, "tag": "t"}


def most_held(detect: str, events: list[dict[str, Any]], **options: Any) -> tuple[int, int]:
    """The most that is held over the first half of a stream, and over the whole of it."""
    pipeline = pipeline_of(detect, **options)
    most, half = 0, 0
    for start in range(0, len(events), 20):
        admitted(pipeline, events[start : start + 20])
        most = max(most, pipeline.matcher.held())
        if start < len(events) // 2:
            half = most
    return half, most


@pytest.mark.parametrize("detect", [*BOUNDED, *EXACT])
def test_what_readings_cannot_reach_any_more_is_dropped(detect):
    events = list(readings(4_000, random.Random(detect)))
    half, most = most_held(detect, events)
    assert most < 200
    assert most <= half + 40  # in twice the time no more is held


@pytest.mark.parametrize("detect", BOUNDED)
def test_so_is_what_they_cannot_reach_by_uncertain_times(detect):
    events = list(readings(1_000, random.Random(detect)))
    for event in events[::3]:
        event["uncertainty"] = 400
    half, most = most_held(detect, events)
    assert most < 200
    assert most <= half + 40


@pytest.mark.parametrize("detect", CONSUMING)
def test_what_consumption_cannot_bring_back_is_dropped(detect):
    events = list(readings(3_000, random.Random(detect)))
    half, most = most_held(detect, events)
    assert most < 300
    assert most <= half + 80


def test_the_last_of_a_bound_is_known_when_the_bound_has_passed():
    """While its type brings readings, nothing that is still to come can have begun in time."""
    pipeline = pipeline_of("A then[..5 s] last B")
    at = 1_700_000_000_000
    early = [{"type": "A", "id": "a", "timestamp": at}]
    early += [{"type": "B", "id": f"b{s}", "timestamp": at + s * 1_000} for s in (2, 4)]
    assert admitted(pipeline, early) == []
    assert admitted(pipeline, [{"type": "C", "id": "c1", "timestamp": at + 5_000}]) == []
    (found,) = admitted(pipeline, [{"type": "C", "id": "c2", "timestamp": at + 5_002}])
    assert found.to_dict()["events"]["B"] == ["b4"]


def test_a_log_that_may_matter_for_ever_has_an_end_and_what_goes_is_counted():
    pipeline = pipeline_of("nth 30000 A then[..5 s] B consuming A")
    events = list(readings(LOG_MAX + 500, random.Random(1), "A"))
    for start in range(0, len(events), 500):
        admitted(pipeline, events[start : start + 500])
    assert pipeline.matcher.held() <= LOG_MAX + 1
    assert pipeline.matcher.dropped()["occurrences_overflow"] >= 499


@pytest.mark.parametrize("detect", [*BOUNDED, *EXACT])
def test_it_is_dropped_also_where_no_result_ever_comes(detect):
    for kinds in ("A", "B", "C", "AC", "BC"):
        half, most = most_held(detect, list(readings(2_000, random.Random(kinds), kinds)))
        assert most < 200, kinds
        assert most <= half + 40, kinds


@pytest.mark.parametrize("context", ["unrestricted", "recent", "chronicle"])
def test_what_an_event_that_lasts_may_reach_is_kept(context):
    """Once a type has lasted, its next event may have begun long ago."""
    pipeline = pipeline_of(f"[{context}] A then[..5 s] B")
    at = 1_700_000_000_000
    hour = 3_600_000
    admitted(pipeline, [{"type": "B", "id": "b0", "start": at - hour, "end": at}])
    admitted(pipeline, [{"type": "A", "id": "a1", "timestamp": at + 1_000}])
    admitted(pipeline, [{"type": "C", "id": "c2", "timestamp": at + 5 * hour}])
    last = {"type": "B", "id": "b3", "start": at + 4_000, "end": at + 6 * hour}
    assert len(admitted(pipeline, [last]) + pipeline.finish()) == 1


@pytest.mark.parametrize("context", ["unrestricted", "recent", "chronicle"])
def test_that_a_type_has_lasted_is_known_after_a_move(context):
    at = 1_700_000_000_000
    first = pipeline_of(f"[{context}] A then[..5 s] B")
    admitted(first, [{"type": "B", "id": "b0", "start": at - 60_000, "end": at}])
    second = pipeline_of(f"[{context}] A then[..5 s] B")
    second.matcher.restore(first.matcher.state())
    admitted(second, [{"type": "A", "id": "a1", "timestamp": at + 1_000}])
    admitted(second, [{"type": "C", "id": "c2", "timestamp": at + 60_000}])
    last = {"type": "B", "id": "b3", "start": at + 4_000, "end": at + 90_000}
    assert len(admitted(second, [last]) + second.finish()) == 1


@pytest.mark.parametrize("context", ["unrestricted", "recent", "chronicle"])
def test_a_recording_keeps_as_long_as_its_longest_events_last(context):
    at = 1_700_000_000_000
    pipeline = pipeline_of(f"[{context}] A then[..5 s] B")
    extent = Extent()
    long = {"type": "B", "id": "b", "start": at + 4_000, "end": at + 60_000}
    extent.add(pipeline.intake.from_mappings([long]).events)
    pipeline.foresee(extent)
    admitted(pipeline, [{"type": "A", "id": "a", "timestamp": at}])
    for second in range(1, 60):
        event = {"type": "A", "id": f"a{second}", "timestamp": at + second * 1_000}
        admitted(pipeline, [event])
    results = admitted(pipeline, [long]) + pipeline.finish()
    found = {result.to_dict()["events"]["A"][0] for result in results}
    reached = {"a", "a1", "a2", "a3", "a4"}  # the last touches the long one
    assert found == {"unrestricted": reached, "recent": {"a4"}, "chronicle": {"a"}}[context]


@pytest.mark.parametrize(
    "detect",
    [
        "A then[..9 s] B+ then[..9 s] C where C.val < 0",
        "A then B+ then C within 9 s where C.val < 0",
    ],
)
def test_how_much_comes_at_a_time_does_not_say_how_long_it_is_kept(detect):
    def most_held(at_a_time: int) -> int:
        """In a stream of 100 events a second, right after each batch."""
        pipeline, most = pipeline_of(detect), 0
        for first in range(0, 20_000, at_a_time):
            numbers = range(first, first + at_a_time)
            events = [
                {"type": "ABC"[n % 3], "id": str(n), "timestamp": n * 10, "val": n % 7}
                for n in numbers
            ]
            admitted(pipeline, events)
            most = max(most, pipeline.matcher.held())
        return most

    assert most_held(1_000) <= 1.3 * most_held(20) + 1_000

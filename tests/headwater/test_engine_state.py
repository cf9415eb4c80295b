"""An engine whose state is taken down and up again goes on as if nothing had been.

Also what an engine is told of the time: events that all end later, and how long they last at most.
"""

import random

import pytest

import headwater
from headwater.engine import StateError
from language import check_text
from tests.oracles.generate import CONSTRUCTS, CONTEXTS, random_case
from tests.oracles.render import text_of
from tests.streams import end_of, lasted

pytestmark = pytest.mark.usefixtures("both_ways")

TEMP = "event Temp(val: float) subscription Frost seq 1 from me to alerts detect Temp(val < 0)"
THEN = """
event A(n: int) event B(n: int)
subscription Both seq 1 from me to alerts detect A then[..5 s] B
subscription Silent seq 1 from me to alerts detect absent B for 2 s
"""


def streamed(text, events, draw, *, moving):
    """In order, in batches, told between them how far time has come."""
    longest_ms = max((lasted(event) for event in events), default=0)

    def make():
        return headwater.Engine(text, longest_ms=longest_ms)

    engine, results = make(), []
    waiting = sorted(events, key=end_of)
    while waiting:
        at = draw.randint(1, len(waiting))
        batch, waiting = waiting[:at], waiting[at:]
        while waiting and end_of(waiting[0]) == end_of(batch[-1]):
            batch.append(waiting.pop(0))  # to be told that this time has passed
        results += engine.push(batch)
        results += engine.advance(end_of(batch[-1]))
        if moving:
            fresh = make()
            fresh.restore(engine.state())
            assert fresh.counts == engine.counts
            engine = fresh
    results += engine.finish()
    return results


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_state_holds_all_that_later_results_depend_on(context):
    some = 0
    for construct in CONSTRUCTS:
        for seed in range(2):
            spec, events = random_case(seed, construct, context)
            text = text_of(spec)
            if not check_text(text).ok:
                continue
            plain = streamed(text, events, random.Random(seed), moving=False)
            assert streamed(text, events, random.Random(seed), moving=True) == plain, text
            some += bool(plain)
    assert some > len(CONSTRUCTS) / 2


@pytest.mark.parametrize("before", range(3))
def test_the_drift_of_clocks_outlasts_a_move(before):
    """9.5 s by clocks that may be 10 % off, to within 4 ms: at most 10 s, or more."""
    text = "event C(n: int) subscription S from me to x detect C as y then[..10 s] C as z"
    times = (("c1", 1_000), ("c2", 10_500))
    events = [{"type": "C", "id": one, "timestamp": at, "uncertainty": 2} for one, at in times]
    engine = headwater.Engine(text, drift=0.1)
    results = engine.push(events[:before])
    fresh = headwater.Engine(text, drift=0.1)
    fresh.restore(engine.state())
    results += fresh.push(events[before:]) + fresh.finish()
    assert [one["certainty"] for one in results] == ["maybe"]


def test_time_that_passes_decides_what_events_alone_would_leave_open():
    engine = headwater.Engine(THEN, longest_ms=0)
    engine.push([{"type": "B", "id": "b", "timestamp": 1000, "n": 1}])
    assert engine.advance(2999) == []
    (silent,) = engine.advance(3000)
    assert (silent["subscription"], silent["end"]) == ("Silent", 3000)
    assert engine.advance(2000) == []


def test_what_comes_after_its_time_has_passed_is_late():
    engine = headwater.Engine(THEN, longest_ms=0)
    engine.push([{"type": "A", "id": "a", "timestamp": 1000, "n": 1}])
    engine.advance(1500)
    assert engine.push([{"type": "B", "id": "b", "timestamp": 1500, "n": 1}]) == []
    assert engine.counts["dropped"] == {"late": 1}
    (both,) = engine.push([{"type": "B", "id": "c", "timestamp": 1501, "n": 1}])
    assert both["events"] == {"A": ["a"], "B": ["c"]}


def test_a_longer_event_than_was_said_is_refused():
    engine = headwater.Engine(THEN, longest_ms=100)
    with pytest.raises(headwater.EventError):
        engine.push([{"type": "A", "id": "a", "start": 0, "end": 101, "n": 1}])
    assert engine.push([{"type": "A", "id": "a", "start": 0, "end": 100, "n": 1}]) == []


def test_bad_events_can_be_passed_over():
    engine = headwater.Engine(TEMP)
    events = [
        {"type": "Temp", "id": "t1", "timestamp": 1, "val": "cold"},
        {"type": "Temp", "id": "t2", "timestamp": 2, "val": -1.0},
    ]
    with pytest.raises(headwater.EventError):
        engine.push(events)
    assert [one["start"] for one in engine.push(events, skip_bad=True)] == [2]
    assert sum(engine.counts["dropped"].values()) == 2  # also the one that was refused before


def test_a_state_of_something_else_is_refused_and_changes_nothing():
    engine = headwater.Engine(TEMP)
    other = headwater.Engine(THEN).state()
    for state, why in [(other, "another specification"), (b"\x93", "no state"), (b"\x01", "no")]:
        with pytest.raises(StateError, match=why):
            engine.restore(state)
    assert engine.push([{"type": "Temp", "id": "t", "timestamp": 1, "val": -1.0}])


def test_what_decides_at_its_end_has_no_state():
    with pytest.raises(RuntimeError):
        headwater.Engine(TEMP, lateness_ms=None).state()


def test_an_engine_tells_when_time_alone_may_decide():
    engine = headwater.Engine(THEN, longest_ms=0)
    assert engine.next_due() is None
    engine.push([{"type": "B", "id": "b", "timestamp": 1000, "n": 1}])
    results, dues = [], []
    while (due := engine.next_due()) is not None:
        dues.append(due)
        assert engine.advance(due - 1) == []
        results += engine.advance(due)
    assert [one["subscription"] for one in results] == ["Silent"]
    assert (dues == sorted(set(dues)), dues[-1]) == (True, 3000)


def test_tables_can_be_given_as_texts():
    text = """
    event Read(tagID: text)
    table Tags from "tags.csv" key tagID
    subscription Toys seq 1 from me to alerts detect Read as r where Tags[r.tagID].kind = "toy"
    """
    engine = headwater.Engine(text, tables={"tags.csv": "tagID,kind\nc7,toy\nc8,tool\n"})
    events = [
        {"type": "Read", "id": tag, "timestamp": 1, "tagID": tag} for tag in ("c7", "c8", "c9")
    ]
    assert [one["events"] for one in engine.push(events)] == [{"r": ["c7"]}]
    with pytest.raises(headwater.LanguageError, match="not among the tables"):
        headwater.Engine(text, tables={})


@pytest.mark.parametrize("wrong", ["5000", None, 1.5, True, 2**63, -(2**63) - 1])
@pytest.mark.parametrize("lateness_ms", [0, None])
def test_a_time_that_is_none_is_refused_and_changes_nothing(wrong, lateness_ms):
    engine = headwater.Engine(TEMP, lateness_ms)
    with pytest.raises(ValueError, match="expected integer milliseconds"):
        engine.advance(wrong)
    results = engine.push([{"type": "Temp", "timestamp": 1000, "val": -1}]) + engine.finish()
    assert len(results) == 1

"""What is admitted: on time and new; and the account of all that was not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.intake import Intake, IntakeOptions
from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Event, event_class
from broker.engine.filter.filterer import Filterer
from broker.engine.ingest.reasons import REASONS
from broker.engine.ingest.repeats import SLACK, Repeats
from broker.engine.ledger import ImbalanceError, Ledger
from broker.engine.limits import Limits, make_limits
from language.specification import EventType
from language.tree import Comparison, Constant, Name

pytestmark = pytest.mark.usefixtures("both_ways")

Temp = event_class("Temp", {"val": "int"})
Hum = event_class("Hum", {"val": "int"})


def one(id_: str, end: int, val: int = 0, kind: type[Event] = Temp) -> Event:
    return kind(id=id_, start=end, end=end, a_val=val)


# --- repeats ----------------------------------------------------------------------------------

ENDS = st.integers(0, 8) | st.sampled_from([255, 256, 700])
SLACKS = st.sampled_from([1, 3, SLACK])

batches = st.lists(
    st.lists(st.builds(one, st.sampled_from("abc"), ENDS, st.integers(0, 1)), max_size=6),
    max_size=12,
)


def ends_of(batch: list[Event]) -> list[int]:
    return [event.end for event in batch]


@given(batches, st.booleans(), SLACKS)
def test_the_first_event_of_an_id_and_end_stands(trace, in_order, slack):
    """Against a plain dictionary; also where the stream is in order and nothing is looked up."""
    if in_order:
        trace = [sorted(batch, key=lambda event: event.end) for batch in trace]
    repeats, seen = Repeats(10_000, slack), {}
    for batch in trace:
        apart = in_order and len(set(ends_of(batch))) == len(batch)
        fresh, repeated = repeats.admit(list(batch), ordered=in_order, apart=apart)
        expected_fresh, expected_repeated = [], []
        for event in batch:
            first = seen.setdefault((event.id, event.end), event)
            if first is event:
                expected_fresh.append(event)
            else:
                expected_repeated.append((event, first.a_val != event.a_val))
        assert fresh == expected_fresh
        assert repeated == expected_repeated
    assert len(repeats) == len(seen)


@given(batches, st.integers(0, 3) | st.just(300), SLACKS, st.booleans())
def test_what_the_watermark_has_passed_may_be_forgotten_and_nothing_else(
    trace, lateness_ms, slack, at_once
):
    repeats, seen, newest = Repeats(10_000, slack), set(), -(10**9)
    for batch in trace:
        on_time = [event for event in batch if event.end >= newest - lateness_ms]
        ends = ends_of(on_time)
        apart = ends == sorted(set(ends)) and (not ends or ends[0] > newest)
        reached = max([newest, *(event.end for event in batch)])
        floor = reached - lateness_ms - 1 if at_once else None
        fresh, _ = repeats.admit(on_time, ordered=apart, apart=apart, floor=floor)
        keys = [(event.id, event.end) for event in on_time]
        assert [(event.id, event.end) for event in fresh] == [
            key for place, key in enumerate(keys) if key not in seen and key not in keys[:place]
        ]
        seen.update(keys)
        newest = reached
        if not at_once:
            repeats.advance(newest - lateness_ms - 1)


@pytest.mark.parametrize(
    ("other", "conflicting"),
    [
        (one("a", 5, 1), False),
        (one("a", 5, 2), True),
        (one("a", 5, 1, Hum), True),
        (Temp(id="a", start=4, end=5, a_val=1), True),
        (Temp(id="a", start=5, end=5, a_val=1, source="s"), True),
        (Temp(id="a", start=5, end=5, a_val=1, position=[1.0, 2.0]), True),
        (Temp(id="a", start=5, end=5, a_val=1, uncertainty=3), True),
        (Temp(id="a", start=5, end=5, a_val=1, timestamp="x"), False),
    ],
)
def test_a_repeat_that_says_something_else_is_told_apart(other, conflicting):
    repeats = Repeats(100)
    repeats.admit([one("a", 5, 1)])
    assert repeats.admit([other]) == ([], [(other, conflicting)])


@pytest.mark.parametrize("back_ms", [-1, 5])
def test_little_more_is_remembered_than_what_the_watermark_has_not_passed(back_ms):
    repeats = Repeats(100_000)
    for end in range(0, 500_000, 10):
        repeats.admit([one(str(end), end), one(f"{end}'", end - back_ms)])
        if repeats.count > repeats.prune_at:
            repeats.advance(end - 10_000)
    assert 2_000 <= len(repeats) <= 2 * 2_000 + SLACK + 4


@pytest.mark.parametrize("in_order", [True, False])
def test_of_a_great_batch_only_what_is_not_passed_is_remembered(in_order):
    repeats = Repeats(100_000)
    for begin in range(0, 50_000, 1_000):
        ends = range(begin, begin + 1_000)
        batch = [one(str(end), end) for end in (ends if in_order else reversed(ends))]
        assert repeats.admit(batch, ordered=in_order, apart=in_order, floor=begin + 899)[1] == []
        assert [event.end for event in repeats.events()] == list(ends[900:])
        assert len(repeats) == 100
        assert repeats.count <= repeats.prune_at


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 60), max_size=5), st.integers(-5, 40)), max_size=15),
    st.integers(0, 14),
    st.booleans(),
)
def test_a_memory_that_is_taken_up_forgets_what_it_would_have_forgotten(trace, at, in_order):
    """Also where the watermark goes back, as it does when a source comes anew."""
    one_of_all, other = Repeats(40, 3), Repeats(40, 3)
    for number, (ends, back_ms) in enumerate(trace):
        batch = [one(str(end), end) for end in (sorted(set(ends)) if in_order else ends)]
        if number == at:
            taken = Repeats(40, 3)
            taken.restore(other.events(), other.prune_at)
            other = taken
        found = [
            each.admit(list(batch), ordered=in_order, apart=in_order)
            for each in (one_of_all, other)
        ]
        assert found[0] == found[1]
        for each in (one_of_all, other):
            if each.count > each.prune_at:
                each.advance(max(ends, default=0) - back_ms)
        assert one_of_all.events() == other.events()


def test_what_was_remembered_is_remembered_elsewhere():
    repeats = Repeats(100, 2)
    repeats.admit([one("a", 1), one("b", 5), one("c", 3)])
    elsewhere = Repeats(100, 2)
    elsewhere.restore(repeats.events())
    new, said_again, changed = one("a", 2), one("c", 3), one("b", 5, 1)
    fresh, repeated = elsewhere.admit([new, changed, said_again])
    assert fresh == [new]
    assert repeated == [(changed, True), (said_again, False)]


def test_one_id_for_all_events_of_a_source_is_no_repeat_and_costs_no_more():
    repeats = Repeats(10**6)
    for start in range(0, 20_000, 100):
        batch = [one("t7", end) for end in range(start, start + 100)]
        assert repeats.admit(batch[::-1])[1] == []
    assert len(repeats.admit([one("t7", 5_000)])[1]) == 1


def test_the_memory_is_bounded_and_forgets_the_oldest():
    repeats = Repeats(100)
    for end in range(1_000):
        repeats.admit([one(str(end), end)])
        assert len(repeats) <= 100
    assert repeats.forgotten == 1_000 - len(repeats)
    assert len(repeats.admit([one("999", 999)])[1]) == 1
    assert repeats.admit([one("0", 0)])[1] == []


def test_one_object_that_comes_again_is_a_repeat():
    repeats, event, other = Repeats(100), one("a", 5), one("b", 5)
    assert repeats.admit([event, other, event]) == ([event, other], [(event, False)])
    assert repeats.admit([event, event]) == ([], [(event, False), (event, False)])


def test_a_batch_that_its_owner_changes_afterwards_is_remembered_as_it_was():
    repeats = Repeats(100)
    batch = [one("a", 1), one("b", 2)]
    repeats.admit(batch)
    batch.clear()
    assert len(repeats.admit([one("a", 1)])[1]) == 1


# --- the door as a whole ----------------------------------------------------------------------


def door(limits: Limits | None = None, **options: Any) -> Intake:
    intake = Intake(IntakeOptions(**options), limits)
    intake.declare([EventType("Temp", {"val": "int"}), EventType("Hum", {"val": "int"})])
    return intake


def said(id_: str, end: int, **fields: Any) -> dict[str, Any]:
    return {"type": "Temp", "id": id_, "timestamp": end, **fields}


def test_lateness_is_judged_before_repeats():
    """An event sent twice is a repeat while it could still be on time, and late after that."""
    intake = door(lateness_ms=2)
    first = intake.from_mappings([said("a", 10), said("b", 12), said("a", 10)])
    admitted = intake.admit(first.events)
    assert [event.id for event in admitted.events] == ["a", "b"]
    assert [(event.id, conflict) for event, conflict in admitted.repeats] == [("a", False)]
    again = intake.from_mappings([said("c", 13), said("a", 10), said("b", 12, val=3)])
    admitted = intake.admit(again.events)
    assert [event.id for event in admitted.events] == ["c"]
    assert [event.id for event in admitted.late] == ["a"]
    assert [(event.id, conflict) for event, conflict in admitted.repeats] == [("b", True)]
    assert intake.ledger.events.dropped == {"repeat": 1, "late": 1, "conflicting_repeat": 1}
    assert intake.watermark("Temp") == 13 - 2 - 1


def test_a_live_door_judges_by_source_and_tells_when_to_ask_again():
    intake = door(lateness_ms=0, by_source=True, idle_timeout_ms=1_000)
    events = intake.decode(
        b'[{"type":"Temp","id":"1","timestamp":50}]', source="t1", arrival_ms=60
    ).events
    intake.admit(events, 60, "t1")
    assert intake.watermark("Temp", 60) == 49
    assert intake.next_wake(60, {"Temp": 49 + 2_000}) == 2_060
    intake.withdraw("t1", 100)
    assert intake.watermark("Temp", 100) == 49
    intake.finish()
    assert intake.watermark("Hum", 100) > 10**18


def test_sources_beyond_the_limit_are_refused_and_counted():
    intake = door(make_limits(sources_max=1), lateness_ms=0, by_source=True)
    for source in ("a", "b"):
        events = intake.from_mappings([said("1", 5, source=source)]).events
        admitted = intake.admit(events, 0)
    assert [event.source for event in admitted.refused] == ["b"]
    assert intake.ledger.events.dropped == {"too_many_sources": 1}


def test_the_memory_for_repeats_is_bounded_by_a_limit_and_that_is_counted():
    intake = door(make_limits(repeat_memory_events_max=10), lateness_ms=None)
    for end in range(50):
        intake.admit(intake.from_mappings([said(str(end), end)]).events)
    assert intake.remembered <= 10
    assert intake.ledger.notes["repeat_memory_forgotten"] == 50 - intake.remembered
    assert intake.watermark("Temp") == WATERMARK_NONE


def test_a_recording_is_remembered_as_a_whole():
    intake = door(lateness_ms=None)
    intake.admit(intake.from_mappings([said(str(n), n) for n in range(100)]).events)
    admitted = intake.admit(intake.from_mappings([said(str(n), n) for n in range(100)]).events)
    assert (admitted.events, len(admitted.repeats)) == ([], 100)


def test_clocks_by_source_need_a_lateness():
    with pytest.raises(ValueError, match="lateness"):
        Intake(IntakeOptions(lateness_ms=None, by_source=True))


# --- the account ------------------------------------------------------------------------------

things = st.sampled_from(
    [
        {"val": 1},
        {"val": 5},
        {"val": "x"},
        {"type": "Hum"},
        {"type": "Zz"},
        {"timestamp": "x"},
        {"timestamp": 3},
        {"id": "same", "timestamp": 40},
    ]
)


@given(
    st.lists(st.lists(things, max_size=5), max_size=8),
    st.integers(0, 5),
    st.booleans(),
    st.booleans(),
)
def test_nothing_is_lost_between_the_counters(trace, lateness_ms, by_source, wait):
    """Received = out + filtered + held + dropped, at every moment; `held` where events wait."""
    ledger = Ledger()
    intake = Intake(IntakeOptions(lateness_ms=lateness_ms, by_source=by_source), ledger=ledger)
    intake.declare([EventType("Temp", {"val": "int"}), EventType("Hum", {"val": "int"})])
    filterer = Filterer(ledger=ledger)
    filterer.add("Temp", (Comparison((Name("val"), Constant(3)), ("<",)),))
    waiting: list[Event] = []
    ledger.events.holds("journal", lambda: len(waiting))
    sent = 0
    for number, batch in enumerate(trace):
        items = [{"type": "Temp", "id": f"{number}-{i}", "timestamp": 30, **fields}
                 for i, fields in enumerate(batch)]  # fmt: skip
        sent += len(items)
        waiting += intake.from_mappings(items, 100).events
        ledger.check()
        if not wait or number % 2:
            admitted = intake.admit(list(waiting), 0)
            waiting.clear()
            filterer.route(admitted.events)
            ledger.check()
    assert ledger.events.received == sent
    assert set(ledger.events.dropped) <= set(REASONS)
    assert ledger.to_dict()["held"] == len(waiting)


def test_an_imbalance_is_found():
    ledger = Ledger()
    ledger.events.received = 3
    ledger.events.drop("late", 2)
    with pytest.raises(ImbalanceError, match="events: 1 unaccounted"):
        ledger.check()
    ledger.events.filtered += 1
    ledger.check()
    ledger.detected.out += 1
    with pytest.raises(ImbalanceError, match="detected: -1"):
        ledger.check()


def test_each_limit_says_why_it_is_there_and_what_happens_at_it():
    texts = Limits().texts()
    assert len(texts) == len({text.name for text in texts}) > 15
    for text in texts:
        assert text.name.endswith(("_max", "_allowed"))
        assert text.value >= 1 or "0 is no" in text.reason
        assert len(text.reason) > 20
        assert text.policy


def test_a_limit_that_cannot_be_is_refused():
    for values, match in [
        ({"nesting_max": 0}, "nesting_max"),
        ({"payload_bytes_max": -1}, "payload_bytes_max"),
        ({"no_such_max": 5}, "no_such_max"),
    ]:
        with pytest.raises(ValueError, match=match):
            make_limits(**values)

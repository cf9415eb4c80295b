"""What stands at the edges of intake: limits met exactly, memories that are full, clocks that meet.

Each property is stated of many inputs and judged by something plain: a loop, a list, a recursion.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.core.intake import Intake, IntakeOptions
from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Event, event_class
from broker.engine.ingest.decode import json_deeper_than, value_deeper_than
from broker.engine.ingest.repeats import Repeats
from broker.engine.ingest.source_clocks import SourceClocks
from broker.engine.limits import Limits
from language.specification import EventType
from tests.counting import calls_of

pytestmark = pytest.mark.usefixtures("both_ways")

Temp = event_class("Temp", {})
Wind = event_class("Wind", {})
KINDS = {"Temp": Temp, "Wind": Wind}


def reading(end: int, source: str = "s", kind: type[Event] = Temp) -> Event:
    return kind(id=f"{source}-{end}", source=source, start=end, end=end)


# --- clocks -----------------------------------------------------------------------------------

SOURCES = st.sampled_from("abc")
TYPES = st.sampled_from(["Temp", "Wind"])
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("split"), SOURCES, st.lists(st.tuples(TYPES, st.integers(0, 12)), max_size=3)
        ),
        st.tuples(st.just("advertise"), SOURCES, TYPES),
        st.tuples(st.just("withdraw"), SOURCES, st.none()),
        st.tuples(st.just("watermark"), st.none(), TYPES),
        st.tuples(st.just("wait"), st.none(), st.integers(1, 12)),
    ),
    max_size=30,
)


@settings(max_examples=400)
@given(STEPS, st.integers(0, 4), st.sampled_from([None, 10]))
def test_no_event_is_let_through_behind_a_watermark_that_was_given_out(steps, lateness_ms, idle_ms):
    """And no watermark goes back, whoever comes, gains a type, falls silent or leaves."""
    clocks = SourceClocks(lateness_ms, idle_ms)
    given_out = dict.fromkeys(KINDS, WATERMARK_NONE)
    now = 0
    for verb, source, what in steps:
        if verb == "split":
            events = [reading(end, source, KINDS[name]) for name, end in what]
            split = clocks.split(events, now, source)
            for event in split.on_time:
                assert event.end > given_out[event.event_type]
            assert len(split.on_time) + len(split.late) == len(events)
        elif verb == "advertise":
            clocks.advertise(source, [what], now)
        elif verb == "withdraw":
            clocks.withdraw(source, now)
        elif verb == "watermark":
            watermark = clocks.watermark(what, now)
            assert watermark >= given_out[what]
            given_out[what] = watermark
        else:
            now += what


def test_a_source_that_gains_a_type_is_late_behind_that_types_watermark():
    """However its own clock stands; alone, and among events that are in time."""
    for more in ([], [reading(60, "a", Wind)]):
        clocks = SourceClocks(20, None)
        clocks.split([reading(30, "a")], 0, "a")
        clocks.split([reading(45, "b", Wind)], 0, "b")
        assert clocks.watermark("Wind", 0) == 24
        split = clocks.split([reading(24, "a", Wind), reading(25, "a", Wind), *more], 0, "a")
        assert [event.end for event in split.late] == [24]
        assert [event.end for event in split.on_time] == [25, *(event.end for event in more)]


def test_a_type_goes_on_from_the_foremost_of_the_sources_that_were_forgotten():
    for order in ("ab", "ba"):
        clocks = SourceClocks(0, 1_000, sources_max=2)
        for source in order:
            clocks.split([reading({"a": 20_000, "b": 10_000}[source], source)], 0, source)
        clocks.split([reading(1, "c", Wind)], 5_000, "c")  # no place: the idle ones are forgotten
        assert len(clocks) == 1
        assert clocks.watermark("Temp", 5_000) == 20_000 + 5_000 - 1


def test_a_source_that_was_advertised_keeps_its_place_while_it_is_idle():
    clocks = SourceClocks(0, 1_000, sources_max=2)
    clocks.advertise("a", ["Temp"], 0)
    clocks.split([reading(20_000, "a")], 0, "a")
    clocks.split([reading(10_000, "b")], 0, "b")
    assert clocks.split([reading(1, "c", Wind)], 5_000, "c").refused == []
    assert len(clocks) == 2
    assert clocks.hindmost("Temp", 5_000) == "source a"
    clocks.split([reading(30_000, "a")], 5_001, "a")
    assert len(clocks) == 2  # nobody new


# --- repeats ----------------------------------------------------------------------------------


@pytest.mark.parametrize("step_ms", [1, 1_000, 100_000])
@pytest.mark.parametrize("together", [1, 3])
def test_past_the_limit_what_ends_first_is_forgotten_first(step_ms, together):
    """However the memory is kept: of what was let in last at least half of the limit is known."""
    most = 10
    repeats = Repeats(most)
    events = [reading(number * step_ms) for number in range(1, 61)]
    for at in range(0, len(events), together):
        fresh, _ = repeats.admit(events[at : at + together])
        assert fresh == events[at : at + together]
        assert len(repeats) <= most
        known = events[: at + together][-(most // 2) :]
        again = [reading(event.end) for event in known]
        fresh, repeated = repeats.admit(again)
        assert fresh == []
        assert [event.id for event, _ in repeated] == [event.id for event in known]
    assert repeats.forgotten > 0


@pytest.mark.parametrize("together", [1, 2, 5])
@pytest.mark.parametrize("in_order", [True, False])
def test_what_the_watermark_has_not_passed_is_remembered_and_nothing_else(together, in_order):
    events = [reading(end) for end in range(100, 120)]
    for watermark in range(99, 121):
        repeats = Repeats(1_000)
        batches = [events[at : at + together] for at in range(0, len(events), together)]
        for batch in batches if in_order else reversed(batches):
            repeats.admit(list(batch), ordered=in_order, apart=in_order)
        repeats.advance(watermark)
        again = [reading(event.end) for event in events if event.end > watermark]
        _, repeated = repeats.admit(list(again))
        assert [event.id for event, _ in repeated] == [event.id for event in again]
        assert len(repeats) - len(again) < together, "what has been passed is kept no longer"


def test_what_came_in_order_one_by_one_is_looked_through_together_when_order_ends():
    """Not batch by batch, of which there may be as many as events."""
    repeats = Repeats(100_000)
    for end in range(4_000):
        repeats.admit([reading(end + 10)], ordered=True, apart=True)
    repeats.admit([reading(5)])
    assert calls_of(lambda: repeats.advance(3_000)) < 1_000
    assert len(repeats) == 4_009 - 3_000


# --- payloads ---------------------------------------------------------------------------------


def intake(**limits: Any) -> Intake:
    made = Intake(IntakeOptions(lateness_ms=None), Limits(**limits))
    made.declare(EventType("Temp", {"val": "float", "name": "text"}))
    return made


def refused(made: Intake, said: dict[str, Any], now: int = 1_000) -> list[str]:
    decoded = made.decode(json.dumps(said).encode(), type_name="Temp", source="s", arrival_ms=now)
    assert len(decoded.events) + len(decoded.rejections) == 1
    return [one.reason for one in decoded.rejections]


@pytest.mark.parametrize("place", [{}, {"position": [1, 2]}, {"location": "a"}])
@pytest.mark.parametrize("form", ["timestamp", "start and end", "text"])
def test_an_event_may_be_exactly_as_far_ahead_as_is_allowed(form, place):
    made = intake(future_ms_max=500)
    for end, wanted in ((1_500, []), (1_501, ["too_far_in_future"])):
        times = {
            "timestamp": {"timestamp": end},
            "start and end": {"start": 7, "end": end},
            "text": {"timestamp": f"1970-01-01T00:00:01.{end - 1_000}Z"},
        }
        assert refused(made, {**times[form], **place}) == wanted


def test_an_event_may_last_nothing_and_as_long_as_is_allowed():
    made = intake(event_duration_ms_max=300)
    for start, end, wanted in (
        (500, 500, []),
        (501, 500, ["start_after_end"]),
        (500, 800, []),
        (500, 801, ["duration_too_long"]),
    ):
        assert refused(made, {"start": start, "end": end}) == wanted


def test_the_order_in_which_attributes_are_declared_does_not_show_in_ids():
    ids = set()
    for attributes in ({"a": "int", "b": "int"}, {"b": "int", "a": "int"}):
        made = Intake(IntakeOptions(lateness_ms=None), Limits())
        made.declare(EventType("Temp", attributes))
        (event,) = made.decode(
            b'{"timestamp": 5, "a": 1, "b": 2}', type_name="Temp", source="s"
        ).events
        ids.add(event.id)
    assert len(ids) == 1


@pytest.mark.parametrize(
    "last",
    [
        {"timestamp": 5, "val": 1},
        {"start": 4, "end": 5, "val": 1},
        {"timestamp": "1970-01-01T00:00:00.005Z"},
        {"timestamp": 5, "val": "warm"},
        {"timestamp": 5, "srcid": "s"},
        {"timestamp": 5, "unheard": [[]]},
    ],
)
@pytest.mark.parametrize("type_name", ["Temp", None])
def test_a_batch_may_be_exactly_as_long_as_is_allowed(last, type_name):
    """Whatever it holds, and however it is decoded therefore."""
    for count, wanted in ((3, 3), (4, 1)):
        made = intake(batch_events_max=3)
        items = [{"type": "Temp", "timestamp": at, "val": 1} for at in range(count - 1)]
        payload = json.dumps([*items, {"type": "Temp", **last}]).encode()
        decoded = made.decode(payload, type_name=type_name, source="s", arrival_ms=9)
        assert len(decoded.events) + len(decoded.rejections) == wanted
        if count == 4:
            assert [one.reason for one in decoded.rejections] == ["batch_too_long"]


# --- depth ------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.text('[]{}"\\a', max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("[{\\", max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(depth_of, inner), default=0)


@given(VALUES, st.integers(1, 6))
def test_depth_is_counted_in_arrays_and_objects_alone(value, levels_max):
    deeper = depth_of(value) > levels_max
    assert json_deeper_than(json.dumps(value).encode(), levels_max) == deeper
    assert value_deeper_than(value, levels_max) == deeper


@pytest.mark.parametrize("levels", range(1, 8))
def test_a_text_with_many_shallow_brackets_is_as_deep_as_its_deepest(levels):
    text = b"[" * (levels - 1) + b"[]" + b",[]" * (3 if levels > 1 else 0) + b"]" * (levels - 1)
    assert not json_deeper_than(text, levels)
    assert json_deeper_than(text, levels - 1)

"""Events that a program makes: they are taken as mappings that say the same."""

import copy
import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.engine.ingest import registry
from headwater import Engine, Event, EventError

pytestmark = pytest.mark.usefixtures("both_ways")

TEXT = """
event Temp(val: float, n: int, text: text, open: bool)
event Other(val: int)
subscription S seq 1 from me to log
detect Temp or Other
"""
PLAIN = {"val": 1.5, "n": 3, "text": "a", "open": True}


def outcome(events: list[Any]) -> Any:
    """What an engine makes of a batch: results and counts, or the error."""
    engine = Engine(TEXT)
    try:
        results = engine.push(events) + engine.finish()
    except EventError as error:
        return str(error)
    return results, engine.counts


odd = st.sampled_from(
    [
        None,
        1,
        1.0,
        -2.5,
        True,
        "x",
        "\ud800",
        "é",
        math.nan,
        math.inf,
        2**63,
        10**400,
        b"b",
        [1],
        {},
    ]
)
attributes = st.dictionaries(st.sampled_from(["val", "n", "text", "open", "more"]), odd)
times = st.one_of(
    st.builds(lambda at: {"timestamp": at}, st.integers(0, 50) | odd),
    st.builds(lambda at, ms: {"start": at, "end": at + ms}, st.integers(0, 50), st.integers(-1, 5)),
    st.just({}),
)
places = st.sampled_from(
    [{}, {"position": [1.0, 2.0]}, {"position": [99.0, 2.0]}, {"position": {"x": 1.0, "y": 2.0}}]
)
extras = st.fixed_dictionaries(
    {}, optional={"source": odd, "location": odd, "uncertainty": odd, "id": odd}
)
mappings = st.builds(
    lambda kind, *parts: {"type": kind} | {k: v for part in parts for k, v in part.items()},
    st.sampled_from(["Temp", "Other", "Unknown"]),
    st.builds(lambda number: {"id": f"e{number}"}, st.integers(0, 9)),
    times,
    places,
    st.just(PLAIN) | attributes,
    st.just({}) | extras,
)


def test_a_mapping_of_the_format_is_an_event_by_its_keys_and_type_said_twice_is_refused():
    said = {"type": "Temp", "id": "t", "source": "s", "timestamp": 5, "val": 1.5, "self": 2}
    assert Event(**said) == Event("Temp", id="t", source="s", timestamp=5, val=1.5, self=2)
    assert Event(**said).to_dict() == said
    with pytest.raises(TypeError, match="type"):
        Event("Temp", **said)


def event_of(said: dict[str, Any]) -> Event:
    fields = dict(said)
    return Event(fields.pop("type"), **fields)


@given(st.lists(mappings, max_size=5))
def test_an_engine_takes_events_as_it_takes_the_mappings_that_say_the_same(batch):
    for said in batch:  # by itself, as most batches of these are refused
        assert outcome([event_of(said)]) == outcome([said])
    assert outcome([event_of(said) for said in batch]) == outcome(batch)


def test_a_plain_reading_is_typed_when_it_is_made_and_taken_as_it_is(monkeypatch):
    monkeypatch.setattr(registry, "_shapes", {})
    event = Event("Temp", id="a", timestamp=5, source="s", **PLAIN)
    assert event.typed is not None
    engine = Engine(TEXT)
    monkeypatch.setattr(engine._pipeline.intake, "from_mappings", None)
    (result,) = engine.push([event])
    assert result["values"] == {"Temp": PLAIN}
    # Another order of the attributes is another shape.
    assert Event("Other", id="a", timestamp=5, val=2).typed is not None


@pytest.mark.parametrize(
    "said",
    [
        {"timestamp": 5, **PLAIN},  # ids are made by intake
        {"id": "a", "start": 4, "end": 5, **PLAIN},
        {"id": "a", "timestamp": "2007-10-01T00:00:00Z", **PLAIN},
        {"id": "a", "timestamp": 5, "val": math.nan},
        {"id": "a", "timestamp": 5, "val": [1]},
        {"id": "a", "timestamp": 5, "position": [91.0, 0.0]},
    ],
)
def test_what_is_no_plain_reading_is_left_to_intake(said):
    assert Event("Temp", **said).typed is None


def test_only_so_many_shapes_are_typed(monkeypatch):
    monkeypatch.setattr(registry, "_shapes", {})
    monkeypatch.setattr(registry, "SHAPES_MAX", 2)
    made = [Event(f"T{n}", id="a", timestamp=5, val=1.0) for n in (1, 2, 3, 1)]
    assert [one.typed is not None for one in made] == [True, True, False, True]


def test_one_event_may_be_pushed_into_several_engines():
    event = Event("Temp", id="a", timestamp=5, **PLAIN)
    assert outcome([event]) == outcome([event]) == outcome([event.to_dict()])


def test_the_same_event_again_is_a_repeat():
    event = Event("Temp", id="a", timestamp=5, **PLAIN)
    results, counts = outcome([event, event])
    assert len(results) == 1
    assert counts["dropped"] == {"repeat": 1}


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_a_copy_says_the_same(again):
    event = Event("Temp", id="a", timestamp=5, attributes={"self": 1, "val": 2.0})
    assert again(event) == event
    assert again(event).to_dict() == event.to_dict()


def test_null_is_as_if_it_were_not_said():
    assert Event("Temp", id="a", source=None, timestamp=5) == Event("Temp", id="a", timestamp=5)


def test_an_attribute_may_not_be_called_as_what_every_event_has():
    with pytest.raises(ValueError, match="found attribute source"):
        Event("Temp", attributes={"source": "s"})

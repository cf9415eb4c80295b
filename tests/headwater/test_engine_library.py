"""`headwater.Engine` as a program uses it: what it takes, refuses and counts."""

import subprocess
import sys
from pathlib import Path

import pytest

import headwater

pytestmark = pytest.mark.usefixtures("both_ways")

ROOT = Path(__file__).resolve().parents[2]

TEXT = "event Temp(val: float)\nsubscription Cold from me to alerts detect Temp(val < 0)\n"
COLD = {"type": "Temp", "id": "a", "timestamp": 1000, "val": -1.5}


def events_of(results):
    return [one["events"]["Temp"] for one in results]


def test_dicts_and_events_say_the_same():
    """Also by a generator, with the time as a text, and with the whole input on time."""
    event = headwater.Event("Temp", id="a", timestamp="1970-01-01T00:00:01Z", val=-1.5)
    expected = headwater.Engine(TEXT).push([COLD])
    assert events_of(expected) == [["a"]]
    assert headwater.Engine(TEXT).push([event]) == expected
    assert headwater.Engine(TEXT).push(one for one in [event]) == expected
    engine = headwater.Engine(TEXT, lateness_ms=None)
    assert engine.push([COLD]) == []
    assert engine.finish() == expected


@pytest.mark.parametrize("lateness_ms", [0, 500, None])
def test_every_event_and_every_result_is_counted(lateness_ms):
    engine = headwater.Engine(TEXT, lateness_ms)
    late = COLD | {"id": "b", "timestamp": 1}
    results = engine.push([COLD, COLD, COLD | {"id": "c", "timestamp": 1001}, {"type": "Wind"}])
    results += engine.push([late])
    results += engine.finish()
    counts = engine.counts
    dropped = {"repeat": 1, "undeclared_type": 1} | ({} if lateness_ms is None else {"late": 1})
    assert counts["dropped"] == dropped
    assert counts["results"] == len(results) == (3 if lateness_ms is None else 2)
    accounted = counts["out"] + counts["filtered"] + counts["held"] + sum(dropped.values())
    assert counts["received"] == accounted == 5


@pytest.mark.parametrize(
    "bad",
    [
        5,
        "Temp",
        {},
        {"type": 5},
        {"type": "Temp"},
        COLD | {"val": "cold"},
        COLD | {"val": float("nan")},
        COLD | {"val": True},
        COLD | {"timestamp": 1.5},
        COLD | {"timestamp": 10**30},
        COLD | {"timestamp": "yesterday"},
        COLD | {"start": 2, "end": 1},
        COLD | {"position": [91, 0]},
        COLD | {"uncertainty": -1},
        COLD | {"id": 7},
        COLD | {5: 1},
    ],
    ids=repr,
)
def test_a_bad_event_is_named_by_its_index_and_nothing_of_its_batch_is_taken(bad):
    engine = headwater.Engine(TEXT)
    with pytest.raises(headwater.EventError, match=r"^event 1 of the batch: "):
        engine.push([COLD, bad])
    assert events_of(engine.push([COLD])) == [["a"]]


def test_a_faulty_specification_is_refused_with_every_error():
    with pytest.raises(headwater.LanguageError) as caught:
        headwater.Engine(
            "event A(x: int)\nsubscription S from u to a\ndetect A(y = z)", file="a.hw"
        )
    assert len(caught.value.diagnostics) == 2
    assert "a.hw:3:10: " in str(caught.value)


def test_what_cannot_be_is_refused():
    for wrong in (-1, 2.5, float("nan"), "2s", True):
        with pytest.raises(ValueError, match="0 or more, or None"):
            headwater.Engine(TEXT, lateness_ms=wrong)
    engine = headwater.Engine(TEXT)
    for one in (COLD, headwater.Event("Temp", timestamp=1), "Temp"):
        with pytest.raises(TypeError, match="put the event into a list"):
            engine.push(one)
    assert engine.finish() == []
    with pytest.raises(RuntimeError, match="make a new one"):
        engine.push([COLD])
    with pytest.raises(AttributeError, match="Enigne"):
        headwater.Enigne  # noqa: B018 - looking is what fails
    with pytest.raises(ValueError, match="reserved key"):
        headwater.Event("Temp", timestamp=1, attributes={"id": "x"})


def test_drift_makes_durations_uncertain():
    text = "event A() event B() subscription S from u to a detect A then B within 10 s"
    events = [
        {"type": "A", "id": "a", "timestamp": 0},
        {"type": "B", "id": "b1", "timestamp": 8_000},
        {"type": "B", "id": "b2", "timestamp": 9_500},
        {"type": "B", "id": "b3", "timestamp": 10_500},
        {"type": "B", "id": "b4", "timestamp": 12_000},
    ]
    engine = headwater.Engine(text, drift=0.1)
    found = [*engine.push(events), *engine.finish()]
    told = {one["events"]["B"][0]: one["certainty"] for one in found}
    assert told == {"b1": "yes", "b2": "maybe", "b3": "maybe"}
    with pytest.raises(ValueError, match="less than 1"):
        headwater.Engine(text, drift=1.0)


@pytest.mark.parametrize(
    "position", [{"x": 1.0, "y": 2.0}, {"x": 1.0, "y": 2.0, "z": 0.0}, [1.0, 2.0]]
)
def test_a_position_leaves_as_it_came(position):
    text = "event A() subscription S from u to a detect A assign place = A.position"
    engine = headwater.Engine(text, lateness_ms=None)
    engine.push([{"type": "A", "timestamp": 0, "position": position}])
    assert [one["values"]["place"] for one in engine.finish()] == [position]


@pytest.mark.parametrize("text", [None, TEXT.encode(), ["event A()"]])
def test_a_text_that_is_none_is_refused_with_a_sentence(text):
    with pytest.raises(TypeError, match=r"found a text of type \w+, expected str"):
        headwater.Engine(text)


def test_what_can_be_imported_is_listed():
    assert {*headwater.__all__, "client"} <= set(dir(headwater))
    assert all(getattr(headwater, name) for name in headwater.__all__)


def test_importing_the_package_loads_no_part_of_it_before_it_is_used():
    code = (
        "import sys, headwater; before = set(sys.modules);"
        "print(sorted(before & {'aiohttp', 'aiomqtt', 'lark', 'msgspec', 'paho', 'broker.core'}));"
        "print(headwater.client.Client is headwater.Client)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "[]\nTrue\n"

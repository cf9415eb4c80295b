"""Results are told alike by compiled passes and by Python."""

from __future__ import annotations

import gc
import sys
from contextlib import nullcontext
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.engine import native
from broker.engine.event.event import event_class
from broker.engine.runtime.results import told
from broker.engine.runtime.subscribed import OccurrenceResult
from headwater import Engine, Event
from tests.pure import python_alone

FEWER = settings(max_examples=settings.default.max_examples // 4)
passes = native.passes
pytestmark = pytest.mark.skipif(passes is None, reason="the passes are not compiled")


# --- making -----------------------------------------------------------------------------------

Reading = event_class("Reading", {"x": "float"})


def test_results_are_made_as_their_class_makes_them():
    maker = passes.Maker(OccurrenceResult, "template")
    event = Reading(id="e", start=2**70, end=5)
    wanted = OccurrenceResult("template", 2**70, 5, (), event)  # type: ignore[arg-type]
    made = maker(event.start, event.end, (), event)
    assert type(made) is OccurrenceResult
    for name in OccurrenceResult.__struct_fields__:
        assert getattr(made, name) == getattr(wanted, name)
    with pytest.raises(TypeError):
        maker(1, 1, ())


@pytest.mark.parametrize("kind", [int, Reading, msgspec.defstruct("Less", ["template", "start"])])
def test_a_maker_makes_results_alone(kind):
    with pytest.raises(TypeError):
        passes.Maker(kind, "template")


def test_as_many_references_go_as_come():
    event, template, group = Reading(id="e", start=10**6, end=10**6), object(), ("hall",)
    shared = (OccurrenceResult, event, template, group)

    def run() -> list[int]:
        maker = passes.Maker(OccurrenceResult, template)
        for _ in range(1_000):
            maker(event.start, event.end, group, event)
        del maker
        return [sys.getrefcount(one) for one in shared]

    assert run() == run()


# --- telling ----------------------------------------------------------------------------------

DECLARED = "event A(v: float)\nevent B(v: float)\nevent C(v: float)\nevent D(v: float)\n"
HEAD = "subscription S seq 1 from u to alerts\n"
RESULTS = {
    "list": "detect A then B+ as b then C within 40 s",
    "list of one place": "detect A+ as a then[recent] C within 40 s",
    "list that may be empty": "detect A as a then B* as `b é` then C within 40 s",
    "nothing at a place": "detect A as a or (B as b and C as c) within 40 s",
    "either within a sequence": "detect A then (B as b or C as c) then D within 40 s",
    "collect": "detect[collect] A as a and B as b within 40 s",
    "group": "detect A then B+ as b then C within 40 s group by location",
}
items = st.lists(
    st.tuples(
        *(st.sampled_from("ABCD"), st.integers(0, 30), st.sampled_from(["", "é", "x" * 255])),
        st.sampled_from([None, 1.5]),
    ),
    max_size=14,
)


@pytest.mark.parametrize("detect", RESULTS.values(), ids=RESULTS)
@FEWER
@given(items=items)
def test_lists_and_empty_places_are_told_alike(detect, items):
    events = [
        Event(kind, id=f"{at}{more}", timestamp=1_000 * time, v=value, location="hall")
        for at, (kind, time, more, value) in enumerate(items)
    ]
    found = []
    for alone in (False, True):
        with python_alone() if alone else nullcontext():
            engine = Engine(DECLARED + HEAD + detect, lateness_ms=None)
            engine.push(events)
            found.append(engine.finish())
    assert msgspec.json.encode(found[0]) == msgspec.json.encode(found[1])


@pytest.mark.parametrize("doors", [1, 2, 15, 16, 17, 300])
def test_lists_of_any_length_are_told(doors):
    """Those among them that are of more bytes than the pass has room for."""
    events = [Event("A", id="a", timestamp=0, v=1.0)]
    events += [Event("B", id=f"b{at}", timestamp=1 + at, v=2.0) for at in range(doors)]
    events += [Event("C", id="c", timestamp=1_000, v=3.0)]
    found = []
    for alone in (False, True):
        with python_alone() if alone else nullcontext():
            engine = Engine(DECLARED + HEAD + RESULTS["list"])
            found.append(engine.push(events) + engine.finish())
    assert found[0] == found[1]
    assert [len(one["events"]["b"]) for one in found[0]] == [doors]


class Asks:
    """A result that notes whether garbage is collected while it is told, and may say that it is."""

    def __init__(self, says: bool | None = None) -> None:
        self.says = says

    def to_dict(self) -> dict[str, Any]:
        before = gc.isenabled()
        if self.says is not None:
            (gc.enable if self.says else gc.disable)()
        return {"collects": before}


@pytest.mark.parametrize("collects", [True, False])
def test_telling_leaves_the_collector_as_it_was(collects):
    plain = Engine(f"{DECLARED}{HEAD}detect A")._pipeline
    event = {"type": "A", "id": "a", "timestamp": 1, "v": 1.0}
    results: list[Any] = plain.admit(plain.intake.from_mappings([event]).events)
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        assert len(told(results)) == 1
        assert gc.isenabled() == collects
        assert told([*results, Asks(), Asks()])[1:] == [{"collects": collects}] * 2
        assert gc.isenabled() == collects
        told([*results, Asks(not collects), *results])
        assert gc.isenabled() != collects
    finally:
        (gc.enable if before else gc.disable)()


def test_ids_are_those_of_python_however_many_results_are_told_together():
    """Among them are some that only Python tells."""
    names = ["e" * (1 + at * 7 % 400) if at % 5 else "ü" * (1 + at) for at in range(100)]
    text = "event A(x: int)\nsubscription S seq 1 from u to a detect A"
    results = [Event("A", id=name, timestamp=at, x=at) for at, name in enumerate(names)]
    found = [Engine(text).push(results[:count])[-9:] for count in range(1, 100)]
    with python_alone():
        assert found == [Engine(text).push(results[:count])[-9:] for count in range(1, 100)]


def test_each_result_is_a_dictionary_of_its_own():
    """Whatever becomes of one, neither others nor those that come later change."""
    text = "event A(x: int)\nsubscription S seq 1 from u to a detect A"
    engine = Engine(text)
    events = [Event("A", id=f"e{at}", timestamp=at, x=at) for at in range(6)]
    with python_alone():
        wanted = Engine(text).push(events)
    emptied, longer, less, kept = engine.push(events[:4])
    emptied.clear()
    longer.update(detected_at=7, subscription="T", subscriber="v", certainty="maybe")
    less["group"]["more"] = 1
    del less["id"]
    later = engine.push(events[4:])
    assert [kept, *later] == wanted[3:]
    assert [list(one) for one in (kept, *later)] == [list(one) for one in wanted[3:]]
    assert emptied == {}
    assert list(longer) == [*wanted[1], "detected_at"]
    assert longer["subscription"] == "T"
    assert list(less) == [key for key in wanted[2] if key != "id"]

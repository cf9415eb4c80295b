"""What a result says of places that bind one event each, written by code made for them."""

import pytest

import headwater
from broker.core.intake import Intake, IntakeOptions
from broker.engine.event.identity import digest
from broker.engine.event.occurrence import flat
from broker.engine.runtime.budget import in_one_go
from broker.engine.runtime.matcher import Matcher
from broker.engine.runtime.outcome import bound_ids, silent
from language import check_text

pytestmark = pytest.mark.usefixtures("both_ways")

TEXTS = {
    "one place": "detect A(v > 0) as a",
    "two places": "detect A(v > 0) as a and B(v > 0) as b within 1 s",
    "two places by source": "detect A as a then B as `b-2` within 1 s group by source",
    "a place that may stay empty": "detect A as a or B as b",
    "a list": "detect A as a then B+ as b within 1 s",
    "an absence": "detect A as a without[100 ms] B as b",
}
EVENTS = [
    {"type": kind, "id": f"{kind}{end}", "source": "s", "timestamp": end, "v": end % 3 - 0.5}
    for end in range(0, 2_000, 50)
    for kind in ("A" if end % 100 else "B",)
]


def results(detect):
    text = f"event A(v: float)\nevent B(v: float)\nsubscription S from u to a\n{detect}"
    specification = check_text(text).demand()
    intake, matcher = Intake(IntakeOptions()), Matcher()
    intake.declare(specification.event_types.values())
    for task in specification.graph.tasks.values():
        matcher.install(task)
    admitted = intake.admit(intake.from_mappings(EVENTS).events)
    found = in_one_go(matcher.push(admitted.events, intake.watermark))
    intake.finish()
    return found + in_one_go(matcher.push([], intake.watermark))


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_bound_is_told_as_for_places_of_any_kind(name):
    found = results(TEXTS[name])
    assert found
    for result in found:
        said = result.to_dict()
        ends = bound_ids(result.template.names, result.events, result.group)
        assert said["id"] == result.id == digest("occurrence", result.template.task, 0, ends)
        assert said["events"] == {
            alias: [event for event, _ in members] for alias, members in ends if members[0][0]
        }
        assert result.template.words.put(result) == said


@pytest.mark.parametrize("name", TEXTS)
def test_where_values_are_assigned_no_attributes_are_gathered(name, monkeypatch):
    found = results(f"{TEXTS[name].replace(' group by source', '')} assign at = end")
    for result in found:
        for event in flat(member for member in result.events if not silent(member)):
            monkeypatch.setattr(type(event), "attribute_values", None)
    assert found
    assert [one.to_dict()["values"] for one in found] == [{"at": one.end} for one in found]


def test_of_events_that_are_made_of_the_same_the_ties_of_their_constituents_come_first():
    """Y is made of b itself, and of an X that is made of b: what is not detected comes first."""
    text = (
        "event B(n: int)\n"
        "define X(k) detect B assign k = B.n\n"
        "define Y(k) detect X as x or B as y assign k = x.k\n"
        "subscription S from a to b detect Y then[chronicle] B"
    )
    engine = headwater.Engine(text, lateness_ms=None)
    engine.push([{"type": "B", "id": f"b{at}", "timestamp": at, "n": 7} for at in (1, 2, 3)])
    assert [(one["end"], one["values"]["Y"]) for one in engine.finish()] == [
        (2, {}),  # of b1 itself
        (3, {"k": 7}),  # of X of b1, which is as old
    ]

"""`last`, `first` and `within … from` where times are uncertain.

What is last is decided when nothing to come can change the choice, and what an anchor holds
together may seem to lie twice as far apart. The generators draw uncertain times for patterns of
their own alone; here they are drawn for these.
"""

from __future__ import annotations

from dataclasses import replace

import headwater
from tests.oracles.compare import compare
from tests.oracles.draw import SeededDraw
from tests.oracles.generate import (
    CONSTRUCTS_WHOLE,
    CONTEXTS_WHOLE,
    primitive_types,
    random_case,
)
from tests.oracles.matcher import run
from tests.oracles.render import text_of
from tests.oracles.traces import trace

SPECIFICATION = (
    "event A(n: int) event B(n: int)\n"
    "subscription S seq 1 from me to you detect last A as x and B within 5 s from x within 5 s"
)


def test_what_comes_behind_the_first_uncertain_event_of_a_batch_finds_its_agents():
    """The first one has all agents made anew, while contents of the batch are still to be fed."""
    engine = headwater.Engine(
        "event A() event B() subscription S from me to you detect A then B within 1 min"
    )
    first = {"type": "A", "id": "a", "timestamp": 1_000, "uncertainty": 5}
    second = {"type": "B", "id": "b", "timestamp": 2_000}
    assert len(engine.push([first, second]) + engine.finish()) == 1


def test_what_seems_to_come_after_its_successor_may_be_the_last():
    events = [
        {"type": "A", "id": "a1", "timestamp": 19_000},
        {"type": "B", "id": "b2", "timestamp": 21_000, "uncertainty": 1_000},
        {"type": "A", "id": "a3", "timestamp": 22_000, "uncertainty": 500},
    ]
    for more in ([], [{"type": "B", "id": "b4", "timestamp": 40_000}]):
        engine = headwater.Engine(SPECIFICATION, lateness_ms=None)
        engine.push(events + more)
        (result,) = engine.finish()
        assert result["events"] == {"x": ["a3"], "B": ["b2"]}
        assert result["certainty"] == "maybe"


def test_what_is_spent_stays_spent_however_far_apart_its_partners_seem():
    """Under `chronicle` c2 is spent as z; the x and B of 4 s apart may be 3 s apart."""
    text = (
        "event A(n: int) event B(n: int) event C(n: int)\n"
        "subscription S seq 1 from me to you "
        "detect[chronicle] C as x then B and C as z within 3 s"
    )
    events = [
        {"type": "C", "id": "c1", "timestamp": 5_000, "uncertainty": 500},
        {"type": "B", "id": "b1", "timestamp": 7_000, "uncertainty": 1_000},
        {"type": "C", "id": "c2", "timestamp": 7_000, "uncertainty": 1_000},
        {"type": "B", "id": "b2", "timestamp": 11_000},
        {"type": "C", "id": "c3", "timestamp": 11_000, "uncertainty": 1_000},
    ]
    engine = headwater.Engine(text, lateness_ms=None)
    engine.push(events)
    (result,) = engine.finish()
    assert result["events"] == {"x": ["c1"], "B": ["b1"], "z": ["c2"]}


def test_what_an_anchor_holds_together_may_seem_to_lie_far_apart():
    text = (
        "event A(n: int) event B(n: int) event C(n: int)\n"
        "subscription S seq 1 from me to you detect A and B and C within 3 s from A"
    )
    events = [
        {"type": "C", "id": "c0", "timestamp": 0, "uncertainty": 1_000},
        {"type": "A", "id": "a3", "timestamp": 3_000, "uncertainty": 2_000},
        {"type": "B", "id": "b8", "timestamp": 8_000},
    ]
    engine = headwater.Engine(text, lateness_ms=None)
    engine.push(events)
    (result,) = engine.finish()
    assert result["certainty"] == "maybe"


def agree(seeds):
    """A recording gives what the reference finds."""
    for construct in ("last", "first-of", "within-from"):
        profile = replace(CONSTRUCTS_WHOLE[construct].profile, uncertain=50, durative=0)
        for context in CONTEXTS_WHOLE:
            for seed in seeds:
                spec, _ = random_case(seed, construct, context)
                name = f"{construct}/{context}/{seed}"
                events = trace(SeededDraw(name), primitive_types(spec), profile)
                wanted = run(spec, events)
                engine = headwater.Engine(text_of(spec), lateness_ms=None)
                engine.push(events)
                wrong = compare(spec, wanted, engine.finish())
                assert [said for said in wrong if not said.endswith("was due")] == [], name


def test_uncertain_times_do_not_make_a_choice_too_early():
    agree(range(33, 41))

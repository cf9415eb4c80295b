"""What one event completes is one group, whenever each of it becomes known.

Expected values are from the language's words: completed by the last in order of the events bound;
an `absent` binds none.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest

import headwater
from broker.core.intake import IntakeOptions
from broker.engine.pattern.bounds.bounds import Inputs, bounds_of
from broker.engine.pattern.layout.pattern import lay_out
from broker.engine.pattern.times.assigned import longest_made_ms
from broker.engine.pattern.times.completion import Completion
from headwater.engine import Pipeline
from language import check_text
from tests.oracles.worked import trace

DECLARED = "".join(f"event {name}(n: int)\n" for name in "ABCX")
Events = list[dict[str, Any]]


def text_of(detect: str) -> str:
    return f"{DECLARED}subscription S from me to you\ndetect{detect}\n"


def told(results: list[Any]) -> list[Any]:
    return [(one["start"], one["end"], one["events"]) for one in results]


def replayed(text: str, events: Events) -> list[Any]:
    engine = headwater.Engine(text, lateness_ms=None)
    engine.push(events)
    return engine.finish()


def streamed(text: str, events: Events, lateness_ms: int) -> tuple[list[Any], list[Any]]:
    """What is known before the end, and at the end."""
    engine = headwater.Engine(text, lateness_ms=lateness_ms)
    known = [result for event in events for result in engine.push([event])]
    return known, engine.finish()


def moved(text: str, events: Events) -> list[Any]:
    """One by one, everything taken down and up again after each."""
    specification = check_text(text).demand()
    pipeline = Pipeline(specification, IntakeOptions(lateness_ms=0))
    results = []
    for event in events:
        results += pipeline.admit(pipeline.intake.from_mappings([event]).events)
        packed = msgspec.msgpack.encode(pipeline.matcher.state())
        there = Pipeline(specification, IntakeOptions(lateness_ms=0))
        there.matcher.restore(msgspec.msgpack.decode(packed, strict=False))
        pipeline.matcher = there.matcher
    return [one.to_dict() for one in [*results, *pipeline.finish()]]


LAST = " A then last B within 6 s"
SILENCE = " A and absent C for 2 s"
CASES = [
    (f"[collect]{LAST}", "a6 a9 b12 x13", [(6, 12, "a6 a9 b12")]),
    (f"[collect]{LAST}", "a6 a9 b12 x20", [(6, 12, "a6 a9 b12")]),
    (f"[one]{LAST}", "a6 a9 b12 x13", [(6, 12, "a6 b12")]),
    (f"[one]{SILENCE}", "a1 c3 c6 x12", [(1, 5, "a1")]),
    ("[collect] absent C for 2 s", "c3 c6 x12", [(3, 5, ""), (6, 8, "")]),
    ("[one] absent C for 2 s", "c3 c6 x12", [(3, 5, ""), (6, 8, "")]),
    (f"[collect]{SILENCE}", "a1 c3 c6 x12", [(1, 8, "a1")]),
    (f"[one]{SILENCE}", "a1 c3 a4 c6 x12", [(1, 5, "a1"), (3, 5, "a4")]),
    ("[collect] A and absent C for 2 s within 5 s", "a1 c2 c5 c9 x30", [(1, 4, "a1")]),
    ("[one] first A and absent C for 2 s", "a1 a2 c3 c6 x12", [(1, 5, "a1")]),
]


def expected(wanted: list[tuple[int, int, str]]) -> list[Any]:
    found = []
    for start, end, tokens in wanted:
        bound: dict[str, list[str]] = {}
        for token in tokens.split():
            bound.setdefault(token[0].upper(), []).append(token)
        found.append((start * 1000, end * 1000, bound))
    return found


@pytest.mark.parametrize(("detect", "tokens", "wanted"), CASES)
def test_what_one_event_completes_is_one_group_in_every_mode(detect, tokens, wanted):
    text, events = text_of(detect), trace(tokens)
    whole = replayed(text, events)
    assert told(whole) == expected(wanted)
    for lateness_ms in (0, 5_000):
        known, rest = streamed(text, events, lateness_ms)
        assert known + rest == whole  # the ids as well
    assert moved(text, events) == whole


def test_at_most_goes_by_order_whichever_group_is_whole_first():
    """Nothing joins a1-6 from 7 s on, but a5 until 11 s; what a5 completes ends before."""
    text = text_of("[collect] A and absent C for 1 s within 6 s") + "at most 1 per 2 s\n"
    events = trace("c2 a5 a1-6 x9 x13")
    known, rest = streamed(text, events, 0)
    assert known + rest == replayed(text, events)
    assert told(known) == expected([(2, 5, "a5")])


@pytest.mark.parametrize(
    ("detect", "tokens", "early", "late"),
    [
        # The first in order is known once its silence is; what follows is left out for good.
        (f"[one]{SILENCE}", "a1 c3 x6 c7 x12", [(1, 5, "a1")], []),
        # Nothing limits what joins a1, so that the end alone tells.
        (f"[collect]{SILENCE}", "a1 c3 x6 c7 x12", [], [(1, 9, "a1")]),
        # Within 5 s of a1 the last silence ends at 6 s.
        (f"[collect]{SILENCE} within 5 s", "a1 c3 x7", [(1, 5, "a1")], []),
        (f"[collect]{SILENCE} within 5 s", "a1 c3 x6", [], [(1, 5, "a1")]),
        # A silence before a1 is over when a1 comes.
        ("[collect] absent C for 2 s then A", "c1 a4 x5", [(1, 4, "a4")], []),
        # One after it begins by 4 s, or does not.
        ("[collect] A then[..3 s] absent C for 2 s", "a1 c2 c4-5 x5", [], []),
        ("[collect] A then[..3 s] absent C for 2 s", "a1 c2 x7", [(1, 4, "a1")], []),
        # A choice is known for a6 at 12 s, for a9 at 15 s.
        (f"[collect]{LAST}", "a6 a9 b12 x16", [(6, 12, "a6 a9 b12")], []),
    ],
)
def test_a_group_is_reported_once_nothing_can_join_it(detect, tokens, early, late):
    known, rest = streamed(text_of(detect), trace(tokens), 0)
    assert told(known) == expected(early)
    assert told(rest) == expected(late)


@pytest.mark.parametrize(
    ("detect", "after_ms"),
    [
        ("A then B", 0),
        ("A and absent C for 2 s", None),
        ("A and absent C for 2 s within 5 s", 5_000),
        ("absent C for 2 s then A", 0),
        ("A then absent C for 2 s", None),
        ("A then[..3 s] absent C for 2 s", 5_000),
        ("A and[..3 s] absent C for 2 s", 5_000),
        ("A parallel absent C for 2 s", 2_000),
        ("(A and absent C for 2 s within 4 s) and B", 4_000),
        ("(A and absent C for 2 s) then B", 0),
        ("A or absent C for 2 s", 0),
        ("(A or absent C for 2 s) and B", None),
        ("(A or absent C for 2 s) and[..1 s] B", 3_000),
        ("(absent C for 2 s and[..1 s] absent B for 4 s) and[..1 s] A", 8_000),
        ("(A and[..1 s] absent C for 2 s) without B", 3_000),
        ("A then B+ then[..1 s] absent C for 2 s", None),
        ("A without (B then absent C for 2 s)", 0),
    ],
)
def test_how_long_an_occurrence_goes_on_after_its_last_event(detect, after_ms):
    (subscription,) = check_text(text_of(f" {detect}")).demand().graph.roots
    graph = check_text(text_of(f" {detect}")).demand().graph
    layout = lay_out(graph.tasks[subscription].node.case)
    assert Completion(layout.root).after_ms() == after_ms


@pytest.mark.parametrize(
    "detect",
    [
        "[collect] A and absent C for 2 s within 20 s",
        "[one] A and absent C for 2 s within 20 s",
        "[collect] A then[..9 s] absent C for 2 s",
        "[one] absent C for 2 s then A within 30 s",
        "[one] A then last B within 9 s",
        "[collect] A then last B within 9 s",
    ],
)
def test_no_more_is_kept_of_groups_than_can_still_matter(detect):
    pipeline = Pipeline(check_text(text_of(detect)).demand(), IntakeOptions(lateness_ms=0))
    (seat,) = pipeline.matcher._seats.values()
    for number in range(4_000):
        event = {"type": "ACBC"[number % 4], "id": f"e{number}", "timestamp": number * 1_500}
        pipeline.admit(pipeline.intake.from_mappings([event]).events)
        (partition,) = seat.agent._partitions.values() or (None,)
        assert pipeline.matcher.held() < 150
        assert partition is None or len(partition.waiting.answered) < 150


def test_what_is_said_of_a_group_beforehand():
    def most(detect: str) -> int | None:
        graph = check_text(text_of(detect)).demand().graph
        ((_, _, bound),) = bounds_of(graph, Inputs({"A": Fraction(1), "C": Fraction(1)}))
        return bound.most()

    assert most("[collect] A and absent C for 2 s") is None
    assert most("[collect] A then[..3 s] absent C for 2 s") is not None


@pytest.mark.parametrize(("option", "longest_ms"), [("", 4_000), ("[collect]", 8_000)])
def test_what_is_collected_may_last_twice_as_long_as_each_of_it(option, longest_ms):
    """As [1, 5] and [5, 9] may be about an event at 5 s."""
    text = (
        f"{DECLARED}define D(n) detect{option} A and absent C for 2 s within 4 s assign n = 1\n"
        "subscription S from me to you detect D"
    )
    tasks = check_text(text).demand().graph.tasks.values()
    (made,) = [task for task in tasks if task.kind == "definition"]
    assert longest_made_ms(made, lambda *_: 0, None) == longest_ms


def test_its_user_finds_it_however_long_it_lasted():
    text = (
        f"{DECLARED}define D(n) detect[collect] A and absent C for 2 s within 4 s\n"
        "assign n = Count(A)\n"
        "subscription S from me to you detect D without B\n"
    )
    # Silent are [1, 3] and [6, 8] about a5, with b2 between, and [36, 38] before a40.
    events = trace("c1 b2 c4 a5 c6 x30 c36 a40 x60")
    whole = replayed(text, events)
    known, rest = streamed(text, events, 0)
    assert known + rest == whole
    assert [(one["start"], one["end"]) for one in whole] == [(36_000, 40_000)]

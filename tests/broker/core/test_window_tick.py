"""Definitions `every T` without `aggr`: what they detect comes at ticks, and is the same."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.engine.event.agent import WATERMARK_END
from broker.engine.event.event import Event, event_class
from broker.engine.limits import make_limits
from broker.engine.runtime.budget import in_one_go
from broker.engine.runtime.matcher import Matcher
from language import check_text
from language.taskgraph import Task

TYPES = "event A(n: int, g: text)\nevent B(n: int, g: text)\n"
KINDS = {"n": "int", "g": "text"}
CLASSES = {name: event_class(name, KINDS) for name in "AB"}
PATTERNS = {
    "an atom": "detect A assign n = A.n",
    "at once": "detect A and B within 15 ms assign n = A.n + B.n",
    "in order": "detect[recent] A then B within 15 ms assign n = A.n + B.n",
    "known late": "detect last A and B within 12 ms assign n = A.n",
    "in groups": "detect A then B assign n = B.n group by g",
    "at an earlier time": "detect A then B within 15 ms assign n = B.n, timestamp = A.timestamp",
    "until later": "detect A assign n = A.n, end = timestamp + 25 ms",
}
TICK_MS = 10
FEW = settings(max_examples=(settings.default or settings()).max_examples // 4)


def text_of(body: str, every: str) -> str:
    times = ", ".join(name for name in ("timestamp", "end") if f"{name} = " in body)
    header = f"n, {times}" if times else "n"
    return (
        f"{TYPES}define D({header}) {every}\n{body}\n"
        "subscription S seq 1 from tester to out\ndetect D as d assign n = d.n\n"
    )


@cache
def tasks_of(text: str) -> list[Task]:
    checked = check_text(text)
    assert checked.specification is not None, [d.message for d in checked.diagnostics]
    return list(checked.specification.graph.tasks.values())


def matcher_of(text: str, **limits: int) -> Matcher:
    matcher = Matcher(make_limits(**limits))
    for task in tasks_of(text):
        matcher.install(task)
    return matcher


def at(name: str, end: int, n: int = 0, g: str | None = None) -> Event:
    return CLASSES[name](id=f"{name}{end}-{n}", start=end, end=end, a_n=n, a_g=g)


def pushed(
    text: str, history: list[tuple[list[Event], int]], snapshots: frozenset[int] = frozenset()
) -> list[list[Any]]:
    """What each push brings: (start, end, n) of each result."""
    matcher = matcher_of(text)
    brought = []
    for number, (events, watermark) in enumerate(history):
        if number in snapshots:
            state = msgspec.msgpack.decode(msgspec.msgpack.encode(matcher.state()))
            matcher = matcher_of(text)
            matcher.restore(state)
        results = in_one_go(matcher.push(events, lambda _, watermark=watermark: watermark))
        frontier = min(matcher.frontiers(lambda _, watermark=watermark: watermark).values())
        brought.append(([(r.start, r.end, r.to_dict()["values"]["n"]) for r in results], frontier))
    for number, (_, frontier) in enumerate(brought[:-1]):
        later = [end for results, _ in brought[number + 1 :] for _, end, _ in results]
        assert all(end > frontier for end in later), "it promised that nothing would end so early"
    return [results for results, _ in brought]


@st.composite
def histories(draw: Any) -> list[tuple[list[Event], int]]:
    """Events in pushes, none before the watermark of the push before it."""
    history = []
    watermark = 0
    for _ in range(draw(st.integers(1, 8))):
        ends = st.integers(watermark + 1, watermark + 20)
        drawn = draw(
            st.lists(
                st.tuples(st.sampled_from("AB"), ends, st.integers(0, 9), st.sampled_from("uv")),
                max_size=3,
                unique_by=lambda one: one[:3],
            )
        )
        watermark += draw(st.sampled_from([0, 1, 4, 9, 10, 33]))
        history.append(([at(*one) for one in drawn], watermark))
    return [*history, ([], WATERMARK_END)]


@pytest.mark.parametrize("pattern", PATTERNS)
@FEW
@given(history=histories(), data=st.data())
def test_ticks_change_when_and_nothing_else(pattern: str, history: Any, data: st.DataObject):
    """Each result comes with the first push that passes the tick after it was complete."""
    plain = pushed(text_of(PATTERNS[pattern], ""), history)
    snapshots = data.draw(st.frozensets(st.integers(0, len(history)), max_size=2))
    ticked = pushed(text_of(PATTERNS[pattern], f"every {TICK_MS} ms"), history, snapshots)
    flat = [one for results in plain for one in results]
    assert sorted(one for results in ticked for one in results) == sorted(flat)
    if "timestamp" in PATTERNS[pattern]:
        return  # the occurrence's own end does not show in its event
    wanted: list[list[Any]] = [[] for _ in history]
    for number, results in enumerate(plain):
        before = history[number - 1][1] if number else -(2**62)
        for start, end, n in results:
            known = max(end if "end = " not in PATTERNS[pattern] else start, before + 1)
            tick = (known // TICK_MS + 1) * TICK_MS
            first = next(at for at, (_, w) in enumerate(history) if w >= tick - 1 and at >= number)
            wanted[first].append((start, end, n))
    assert [sorted(results) for results in ticked] == [sorted(results) for results in wanted]


def test_ticks_may_be_midnights():
    text = text_of(PATTERNS["an atom"], 'every 1 day in "Europe/Zurich"')
    midnight = 1_711_922_400_000  # of 1 April 2024, at the end of a day of 23 hours
    event = at("A", midnight - 23 * 3_600_000)
    brought = pushed(text, [([event], midnight - 2), ([], midnight - 1), ([], WATERMARK_END)])
    assert [len(results) for results in brought] == [0, 1, 0]


def test_what_finds_no_room_leaves_early_and_is_counted():
    matcher = matcher_of(text_of(PATTERNS["an atom"], "every 10 ms"), events_held_max=2)
    made = in_one_go(matcher.push([at("A", end) for end in (1, 2, 3)], lambda _: 0))
    assert [result.end for result in made] == [3]
    assert matcher.dropped()["tick_full"] == 1
    assert matcher.held() == 2
    assert [result.end for result in in_one_go(matcher.push([], lambda _: 9))] == [1, 2]
    assert matcher.held() == 0


def test_a_silent_definition_says_when_it_is_due():
    matcher = matcher_of(text_of(PATTERNS["an atom"], "every 10 ms"))
    assert in_one_go(matcher.push([at("A", 11)], lambda _: 11)) == []
    assert matcher.due(lambda _: 11) == {"A": 19}
    assert len(in_one_go(matcher.push([], lambda _: 19))) == 1
    assert matcher.due(lambda _: 19) == {}

"""The lists of ids that order window events: against plain sorted lists."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.engine.event.event import event_class
from broker.engine.runtime.budget import Budget
from broker.engine.window.code import Shape
from broker.engine.window.constituents import (
    IDS_CROWDED,
    IDS_MAX,
    Constituents,
    Lineage,
    Members,
    put_in_order,
)
from broker.engine.window.partials import Partial
from tests.broker.core.window_support import Defined, Leaf, agent_of, task_of

A = event_class("A", {"x": "float"})
W = event_class("W@1", {}, detected=True)
TASK = task_of(
    "event A(x: float)\ndefine W(n) aggr every 1 s\n  detect A\n  assign n = Count(A)\n"
    "subscription S from t to o\n  detect W\n"
)
COUNTED = Shape(TASK, TASK.node.cases[0])  # type: ignore[union-attr]


def a(end: int, name: str) -> Any:
    return A(id=name, start=end, end=end)


def w(end: int, name: str) -> Any:
    return W(id=name, start=0, end=end, constituents=(name,), tie=("W", 0, 1))


def listed(events: list[Any]) -> tuple[str, ...]:
    """The first ids, from a plain sort."""
    ordered = sorted(events, key=lambda e: (e.end, e.start, e.ids))
    return tuple(one for e in ordered for one in e.ids)[:IDS_MAX]


names = st.integers(0, 10**6).map(lambda n: f"n{n:x}")
points = st.lists(st.builds(a, st.integers(0, 90), names), min_size=1, max_size=400)


@given(points, st.integers(1, 90), st.data())
def test_a_pane_keeps_the_first_ids_whatever_the_order_of_its_events(
    events: list[Any], size: int, data: st.DataObject
):
    shuffled = data.draw(st.permutations(events))
    heads = Partial(COUNTED)
    for at in range(0, len(shuffled), size):
        run = shuffled[at : at + size]
        heads.keep_first(run, min(event.end for event in run))
    assert heads.constituents().first() == listed(events)[0]
    assert tuple(heads.constituents()) == listed(events)
    assert len(heads.events) <= 2 * IDS_MAX
    plain = msgspec.msgpack.decode(msgspec.msgpack.encode(heads.plain()))
    restored = Partial.of_plain(COUNTED, plain)
    assert tuple(restored.constituents()) == listed(events)


@given(points, st.integers(1, 20))
def test_panes_are_merged_to_the_first_ids_of_all(events: list[Any], width: int):
    panes: dict[int, list[Any]] = {}
    for event in events:
        panes.setdefault(event.end // width, []).append(event)
    kept = []
    for own in panes.values():
        heads = Partial(COUNTED)
        heads.keep_first(own, min(event.end for event in own))
        kept.append(heads)
    before = [list(heads.events) for heads in kept]
    merged = kept[0].merged(kept[1:])
    assert tuple(merged.constituents()) == listed(events)
    assert [heads.events for heads in kept] == before


@given(st.lists(st.integers(0, 5), min_size=1, max_size=300))
def test_members_tell_the_first_that_were_inside_then(removed: list[int]):
    """Each event takes away some of the oldest; what was told before stays as it was."""
    members = Members()
    inside: list[Any] = []
    told = []
    for at, count in enumerate(removed):
        members.push(event := a(at // 2, f"n{at % 7}"))
        inside.append(event)
        inside.sort(key=lambda one: one.order)
        for _ in range(min(count, len(inside) - 1)):
            members.drop()
            del inside[0]
        told.append((Constituents(members.first_events()), listed(inside)))
    for constituents, wanted in told:
        assert tuple(constituents) == wanted


def test_members_tell_of_a_few_alone():
    """However long the window, an event costs a few places at most."""
    members = Members()
    for at in range(10_000):
        members.push(a(at, f"n{at}"))
    assert len(Constituents(members.first_events()).events()) == IDS_MAX


@given(st.lists(st.lists(names, max_size=3).map(tuple), min_size=2, max_size=6))
def test_lists_compare_as_tuples_with_each_other_and_with_tuples(given_ids: list[Any]):
    lazy = [Constituents([a(at, one) for at, one in enumerate(ids)]) for ids in given_ids]
    for (ids, one), (other_ids, other) in pairwise(zip(given_ids, lazy, strict=True)):
        for left, right in ((one, other), (ids, other), (one, other_ids)):
            assert (left < right) == (ids < other_ids)
            assert (left > right) == (ids > other_ids)
            assert (left <= right) == (ids <= other_ids)
            assert (left >= right) == (ids >= other_ids)
            assert (left == right) == (ids == other_ids)
            assert (left != right) == (ids != other_ids)


def test_a_detected_constituent_counts_by_its_own_list():
    made = W(id="w", start=1, end=5, constituents=("p", "q"), tie=("W", 0, 3))
    constituents = Constituents([a(6, "b"), made, a(5, "c")])
    assert constituents.first() == "p"
    assert tuple(constituents) == ("p", "q", "c", "b")
    spans = ((5, 1), (5, 5), (6, 6))
    ids, ties = ("p", "q", "c", "b"), (("W", 0, 3),)
    assert tuple(Lineage(constituents)) == (0, 0, ids, ties, spans, ())


def test_windows_that_begin_and_end_alike_go_by_what_lies_between():
    """Also where snapshots and merging come between."""
    group = Defined("every 9 ms", 9, None, (Leaf("A", "A"),), ("g",), ("nx",))
    for window in ("every 9 ms", "range 8 ms", "every 9 ms range 27 ms"):
        spanning = group.text.replace("nx)", "nx, start, end)").replace(
            "nx = Count(A.x)", "nx = Count(A.x), start = start, end = end"
        )
        agent = agent_of(spanning.replace("every 9 ms", window))
        kinds = {"x": "float", "i": "int", "s": "text", "g": "text"}
        made_class = event_class("A", kinds)
        rows = [("u", 0, "a"), ("v", 0, "a"), ("u", 4, "c"), ("v", 4, "b"), ("u", 8, "d")]
        rows.append(("v", 8, "d"))
        events = [made_class(id=i, start=t, end=t, a_g=g) for g, t, i in rows]
        made = agent.feed([(0, events)], 26)
        whole = [event for event in made if (event.start, event.end) == (0, 8)]
        seconds = [tuple(event.ids)[1] for event in whole]
        assert seconds == sorted(seconds)
        assert len(set(seconds)) == 2


def test_of_events_that_tie_with_the_last_kept_the_least_ids_stay():
    heads = Partial(COUNTED)
    ids = [f"n{at:03}" for at in range(3 * IDS_MAX)]
    for name in reversed(ids):
        heads.keep_first([a(7, name)], 7)
    assert tuple(heads.constituents()) == tuple(ids[:IDS_MAX])


@pytest.mark.parametrize("window", ["every 100 s", "session 100 s", "every 50 s range 100 s"])
def test_lists_are_short_where_very_many_groups_are_open(window: str):
    """What is kept for order stays within the limit of events; what is told stays the same."""
    text = Defined(window, None, None, (Leaf("A", "A"),), ("g",), ("nx",)).text
    agent = agent_of(text, events_max=2 * IDS_MAX * 3 - 1)
    kinds = {"x": "float", "i": "int", "s": "text", "g": "text"}
    made_class = event_class("A", kinds)
    events = [
        made_class(id=f"n{t:04}", start=t, end=t, a_x=1.0, a_g="uvw"[t % 3]) for t in range(300)
    ]
    made = []
    for at in range(0, 300, 10):
        made += agent.feed([(0, events[at : at + 10])], at + 9)
    assert agent.held() <= 6
    made += agent.feed([], 2**62)
    assert agent.dropped()["window_ids_cut"] > 0
    assert {event.a_nx for event in made} == {100}
    for event in made:
        wanted = [one.id for one in events if one.a_g == event_group(event, events)]
        assert list(event.ids) == wanted[:IDS_CROWDED]


def event_group(made: Any, events: list[Any]) -> Any:
    first = next(iter(made.ids))
    return next(one.a_g for one in events if one.id == first)


def test_of_events_that_end_first_the_least_id_is_the_first():
    assert Constituents([a(1, "c"), a(2, "0"), a(1, "b"), a(1, "d")]).first() == "b"


def test_where_the_first_event_is_of_no_ids_a_later_one_gives_the_first():
    silent = W(id="s", start=1, end=1, tie=("W", 0, 1))
    assert Constituents([a(2, "b"), silent]).first() == "b"
    assert Constituents([silent]).first() is None


def test_windows_go_by_all_ids_where_they_begin_alike_and_by_their_order_where_all_are():
    """Events of the same first constituent, and two of the same constituents altogether."""
    made = [
        W(id=str(number), start=1, end=9, constituents=ids, tie=("W", number, 1))
        for number, ids in enumerate((("p", "r"), ("p", "q"), (), ("p",), ("p", "q"), ("a", "z")))
    ]
    for turn in range(len(made)):
        events = made[turn:] + made[:turn]
        put_in_order(events)
        assert [event.id for event in events] == ["2", "5", "3", "1", "4", "0"]


@pytest.mark.parametrize(
    ("events", "candidates"),
    [
        ([a(1, "x"), a(2, "y"), a(3, "z")], 0),
        ([a(1, "x"), a(2, "y"), a(2, "z"), a(3, "u")], 1),
        ([w(9, name) for name in "abc"], 3 * 16),
        ([w(ord(name), name) for name in "abc"], 0),
    ],
)
def test_events_that_end_together_are_put_in_order_at_a_price(events: list[Any], candidates: int):
    budget = Budget(1_000)
    budget.begin([])
    before = budget.candidates
    constituents = Constituents(events)
    constituents.budget = budget
    constituents.in_order()
    assert before - budget.candidates == candidates
    budget.end()
    constituents.in_order()  # outside of steps nothing is charged
    budget.begin([])
    assert budget.candidates == before


@pytest.mark.parametrize(
    ("events", "candidates"),
    [
        ([a(1, "x"), a(2, "y"), a(2, "z"), a(2, "u")], 0),
        ([a(2, "z"), *(a(1, name) for name in "abcdefgh")], 2),
        ([w(9, name) for name in "abc"], 3 * 16),
    ],
)
def test_the_first_id_has_the_price_of_the_events_that_end_first(
    events: list[Any], candidates: int
):
    budget = Budget(1_000)
    budget.begin([])
    constituents = Constituents(events)
    constituents.budget = budget
    for _ in range(2):  # once, however often it is asked for
        constituents.first()
        assert 1_000 - budget.candidates == candidates

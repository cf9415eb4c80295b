"""The examples of tests/oracles/READINGS.md that stand in no worked case, each with its outcome."""

from typing import Any

import pytest

from tests.oracles import spec as s
from tests.oracles.matcher import run
from tests.oracles.worked import a, both, compare, event, ref, then, trace, types

A, B, C = (s.Atom(name) for name in "ABC")
SOME_B = s.Listed(B)


def matched(pattern: s.Pattern, events: list[dict[str, Any]], **more: Any) -> list[str]:
    """The ids that each result of one subscription binds, place by place, or else its span."""
    spec = s.Spec(types("A B C D"), (s.Subscription("S", s.Case(pattern, **more)),))
    return [
        " ".join(one for ids in result["primitives"].values() for one in ids)
        or f"{result['start']}-{result['end']}"
        for result in run(spec, events)
    ]


def of(n: int, token: str) -> dict[str, Any]:
    return event(token, n=n)


def same(left: str, op: str, right: str) -> s.Where:
    return s.Where(compare(ref(left), op, ref(right)))


@pytest.mark.parametrize("token", ["a1-4 b1-6", "a1-6 b2-6", "a1-3 b3-6", "a2 b1-6"])
def test_overlaps_is_strict(token: str) -> None:
    assert matched(s.Pair("overlaps", A, B), trace(token)) == []


def test_a_point_meets_and_starts_what_begins_with_it() -> None:
    for op in ("meets", "starts"):
        assert matched(s.Pair(op, A, B), trace("a1 b1-4")) == ["a1 b1-4"]


def test_absences_lie_in_no_place() -> None:
    """They have no position, no region, and no order of their own toward an anchor."""
    spread = s.Suffixed(both(A, s.Absent(B, 9000)), (s.Spread(1),))
    events = [event("a1", position={"x": 0, "y": 0})]
    assert matched(spread, events) == ["a1"]
    anchored = s.Suffixed(both(A, s.Absent(B, 9000)), (s.Within(1000, "A"),))
    assert matched(anchored, trace("a1")) == ["a1"]
    within = s.Suffixed(both(A, s.Absent(B, 9000)), (s.Within(1000),))
    assert matched(within, trace("a1")) == []


def test_the_beginning_is_the_first_of_all_events() -> None:
    assert matched(s.Absent(A, 2000), trace("b0 a3")) == ["0-2000", "3000-5000"]
    assert matched(s.Absent(A, 2000), []) == []


def test_the_conjunct_on_a_list_does_not_choose() -> None:
    chain = then(then(A, SOME_B), C)
    listed = s.Suffixed(chain, (same("B.n", ">", "A.n"),))
    events = [of(0, "a1"), of(9, "a2"), of(5, "b3"), event("c4")]
    assert matched(listed, events, context="recent") == []
    assert matched(listed, events) == ["a1 b3 c4"]


def test_members_are_neither_spent_nor_spared() -> None:
    chain = then(then(A, SOME_B), C)
    events = trace("a1 a2 b3 c4 c5")
    assert matched(chain, events, context="chronicle") == ["a1 b3 c4", "a2 b3 c5"]


def test_a_member_without_a_position_spoils_the_occurrence() -> None:
    chain = s.Suffixed(then(then(A, SOME_B), C), (s.Spread(100),))
    placed = [event(one, position={"x": 0, "y": 0}) for one in ("a1", "b2", "c3", "c5")]
    assert matched(chain, [*placed, event("b4")]) == ["a1 b2 c3"]


def test_within_counts_from_a_list_at_the_beginning() -> None:
    chain = then(then(s.Listed(A), B), s.Listed(C))
    events = trace("a1 a3 b4 c5 c6 c7")
    assert matched(s.Suffixed(chain, (s.Within(4000),)), events) == ["a1 a3 b4 c5"]


def test_a_run_begins_with_the_next_start_whatever_came_meanwhile() -> None:
    """From a1 there is no C in time; a2 came before that was known, and takes b3 all the same."""
    chain = s.Suffixed(then(then(A, B), C), (s.Within(5000),))
    assert matched(chain, trace("a1 a2 b3 c7"), context="first") == ["a2 b3 c7"]


def test_first_on_a_relation_begins_with_either() -> None:
    """b3 is inside both; the earlier of the two that come after it takes it."""
    pattern = s.Pair("contains", A, B, context="first")
    assert matched(pattern, trace("b3 a1-5 a2-6 b7")) == ["a1-5 b3"]


@pytest.mark.parametrize("context", ["first", "chronicle"])
def test_the_earlier_event_fills_the_earlier_place(context: s.Context) -> None:
    x, y = a("A", alias="x"), a("A", alias="y")
    case = s.Case(both(x, y, context=context))
    (result,) = run(s.Spec(types("A"), (s.Subscription("S", case),)), trace("a1 a2"))
    assert result["primitives"] == {"x": ["a1"], "y": ["a2"]}


def test_a_consumed_list_consumes_its_members() -> None:
    chain = then(then(A, SOME_B), C)
    events = trace("a1 b2 c3 b4 c5")
    assert matched(chain, events, consuming=("B",)) == ["a1 b2 c3", "a1 b4 c5"]


def test_events_that_two_share_do_not_follow_each_other() -> None:
    x, y = a("A", alias="x"), a("A", alias="y")
    twice = s.Times(then(x, y, bound=s.Bound(None, 1000)), 2)
    assert matched(twice, trace("a1 a2 a3")) == []
    assert matched(twice, trace("a1 a2 a4 a5")) == ["a1 a4 a2 a5"]


def test_a_bound_between_lists_and_next_beside_one_are_refused() -> None:
    lists = then(then(then(A, SOME_B), s.Listed(C), bound=s.Bound(None, 1000)), a("A", alias="x"))
    for pattern in (lists, then(then(A, SOME_B, next=True), C), then(s.Listed(A), SOME_B)):
        with pytest.raises(ValueError, match=r"list"):
            matched(pattern, trace("a1 b2 c3 a4"))


def test_an_event_that_fits_both_steps_advances_from_an_or_as_well() -> None:
    pattern = then(s.Or(B, a("C", alias="y")), a("C", alias="z"), context="latest")
    assert matched(pattern, trace("c1 c3 b4 b5 c7")) == ["c1 c3", "b5 c7"]

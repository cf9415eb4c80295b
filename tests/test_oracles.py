"""The reference matcher is held to cases that were worked out by hand, never to its own output.

Its readings (READINGS.md beside the matcher) have a test each where they show;
what must hold whatever the reading is stated as a property in `test_oracle_generation`.
"""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from tests.oracles import spec as s
from tests.oracles.expressions import rounded_root
from tests.oracles.matcher import run
from tests.oracles.places import Position, distance_m, inside
from tests.oracles.render import text_of
from tests.oracles.worked import a, both, compare, event, ref, then, trace, types
from tests.oracles.worked_cases import WORKED_CASES_WHOLE, Expected, WorkedCase

A, B, C, D = (s.Atom(name) for name in "ABCD")


def squeezed(text: str) -> str:
    return "".join(text.split())


def differences(result: dict[str, Any], expected: Expected) -> list[str]:
    wanted = {
        "subscription": expected.subscription,
        "primitives": dict(expected.primitives),
        "start": expected.start,
        "end": expected.end,
        "group": expected.group,
        "values": expected.values,
        "certainty": expected.certainty,
    }
    return [
        f"{key}: {result[key]!r}, not {value!r}"
        for key, value in wanted.items()
        if value is not None and result[key] != value
    ]


def matched(pattern: s.Pattern, events: list[dict[str, Any]], **more: Any) -> list[str]:
    """The ids that each result of one subscription binds, place by place."""
    definitions = more.pop("definitions", ())
    case = s.Case(pattern, **more)
    spec = s.Spec(types("A B C D"), (s.Subscription("S", case),), definitions)
    return [
        " ".join(one for ids in result["primitives"].values() for one in ids)
        for result in run(spec, events)
    ]


# --- the worked cases -------------------------------------------------------------------------


@pytest.mark.parametrize("case", WORKED_CASES_WHOLE, ids=lambda case: case.name)
def test_a_worked_case_has_its_outcome(case: WorkedCase) -> None:
    results = run(case.spec, case.events)
    assert [r["primitives"] for r in results] == [dict(e.primitives) for e in case.expected]
    for result, expected in zip(results, case.expected, strict=True):
        assert differences(result, expected) == []


@pytest.mark.parametrize("case", WORKED_CASES_WHOLE, ids=lambda case: case.name)
def test_a_worked_case_is_written_as_its_text(case: WorkedCase) -> None:
    """The hand-written text checks both the hand-built tree and how trees are written."""
    assert squeezed(text_of(case.spec)) == squeezed(case.text)


def test_a_wrong_expectation_shows() -> None:
    case = next(c for c in WORKED_CASES_WHOLE if c.name == "within includes its end")
    (result,) = run(case.spec, case.events)
    assert differences(result, replace(case.expected[0], end=5000)) == ["end: 4000, not 5000"]


# --- single statements, by hand ---------------------------------------------------------------


def test_overlap_is_a_gap_of_nothing() -> None:
    pair = both(A, B, bound=s.Bound(0, 1000))
    assert matched(pair, trace("a1-9 b3 b10 b11")) == ["a1-9 b3", "a1-9 b10"]


def test_one_event_without_a_position_fails_spread() -> None:
    events = [event("a1"), event("a2", position=[1.0, 1.0])]
    assert matched(s.Suffixed(A, (s.Spread(10),)), events) == ["a2"]


def test_a_suffix_acts_inside_brackets_too() -> None:
    """Within 3 s b3-6 is no candidate for c7, the earlier b5 is, though brackets lie between."""
    inner = s.Suffixed(then(B, C, context="recent"), (s.In("Anywhere"),))
    pattern = s.Suffixed(both(A, inner), (s.Within(3000),))
    case = s.Case(pattern)
    regions = (("Anywhere", s.PathRegion("lab")),)
    spec = s.Spec(types("A B C"), (s.Subscription("S", case),), regions=regions)
    events = [event(one, location="lab") for one in ("b3-6", "b5", "c7", "a7")]
    (result,) = run(spec, events)
    assert result["primitives"] == {"A": ["a7"], "B": ["b5"], "C": ["c7"]}


def test_first_and_last_go_by_start_where_ends_tie() -> None:
    assign = (("f", s.Aggregate("First", "A", "n")), ("l", s.Aggregate("Last", "A", "n")))
    definition = s.Definition("X", (s.Case(A, assign=assign),), s.Every(10_000))
    spec = s.Spec(types("A"), (s.Subscription("S", s.Case(s.Atom("X"))),), (definition,))
    (result,) = run(spec, [event("a5", n=3), event("a1-5", n=1), event("a3-5", n=2)])
    assert result["values"] == {"X": {"f": 1, "l": 3}}
    assert result["primitives"] == {"X": ["a1-5", "a3-5", "a5"]}


def test_null_equals_nothing_not_even_null() -> None:
    n, m = s.Ref(None, "n"), s.Ref(None, "m")
    for op in ("=", "!=", "<="):
        assert matched(a("A", compare(n, op, m)), [event("a1")]) == []


def test_naming_the_absent_side_of_or_consumes_nothing() -> None:
    assert matched(s.Or(A, B), trace("a1 b2 b3"), consuming=("A",)) == ["a1", "b2", "b3"]


# --- readings, by hand ------------------------------------------------------------------------


def test_touching_fails_for_two_readings_even_beside_something_longer() -> None:
    events = trace("a5 d2-5 c5 c6")
    assert matched(then(both(A, D), C), events) == ["a5 d2-5 c6"]
    assert matched(then(D, C), events) == ["d2-5 c5", "d2-5 c6"]


def test_last_is_chosen_over_the_whole_pattern_after_every_suffix() -> None:
    events = [event("a1", n=1), event("a2", n=0), event("b3", n=1), event("c4", n=1)]
    plain = both(both(s.Last(A), B), C)
    same_n = s.Where(compare(ref("A.n"), "=", ref("B.n")))
    assert matched(plain, events) == ["a2 b3 c4"]
    assert matched(s.Suffixed(plain, (same_n,)), events) == ["a1 b3 c4"]


def test_last_of_a_composite_is_the_latest_of_its_occurrences() -> None:
    pattern = then(s.Last(then(A, B)), C)
    assert matched(pattern, trace("a1 b2 a3 b4 c5 c6")) == ["a3 b4 c5", "a3 b4 c6"]


def test_within_from_fails_where_its_event_is_absent() -> None:
    pattern = s.Suffixed(both(s.Or(A, B), C), (s.Within(5000, "A"),))
    assert matched(pattern, trace("b1 a2 c3")) == ["a2 c3"]


def test_a_comparison_with_the_absent_side_is_no_candidate() -> None:
    """c5 takes the latest that passes, which is a1, not the later b2 that has no A.n."""
    pattern = s.Suffixed(
        then(s.Or(A, B), C, context="recent"), (s.Where(compare(ref("A.n"), ">", s.Lit(0))),)
    )
    assert matched(pattern, [event("a1", n=1), event("b2"), event("c5")]) == ["a1 c5"]


def test_contexts_compose_from_the_bottom_up() -> None:
    """(a1, b2) is replaced by (a3, b4) for C; D then sees what C reported."""
    chain = then(then(then(A, B), C), D)
    assert matched(chain, trace("a1 b2 a3 b4 c5 d6 b7 d8"), context="recent") == [
        "a3 b4 c5 d6",
        "a3 b4 c5 d8",
    ]
    inner = then(A, B, context="unrestricted")
    assert matched(then(inner, C), trace("a1 a2 b3 c4"), context="recent") == ["a2 b3 c4"]
    outer = then(then(A, B, context="recent"), C)
    assert matched(outer, trace("a1 a2 b3 b4 c5")) == ["a2 b3 c5", "a2 b4 c5"]


def test_and_recent_tells_both_sides_of_a_tie_apart() -> None:
    """a1 and b1 end together; by id a1 is first, so b1 finds it and it does not find b1."""
    assert matched(both(A, B, context="recent"), trace("b1 a1")) == ["a1 b1"]


def test_recent_takes_the_latest_by_end_then_start_then_id() -> None:
    pattern = both(A, B, context="recent")
    assert matched(pattern, trace("a1-4 a2-4 a3 b5")) == ["a2-4 b5"]
    tied = [event("a1"), {**event("a1"), "id": "a0"}, event("b5")]
    assert matched(pattern, tied) == ["a1 b5"]


def test_consumption_matches_anew_what_is_later_in_order() -> None:
    """Without a0-2 the latest before b3 is a1: that pair starts later, so it is a later one. Of
    two readings the earlier makes an earlier pair, which is past.
    """
    pattern = both(A, B, context="recent")
    assert matched(pattern, trace("a0-2 a1 b3"), consuming=("A",)) == ["a0-2 b3", "a1 b3"]
    assert matched(pattern, trace("a1 a2 b3"), consuming=("A",)) == ["a2 b3"]


def test_what_is_consumed_is_no_candidate_inside_either() -> None:
    """With a2 consumed the pair of b3 is (a1, b3), as if a2 had not been."""
    chain = then(then(A, B), C)
    assert matched(chain, trace("a1 a2 b3 c4 c5"), context="recent", consuming=("A",)) == [
        "a2 b3 c4",
        "a1 b3 c5",
    ]


def test_a_consumed_event_is_gone_from_every_place() -> None:
    pair = then(a("A", alias="x"), a("A", alias="y"))
    assert matched(pair, trace("a1 a2 a3"), consuming=("y",)) == ["a1 a2", "a1 a3"]
    assert matched(pair, trace("a1 a2 a3 a4"), consuming=("x", "y")) == ["a1 a2", "a3 a4"]


def _post(timestamp: bool) -> s.Definition:
    pre = (
        ("location", ref("group.location")),
        ("c", s.Aggregate("Count", "A")),
        ("timestamp", s.Aggregate("Max", "B", "timestamp")),
    )
    post: s.Assignments = (("c", s.Aggregate("Sum", None, "c")),)
    if timestamp:
        post += (("timestamp", s.Aggregate("Max", None, "timestamp")),)
    case = s.Case(both(A, s.Outer(B)), None, pre, (), ("location",))
    return s.Definition("X", (case,), s.Every(10_000), s.Post(post))


def test_post_combines_the_partial_results_of_one_window() -> None:
    events = [event("a1", location="hall"), event("a2", location="lab"), event("a13", location="x")]
    spec = s.Spec(types("A B"), (s.Subscription("S", s.Case(s.Atom("X"))),), (_post(False),))
    results = run(spec, events)
    assert [(r["start"], r["end"], r["values"]["X"]) for r in results] == [
        (9_999, 9_999, {"c": 2}),
        (19_999, 19_999, {"c": 1}),
    ]


def test_a_null_partial_result_is_skipped_and_leaves_the_windows_end() -> None:
    events = [event("a1", location="hall"), event("a2", location="hall")]
    spec = s.Spec(types("A B"), (s.Subscription("S", s.Case(s.Atom("X"))),), (_post(True),))
    (none_left,) = run(spec, events)
    (one_left,) = run(spec, [*events, event("b1", location="hall")])
    assert (none_left["start"], none_left["end"]) == (9_999, 9_999)
    assert (one_left["start"], one_left["end"]) == (1000, 1000)


def test_a_partial_result_with_a_null_key_is_in_no_group_of_post() -> None:
    case = s.Case(A, None, (("t", s.Aggregate("First", "A", "tag")),), (), ("source",))
    post = s.Post((("t", ref("group.t")),), ("t",))
    definition = s.Definition("X", (case,), s.Every(10_000), post)
    spec = s.Spec(types("A"), (s.Subscription("S", s.Case(s.Atom("X"))),), (definition,))
    events = [event("a1", tag="p"), {**event("a2"), "source": "s2"}]
    assert [r["values"] for r in run(spec, events)] == [{"X": {"t": "p"}}]


def test_results_stand_in_order_and_then_by_place_in_the_file() -> None:
    spec = s.Spec(
        types("A B"),
        (s.Subscription("Z", s.Case(A)), s.Subscription("Y", s.Case(s.Or(A, B)), seq=4)),
    )
    results = run(spec, trace("b1 a1 a0-1"))
    assert [(r["subscription"], r["seq"], *r["order"]) for r in results] == [
        ("Z", 1, 1000, 0, ("a0-1",)),
        ("Y", 4, 1000, 0, ("a0-1",)),
        ("Z", 1, 1000, 1000, ("a1",)),
        ("Y", 4, 1000, 1000, ("a1",)),
        ("Y", 4, 1000, 1000, ("b1",)),
    ]


def test_ids_compare_by_code_point() -> None:
    ids = ["é", "a", "Z9", "10", "9"]
    events = [{**event("a1"), "id": one} for one in ids]
    assert matched(A, events) == ["10", "9", "Z9", "a", "é"]


def test_the_same_id_at_another_end_is_another_event() -> None:
    assert matched(A, [event("a1"), {**event("a2"), "id": "a1"}, event("a1")]) == ["a1", "a1"]


def test_undeclared_types_and_attributes_are_passed_over() -> None:
    spec = s.Spec(types("A"), (s.Subscription("S", s.Case(A)),))
    (result,) = run(spec, [event("b1"), event("a1", n=1, colour="red")])
    assert result["values"] == {"A": {"n": 1}}


def test_a_result_assigns_nulls_too() -> None:
    ratio = s.Arith("/", ref("A.n"), ref("A.m"))
    case = s.Case(A, assign=(("q", ratio), ("t", s.Ref(None, "timestamp"))))
    spec = s.Spec(types("A"), (s.Subscription("S", case),))
    (result,) = run(spec, [event("a1", n=1, m=0)])
    assert result["values"] == {"q": None, "t": 1000}


def test_the_actor_of_a_group_is_named_after_its_key() -> None:
    subscription = s.Subscription(
        "S", s.Case(A, group_by=("location",)), actor="AirFlow", actor_of="location"
    )
    spec = s.Spec(types("A"), (subscription,))
    results = run(spec, [event("a1", location="lab"), event("a2", location="hall/1"), event("a3")])
    assert [r["actor"] for r in results] == ["AirFlow/lab", "AirFlow/hall/1"]
    assert text_of(spec).splitlines()[1].endswith("from tester to AirFlow of group.location")


# --- numbers and places -----------------------------------------------------------------------


@pytest.mark.parametrize("exact", [Fraction(0), Fraction(4), Fraction(2), Fraction(1, 3)])
def test_the_root_is_the_nearest_float(exact: Fraction) -> None:
    root = rounded_root(exact)
    below, above = math.nextafter(root, -1.0), math.nextafter(root, math.inf)
    assert (Fraction(root) + Fraction(above)) ** 2 / 4 > exact
    assert root == 0 or (Fraction(root) + Fraction(below)) ** 2 / 4 < exact


def test_distances_against_known_ones() -> None:
    """A quarter of a meridian is a quarter of the circle; a degree of the equator a 360th."""
    pole, null, east = (Position(True, *p) for p in ((90.0, 0.0), (0.0, 0.0), (0.0, 1.0)))
    circle_m = 2 * math.pi * 6_371_008.8
    assert distance_m(pole, null) == pytest.approx(circle_m / 4)
    assert distance_m(east, null) == pytest.approx(circle_m / 360)
    assert distance_m(null, Position(False, 0.0, 0.0)) is None
    assert distance_m(null, None) is None


def test_a_polygon_includes_its_edges_and_corners() -> None:
    corner_cut = s.Polygon(((0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (1.0, 1.0), (0.0, 2.0)))
    points = {(0.0, 0.0): True, (1.0, 1.0): True, (1.0, 1.5): False, (1.5, 1.5): True}
    points |= {(0.5, 1.0): True, (2.5, 0.0): False, (1.0, 0.0): True, (-1.0, 0.0): False}
    points |= {(2.0, 1.0): True, (2.0, 2.0): True, (2.0, 0.0): True, (2.0, 2.5): False}
    assert {p: inside(Position(True, *p), corner_cut) for p in points} == points

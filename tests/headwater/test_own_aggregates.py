"""Aggregates of one's own: which values they see, in what order, and where they may stand."""

from __future__ import annotations

import statistics
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headwater

DECLARED = "event A(x: int, tag: text)\nevent B(x: int)\n"


def joined(values: list[int]) -> str:
    """All values as they come."""
    return " ".join(map(str, values))


FUNCTIONS = {
    "Joined": headwater.Aggregate(joined, "text"),
    "Number": headwater.Aggregate(len, "int"),
    "Middle": headwater.Aggregate(statistics.median),
    "Foremost": headwater.Aggregate(lambda values: values[0], "int"),
    "Total": headwater.Aggregate(sum, "int"),
}


def values(text: str, events: list[dict[str, Any]], lateness_ms: int | None = None) -> list[Any]:
    text = f"{DECLARED}{text}\nsubscription S seq 1 from u to a detect W"
    engine = headwater.Engine(text, lateness_ms, functions=FUNCTIONS)
    results = [one for event in events for one in engine.push([event])] + engine.finish()
    return [result["values"]["W"] for result in results]


def reading(number: int, end: int, x: int | None, tag: str = "t") -> dict[str, Any]:
    said = {"type": "A", "id": f"a{number}", "timestamp": end, "tag": tag}
    return said if x is None else {**said, "x": x}


SOME = [reading(1, 1, 5), reading(2, 3, 2), reading(3, 2, 9), reading(4, 4, None)]


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("define W(v) aggr every 10 ms detect A assign v = Joined(A.x)", ["5 9 2"]),
        ("define W(v) aggr every 10 ms detect A assign v = Joined(A.x * 2)", ["10 18 4"]),
        ("define W(v) aggr every 10 ms detect A(x > 9) assign v = Joined(A.x)", []),
        (
            "define W(v) aggr range 2 ms detect A assign v = Joined(A.x)",
            ["5", "5 9", "5 9 2", "9 2"],
        ),
        ("define W(v) aggr session 5 ms detect A assign v = Joined(A.x)", ["5 9 2"]),
        (
            (
                "define W(v) aggr every 10 ms pre detect A assign k = Sum(A.x) group by tag"
                " post where v = Joined(k)"
            ),
            ["16"],
        ),
        ("define W(v)\n  detect A(x > 0)+ as l then B as b\n  assign v = Joined(l.x)", ["5 9 2"]),
    ],
)
def test_an_aggregate_gets_the_values_in_the_order_of_their_events(definition, expected):
    found = values(definition, [*SOME, {"type": "B", "id": "b", "timestamp": 9, "x": 0}])
    assert [one["v"] for one in found][: len(expected)] == expected


WINDOWS = [
    "every 10 ms",
    "every 5 ms range 20 ms",
    "range 10 ms",
    "session 3 ms",
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("operand", ["A", "distinct(x) A"])
@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.none() | st.integers(-5, 5), st.sampled_from("st")),
        max_size=12,
    ),
    st.sampled_from([None, 100]),
)
def test_own_aggregates_see_what_built_in_ones_see(window, operand, made, lateness_ms):
    """The built-in ones are held to a reference of their own."""
    events = [reading(number, *one) for number, one in enumerate(made)]
    found = values(
        f"define W(n, nn, m, mm, f, ff, t, tt, l, all) aggr {window} detect {operand} as e"
        " assign n = Count(e.x), nn = Number(e.x), m = Median(e.x), mm = Middle(e.x),"
        " f = First(e.x), ff = Foremost(e.x), t = Sum(e.x), tt = Total(e.x),"
        " l = Last(e.x), all = Joined(e.x) group by tag",
        events,
        lateness_ms,
    )
    for one in found:
        assert one.get("nn", 0) == one["n"]
        assert one.get("mm") == one.get("m")
        assert one.get("ff") == one.get("f")
        assert one.get("tt", 0) == one["t"]
        assert one.get("all", "").split()[-1:] == [str(one[key]) for key in ("l",) if key in one]
        assert len(one.get("all", "").split()) == one["n"]


def test_of_nothing_it_is_null_and_is_not_asked():
    found = values(
        "define W(v) aggr every 10 ms detect A assign v = Foremost(A.x)", [reading(1, 1, None)]
    )
    assert found == [{}]


def test_one_that_fails_gives_null_and_says_so():
    worst = headwater.Aggregate(lambda values: values[99], "int")
    engine = headwater.Engine(
        f"{DECLARED}define W(v) aggr every 10 ms detect A assign v = Worst(A.x)"
        "\nsubscription S seq 1 from u to a detect W",
        functions={"Worst": worst},
    )
    engine.push([reading(1, 1, 5)])
    assert engine.finish()[0]["values"] == {"W": {}}
    assert (worst.failures, worst.last_failure) == (1, "IndexError: list index out of range")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("subscription S from u to a detect A where Joined(A.x) = '1'", "HW402"),
        ("define W(v) aggr every 1 s detect A assign v = Joined(A.x, A.x)", "HW307"),
        ("define W(v) aggr every 1 s detect A assign v = Joined(Sum(A.x))", "HW402"),
        ("define W(v) aggr every 1 s detect A as e assign v = Joined(e)", "HW310"),
        ("define W(v) aggr every 1 s detect A and B assign v = Joined(A.x + B.x)", "HW430"),
    ],
)
def test_it_may_stand_where_other_aggregates_do(text, code):
    with pytest.raises(headwater.LanguageError) as caught:
        headwater.Engine(DECLARED + text.replace("'", '"'), functions=FUNCTIONS)
    assert code in [one.code for one in caught.value.diagnostics]


def test_what_it_holds_goes_with_the_state():
    """Into another engine's agents, in the middle of a window."""
    text = (
        f"{DECLARED}define W(v, w) aggr every 10 ms detect A assign v = Joined(A.x),"
        " w = Joined(A.x + 1)\nsubscription S seq 1 from u to a detect W"
    )
    one, two = (headwater.Engine(text, 100, functions=FUNCTIONS) for _ in range(2))
    one.push(SOME[:2])
    two.push(SOME[:2])
    two._pipeline.matcher.restore(one._pipeline.matcher.state())
    assert one.push(SOME[2:]) + one.finish() == two.push(SOME[2:]) + two.finish()

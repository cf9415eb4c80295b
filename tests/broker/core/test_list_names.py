"""The names of lists: what they stand for, and what is shown of them."""

import pytest

import headwater

DECLARED = "event A(n: int)\nevent B(n: int)\nevent C(n: int)\nsubscription S from me to x\n"
TRACE = [("A", 1), ("B", 2), ("A", 4), ("B", 5), ("A", 7), ("C", 9)]


def results(detect, trace=TRACE):
    """What is reported of events whose ids are a1, b2, and so on."""
    engine = headwater.Engine(DECLARED + detect, lateness_ms=None)
    engine.push(
        {"type": kind, "id": f"{kind.lower()}{at}", "timestamp": at * 1_000, "n": at}
        for kind, at in trace
    )
    return engine.finish()


@pytest.mark.parametrize(
    "detect",
    [
        "detect (A as a)+ as l then C",
        "detect (A where A.n > 0)+ as l then C",
        "detect (A without[500 ms] B)+ as l then C",
        "detect (A within 1 s){3} as l",
        "detect (nth 2 A)+[..9 s] as l",
    ],
)
def test_both_names_of_a_list_of_single_events_stand_for_it(detect):
    inner = "a" if " as a)" in detect else "A"
    names = f"n = Count({inner}), m = Count(l), top = Max({inner}.n), at = Max(l.end)"
    (found,) = results(f"{detect} assign {names}")
    values = found["values"]
    assert values["n"] == values["m"] >= 1
    assert values["top"] * 1_000 == values["at"]


@pytest.mark.parametrize(
    ("detect", "bound"),
    [
        ("detect (A without[500 ms] B){3} as r", ["A"]),
        ("detect (A without[500 ms] B)+[..9 s] as r", ["A"]),
        ("detect (A as a without[500 ms] B){3}", ["a"]),
        ("detect A as a then (B without[1 s] A as z)+ then C", ["B", "C", "a"]),
        ("detect[collect] A without[500 ms] B", ["A"]),
        ("detect ((B then[..3 s] A) without C)+[..9 s] as r", ["A", "B"]),
        ("detect A then (absent B for 2 s)+ then C", ["A", "C"]),
        ("detect (absent B for 2 s){2}", []),
    ],
)
def test_a_name_under_without_or_absent_binds_nothing_in_lists_neither(detect, bound):
    found = results(detect)
    assert found
    for one in found:
        assert sorted(one["events"]) == sorted(one["values"]) == bound


def test_a_list_of_pairs_is_counted_by_its_members():
    (found,) = results("detect (A then[..1 s] B)+ as pairs then C assign n = Count(pairs)")
    assert found["values"] == {"n": 2}
    assert found["events"] == {"A": ["a1", "a4"], "B": ["b2", "b5"], "C": ["c9"]}
    (found,) = results("detect (A then[..1 s] B){2} as pairs where Count(pairs) = 2")
    assert found["events"] == {"A": ["a1", "a4"], "B": ["b2", "b5"]}

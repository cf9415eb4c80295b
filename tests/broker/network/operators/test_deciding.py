"""What travels for one pattern: which places correlated, which alone, within which distances."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from math import inf, nextafter
from pathlib import Path

import pytest

from broker.network.operators.derivation import operators_of, task_operators
from broker.network.operators.times import DAY_MS, WEEK_MS, Times
from broker.network.routing.advertisement.operator import Range
from language import check_text

DECLARED = "".join(f"event {name}(n: int, v: float, tag: text)\n" for name in "ABCDE")
CERTAIN = Times(uncertainty_ms_max=0, duration_ms_max=4_000)


def operators(detect, times=CERTAIN, before="", after=""):
    text = f"{DECLARED}{before}subscription S seq 1 from me to you detect{detect}{after}"
    graph = check_text(text).demand().graph
    return operators_of(graph, graph.roots[0], times)


def said(detect, times=CERTAIN, before="", after=""):
    """`A B C?` for keys A, B and optional C of a correlated operator, `A` alone."""
    return sorted(
        " ".join(key.name + "?" * key.optional for key in one.keys)
        for one in operators(detect, times, before, after)
    )


@pytest.mark.parametrize(
    ("detect", "expected"),
    [
        (" A(n > 1)", ["A"]),
        (" A and B within 5 s", ["A B"]),
        (" A and B", ["A", "B"]),
        (" A then B then C within 5 s", ["A B C"]),
        (" A as x and A as y within 5 s", ["A A#2"]),
        (" A then[..2 s] B", ["A B"]),
        (" A then[2 s..] B", ["A", "B"]),
        (" A then[..2 s] B then C", ["A B", "C"]),
        (" (A and B within 3 s) then (C and D within 3 s)", ["A B", "C D"]),
        (" A and B within 5 s from A", ["A B"]),
        (" (A as x or C as y) then B as z within 5 s from x", ["A", "B", "C"]),
        (" A overlaps B", ["A B"]),
        (" last A and B and C within 5 s", ["A B C"]),
        # contexts
        ("[recent] A then B within 5 s", ["A B"]),
        ("[chronicle] A and B within 5 s", ["A B"]),
        ("[first] A then B within 5 s", ["A B"]),
        ("[latest] A then B within 5 s", ["A", "B"]),
        ("[recent] A then B then C within 5 s", ["A", "B", "C"]),
        ("[first] A then B then C within 5 s", ["A", "B", "C"]),
        (" (A and B within 3 s) then[recent] C within 9 s", ["A B", "C"]),
        (" A and (B then[recent] C) and D within 9 s", ["A D", "B", "C"]),
        ("[recent] (A then B) without C within 5 s", ["A B", "C"]),
        ("[one] A and B within 5 s", ["A B"]),
        ("[collect] A and B within 5 s", ["A B"]),
        # sides of `or`
        (" A or B within 5 s", ["A", "B"]),
        (" (A or B) and C within 5 s", ["A? B? C"]),
        (" (A or B) and (C or D) within 5 s", ["A C", "A D", "B C", "B D"]),
        (" (A and B within 2 s) or C", ["A B", "C"]),
        # what counts or denies
        (" A and B and nth 2 C within 5 s", ["A B", "C"]),
        (" A then nth 2 B within 5 s", ["A", "B"]),
        (" A and B without C within 5 s", ["A B", "C"]),
        (" A and B and C{2} within 5 s", ["A B", "C"]),
        (" A+[1 s..2 s]", ["A"]),
        (" distinct(n) A and B within 5 s", ["A", "B"]),
        (" absent A for 2 s", ["A"]),
        (" A then[next] B(n > 1) within 5 s", ["A", "B"]),
        # lists
        (" A then B+ then C within 5 s", ["A B C"]),
        (" A then B* then C within 5 s", ["A B? C"]),
        (" A then B* then C within 5 s spread 10 m", ["A C", "B"]),
        (" A then B+ then C then D+ within 5 s", ["A C", "B", "D"]),
        ("[recent] A then B+ then C within 5 s", ["A", "B", "C"]),
        (" A and (B then C+) within 5 s", ["A B", "C"]),
    ],
)
def test_of_a_pattern_so_much_travels_correlated(detect, expected):
    assert said(detect) == expected


def test_next_wants_every_event_of_the_types_whatever_its_values():
    for one in operators(" A(n > 0) then[next] B(n > 1) within 5 s"):
        assert not one.correlated
        assert one.keys[0].exact
        assert one.keys[0].ranges == ()


def test_a_silence_in_a_partition_begins_with_any_event_of_the_types():
    (alone,) = operators(" absent A(n > 0) for 2 s")
    (whole,) = operators(" absent A(n > 0) for 2 s", after=" group by source")
    assert alone.keys[0].ranges != ()
    assert whole.keys[0].ranges == ()


def test_what_definitions_make_does_not_travel_and_is_no_partner_on_the_way():
    before = "define X(m) detect A and B within 2 s assign m = A.n\n"
    assert said(" X and C within 5 s", before=before) == ["A B", "C"]
    assert said(" X and C and D within 5 s", before=before) == ["A B", "C D"]
    assert said(" X then[recent] C within 5 s", before=before) == ["A B", "C"]


def test_what_a_definition_makes_elsewhere_travels_like_events_of_a_source():
    before = "define X(m) detect A and B within 2 s assign m = A.n\n"
    text = f"{DECLARED}{before}subscription S from me to you detect X(m > 1) and C within 5 s"
    graph = check_text(text).demand().graph
    task = graph.tasks[graph.roots[0]]
    (made,) = task.needs.values()
    (one,) = task_operators(task, CERTAIN, away={made})
    assert one.correlated
    assert [key.type_name for key in one.keys] == ["C", f"X@{made}"]
    assert [key.name for key in one.keys] == ["C", f"X@{made}"]
    assert one.keys[1].ranges == (Range("m", 1.0, None, True),)
    # How long an X lasts nobody knows, so that a bound holds nothing together.
    other = check_text(text.replace("and C within 5 s", "then[..5 s] C")).demand().graph
    task = other.tasks[other.roots[0]]
    assert not any(one.correlated for one in task_operators(task, CERTAIN, away={made}))


def test_each_case_of_a_definition_asks_for_itself():
    before = (
        "define X(m) case 0: detect A and B within 2 s assign m = A.n\n"
        "case 1: detect A(n > 5) assign m = A.n\n"
    )
    assert said(" X(m > 0)", before=before) == ["A", "A B"]


def test_a_window_wants_what_meets_its_conditions():
    before = "define X(m) aggr every 5 s detect A(n > 0) and outer B assign m = Count(A)\n"
    assert said(" X(m > 0)", before=before) == ["A", "B"]


def test_what_travels_anyhow_needs_no_partners():
    before = "define X(m) aggr every 5 s detect A and B assign m = Count(A)\n"
    assert said(" X and A and B within 5 s", before=before) == ["A", "B"]
    assert said(" X and A(n > 1) and B within 5 s", before=before) == ["A", "A B", "B"]


def test_two_tasks_that_ask_for_the_same_have_one_operator():
    (one,) = operators(" A(n > 1) and B as x within 5 s")
    (other,) = operators(" B and A(1 < n) as y within 5 s where B.n = y.n")
    assert one == other


def test_operators_do_not_depend_on_the_hash_seed():
    script = (
        "from tests.broker.network.operators.test_deciding import operators\n"
        'print(operators(\' (A(n > 1, tag in {"p", "q"}) or B) and (C or D) within 5 s\'))'
    )
    said_by = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).resolve().parents[4],
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said_by[0]
    assert said_by[0] == said_by[1]


# --- distances ------------------------------------------------------------------------------------

UNSURE = Times(uncertainty_ms_max=100, drift=Fraction(1, 10), duration_ms_max=4_000)


@pytest.mark.parametrize(
    ("detect", "certain", "unsure"),
    [
        (" A and B within 5 s", 5_001, 5_500 + 200 + 1),
        ("[recent] A and B within 5 s", 5_001, 5_500 + 200 + 1),
        (" A then[..2 s] B", 4_000 + 2_000 + 4_000 + 1, 4_000 + 2_200 + 200 + 4_000 + 1),
        (" A(duration = 0 s) then[..2 s] B(duration <= 1 s)", 3_001, 3_401),
        (" A overlaps B", 8_001, 8_201),
        # Each of the others may seem to begin 2 ε before the anchor ends, and to end 2 ε too late.
        (" A(duration <= 0 s) and B and C within 5 s from A", 5_001, 200 + 5_500 + 200 + 1),
        (" A and B within 5 s from A", 4_000 + 5_001, 4_000 + 5_500 + 200 + 1),
        (" (A and B within 3 s) and C within 9 s", 9_001, 9_900 + 200 + 1),
    ],
)
def test_delta_t_lets_pass_all_that_is_not_certainly_too_far(detect, certain, unsure):
    (one,) = operators(detect)
    (other,) = operators(detect, UNSURE)
    assert one.strict
    assert (one.delta_t_ms, other.delta_t_ms) == (certain, unsure)


def test_delta_l_lies_just_above_spread():
    (one,) = operators(" A and B within 5 s spread 10 m")
    assert one.delta_l == nextafter(10, inf)
    (inner,) = operators(" (A and B spread 10 m) and C within 5 s")
    assert inner.delta_l is None


def test_intervals_of_any_length_or_a_longer_time_do_not_wait_for_partners():
    usual = Times(uncertainty_ms_max=0)
    assert usual.duration_ms_max == WEEK_MS
    assert said(" A then[..2 s] B", usual) == ["A", "B"]
    assert said(" A(duration = 0 s) then[..2 s] B(duration = 0 s)", usual) == ["A B"]
    declared = "".join(f"event {name}() lasts at most 3 h\n" for name in "PQ")
    assert said(" P then[..2 s] Q", usual, before=declared) == ["P Q"]
    assert said(" A and B within 1 day", usual) == ["A B"]
    assert usual.delta_t_ms_max == DAY_MS
    assert said(" A and B within 2 days", usual) == ["A", "B"]

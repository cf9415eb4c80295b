"""Correlated range subscriptions: the three of table I, over readings near in time and space."""

from __future__ import annotations

import random
from typing import Any

import pytest

import headwater

TEXT = """
event A(v: float) event B(v: float) event C(v: float)
subscription s1 seq 1 from me to it detect A(50 < v < 80) and B(10 < v < 30) within 5 s spread 1 km
subscription s2 seq 1 from me to it detect B(20 < v < 40) and C(2 < v < 20) within 5 s spread 1 km
subscription s3 seq 1 from me to it
detect A(55 < v < 75) and B(15 < v < 35) and C(5 < v < 15) within 5 s spread 1 km
"""


@pytest.mark.parametrize(
    ("a", "b", "c", "c_at_s", "c_at_m", "expected"),
    [
        (60, 25, 10, 6, 900, ["s1", "s2", "s3"]),
        (60, 12, 10, 6, 900, ["s1"]),
        (52, 25, 18, 6, 900, ["s1", "s2"]),
        (90, 35, 10, 6, 900, ["s2"]),
        (60, 25, 10, 9, 900, ["s1"]),  # too late
        (60, 25, 10, 6, 1600, ["s1"]),  # too far from both
        (60, 25, 10, 6, 1200, ["s1", "s2"]),  # near B, too far from A
    ],
)
def test_table_1_correlates_ranges(
    a: int, b: int, c: int, c_at_s: int, c_at_m: int, expected: list[str]
) -> None:
    """Table I: values in range, no two readings more than 5 s and 1 km apart."""
    readings = [("A", a, 1, 0), ("B", b, 3, 500), ("C", c, c_at_s, c_at_m)]
    engine = headwater.Engine(TEXT, lateness_ms=None)
    engine.push(
        {"type": k, "id": k, "timestamp": s * 1000, "v": v, "position": {"x": m, "y": 0}}
        for k, v, s, m in readings
    )
    assert sorted(result["subscription"] for result in engine.finish()) == expected


RANGES = {"A": [(50, 80)], "B": [(10, 30), (20, 40)], "C": [(2, 20)]}  # of s1 and s2


@pytest.mark.parametrize("seed", range(20))
def test_figure_3_the_filters_of_s1_and_s2_let_pass_all_that_s3_needs(seed: int) -> None:
    """Figure 3, right: s3 goes no further than the node where s1 and s2 are.

    Each of its ranges is covered by theirs for the same attribute, that of B by both together. So
    from the readings which these let pass, s3 finds all that it finds in the whole.
    """
    readings = drawn(seed)
    passed = [
        one for one in readings if any(low < one["v"] < high for low, high in RANGES[one["type"]])
    ]
    assert len(passed) < len(readings) * 0.8
    assert bound(readings)["s3"]
    assert bound(passed)["s3"] == bound(readings)["s3"]


def test_figure_3_results_of_s1_and_s2_alone_would_not_do() -> None:
    """Why operands may not travel correlated for another: a B of 17 is in s1, its C in no s2."""
    readings = [reading("A", 60, 1000), reading("B", 17, 2000), reading("C", 10, 3000)]
    found = bound(readings)
    assert found["s3"] == [frozenset({"A1000", "B2000", "C3000"})]
    assert found["s1"] == [frozenset({"A1000", "B2000"})]
    assert found["s2"] == []


def reading(kind: str, value: int, at_ms: int, x_m: int = 0) -> dict[str, Any]:
    """One reading; its id tells which."""
    place = {"x": x_m, "y": 0}
    return {
        "type": kind, "id": f"{kind}{at_ms}", "timestamp": at_ms, "v": value, "position": place
    }  # fmt: skip


def drawn(seed: int) -> list[dict[str, Any]]:
    """Readings of three sensors in turn, now and then."""
    draw = random.Random(seed)
    return [
        reading(kind, draw.randint(0, 110 if kind == "A" else 45), 400 * n, draw.randint(0, 1500))
        for n, kind in enumerate(draw.choices("ABC", k=400))
    ]


def bound(readings: list[dict[str, Any]]) -> dict[str, list[frozenset[str]]]:
    """By subscription: the events of each of its results."""
    engine = headwater.Engine(TEXT, lateness_ms=None)
    engine.push(readings)
    found: dict[str, list[frozenset[str]]] = {"s1": [], "s2": [], "s3": []}
    for result in engine.finish():
        ids = frozenset(name for names in result["events"].values() for name in names)
        found[result["subscription"]].append(ids)
    return found

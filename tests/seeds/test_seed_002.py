"""Correlated range subscriptions: the three of table I, over readings near in time and space."""

from __future__ import annotations

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

"""Yoneki and Bacon: the interval semantics of table 1, and both situations of figure 2."""

from __future__ import annotations

from typing import Any

import pytest

import headwater

Span = tuple[int, int]

# Each row in our words: the relations any of which is the row's, as patterns over P and Q.
BEFORE = "P before Q"
MEETS = "P meets Q"
# A name used twice needs an alias on every use.
OVERLAPS = "(P as a overlaps Q as b) or (P as c contains Q as d) or (Q as e finishes P as f)"
FINISHES_INTERVALS = "Q finishes P"
FINISHES_POINT_INTERVAL = "P finishes Q"
DURING = "P contains Q"
STARTS = "P starts Q"
STARTS_INTERVAL_POINT = "Q starts P"
EQUALS = "P equals Q"

# (pattern, P, Q, whether the row's condition on the timestamps holds)
TABLE_1 = [
    (BEFORE, (1, 1), (2, 2), True),
    (BEFORE, (2, 2), (2, 2), False),
    (BEFORE, (1, 3), (4, 6), True),
    (BEFORE, (1, 4), (3, 6), False),
    (BEFORE, (1, 3), (4, 4), True),
    (BEFORE, (1, 1), (2, 5), True),
    (MEETS, (2, 2), (2, 2), False),
    (MEETS, (1, 3), (3, 5), True),
    (MEETS, (1, 3), (4, 5), False),
    (MEETS, (1, 3), (3, 3), True),
    (MEETS, (3, 3), (3, 5), True),
    (OVERLAPS, (1, 4), (3, 6), True),
    (OVERLAPS, (1, 6), (3, 4), True),
    (OVERLAPS, (1, 6), (3, 6), True),
    (OVERLAPS, (1, 3), (3, 6), False),
    (OVERLAPS, (2, 4), (1, 6), False),
    (OVERLAPS, (2, 2), (2, 2), False),
    (FINISHES_INTERVALS, (1, 5), (3, 5), True),
    (FINISHES_INTERVALS, (3, 5), (1, 5), False),
    (FINISHES_INTERVALS, (1, 5), (5, 5), True),
    (FINISHES_POINT_INTERVAL, (5, 5), (1, 5), True),
    (FINISHES_POINT_INTERVAL, (4, 4), (1, 5), False),
    (DURING, (1, 6), (3, 4), True),
    (DURING, (1, 6), (3, 6), False),
    (DURING, (1, 6), (3, 3), True),
    (DURING, (3, 3), (1, 6), False),
    (STARTS, (1, 3), (1, 5), True),
    (STARTS, (1, 5), (1, 3), False),
    (STARTS, (1, 1), (1, 5), True),
    (STARTS_INTERVAL_POINT, (1, 5), (1, 1), True),
    (STARTS_INTERVAL_POINT, (1, 5), (2, 2), False),
    (EQUALS, (2, 2), (2, 2), True),
    (EQUALS, (2, 2), (3, 3), False),
    (EQUALS, (1, 4), (1, 4), True),
    (EQUALS, (1, 4), (1, 5), False),
    (EQUALS, (1, 4), (1, 1), False),
]


def lasting(kind: str, span: Span) -> dict[str, Any]:
    start, end = span
    return {"type": kind, "id": f"{kind}{start}-{end}", "start": start * 1000, "end": end * 1000}


def detected(kinds: str, pattern: str, events: list[dict[str, Any]]) -> int:
    declared = " ".join(f"event {kind}()" for kind in kinds)
    text = f"{declared} subscription S seq 1 from me to alerts detect {pattern}"
    engine = headwater.Engine(text, lateness_ms=None)
    engine.push(events)
    return len(engine.finish())


@pytest.mark.parametrize(("row", "p", "q", "holds"), TABLE_1)
def test_table_1_relates_points_and_intervals(row: str, p: Span, q: Span, holds: bool) -> None:
    """Table 1: every row, with a point and an interval on either side where the row has one."""
    assert detected("PQ", row, [lasting("P", p), lasting("Q", q)]) == int(holds)


@pytest.mark.parametrize("cold", [(4, 5), (2, 3)], ids=["in the gap", "inside the first"])
def test_figure_2a_finds_the_snow_storm_in_both_situations(cold: Span) -> None:
    """Figure 2a: it turns cold in the period of damp air followed by wind to the south."""
    events = [lasting("H", (1, 4 if cold[0] < 4 else 3)), lasting("W", (6, 8)), lasting("T", cold)]
    assert detected("HWT", "T during (H then W)", events) == 1


def test_figure_2a_misses_cold_outside_the_period() -> None:
    """Figure 2a: what lasts beyond the whole period is not during it."""
    events = [lasting("H", (1, 3)), lasting("W", (6, 8)), lasting("T", (7, 9))]
    assert detected("HWT", "T during (H then W)", events) == 0


def test_figure_2b_does_not_take_an_interval_for_its_end() -> None:
    """Figure 2b: B;(A;C) is not detected on A, B, C, since A;C begins before B."""
    events = [lasting("A", (1, 1)), lasting("B", (2, 2)), lasting("C", (3, 3))]
    assert detected("ABC", "B then (A then C)", events) == 0
    later = [lasting("B", (1, 1)), lasting("A", (2, 2)), lasting("C", (3, 3))]
    assert detected("ABC", "B then (A then C)", later) == 1

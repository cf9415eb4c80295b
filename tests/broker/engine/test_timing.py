"""Spans that LANGUAGE gives by hand: how far apart the events of an occurrence can lie."""

from __future__ import annotations

import pytest

from broker.engine.pattern.layout.pattern import lay_out
from broker.engine.pattern.times.timing import KnownTimes, Timing, keep_ms
from broker.network.operators.times import Times
from language import check_text
from language.taskgraph import cases_of

DECLARED = "".join(f"event {name}(n: int)\n" for name in "ABC")
EXACT = Times(uncertainty_ms_max=0, duration_ms_max=2_000)
UNSURE = Times(uncertainty_ms_max=150, duration_ms_max=2_000)


def root_of(detect):
    text = f"{DECLARED}subscription S seq 1 from me to you detect {detect}"
    graph = check_text(text).demand().graph
    (case,) = cases_of(graph.tasks[graph.roots[0]].node)
    return lay_out(case).root


@pytest.mark.parametrize(
    ("detect", "exact_ms", "unsure_ms"),
    [
        ("A then[..5 s] B", 9_000, 9_300),
        ("A overlaps B", 4_000, 4_300),
        ("A and B within 5 s", 5_000, 5_300),
        ("A and B", None, None),
        # A of 2 s, and B up to 5 s after its end; B may seem to begin 300 ms before that.
        ("A and B within 5 s from A", 7_000, 7_300),
        ("A(duration = 0 s) and B within 5 s from A", 5_000, 5_600),
        # Without A nothing says how near B and C are; beside it `or` changes nothing.
        ("(A or C) and B within 5 s from A", None, None),
        ("(A and B within 5 s from A) or C", 7_000, 7_300),
    ],
)
def test_a_span_is_what_limits_and_durations_leave(detect, exact_ms, unsure_ms):
    root = root_of(detect)
    assert Timing(EXACT.known(())).span_ms(root) == exact_ms
    assert Timing(UNSURE.known(())).span_ms(root) == unsure_ms


def test_what_a_condition_asks_of_a_duration_holds_for_types_without_a_bound():
    root = root_of("A(duration <= 3 s) then[..1 s] B(duration <= 500 ms)")
    assert Timing(KnownTimes(lambda _: None)).span_ms(root) == 4_500


def test_only_a_list_that_must_not_be_empty_holds_its_neighbours_together():
    root, known = root_of("A then[..5 s] B+ then[..3 s] C"), EXACT.known(())
    # 5 s, a B, 3 s, and what A and C last themselves.
    assert Timing(known, by_lists=True).span_ms(root) == 14_000
    assert Timing(known).span_ms(root) is None
    maybe = root_of("A then[..5 s] B* then[..3 s] C")
    assert Timing(known, by_lists=True).span_ms(maybe) is None


def test_nothing_is_kept_for_a_side_of_or():
    """It waits for no partner, however long that may last."""
    assert keep_ms(root_of("A or B"), 60_000) == (0, 0)
    assert keep_ms(root_of("A then[..5 s] B"), 60_000)[0] == 65_000

"""The benches of the engine: what they compare is the same, and faults in it would show."""

from itertools import pairwise

import pytest

from bench import __main__ as whole
from bench import engine
from bench.brute import BRUTE, of_loop
from bench.report import Goal
from bench.workload import (
    HEAVY,
    HEAVY_TEXT,
    LATENESS_MS,
    LOOPS,
    SHARES,
    TEXTS,
    delayed,
    workload,
)

ROWS = workload(20_000)


def test_the_readings_are_shared_out_and_each_is_later_than_the_one_before():
    assert sum(SHARES.values()) == 1_000
    kinds = [row[0] for row in ROWS]
    for name, share in SHARES.items():
        assert abs(kinds.count(name) / len(ROWS) - share / 1_000) < 0.02
    times = [row[1] for row in ROWS]
    assert all(a < b for a, b in pairwise(times))


def test_delayed_readings_are_the_same_none_later_than_allowed():
    late = delayed(ROWS)
    assert late != ROWS
    assert sorted(late, key=lambda row: row[1]) == ROWS
    newest = 0
    for row in late:
        newest = max(newest, row[1])
        assert newest - row[1] <= LATENESS_MS


@pytest.mark.parametrize("name", [*TEXTS, HEAVY])
def test_loop_and_engine_give_what_a_search_through_everything_gives(name):
    text = {**TEXTS, HEAVY: HEAVY_TEXT}[name]
    wanted = sorted(BRUTE[name](ROWS))
    assert len(wanted) > 20
    assert sorted(of_loop(name, LOOPS[name](ROWS))) == wanted
    assert engine.engine_s(name, text, ROWS, 0, wanted) > 0
    assert engine.engine_s(name, text, delayed(ROWS), LATENESS_MS, wanted) > 0


def test_a_result_too_few_stops_the_bench():
    wanted = sorted(BRUTE["filter"](ROWS))
    with pytest.raises(SystemExit, match="filter: the engine has"):
        engine.engine_s("filter", TEXTS["filter"], ROWS[:-1_000], 0, wanted)
    with pytest.raises(SystemExit, match="filter: the loop has"):
        engine.loop_s("filter", ROWS[:-1_000], wanted)


def test_a_goal_from_below_is_missed_by_what_is_less():
    goal = Goal("ratio", 0.5, [0.4, 0.5, 0.6], at_least=True)
    assert (goal.met, goal.verdict(), goal.told()) == (False, "missed in 1 of 3", "≥ 0.50")
    assert Goal("ratio", 0.5, [0.5, 0.6], at_least=True).verdict() == "met"


@pytest.mark.parametrize("text", [None, "no marks", f"{whole.BEGIN} and no end"])
def test_a_page_without_a_place_for_figures_is_refused_before_anything_is_measured(
    tmp_path, monkeypatch, text
):
    page = tmp_path / "page.md"
    if text is not None:
        page.write_text(text)
    monkeypatch.setattr(whole, "measure", lambda *_, **__: pytest.fail("was measured"))
    with pytest.raises(SystemExit, match=r"page\.md"):
        whole.main(["--page", str(page)])

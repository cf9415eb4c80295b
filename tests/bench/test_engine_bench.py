"""The benches of the engine: what they compare is the same, and faults in it would show."""

import re
from itertools import pairwise
from typing import get_args

import pytest

from bench import __main__ as whole
from bench import drawn, engine, ranges, state, window_average
from bench.brute import BRUTE, of_loop
from bench.report import Goal
from bench.shapes import AGGREGATES as FUNCTIONS
from bench.shapes import INTERVALS as RELATIONS
from bench.shapes import Drawing
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
from language import check_text
from tests.oracles import spec
from tests.oracles.render import text_of

ROWS = workload(20_000)
CONTEXTS = get_args(spec.Context)[1:]  # the first is that of who names none


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
    for rows, lateness_ms in ((ROWS, 0), (delayed(ROWS), LATENESS_MS)):
        engine.check_engine(name, text, rows, lateness_ms, wanted)
        assert engine.engine_s(text, rows, lateness_ms, len(wanted)) > 0


def test_a_result_too_few_stops_the_bench():
    wanted = sorted(BRUTE["filter"](ROWS))
    with pytest.raises(SystemExit, match="filter: the engine has"):
        engine.check_engine("filter", TEXTS["filter"], ROWS[:-1_000], 0, wanted)
    with pytest.raises(SystemExit, match="the engine has"):
        engine.engine_s(TEXTS["filter"], ROWS[:-1_000], 0, len(wanted))
    with pytest.raises(SystemExit, match="filter: the loop has"):
        engine.loop_s("filter", ROWS[:-1_000], wanted)


SHAPES = {shape.name: shape for shape in Drawing().shapes()}


def test_the_drawn_shapes_cover_the_language_and_are_the_same_each_time():
    """What is slow must not be missing, and a figure must be of the same texts as the last."""
    assert len(SHAPES) >= 60
    texts = " ".join(text_of(shape.spec) for shape in SHAPES.values())
    assert texts == " ".join(text_of(shape.spec) for shape in Drawing().shapes())
    words = {*RELATIONS, *CONTEXTS, *FUNCTIONS, "without", "absent", "or", "where", "within"}
    words |= {"nth", "last", "first", "distinct", "outer", "consuming", "one", "collect", "post"}
    words |= {"every", "range", "session", "max", "next"}
    assert [word for word in sorted(words) if not re.search(rf"\b{word}\b", texts)] == []
    assert set(drawn.LOOPS) <= set(SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_a_drawn_shape_gives_what_the_reference_gives(name):
    drawn.check(SHAPES[name], ROWS[:200])


@pytest.mark.parametrize("name", drawn.LOOPS)
def test_the_loop_of_a_drawn_shape_finds_as_much_as_the_engine(name):
    rows = ROWS[:5_000]
    results, _ = drawn.of_events(text_of(SHAPES[name].spec), rows, 0)
    assert drawn.LOOPS[name](rows, SHAPES[name].spec) == results > 0


def test_a_shape_that_finds_another_thing_stops_the_bench(monkeypatch):
    monkeypatch.setattr(drawn, "matches_of", lambda *_: [])
    with pytest.raises(SystemExit, match="differs from the reference"):
        drawn.check(SHAPES["or"], ROWS[:300])


def test_a_burst_is_one_list_of_all_candidates():
    whole, end, results = state.burst(30)
    assert whole > end > 0
    assert results == state.BURSTS


def test_the_stream_without_results_fills_every_pattern():
    """Each pattern alone comes to hold something, and none gives a result."""
    whole_ = state.Engine(state.text_of_never())
    seats = whole_._pipeline.matcher._seats.values()
    most = dict.fromkeys([seat.task.name for seat in seats], 0)
    for start in range(0, len(ROWS), 500):
        assert whole_.push([state.as_event(row) for row in ROWS[start : start + 500]]) == []
        for seat in seats:
            most[seat.task.name] = max(most[seat.task.name], seat.agent.held())
    stateful = [f"S{number}" for number in range(len(state.NEVER))] + [*state.WINDOWS]
    assert [name for name in stateful if not most[name]] == []


def test_subscriptions_to_ranges_are_measured_and_compared_with_a_search(monkeypatch):
    monkeypatch.setattr(ranges, "WARMING", 1_000)
    found = ranges.measured(1_000, 1_000)
    assert found["us"] > 0
    assert found["install_s"] > 0
    monkeypatch.setattr(ranges, "search", lambda *_: {"S1": 1})
    with pytest.raises(RuntimeError, match="not the results of a search"):
        ranges.measured(10, 1_000)


def test_texts_of_subscriptions_hold_each_once(monkeypatch):
    monkeypatch.setattr(ranges, "TEXT_SUBSCRIPTIONS", 4)
    asked = ranges.subscriptions(10)
    texts = [ranges.text_of(asked, start) for start in (0, 4, 8)]
    names = [name for text in texts for name in check_text(text).demand().subscriptions]
    assert [name for _, name in names] == [f"S{number}" for number in range(10)]


def test_three_agents_say_the_same_means(monkeypatch):
    monkeypatch.setattr(window_average, "MEASURED", 50)
    assert all(us > 0 for us in window_average.figures(20, 1))
    monkeypatch.setitem(window_average.AGENTS, "SQLite", lambda *_: (1.0, [1.0] * 70))
    with pytest.raises(SystemExit, match="SQLite: other means"):
        window_average.figures(20, 1)


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

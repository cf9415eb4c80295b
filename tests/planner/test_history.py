"""The samples of a search: time, cost, the best plan, and moves by kind."""

import signal
import threading
import time
from functools import partial
from xml.etree import ElementTree as ET

import highspy
import pytest

from experiments.generate import Limits, problem
from headwater.placement.search_plot import draw
from planner.document import read_problem
from planner.history import SearchHistory, SearchSample
from planner.layout import lay_out
from planner.methods import Wanted, find
from planner.optimal import solve
from planner.search.search import Search

STEPS = 300


@pytest.fixture(scope="module")
def found():
    return find(lay_out(read_problem(problem("grid", 12, 9, 2, Limits()))), Wanted(steps=STEPS))


def test_the_best_plan_of_the_samples_never_gets_worse_and_ends_as_the_plan(found):
    kept = [(sample.excess, sample.best) for sample in found.history.samples]
    assert kept == sorted(kept, reverse=True)
    assert kept[-1] == (0.0, pytest.approx(float(found.evaluation.flow)))
    assert found.history.samples[-1].steps == found.steps == STEPS


def test_moves_that_are_kept_are_counted_by_kind(found):
    moves = found.history.moves
    assert len(moves) >= 2
    assert all(count > 0 for count in moves.values())
    assert sum(moves.values()) <= STEPS


def test_samples_are_few_however_long_the_search():
    history = SearchHistory()
    for step in range(100_000):
        history.note(SearchSample(step / 1e3, step, 9.0, 5.0, 0.0), {"swap": step})
    assert len(history.samples) < 700
    history.note(SearchSample(100.0, 100_000, 9.0, 5.0, 0.0), {}, last=True)
    assert history.samples[-1].steps == 100_000


def test_each_better_plan_is_a_sample():
    history = SearchHistory()
    for step in range(1000, 1010):
        history.note(SearchSample(0.0, step, 9.0, -float(step), 0.0), {})
    assert [sample.steps for sample in history.samples] == list(range(1000, 1010))


def test_the_picture_names_each_kind_of_move(found):
    texts = {element.text for element in ET.fromstring(draw(found.history)).iter()}
    assert {"best", "seconds", *found.history.moves} <= texts


def test_a_search_that_is_interrupted_gives_the_best_plan_so_far(monkeypatch):
    """Whatever it was at: here at its hundredth step."""
    usual = Search.step

    def interrupt(self):
        usual(self)
        if self.steps == 100:
            raise KeyboardInterrupt

    monkeypatch.setattr(Search, "step", interrupt)
    layout = lay_out(read_problem(problem("grid", 12, 9, 2, Limits())))
    found = find(layout, Wanted(steps=10_000))
    assert (found.interrupted, found.complete, found.steps) == (True, False, 100)
    monkeypatch.undo()
    assert found.evaluation.flow == find(layout, Wanted(steps=100)).evaluation.flow
    best = find(layout, Wanted("optimal", time_limit_s=1.0))
    assert not best.interrupted


@pytest.fixture
def interruptible():
    """Ctrl-C, where whoever runs the tests has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_proof_that_is_interrupted_gives_the_best_plan_so_far(monkeypatch):
    """HiGHS looks at the clock now and then; the first time, somebody presses Ctrl-C twice."""
    main, pressed = threading.main_thread(), []

    def clock():
        if threading.current_thread() is not main and not pressed:
            for _ in range(2):
                pressed.append(True)
                signal.pthread_kill(main.ident, signal.SIGINT)
                time.sleep(0.05)  # two that come at once are one
        return time.monotonic()

    monkeypatch.setattr("planner.optimal.solve", partial(solve, threads=1, clock=clock))
    layout = lay_out(read_problem(problem("grid", 12, 9, 2, Limits(1.2, 1.2, 1.2))))
    found = find(layout, Wanted("optimal", steps=100, time_limit_s=60.0))
    assert (pressed, found.interrupted, found.complete) == ([True, True], True, False)
    assert found.evaluation.feasible
    assert 0 <= found.bound <= found.evaluation.flow


def test_what_the_solver_fails_of_is_told(monkeypatch):
    class Failing(highspy.Highs):
        def run(self):
            raise MemoryError

    monkeypatch.setattr(highspy, "Highs", Failing)
    layout = lay_out(read_problem(problem("grid", 4, 3, 2, Limits(1.2, 1.2, 1.2))))
    with pytest.raises(MemoryError):
        find(layout, Wanted("optimal", steps=10, time_limit_s=5.0))

"""The state of large problems with limited links: its ways are those that a plan is charged for."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.generate import Limits, problem
from planner.flow import evaluate
from planner.layout import lay_out
from planner.reading import read_problem
from planner.search.breakout import Breakout
from planner.search.model import Model
from planner.search.relief import Relief
from planner.search.run import Best, as_plan
from planner.search.start import greedy
from planner.search.traffic import TrafficState
from tests.planner.problems import documents
from tests.planner.test_search_state import drawn, moves_of, tidied


def limited(document):
    """With one limit at least: where there is none, another state does."""
    document["nodes"][0]["egress"] = 10_000
    return tidied(document)


def charged(state):
    """What the evaluation says of the state's hosts and ways."""
    best = Best(0.0, 0.0, tuple(state.hosts), state.named_trees())
    return evaluate(state.model.layout, as_plan(state.model, best))


def all_of(state):
    loads = [round(load, 6) for load in state.load], [round(sent, 6) for sent in state.sent]
    return list(state.hosts), state.ways, loads, sorted(state.broken), state.lost


@given(documents(connected=False).map(limited), st.data())
@settings(max_examples=40)
def test_flow_and_excess_are_those_of_the_plan_and_undoing_leaves_nothing_behind(document, data):
    state = drawn(document, data, TrafficState)
    if not state.model.pieces:
        return
    for _ in range(3):
        found = charged(state)
        assert state.flow == pytest.approx(float(found.flow))
        assert state.excess() == pytest.approx(found.excess)
        before, flow, excess = all_of(state), state.flow, state.excess()
        state.move(moves_of(state, data))
        state.undo()
        assert all_of(state) == before
        assert (state.flow, state.excess()) == pytest.approx((flow, excess))
        state.move(moves_of(state, data))


@given(documents(connected=False).map(limited), st.data(), st.integers(0, 99))
@settings(max_examples=40)
def test_streams_by_any_ways_are_charged_for_these_and_undone_like_others(document, data, seed):
    state = drawn(document, data, TrafficState)
    before, flow, excess = all_of(state), state.flow, state.excess()
    state.lay_again(range(len(state.rates)), wild=Random(seed))
    found = charged(state)
    assert state.flow == pytest.approx(float(found.flow))
    assert state.excess() == pytest.approx(found.excess)
    state.undo()
    assert all_of(state) == before
    assert (state.flow, state.excess()) == pytest.approx((flow, excess))


@given(documents(connected=False).map(limited), st.data(), st.floats(0, 3))
@settings(max_examples=40)
def test_a_move_is_given_up_just_where_it_breaks_limits_by_more_than_it_may(document, data, most):
    state = drawn(document, data, TrafficState)
    if not state.model.pieces:
        return
    before, excess, moves = all_of(state), state.excess(), moves_of(state, data)
    state.move(moves)
    after = state.excess()
    state.undo()
    good = state.move(moves, most)
    if abs(after - most) > 1e-6:
        assert good == (after <= most)
    state.undo()
    assert all_of(state) == before
    assert state.excess() == pytest.approx(excess)


@given(documents(limited=False).map(limited), st.data())
@settings(max_examples=25)
def test_where_nothing_is_limited_one_target_is_reached_by_a_shortest_way(document, data):
    state = drawn(document, data, TrafficState)
    for number, ways in enumerate(state.ways[: len(state.model.rates)]):
        source, targets = state.ends(number)
        if len(targets) == 1:
            assert len(ways[source]) == state.metric(number).distance[source, targets[0]]


@pytest.mark.parametrize("shape", ["grid", "geometric"])
def test_steps_never_break_limits_more_and_reach_a_plan_that_keeps_them(shape):
    layout = lay_out(read_problem(problem(shape, 40, 40, 5, Limits(1.3, 1.2, 1.2))))
    model = Model(layout)
    state = TrafficState(model, greedy(model))
    relief = Relief(state, Random(1))
    relief.descend_again()
    last = (relief.excess, state.flow)
    assert last[0] > 0
    for _ in range(400):
        relief.step()
        now = (relief.excess, state.flow)
        assert now <= (last[0] + 1e-9, last[1] + 1e-6) or now[0] < last[0]
        last = now
    assert all(state.hosts[piece] == host for host, at in enumerate(relief.at) for piece in at)
    found = charged(state)
    assert (found.feasible, float(found.flow)) == (True, pytest.approx(state.flow))
    assert relief.excess == 0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_prices_change_what_counts_and_nothing_else(seed):
    document = problem("grid", 12, 16, seed, Limits(1.0, 1.0, 1.0))
    model = Model(lay_out(read_problem(document)))
    state = TrafficState(model, greedy(model))
    first, before = state.excess(), charged(state)
    assert first == pytest.approx(before.excess)
    breakout = Breakout(state, Random(seed))
    for _ in range(40):
        breakout.step()
        state.raise_prices(1.6, 1e4)
        breakout.excess = state.excess()
    found = charged(state)
    assert (state.excess() == 0) == found.feasible
    assert state.excess() >= found.excess * (1 - 1e-9)
    state.even_prices()
    assert state.excess() == pytest.approx(found.excess)
    assert state.flow == pytest.approx(float(found.flow), rel=1e-3)
    for piece, host in enumerate(state.hosts):
        assert piece in breakout.at[host]


def test_a_piece_that_moved_meanwhile_does_not_change_places_with_itself():
    """To change places with U pays for U alone; T would go back then, twice in one move."""
    document = {
        "nodes": [{"id": "a", "egress": 1000}, {"id": "b"}],
        "links": [{"a": "a", "b": "b"}],
        "contents": [{"id": "C", "rates": {"b": 10}}, {"id": "D", "rates": {"b": 100}}],
        "tasks": [
            {"id": "T", "inputs": ["C"], "rate": 1},
            {"id": "U", "inputs": ["D"], "rate": 1},
        ],
    }
    state = TrafficState(Model(lay_out(read_problem(document))), [1, 0])
    breakout = Breakout(state, Random(1))
    breakout._swap(0, np.array([0.0, 5.0]))  # what T costs, as if it were at neither
    assert state.hosts == [0, 1]
    assert [list(at) for at in breakout.at] == [[0], [1]]


def test_breaking_limits_counts_the_same_at_any_price():
    document = problem("grid", 12, 16, 4, Limits(1.0, 1.0, 1.0))
    model = Model(lay_out(read_problem(document)))
    state = TrafficState(model, greedy(model))
    expected = charged(state).excess
    state.raise_prices(1.6, 1e4)
    assert state.excess() > expected
    assert state.excess_by_parts() == pytest.approx(expected)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_rising_prices_lead_out_of_where_nothing_near_breaks_limits_less(seed):
    """Each broker bears one of the costs 3, 2 and 1 just so; they have to go around in a circle."""
    names = ["a", "b", "c"]
    pieces = [("P", 3), ("Q", 2), ("R", 1)]
    document = {
        "nodes": [{"id": n, "capacity": c} for n, c in zip(names, (3, 2, 1), strict=True)],
        "links": [{"a": "a", "b": "b", "capacity": 100}, {"a": "b", "b": "c"}],
        "contents": [{"id": "C", "rates": {"a": 1}}],
        "tasks": [{"id": t, "inputs": ["C"], "cost": c, "rate": 1} for t, c in pieces],
    }
    model = Model(lay_out(read_problem(document)))
    state = TrafficState(model, [1, 2, 0])
    breakout = Breakout(state, Random(seed))
    for _ in range(300):
        if breakout.excess == 0:
            break
        breakout.step()
    assert state.hosts == [0, 1, 2]

"""The parts of a search, each by itself: mending, laying in other orders, a step within limits."""

from random import Random

import numpy as np

from planner.flow import evaluate
from planner.layout import lay_out
from planner.plan import Plan
from planner.reading import read_problem
from planner.search.loaded import LoadedState
from planner.search.mend import mend
from planner.search.model import Model
from planner.search.state import State
from planner.search.tabu import Tabu
from planner.search.untangle import untangle


def model_of(document):
    return Model(lay_out(read_problem(document)))


def test_mending_goes_by_what_limits_are_broken_by_before_the_flow():
    tasks = [{"id": f"T{i}", "inputs": [], "rate": 0} for i in range(3)]
    document = {"nodes": [{"id": n} for n in "abc"], "links": [], "contents": [], "tasks": tasks}
    asked = []

    def judge(hosts):
        broken = float(sum(host != 2 for host in hosts))
        asked.append((broken, -broken))  # what mends costs more flow here
        return asked[-1]

    mend(model_of(document), Random(1), (0, 1, 0), judge)
    assert min(asked) == (0.0, 0.0)


def test_mending_ends_where_its_judge_says_so():
    tasks = [{"id": "T", "inputs": [], "rate": 0}]
    document = {"nodes": [{"id": n} for n in "ab"], "links": [], "contents": [], "tasks": tasks}
    asked = []

    def judge(hosts):
        asked.append(hosts)
        return None if len(asked) > 1 else (1.0, 0.0)

    mend(model_of(document), Random(1), (0,), judge)
    assert asked == [(0,), (1,)]


def test_who_can_as_well_go_another_way_gives_way():
    """X reaches b and c over any two of the links; Y is the one to whom the narrow link is dear."""
    document = {
        "nodes": [{"id": n} for n in "abc"],
        "links": [
            {"a": "a", "b": "b", "capacity": 15},
            {"a": "a", "b": "c"},
            {"a": "b", "b": "c"},
        ],
        "contents": [],
        "tasks": [
            {"id": "X", "inputs": [], "rate": 12, "destinations": ["b", "c"], "hosts": ["a"]},
            {"id": "Y", "inputs": [], "rate": 11, "destinations": ["b"], "hosts": ["a"]},
        ],
    }
    state = LoadedState(model_of(document), [0, 0])
    assert state.flow == 2 * 12 + 2 * 11
    kept, flow = state.snapshot(), state.flow
    assert untangle(state)
    assert state.flow == 2 * 12 + 11
    assert state.fits()
    assert sorted(state.named_trees()["Y"]) == [(0, 1)]
    state.put_back(kept, flow)
    assert sorted(state.named_trees()["Y"]) == [(0, 2), (2, 1)]
    assert state.load.tolist() == LoadedState(state.model, [0, 0]).load.tolist()


def test_a_step_does_not_overload_a_broker_where_that_is_dear():
    document = {
        "nodes": [{"id": "a", "capacity": 4}, {"id": "b", "capacity": 9}, {"id": "c"}],
        "links": [{"a": "a", "b": "b"}, {"a": "b", "b": "c"}],
        "contents": [{"id": "C", "rates": {"a": 100}}],
        "tasks": [{"id": "T", "inputs": ["C"], "cost": 5, "rate": 9, "destinations": ["a"]}],
    }
    for price, host in ((1e6, 2), (1.0, 0)):
        state = State(model_of(document), [1])
        Tabu(state, [0], Random(1), price).step(float("inf"))
        assert state.hosts == [host]


def test_a_piece_does_not_return_at_once_to_where_it_left():
    """Of two brokers the dearer is taken only as the cheaper is forbidden, and is stayed at."""
    document = {
        "nodes": [{"id": "a"}, {"id": "b"}],
        "links": [{"a": "a", "b": "b"}],
        "contents": [{"id": "C", "rates": {"a": 5}}],
        "tasks": [{"id": "T", "inputs": ["C"], "rate": 1}],
    }
    state = State(model_of(document), [0])
    tabu = Tabu(state, [0], Random(1), 1.0)
    tabu.make([(0, 1)])
    for _ in range(4):
        tabu.step(0.0)
        assert state.hosts == [1]


def test_what_two_that_concern_each_other_gain_by_changing_places_is_tried_out():
    """Either of them alone would meet the other, which both together do not."""
    document = {
        "nodes": [{"id": "a", "capacity": 3}, {"id": "b", "capacity": 3}],
        "links": [{"a": "a", "b": "b"}],
        "contents": [{"id": "C", "rates": {"b": 10}}],
        "tasks": [
            {"id": "S", "inputs": ["C"], "cost": 3, "rate": 8},
            {"id": "T", "inputs": ["S"], "cost": 3, "rate": 1, "destinations": ["a"]},
        ],
    }
    layout = lay_out(read_problem(document))
    before, after = (float(evaluate(layout, Plan(hosts)).flow) for hosts in ((0, 1), (1, 0)))
    state = State(Model(layout), [0, 1])
    tabu = Tabu(state, [0, 1], Random(1), 1.0)
    hosts = np.array([0, 1])
    change = tabu.rows - tabu.rows[[0, 1], hosts][:, None]
    usable = np.array([[False, True], [True, False]])
    for exact, gain in ((True, after - before), (False, float(change[0, 1] + change[1, 0]))):
        tabu.exact = exact
        pair, value = tabu._exchange(hosts, change, usable)
        assert sorted(pair) == [0, 1]
        assert value == gain
    assert before - after == 11

"""Units do not matter: what is tiny or huge is planned as what is usual."""

import math

import pytest

from planner.document import read_problem
from planner.flow import evaluate
from planner.layout import lay_out
from planner.methods import METHODS, Wanted, find
from planner.search.evaluator import Evaluator
from planner.search.instance import Instance
from tests.planner.test_search_best import hold_against_all
from tests.planner.tight import tight

RATES = {"rate", "rates", "partial_rate", "egress"}
COSTS = {"cost", "merge_cost"}


def in_units(value, power, key=""):
    """The document with rates and costs as many times as large as two to that power."""
    if isinstance(value, dict):
        return {
            name: in_units(inner, power, key if key in RATES | COSTS else _kind(name, value))
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [in_units(inner, power) for inner in value]
    return value * 2.0**power if key in RATES | COSTS and value is not None else value


def _kind(name, entry):
    return (
        "cost" if name == "capacity" and "a" not in entry else {"capacity": "rate"}.get(name, name)
    )


@pytest.mark.parametrize("power", [-80, -40, 60])
@pytest.mark.parametrize("seed", [1, 13, 33, 38, 51])
def test_a_problem_in_other_units_has_the_same_plan(seed, power):
    document = tight(seed)
    for method in METHODS:
        wanted = Wanted(method, steps=150, time_limit_s=2.0)
        layout = lay_out(read_problem(in_units(document, power)))
        usual, other = find(lay_out(read_problem(document)), wanted), find(layout, wanted)
        assert other.evaluation == evaluate(layout, other.plan)
        assert other.evaluation.feasible == usual.evaluation.feasible
        flow = math.ldexp(other.evaluation.flow, -power)
        assert flow == pytest.approx(float(usual.evaluation.flow))
        if usual.bound is not None:
            assert math.ldexp(other.bound, -power) == pytest.approx(usual.bound, rel=1e-5)


def test_hardly_any_rate_goes_around_what_takes_nothing():
    document = {
        "nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}],
        "links": [{"a": "a", "b": "b", "capacity": 0}, {"a": "b", "b": "c"}, {"a": "a", "b": "c"}],
        "contents": [],
        "tasks": [{"id": "T", "inputs": [], "rate": 1e-13, "destinations": ["b"], "hosts": ["a"]}],
    }
    hold_against_all(document, 50)
    found = find(lay_out(read_problem(document)), Wanted(steps=50))
    assert (found.evaluation.flow, found.evaluation.feasible) == (2e-13, True)


def test_hardly_any_work_needs_room_too():
    nodes = [{"id": "a", "capacity": 0}, {"id": "b"}]
    task = {"id": "T", "inputs": ["C"], "rate": 1, "cost": 1e-13}
    document = {"nodes": nodes, "links": [{"a": "a", "b": "b"}], "tasks": [task]}
    document["contents"] = [{"id": "C", "rates": {"a": 5}}]
    found = find(lay_out(read_problem(document)), Wanted(steps=50))
    assert found.evaluation.feasible
    assert found.evaluation.flow == 5


@pytest.mark.parametrize("least", [5e-324, 1e-300, 1e29])
def test_no_number_is_too_small_or_too_large(least):
    task = {"id": "T", "inputs": ["C"], "rate": least, "cost": least, "destinations": ["b"]}
    other = task | {"id": "U", "cost": 1e30}
    document = {"nodes": [{"id": "a", "egress": 1e34}, {"id": "b", "capacity": 1e34}]}
    document |= {"links": [{"a": "a", "b": "b", "capacity": 1e-300}], "tasks": [task, other]}
    document["contents"] = [{"id": "C", "rates": {"a": least}}]
    layout = lay_out(read_problem(document))
    found = find(layout, Wanted(steps=50))
    assert found.evaluation == evaluate(layout, found.plan)
    assert found.evaluation.feasible == (least < 1e-299)


@pytest.mark.parametrize("method", METHODS)
def test_hardly_any_capacity_is_no_defect(method):
    nodes = [{"id": "a", "capacity": 1e-300}, {"id": "b", "capacity": 5e-324}]
    task = {"id": "T", "inputs": ["C"], "rate": 1e-20, "cost": 1e29, "destinations": ["b"]}
    tasks = [task, task | {"id": "U", "cost": 1e-300, "hosts": ["a"]}]
    document = {"server": "a", "nodes": nodes, "links": [{"a": "a", "b": "b"}], "tasks": tasks}
    document["contents"] = [{"id": "C", "rates": {"a": 1e-20}}]
    layout = lay_out(read_problem(document))
    found = find(layout, Wanted(method, steps=50, time_limit_s=1.0))
    assert found.evaluation == evaluate(layout, found.plan)
    assert not found.evaluation.feasible


def test_usual_problems_are_taken_as_they_are():
    layout = lay_out(read_problem(tight(1)))
    assert Instance(layout).power == 0


# --- sums of fractions --------------------------------------------------------------------------

FRACTIONS = {
    "nodes": [{"id": "a", "egress": 0}, {"id": "b"}],
    "links": [{"a": "a", "b": "b", "capacity": 0}],
    "contents": [],
    "tasks": [
        {"id": f"T{rate}", "inputs": [], "rate": rate, "destinations": ["b"]}
        for rate in (2000.7, 70000.3, 1000.1)
    ],
}


def test_what_is_taken_off_leaves_nothing():
    """Whichever order sums are taken off in: a trifle that stays would break a limit of nothing."""
    evaluator = Evaluator(Instance(lay_out(read_problem(FRACTIONS))), [0, 0, 0], check=True)
    assert evaluator.excess() > 0
    for piece in range(3):
        evaluator.apply([(piece, 1)])
    assert not any(evaluator.loads.loads)
    assert evaluator.excess() == 0


def test_what_is_put_back_leaves_nothing():
    evaluator = Evaluator(Instance(lay_out(read_problem(FRACTIONS))), [1, 1, 1], check=True)
    for change in reversed([evaluator.apply([(piece, 0)]) for piece in range(3)]):
        evaluator.undo(change)
    assert not any(evaluator.loads.loads)
    assert evaluator.excess() == 0

"""The searches against all placements of tiny problems, and what they promise of themselves."""

import itertools
import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import assume, given, settings

from bench.planted_placement import planted
from experiments.generate import SHAPES, Limits, problem
from headwater.placement.plan_document import as_document
from planner.document import read_problem
from planner.flow import evaluate
from planner.layout import lay_out
from planner.methods import METHODS, Wanted, find
from planner.optimal import solve
from planner.plan import Plan
from planner.problem import ProblemError
from planner.search.instance import Instance
from planner.search.search import Search, as_plan
from planner.search.stops import Progress, after_seconds, after_steps, at_first, when_stalled
from tests.oracles import placement as oracle
from tests.planner.problems import EXAMPLE, documents

ROOT = Path(__file__).resolve().parents[2]
PLACEMENTS_MAX = 300


def searched(layout, steps=400, seed=1):
    instance = Instance(layout)
    search = Search(instance, seed)
    plan = as_plan(instance, search.run(after_steps(steps)))
    return plan, evaluate(layout, plan)


def all_plans(layout):
    count = 1
    for piece in layout.pieces:
        count *= len(piece.hosts)
    assume(count <= PLACEMENTS_MAX)
    return [Plan(hosts) for hosts in itertools.product(*(p.hosts for p in layout.pieces))]


def on_a_tree(document):
    """The same with links that leave no choice of routes."""
    met = {document["nodes"][0]["id"]}
    links = []
    for link in document["links"] * len(document["nodes"]):
        if (link["a"] in met) != (link["b"] in met):
            met |= {link["a"], link["b"]}
            links.append(link)
    return document | {"links": links}


@given(documents(nodes_max=4, tasks_max=3).map(on_a_tree))
@settings(max_examples=25)
def test_where_routes_are_given_the_best_of_all_placements_is_found(document):
    layout = lay_out(read_problem(document))
    judged = [oracle.judge(document, as_document(layout, plan)) for plan in all_plans(layout)]
    feasible = [flow for flow, good in judged if good]
    plan, found = searched(layout)
    assert found.feasible == bool(feasible)
    best = solve(layout, 20.0, threads=1)
    assert best.infeasible == (not feasible)
    if feasible:
        assert Fraction(found.flow) == min(feasible)
        assert best.proven
        assert best.flow == pytest.approx(float(min(feasible)))
        assert best.bound == pytest.approx(float(min(feasible)))
        written = as_document(layout, best.plan)
        assert oracle.judge(document, written) == (min(feasible), True)
        assert oracle.judge(document, as_document(layout, plan))[1]


@given(documents(nodes_max=5, tasks_max=3))
@settings(max_examples=25)
def test_with_routes_to_choose_the_optimum_is_reached_and_none_is_below_its_bound(document):
    layout = lay_out(read_problem(document))
    plan, found = searched(layout)
    best = solve(layout, 20.0, threads=1)
    assert best.proven
    assert found.feasible == (not best.infeasible)
    flow, feasible = oracle.judge(document, as_document(layout, plan))
    assert (Fraction(found.flow), found.feasible) == (flow, feasible)
    if found.feasible:
        assert float(found.flow) == pytest.approx(best.flow)
        assert oracle.judge(document, as_document(layout, best.plan))[1]


@given(documents(nodes_max=3, tasks_max=3).map(on_a_tree))
@settings(max_examples=25)
def test_where_none_is_feasible_the_least_violating_plan_is_found(document):
    for node in document["nodes"]:
        node["capacity"] = 1
    layout = lay_out(read_problem(document))
    judged = [evaluate(layout, plan) for plan in all_plans(layout)]
    assume(not any(found.feasible for found in judged))
    _, found = searched(layout)
    assert not found.feasible
    assert found.excess == pytest.approx(min(other.excess for other in judged))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("limits", [Limits(), Limits(1.3, 1.2, 1.2)], ids=["brokers", "all"])
def test_problems_that_are_made_have_feasible_plans_and_the_search_finds_one(shape, limits):
    document = problem(shape, 12, 8, 3, limits)
    layout = lay_out(read_problem(document))
    plan, found = searched(layout, 1200)
    assert found.feasible
    written = as_document(layout, plan)
    assert oracle.judge(document, written) == (Fraction(found.flow), True)
    start = Search(Instance(layout), 1).best
    assert start.excess > 0 or found.flow <= start.flow


@pytest.mark.parametrize("limits", [None, Limits(1.3, 1.2, 1.2)])
def test_the_same_seed_and_steps_give_the_same_plan_under_any_hash_seed(limits):
    script = (
        "import json\n"
        "from experiments.generate import Limits, problem\n"
        "from headwater.placement.plan_document import as_document\n"
        "from planner.layout import lay_out\n"
        "from planner.methods import Wanted, find\n"
        "from planner.document import read_problem\n"
        f"layout = lay_out(read_problem(problem('grid', 12, 8, 2, {limits!r})))\n"
        "for method in ('tabu', 'local', 'hop', 'greedy'):\n"
        "    found = find(layout, Wanted(method, seed=5, steps=120))\n"
        "    print(json.dumps(as_document(layout, found.plan)), found.steps)\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "77")
    }
    assert len(outputs) == 1
    assert outputs.pop()


def test_a_search_is_better_or_as_good_the_longer_it_runs():
    layout = lay_out(read_problem(problem("geometric", 15, 10, 1)))
    flows = [searched(layout, steps)[1].flow for steps in (0, 20, 200, 400)]
    assert flows == sorted(flows, reverse=True)


@pytest.mark.parametrize("method", METHODS)
def test_what_a_method_hands_back_is_what_its_plan_comes_to(method):
    layout = lay_out(read_problem(EXAMPLE))
    found = find(layout, Wanted(method, steps=100))
    assert found.evaluation == evaluate(layout, found.plan)
    assert (found.bound is not None) == (method == "optimal")
    least = find(layout, Wanted("optimal")).evaluation.flow
    if found.evaluation.feasible:
        assert found.evaluation.flow >= least


def test_a_wider_radius_reaches_what_a_narrower_one_does_not():
    document = {
        "nodes": [{"id": "a"}, {"id": "b", "capacity": 0}, {"id": "c"}],
        "links": [{"a": "a", "b": "b"}, {"a": "b", "b": "c"}],
        "contents": [{"id": "C", "rates": {"a": 1}}],
        "tasks": [{"id": "T", "inputs": ["C"], "cost": 1, "rate": 9, "destinations": ["c"]}],
    }
    layout = lay_out(read_problem(document))
    flows = [find(layout, Wanted("local", radius)).evaluation.flow for radius in (0, 1, 2)]
    assert flows == [18, 18, 2]


def test_the_centralised_way_runs_all_at_the_server_and_needs_one():
    layout = lay_out(read_problem(EXAMPLE))
    assert set(find(layout, Wanted("central")).plan.hosts) == {2}
    without = lay_out(read_problem({k: v for k, v in EXAMPLE.items() if k != "server"}))
    with pytest.raises(ProblemError) as caught:
        find(without, Wanted("central"))
    assert caught.value.path == "server"


def test_stops_stop_when_they_say():
    times = iter([0.0, 0.5, 1.0])
    seconds = after_seconds(1.0, lambda: next(times))
    now = Progress(5, 2, feasible=True)
    assert [seconds(now), seconds(now)] == [False, True]
    assert [after_steps(5)(now), after_steps(6)(now)] == [True, False]
    assert [when_stalled(3)(now), when_stalled(4)(now)] == [True, False]
    assert not when_stalled(3)(Progress(5, 2, feasible=False))
    assert at_first(after_steps(9), when_stalled(3))(now)
    assert not at_first(after_steps(9), when_stalled(9))(now)


def test_a_planned_optimum_of_a_shared_stream_is_reached():
    """Two consumers of one large stream belong together, though each alone would stay apart."""
    names = "abcdefg"
    document = {
        "nodes": [{"id": n} for n in names],
        "links": [{"a": x, "b": y} for x, y in itertools.pairwise(names)],
        "contents": [{"id": "Big", "rates": {"d": 100}}, {"id": "S", "rates": {"a": 30, "g": 30}}],
        "tasks": [
            {"id": "L", "inputs": ["Big", "S"], "rate": 1, "destinations": ["a"]},
            {"id": "R", "inputs": ["Big", "S"], "rate": 1, "destinations": ["g"]},
        ],
    }
    layout = lay_out(read_problem(document))
    _, found = searched(layout, 100)
    # At d nothing of Big is sent, both of S come three links, and each result goes three.
    assert found.flow == 2 * 3 * 30 + 2 * 3 * 1


@pytest.mark.parametrize("limits", [Limits(), Limits(1.3, 1.2, 1.2)], ids=["brokers", "all"])
def test_the_way_of_large_problems_keeps_all_limits_and_its_word(monkeypatch, limits):
    monkeypatch.setattr("planner.search.instance.MANY_NODES", 0)
    document = problem("grid", 16, 12, 4, limits)
    layout = lay_out(read_problem(document))
    first = Search(Instance(layout), 1)
    found = Search(Instance(layout), 1)
    best = found.run(after_steps(1500))
    plan = as_plan(found.instance, best)
    written = as_document(layout, plan)
    assert oracle.judge(document, written) == (Fraction(written["flow"]), True)
    assert best.flow == pytest.approx(float(written["flow"]))
    assert (best.excess, best.flow) <= (first.best.excess, first.best.flow)
    again = Search(Instance(layout), 1)
    assert again.run(after_steps(1500)).hosts == best.hosts


def test_a_planted_optimum_without_any_room_to_spare_is_found(monkeypatch):
    monkeypatch.setattr("planner.search.instance.MANY_NODES", 0)
    document, least = planted("geometric", 60, 40, 1)
    _, found = searched(lay_out(read_problem(document)), 600)
    assert (found.feasible, found.flow) == (True, least)


@pytest.mark.parametrize(("nodes", "tasks", "seed"), [(25, 20, 101), (15, 12, 200)])
def test_a_plan_is_found_where_a_drawn_one_takes_all_that_there_is(nodes, tasks, seed):
    exactly = Limits(1.0, 1.0, 1.0)
    layout = lay_out(read_problem(problem("tree", nodes, tasks, seed, exactly)))
    search = Search(Instance(layout), 1)
    search.run(at_first(after_steps(1500), lambda progress: progress.feasible))
    assert evaluate(layout, as_plan(search.instance, search.best)).feasible


@pytest.mark.parametrize("shape", ["tree", "grid", "geometric"])
@pytest.mark.parametrize("seed", range(1, 4))
def test_a_first_plan_among_many_brokers_keeps_all_limits(shape, seed, monkeypatch):
    """The beginning alone has to come out of where all that is near breaks other limits."""
    monkeypatch.setattr("planner.search.instance.MANY_NODES", 0)
    document = problem(shape, 120, 120, seed, Limits(1.2, 1.1, 1.1))
    search = Search(Instance(lay_out(read_problem(document))), 1)
    while search.best.excess > 0 and search.steps < 3000:
        search.step()
    assert search.best.excess == 0
    assert not search.descent.over


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.timeout(900)
def test_a_plan_is_found_where_limits_are_tight(shape):
    for nodes, tasks in ((12, 10), (25, 20), (40, 30)):
        for room, seed in itertools.product((1.0, 1.05), range(300, 305)):
            document = problem(shape, nodes, tasks, seed, Limits(room, room, room))
            layout = lay_out(read_problem(document))
            search = Search(Instance(layout), 1)
            search.run(at_first(after_steps(4000), lambda progress: progress.feasible))
            assert evaluate(layout, as_plan(search.instance, search.best)).feasible, document[
                "name"
            ]


def test_json_of_a_plan_can_be_written():
    layout = lay_out(read_problem(EXAMPLE))
    found = find(layout, Wanted(steps=50))
    written = json.loads(json.dumps(as_document(layout, found.plan)))
    assert oracle.judge(EXAMPLE, written) == (written["flow"], written["feasible"])

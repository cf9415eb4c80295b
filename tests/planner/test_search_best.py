"""The search and the program against every placement with every choice of routes, where few are."""

import pytest
from hypothesis import assume, given, settings

from planner.flow import as_document, evaluate
from planner.layout import lay_out
from planner.optimal import solve
from planner.reading import read_problem
from planner.search.model import Model
from planner.search.run import Search, as_plan
from planner.search.stops import Steps
from tests.oracles import placement as oracle
from tests.oracles import placement_best
from tests.planner.problems import documents
from tests.planner.tight import tight

SEEDS = (1, 13, 33, 37, 38, 47, 51, 57)  # in four of these limits must be broken
STEPS = 800


def hold_against_all(document, steps=STEPS):
    """The search's plan, and that of the program, are the best that there are."""
    broken, least = placement_best.best(document)
    layout = lay_out(read_problem(document))
    model = Model(layout)
    plan = as_plan(model, Search(model, 1).run(Steps(steps)))
    found = evaluate(layout, plan)
    flow, feasible = oracle.judge(document, as_document(layout, plan))
    assert feasible == found.feasible == (not broken)
    assert float(flow) == pytest.approx(float(found.flow))
    assert found.excess == pytest.approx(float(broken))
    best = solve(layout, 20.0, threads=1)
    assert best.infeasible == bool(broken)
    if not broken:
        assert float(flow) == pytest.approx(float(least))
        assert best.proven
        assert best.flow == pytest.approx(float(least))
        assert best.bound == pytest.approx(float(least))
        assert oracle.judge(document, as_document(layout, best.plan))[1]


@given(documents(nodes_max=4, tasks_max=3))
@settings(max_examples=8)
def test_the_best_of_all_plans_is_found(document):
    assume(placement_best.count(document) <= 300)
    hold_against_all(document)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_of_all_plans_is_found_where_limits_are_tight(seed):
    hold_against_all(tight(seed))


@pytest.mark.long
@pytest.mark.parametrize("tenth", range(10))
@pytest.mark.timeout(900)
def test_the_best_of_all_plans_is_found_again_and_again(tenth):
    tried = 0
    for seed in range(1000 + tenth * 60, 1060 + tenth * 60):
        document = tight(seed, 4, 4)
        if placement_best.count(document) <= 1500:
            hold_against_all(document, 2500)
            tried += 1
    assert tried > 30

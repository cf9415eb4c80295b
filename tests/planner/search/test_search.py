"""The search of `planner.search`: what it says a plan costs is what the oracle counts."""

import pytest

from headwater.placement.plan_document import as_document
from planner.document import read_problem
from planner.layout import lay_out
from planner.search.instance import Instance
from planner.search.search import Search, as_plan
from tests.oracles.placement import judge
from tests.planner.strangers import strangers


@pytest.mark.parametrize("number", range(12))
def test_every_change_costs_what_its_delta_said_and_the_best_plan_what_the_oracle_counts(number):
    """`check=True` counts all sums again after each change, and compares them."""
    (problem,) = strangers(1, number, (10, 12))
    layout = lay_out(read_problem(problem.document))
    search = Search(Instance(layout), 1, check=True)
    best = search.run(lambda progress: progress.steps >= 60)
    flow, is_feasible = judge(problem.document, as_document(layout, as_plan(search.instance, best)))
    assert float(flow) == pytest.approx(best.flow, rel=1e-5)
    assert is_feasible == (best.excess == 0)


def test_the_same_seed_gives_the_same_plan():
    (problem,) = strangers(1, 3, (10, 12))
    layout = lay_out(read_problem(problem.document))
    plans = [Search(Instance(layout), 5).run(lambda p: p.steps >= 100).hosts for _ in range(2)]
    assert plans[0] == plans[1]

"""How far planning in rounds stays behind one planner for all, where limits leave 15 % of room."""

import statistics
from functools import cache

import pytest

from planner.flow import Evaluation, evaluate
from planner.generate import SHAPES, Limits, problem
from planner.layout import lay_out
from planner.methods import Wanted, find
from planner.plan import Plan
from planner.problem import Problem
from planner.reading import read_problem
from planner.rounds.settings import Settings
from planner.rounds.tree import on_tree, overlay
from planner.rounds.trial import Trial

ALL = 99


@cache
def network(shape: str, nodes: int, tasks: int, seed: int) -> tuple[Problem, Evaluation]:
    """A network, and what one planner for all reaches on its tree."""
    drawn = read_problem(problem(shape, nodes, tasks, seed, Limits(brokers=1.15)))
    layout = lay_out(on_tree(drawn, overlay(drawn)))
    return drawn, find(layout, Wanted("tabu", steps=600 if nodes < 10 else 4000)).evaluation


def gap(radius: int, shape: str, nodes: int, tasks: int, seed: int) -> float:
    """By what part the flow is greater than the central plan's; the plan must be feasible."""
    drawn, best = network(shape, nodes, tasks, seed)
    trial = Trial(drawn, Settings(radius=radius, price=0.0), seed)
    trial.until_quiet()
    layout = lay_out(on_tree(drawn, trial.tree))
    found = evaluate(layout, Plan(tuple(trial.hosts)))
    assert found.feasible, found.violations
    assert trial.infeasible == []
    return found.flow / best.flow - 1


@pytest.mark.parametrize(("radius", "most"), [(3, 0.10), (ALL, 0.03)])
def test_small_networks_lose_little(radius: int, most: float) -> None:
    gaps = [gap(radius, shape, 6, 3, 2) for shape in ("tree", "grid")]
    assert statistics.median(gaps) <= most


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("radius", "most"), [(1, None), (3, 0.10), (ALL, 0.03)])
def test_networks_of_each_shape_lose_little(radius: int, most: float | None) -> None:
    """With one hop only, a plan must be feasible all the same."""
    gaps = [
        gap(radius, shape, nodes, nodes, seed)
        for shape in SHAPES
        for nodes in (10, 20)
        for seed in (0, 1)
    ]
    assert most is None or statistics.median(gaps) <= most

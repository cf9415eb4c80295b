"""What relaxations prove: never more than there is, by any prices, however they are solved."""

from math import inf
from random import Random

import highspy
import pytest

from experiments import relaxation, tightening
from experiments.generate import SHAPES, Limits, problem
from experiments.relaxation import INTERIOR_GAP, Relaxation
from planner.document import read_problem
from planner.layout import lay_out
from planner.program import SCALED, Formulation, Program
from tests.oracles.placement_best import best, count
from tests.planner.tight import tight

PRICES_DRAWN = 20


class Inside(Relaxation):
    """Solved from the interior from the start."""

    def __init__(self, *told):
        super().__init__(*told)
        self.go_inside()


def scaled(document):
    """A problem's program, and what its costs are divided by."""
    formulation = Formulation(lay_out(read_problem(document)))
    return formulation, max(formulation.program.cost, default=0.0) / SCALED or 1.0


def tightened(document):
    formulation, scale = scaled(document)
    return tightening.tighten(highspy, formulation, scale, 1, lambda: 0.0)


def hold_against_every_plan(seed, monkeypatch):
    """Whether a plan keeps all limits, of which the least is held against what is proven."""
    document = tight(seed, 3, 3)
    if count(document) > 300:  # more plans than can be tried in a moment
        return False
    broken, flow = best(document)
    if broken:
        return False
    formulation, scale = scaled(document)
    relaxed = Relaxation(highspy, formulation.program, scale, 1)
    assert relaxed.solved()
    random, best_prices = Random(seed), relaxed.prices()
    for _ in range(PRICES_DRAWN):
        off = 10 ** random.uniform(-6, 0)
        prices = [price * (1 + random.gauss(0, off)) for price in best_prices]
        assert relaxed.proves_at(prices) <= relaxed.proves() * (1 + 1e-9) + 1e-9
    outside = tightened(document)
    with monkeypatch.context() as patched:
        patched.setattr(tightening, "Relaxation", Inside)
        inside = tightened(document)
    for least in (relaxed.proves() * scale, outside, inside):
        assert 0 <= least <= flow * (1 + 1e-9)
    return True


def test_no_plan_is_below_what_is_proven(monkeypatch):
    assert sum(hold_against_every_plan(seed, monkeypatch) for seed in range(25)) > 8


@pytest.mark.long
@pytest.mark.timeout(600)
def test_no_plan_is_below_what_is_proven_again_and_again(monkeypatch):
    assert sum(hold_against_every_plan(seed, monkeypatch) for seed in range(1000, 1200)) > 60


@pytest.mark.parametrize("shape", SHAPES)
def test_from_the_interior_as_much_is_proven(shape):
    """But for how near to the optimum an interior solution comes."""
    formulation, scale = scaled(problem(shape, 12, 8, 5, Limits(1.4, 1.25, 1.25)))
    found = []
    for kind in (Relaxation, Inside):
        relaxed = kind(highspy, formulation.program, scale, 1)
        assert relaxed.solved()
        least = relaxed.proves()
        relaxed.add([([(column, 1.0) for column in formulation.at[0].values()], 1.0)])
        assert relaxed.solved()  # what is added holds already and changes nothing
        assert relaxed.proves() == pytest.approx(least, rel=3 * INTERIOR_GAP)
        found.append(least)
    assert found[1] == pytest.approx(found[0], rel=3 * INTERIOR_GAP)
    assert found[0] > 0


def test_prices_that_are_off_prove_less():
    """The sum is at least one, of which each costs one or two and may be 0.6 at most."""
    program = Program()
    columns = [program.column(cost, upper=0.6) for cost in (1.0, 2.0)]
    program.row([(column, 1.0) for column in columns], 1.0, inf)
    relaxed = Relaxation(highspy, program, 1.0, 1)
    relaxed.add([([(columns[0], -1.0)], -0.5)])
    assert relaxed.solved()
    assert relaxed.proves() == pytest.approx(1.5)
    # At 2 the first costs 1 less than it is worth, of which there is 0.6; the row added says 0.5.
    assert relaxed.proves_at([2.0, 0.0]) == pytest.approx(1.4)
    assert relaxed.proves_at([2.0, 1.0]) == pytest.approx(1.5)
    assert relaxed.proves_at([3.0, 1.0]) == pytest.approx(3 - 0.5 - 0.6 - 0.6)
    assert relaxed.proves_at([-1.0, -1.0]) == 0.0  # nothing bounds the rows from above


def test_a_simplex_that_takes_too_long_gives_way(monkeypatch):
    formulation, scale = scaled(problem("grid", 15, 10, 5, Limits(1.4)))
    usual = Relaxation(highspy, formulation.program, scale, 1)
    assert usual.solved()
    monkeypatch.setattr(relaxation, "SIMPLEX_MAX", 0.0)
    hurried = Relaxation(highspy, formulation.program, scale, 1, (lambda: 0.5, 0.8))
    assert hurried.solved()
    assert hurried.proves() == pytest.approx(usual.proves(), rel=3 * INTERIOR_GAP)
    assert hurried.proves() != usual.proves()  # it did come from the interior


def test_what_is_late_is_not_solved():
    formulation, scale = scaled(problem("grid", 15, 10, 5, Limits(1.4)))
    late = Relaxation(highspy, formulation.program, scale, 1, (lambda: 0.9, 0.8))
    assert late.late()
    assert not late.solved()

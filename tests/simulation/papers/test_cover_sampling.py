"""The probabilistic check: what it promises, and that it keeps it."""

import random
from itertools import product
from math import inf, isclose, log

import pytest

from broker.network.routing.covering.boxes import Box, box_of, cuts
from broker.network.routing.covering.covering import Check, CoverIndex, covered
from broker.network.routing.covering.covering_exact import first_part, reduced
from broker.network.routing.covering.covering_table import Table
from simulation.papers.sampler import guesses_for, sample, sampler


def sampled(asked: Box, held: list[Box], **options):
    table = Table(asked.axes)
    for place, each in enumerate(held):
        table.add(str(place), each)
    return sample(asked, table.meeting(asked), **{"seed": 1, **options})


def case(seed: int) -> tuple[Box, list[Box]]:
    seeded = random.Random(seed)
    axes = seeded.randint(1, 3)

    def one() -> Box:
        pairs = [sorted((seeded.randint(0, 9), seeded.randint(0, 9))) for _ in range(axes)]
        return box_of(cuts(low, high + 1, high_open=True) for low, high in pairs)

    return box_of([cuts(2, 8, high_open=True)] * axes), [one() for _ in range(6 * axes)]


def gap_share(asked: Box, held: list[Box]) -> float:
    """The part of the asked box in none of the others, counted in cells of side 1."""
    spans = [range(int(low), int(high)) for low, high in zip(asked.lows, asked.highs, strict=True)]
    cells = [tuple(each + 0.5 for each in cell) for cell in product(*spans)]
    return sum(not any(each.holds(cell) for each in held) for cell in cells) / len(cells)


def boxes_that_matter(asked: Box, held: list[Box]) -> list[Box]:
    """Those that points are compared with: the minimal set of the conflict table."""
    table = Table(asked.axes)
    for place, each in enumerate(held):
        table.add(str(place), each)
    rows = reduced(first_part(asked, table.meeting(asked))).rows
    ends = [(row[: asked.axes], row[asked.axes : -1]) for row in rows]
    return [Box(lows, tuple(-end for end in negated)) for lows, negated in ends]


def test_not_covered_is_never_wrong_and_no_gap_is_smaller_than_its_bound() -> None:
    told = {True: 0, False: 0}
    for seed in range(400):
        asked, held = case(seed)
        gap = gap_share(asked, held)
        found = sampled(asked, held, guesses_max=50)
        told[found.covered] += 1
        if not found.covered:
            assert gap > 0.0
        if gap > 0.0 and found.guesses:
            assert found.rho <= gap_share(asked, boxes_that_matter(asked, held)) + 1e-9
    assert min(told.values()) > 50


def test_covered_is_wrong_no_more_often_than_told() -> None:
    """With one point each, over cases that are not covered: the errors told add up to more than
    the wrong answers, by which the bound would be refuted.
    """
    wrong, expected, cases = 0, 0.0, 0
    for seed in range(600):
        asked, held = case(seed)
        if gap_share(asked, held) == 0.0:
            continue
        found = sampled(asked, held, guesses_max=1, seed=seed)
        cases += 1
        wrong += found.covered
        expected += found.error if found.covered else 1.0 - found.rho if found.guesses else 0.0
    assert cases > 100
    assert 0 < wrong <= expected


def test_a_thin_gap_is_missed_by_sampling_and_not_by_the_exact_check() -> None:
    asked = box_of([cuts(0, 1), cuts(0, 1)])
    thin = [
        box_of([cuts(0, 0.6), cuts(0, 1)]),
        box_of([cuts(0.4, 1), cuts(0, 0.5)]),
        box_of([cuts(0.4, 1), cuts(0.500001, 1)]),
        box_of([cuts(0.4, 0.7), cuts(0.2, 1)]),
        box_of([cuts(0.4, 0.7), cuts(0, 0.8)]),
    ]
    assert not covered(asked, thin)
    found = sampled(asked, thin, guesses_max=100)
    assert found.covered
    assert found.error > 0.9  # and it says that it knows next to nothing
    assert found.guesses == 100


def test_the_error_that_is_asked_for_sets_the_number_of_points() -> None:
    asked = box_of([cuts(0, 4)])
    held = [box_of([cuts(0, 2)]), box_of([cuts(1, 3)]), box_of([cuts(2, 4)])]
    found = sampled(asked, held, error=1e-3, guesses_max=10_000)
    assert found.covered
    assert 0.0 < found.error <= 1e-3
    assert found.guesses == guesses_for(1e-3, found.rho) < 10_000
    less = sampled(asked, held, error=1e-6, guesses_max=10_000)
    assert isclose(less.guesses, 2 * found.guesses, abs_tol=1)
    capped = sampled(asked, held, error=1e-6, guesses_max=5)
    assert capped.guesses == 5
    assert capped.error > 1e-6


def test_what_needs_no_guess_is_certain() -> None:
    asked = box_of([cuts(0, 1), cuts(0, 1)])
    around = sampled(asked, [box_of([cuts(-1, 2), cuts(0, None)])])
    assert (around.covered, around.guesses, around.error) == (True, 0, 0.0)
    apart = sampled(asked, [box_of([cuts(3, 4), cuts(0, 1)])])
    assert (apart.covered, apart.guesses) == (False, 0)
    nothing = sampled(box_of([cuts(1, 0)]), [])
    assert nothing.covered


def test_boxes_without_bounds_are_sampled_between_and_beyond_the_ends() -> None:
    asked = box_of([cuts(None, None)])
    halves = [box_of([cuts(None, 5)]), box_of([cuts(4, None)])]
    assert sampled(asked, halves, guesses_max=200).covered
    assert not sampled(asked, [box_of([cuts(None, 5)]), box_of([cuts(50, None)])]).covered


def test_how_many_points_an_error_needs() -> None:
    assert guesses_for(0.001, 0.5) == 10  # 2**-10 is the first below
    assert guesses_for(0.5, 1.0) == 1
    assert guesses_for(0.5, 0.0) == inf
    assert isclose(guesses_for(1e-3, 1e-12), -log(1e-3) * 1e12, rel_tol=1e-6)
    for error in (0.0, 1.0, -1.0):
        with pytest.raises(ValueError, match="between 0 and 1"):
            guesses_for(error, 0.5)


def test_an_index_may_sample() -> None:
    index = CoverIndex(1, Check.SAMPLED, sampler=sampler(300))
    index.add("left", box_of([cuts(0, 2)]))
    index.add("right", box_of([cuts(1, 3)]))
    assert index.covered_by(box_of([cuts(0.5, 2.5)]), seed=4) == ("left", "right")
    assert not index.covers(box_of([cuts(0, 4)]))

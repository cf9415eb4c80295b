"""The index of one class: boxes come and go, and who covers is told."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from broker.network.routing.covering.boxes import AXES_MAX, Box, box_of, cuts
from broker.network.routing.covering.covering import Check, CoverIndex, covered, pairwise
from tests.broker.network.routing.covering_support import box, oracle, side

ROOT = Path(__file__).resolve().parents[4]


def unit(low: float, high: float) -> Box:
    return box_of([cuts(low, high)])


@pytest.mark.parametrize("check", [Check.EXACT, Check.PAIRWISE])
def test_what_comes_and_goes_is_covered_by_what_is_there(check: Check) -> None:
    """As an oracle says of the boxes held at the time; and those named cover it alone."""
    seeded = random.Random(7)
    index, held = CoverIndex(2, check), {}
    hits = 0
    for step in range(1500):
        written = tuple(side(seeded, 12, 0.05) for _ in range(2))
        if held and seeded.random() < 0.45:
            gone = seeded.choice(sorted(held))
            index.remove(gone)
            del held[gone]
        elif seeded.random() < 0.9:
            index.add(f"s{step}", box(written))
            held[f"s{step}"] = written
        asked = tuple(side(seeded, 12, 0.0) for _ in range(2))
        names = index.covered_by(box(asked))
        if check is Check.EXACT:
            assert (names is not None) == oracle(asked, list(held.values()))
        else:
            assert (names is not None) == pairwise(box(asked), [box(e) for e in held.values()])
        if names is not None:
            hits += 1
            assert oracle(asked, [held[name] for name in names])
            assert len(names) <= 1 or check is Check.EXACT
        assert len(index) == len(held)
        assert index.counts.covered == hits
    assert 100 < hits < 1400


def test_thousands_of_boxes_are_found_by_their_ends() -> None:
    """More than are compared one by one: the same as without an index, new and removed alike."""
    seeded = random.Random(3)

    def some(width: float) -> Box:
        pairs = []
        for _ in range(3):
            low = seeded.random()
            pairs.append(cuts(low, low + width * seeded.random()))
        return box_of(pairs)

    index, held = CoverIndex(3), {}
    answers = []
    for number in range(3000):
        held[f"s{number}"] = some(0.9)
        index.add(f"s{number}", held[f"s{number}"])
        if number % 3 == 0:
            gone = f"s{seeded.randrange(number + 1)}"
            if gone in held:
                index.remove(gone)
                del held[gone]
        if number % 100 == 0:
            asked = some(0.3)
            answers.append(index.covers(asked))
            assert answers[-1] == covered(asked, list(held.values()))
    assert set(answers) == {True, False}


def test_those_named_are_what_is_lost_when_one_leaves() -> None:
    index = CoverIndex(1)
    for name, low, high in [("far", 8, 9), ("left", 0, 3), ("right", 3, 6), ("beside", 1, 2)]:
        index.add(name, unit(low, high))
    assert index.covered_by(unit(1, 5)) == ("left", "right")
    assert index.covered_by(unit(1, 7)) is None
    index.remove("beside")  # no part in it
    assert index.covers(unit(1, 5))
    index.remove("left")
    assert not index.covers(unit(1, 5))
    index.add("left", unit(0, 4))
    assert index.covered_by(unit(1, 5)) == ("right", "left")  # now it is the younger


def test_what_asks_for_nothing_is_covered_by_nobody() -> None:
    assert CoverIndex(1, Check.NONE).covered_by(unit(2, 1)) == ()


def test_without_a_check_nothing_is_covered() -> None:
    index = CoverIndex(1, Check.NONE)
    index.add("same", unit(0, 1))
    assert not index.covers(unit(0, 1))


def test_checks_over_the_budget_are_counted() -> None:
    index = CoverIndex(2, budget=3)
    for x in range(4):
        for y in range(4):
            index.add(f"{x}{y}", box_of([cuts(x, x + 1), cuts(y, y + 1)]))
    assert not index.covers(box_of([cuts(0, 4), cuts(0, 4)]))
    assert index.counts.over_budget == 1
    assert index.covers(box_of([cuts(0, 1), cuts(0, 1)]))
    assert index.counts.checks == 2
    assert index.counts.over_budget == 1


def test_names_and_axes_are_checked() -> None:
    index = CoverIndex(1)
    index.add("one", unit(0, 1))
    assert "one" in index
    with pytest.raises(ValueError, match="there is a box one already"):
        index.add("one", unit(0, 2))
    with pytest.raises(ValueError, match="2 axes instead of 1"):
        index.add("two", box_of([cuts(0, 1), cuts(0, 1)]))
    with pytest.raises(KeyError):
        index.remove("two")
    index.remove("one")
    assert "one" not in index
    assert not index.covers(unit(0, 1))
    index.add("one", unit(0, 2))
    assert index.covers(unit(0, 2))
    with pytest.raises(ValueError, match="at most"):
        box_of([cuts(0, 1)] * (AXES_MAX + 1))
    with pytest.raises(ValueError, match="no number"):
        cuts(float("nan"), 1)


def test_all_that_left_leave_room_for_others() -> None:
    index = CoverIndex(1)
    for turn in range(3):
        for number in range(400):
            index.add(f"{number}", unit(number, number + 1))
        assert index.covers(unit(turn, 399))
        for number in range(400):
            index.remove(f"{number}")
        assert not index.covers(unit(0, 1))


SCRIPT = """
import random
from broker.network.routing.covering.covering import Check, CoverIndex
from simulation.papers.sampler import sampler
from tests.broker.network.routing.covering_support import box, side
seeded = random.Random(5)
index, sampled = CoverIndex(3), CoverIndex(3, Check.SAMPLED, sampler=sampler(20))
for number in range(300):
    written = tuple(side(seeded, 9, 0.1) for _ in range(3))
    index.add(f"s{number}", box(written))
    sampled.add(f"s{number}", box(written))
    asked = box(tuple(side(seeded, 9, 0.0) for _ in range(3)))
    print(index.covered_by(asked), sampled.covers(asked, seed=number), index.counts)
"""


def test_the_same_input_gives_the_same_answers_under_any_hash_seed() -> None:
    def told(seed: str) -> bytes:
        return subprocess.run(
            [sys.executable, "-c", SCRIPT],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
        ).stdout

    assert len(told("1").splitlines()) == 300
    assert told("1") == told("2")

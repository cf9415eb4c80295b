"""Tasks that go from broker to broker lose and double nothing, whatever happens to their hosts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.network import cells, checks
from simulation.network.cells import CellRun
from simulation.network.scenario import Run, Shape

ROOT = Path(__file__).resolve().parent.parent.parent.parent
FAST_SEEDS = 3
LONG_SEEDS = 1_000


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(FAST_SEEDS))
def test_nothing_is_lost_or_doubled(seed):
    outcome = cells.run(seed)
    assert outcome.brokers >= 6
    assert outcome.events >= 490
    assert outcome.terms >= 5  # cells that did move


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("first", range(FAST_SEEDS, FAST_SEEDS + LONG_SEEDS, 100))
def test_nothing_is_lost_or_doubled_in_many_more_runs(first):
    for seed in range(first, first + 100):
        cells.run(seed)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [0, 2, 4])  # in the others texts have several subscriptions
def test_tasks_that_move_find_what_tasks_at_home_find_under_the_same_ids(seed):
    found = []
    for kind in (Run, CellRun):
        run = kind(seed, Shape(faults=0, events=300))
        run.run()
        found.append(checks.ids_of(run.places))
    assert found[0].total() > 50
    assert found[0] == found[1]


@pytest.mark.timeout(60)
def test_a_run_does_not_depend_on_the_hash_seed():
    command = "from simulation.network.cells import *; print(run(5, Shape(events=100)))"
    said = set()
    for hash_seed in ("1", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", command],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=50,
        )
        said.add(done.stdout)
    assert len(said) == 1
    assert said.pop().startswith("Outcome(seed=5, ")

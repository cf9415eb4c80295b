"""Windows that are folded where their events enter give what one engine gives, whatever happens."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.network import checks, split
from simulation.network.scenario import Shape
from simulation.network.split import SplitRun

ROOT = Path(__file__).resolve().parent.parent.parent.parent
FAST_SEEDS = (1, 2, 177)  # the last one: sources at two brokers, windows that share panes
LONG_SEEDS = 1_000


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", FAST_SEEDS)
def test_nothing_is_lost_or_doubled(seed):
    outcome = split.run(seed)
    assert outcome.split > 1
    assert outcome.of_run.results > 30
    assert outcome.of_run.terms > 5  # cells that did move
    assert (outcome.conflicts > 0) == (outcome.twins > 0)


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("first", range(0, LONG_SEEDS, 100))
def test_nothing_is_lost_or_doubled_in_many_more_runs(first):
    found = [split.run(seed) for seed in range(first, first + 100)]
    assert sum(one.split for one in found) > 200
    assert sum(one.conflicts for one in found) > 50


class Whole(SplitRun):
    """The same without the setting."""

    splits = False


@pytest.mark.timeout(120)
def test_results_have_the_ids_that_they_have_where_nothing_is_split():
    found = []
    for kind in (Whole, SplitRun):
        run = kind(6, Shape(faults=0, events=300))
        run.run()
        headers = [
            cell.inputs.splits
            for place in run.places
            for cell in place.process.network._hosts.cells.values()
        ]
        assert headers
        assert any(headers) == (kind is SplitRun)
        found.append(checks.ids_of(run.places))
    assert found[0].total() > 30
    assert found[0] == found[1]


@pytest.mark.timeout(60)
def test_events_of_windows_that_are_split_stay_where_they_enter():
    travelled = []
    for kind in (Whole, SplitRun):
        run = kind(10, Shape(faults=0, events=300))  # no source is at two brokers
        travelled.append(run.run().travelled)
    assert travelled[0] > 100
    assert travelled[1] == 0


@pytest.mark.timeout(60)
def test_a_run_does_not_depend_on_the_hash_seed():
    command = "from simulation.network.split import *; print(run(5, Shape(events=100)))"
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
    assert "seed=5, " in said.pop()

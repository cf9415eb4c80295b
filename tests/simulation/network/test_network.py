"""Many brokers lose and double nothing, whatever happens to links and processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker.network.frames import frames
from broker.network.origin import offers
from simulation.network import checks, scenario
from simulation.network.scenario import Run, Shape

ROOT = Path(__file__).resolve().parent.parent.parent.parent
FAST_SEEDS = 10
LONG_SEEDS = 2_000


@pytest.mark.timeout(120)
def test_nothing_is_lost_or_doubled():
    for seed in range(FAST_SEEDS):
        outcome = scenario.run(seed)
        assert outcome.brokers >= 6
        assert outcome.events >= 490


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(FAST_SEEDS, FAST_SEEDS + LONG_SEEDS, 100))
def test_nothing_is_lost_or_doubled_in_many_more_runs(first):
    for seed in range(first, first + 100):
        scenario.run(seed)


@pytest.mark.timeout(60)
def test_answers_in_many_small_parts_change_nothing(monkeypatch):
    monkeypatch.setattr(offers, "OFFER_EVENTS", 5)
    monkeypatch.setattr(frames, "PART_EVENTS", 3)
    for seed in (0, 1, 5):
        scenario.run(seed)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", [1, 2])
def test_any_number_of_brokers_gives_the_same_results_under_the_same_ids(seed):
    found = []
    for brokers in (1, 6, 20):
        run = Run(seed, Shape(brokers=brokers, faults=0, events=200))
        run.run()
        found.append(checks.ids_of(run.places))
    assert found[0].total() > 50
    assert found[0] == found[1] == found[2]


def test_the_same_seed_gives_the_same_run_byte_for_byte():
    outcomes = [scenario.run(seed, Shape(events=150)) for seed in (3, 3, 4)]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].digest != outcomes[2].digest


@pytest.mark.timeout(60)
def test_a_run_does_not_depend_on_the_hash_seed():
    said = set()
    command = [sys.executable, "-m", "simulation", "--kind", "network", "--seed", "6"]
    for hash_seed in ("1", "4242"):
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=50,
        )
        said.add(done.stdout)
    assert len(said) == 1
    assert said.pop().startswith("Outcome(seed=6, ")

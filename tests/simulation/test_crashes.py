"""A broker with a journal loses and doubles nothing, whenever its processes end."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from broker.core.recovery import records
from language import check_text
from simulation.crashes import further, scenario
from simulation.crashes.journal import SimulatedJournal
from simulation.crashes.process import Process
from simulation.crashes.scenario import CrashRun

ROOT = Path(__file__).resolve().parent.parent.parent
FAST_SEEDS = 50
LONG_SEEDS = 20_000
PART = 25


@pytest.mark.timeout(60)
@pytest.mark.parametrize("first", range(0, FAST_SEEDS, PART))
def test_nothing_is_lost_or_doubled(first):
    for seed in range(first, first + PART):
        scenario.run(seed)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(FAST_SEEDS, FAST_SEEDS + LONG_SEEDS, 250))
def test_nothing_is_lost_or_doubled_in_many_more_runs(first):
    for seed in range(first, first + 250):
        scenario.run(seed)


def test_the_same_seed_gives_the_same_run_byte_for_byte():
    outcomes = [scenario.run(seed) for seed in (3, 3, 4)]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].digest != outcomes[2].digest


@pytest.mark.timeout(60)
def test_a_run_does_not_depend_on_the_hash_seed():
    said = set()
    for hash_seed in ("1", "4242"):
        done = subprocess.run(
            [sys.executable, "-m", "simulation", "--seed", "5"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        said.add(done.stdout)
    assert len(said) == 1
    assert said.pop().startswith("CrashOutcome(seed=5, ")


@pytest.mark.timeout(60)
def test_runs_meet_what_they_are_there_for(monkeypatch):
    """Checks of runs in which nothing happens would show nothing."""
    met = Counter()
    read_segment, open_journal = records.read_segment, SimulatedJournal.open
    fail, write_snapshot = Process._fail, SimulatedJournal.write_snapshot

    def reading(*given):
        found = read_segment(*given)
        met["torn"] += bool(found.stopped)
        return found

    def opening(self):
        found = open_journal(self)
        met["from a snapshot"] += found.snapshot is not None
        met["records again"] += len(found.records)
        return found

    def failing(self):
        met["failed writes"] += 1
        fail(self)

    def writing(self, number, data):
        write_snapshot(self, number, data)
        met["snapshots"] += 1

    monkeypatch.setattr(records, "read_segment", reading)
    monkeypatch.setattr(SimulatedJournal, "open", opening)
    monkeypatch.setattr(Process, "_fail", failing)
    monkeypatch.setattr(SimulatedJournal, "write_snapshot", writing)
    subscriptions = Counter()
    for seed in range(60):
        run = CrashRun(seed)
        outcome = run.run()
        met.update(ends=outcome.ends, crashes=outcome.crashes, events=outcome.events)
        met.update(results=outcome.results)
        ledger = run.site.process.core.ledger
        met.update({f"dropped: {name}": count for name, count in ledger.events.dropped.items()})
        subscriptions.update(one.subscription for one in run.site.machine.outbox.rows)
    assert met["crashes"] > 200
    assert met["ends"] - met["crashes"] > 100  # a process alone
    assert met["torn"] > 30
    assert min(met["from a snapshot"], met["failed writes"], met["snapshots"]) > 100
    assert met["records again"] > 2_000
    assert met["results"] > 2_000
    assert min(met["dropped: repeat"], met["dropped: late"]) > 200
    assert len(subscriptions) > 20


@pytest.mark.parametrize("name", further.NAMES)
def test_each_further_text_is_a_specification(name):
    assert check_text(further.text_of(name, "anna")).ok

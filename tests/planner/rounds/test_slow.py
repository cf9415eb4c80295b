"""Words that take longer than brokers wait between them: in the end nothing better is left."""

from random import Random

import pytest

from experiments.trial import Conditions, Trial
from planner.rounds.looking import Look
from planner.rounds.settings import Effort, Settings
from planner.rounds.view import Summary, view_of
from tests.planner.rounds.networks import generated

# Words take longer than a broker waits from one to its next look.
BRIEF = Effort(total=5_000, at_once=5_000)
DELAYS_MS = (500, 4_000)
CHANGES = 3  # of rates one soon after the other, so that looks go by words that are over
GAP_MS = 6_000
PHASES = 5


def changing(seed: int) -> tuple[Trial, Random]:
    random = Random(seed)
    problem = generated(random, random.randrange(5, 10), random.randrange(3, 8))
    # With a small radius several look, and ask for the same members.
    settings = Settings(random.randrange(1, 3), 0.0, effort=BRIEF)
    trial = Trial(problem, settings, seed, Conditions(delay_ms=DELAYS_MS))
    trial.until_quiet()
    return trial, random


def change(trial: Trial, random: Random) -> None:
    """Rates are others, and others again while brokers still speak of that."""
    for _ in range(CHANGES):
        stream = random.randrange(len(trial.layout.streams))
        trial.rate({stream: random.randrange(1, 3_000) * 10**9})
        until = trial.now + random.randrange(GAP_MS)
        while trial.now < until and trial.step():
            pass
    trial.until_quiet()


def missed(trial: Trial) -> list[int]:
    """The brokers that would find something better if they looked now."""
    known = {
        number: Summary(number, trial.epoch, 0, None, None, machine.tables)
        for number, machine in enumerate(trial.machines)
    }
    found = []
    for number, machine in enumerate(trial.machines):
        view = view_of(trial.layout, trial.tree, number, machine.radius, known)
        assert view is not None, "tables contradict each other at rest"
        if not trial.tree.overseen(number, machine.radius, machine.settings.radius):
            again = Look(view, machine.settings)
            while not again.go_on():
                pass
            if again.proposal is not None:
                found.append(number)
    return found


def refusals(first: int, last: int) -> int:
    """Runs these seeds; how often brokers were refused in them."""
    refused = 0
    for seed in range(first, last):
        trial, random = changing(seed)
        for _ in range(PHASES):
            change(trial, random)
            assert missed(trial) == [], f"seed {seed}"
        refused += sum(machine.refused for machine in trial.machines)
    return refused


def test_whoever_is_refused_looks_again_however_late_that_comes() -> None:
    assert refusals(0, 5) > 10


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_whoever_is_refused_looks_again_in_many_more_networks() -> None:
    assert refusals(5, 200) > 100

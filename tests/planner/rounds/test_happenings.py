"""Whatever happens to a network, in whatever moment: in the end all is run once and laid right."""

from random import Random

import pytest

from experiments.trial import Conditions, Trial, tables_of
from planner.rounds.settings import Effort, Settings
from tests.planner.rounds.networks import generated


def happen(trial: Trial, random: Random) -> None:
    """One thing: a death, a return, a link that goes or comes, another rate."""
    alive = [n for n in range(len(trial.machines)) if n not in trial.gone]
    kind = random.randrange(5)
    if kind == 0 and len(alive) > 3:
        trial.die(random.choice(alive))
    elif kind == 1 and trial.gone:
        trial.revive(random.choice(sorted(trial.gone)))
    elif kind == 2:
        link = random.choice(trial.problem.links)
        trial.cut_link(trial.layout.numbers[link.a], trial.layout.numbers[link.b])
    elif kind == 3 and trial.cut:
        trial.mend_link(*random.choice(sorted(trial.cut)))
    else:
        stream = random.randrange(len(trial.layout.streams))
        trial.rate({stream: random.randrange(1, 3000) * 10**9})


def run(seed: int, happenings: int) -> Trial:
    random = Random(seed)
    problem = generated(
        random, random.randrange(5, 10), random.randrange(2, 8), (None, 4), ring=True
    )
    effort = Effort(total=20_000, at_once=20_000)
    settings = Settings(radius=random.randrange(1, 4), price=0.05, effort=effort)
    trial = Trial(problem, settings, seed, Conditions(delay_ms=(2, 40), loss=0.1))
    for _ in range(happenings):
        for _ in range(random.randrange(120)):
            trial.step()
        happen(trial, random)
    trial.gone.clear()
    trial.cut.clear()
    trial.revive(0)
    trial.until_quiet()
    return trial


def assert_whole(trial: Trial) -> None:
    assert trial.twice == []
    assert -1 not in trial.hosts
    laid = tables_of(trial.layout, trial.tree, trial.hosts, trial.amounts)
    for number, machine in enumerate(trial.machines):
        assert machine.quiet
        assert machine.tables.passing == laid[number].passing
        assert machine.tables.joined == laid[number].joined


@pytest.mark.parametrize("seed", range(150, 160))
def test_in_the_end_all_is_run_once_and_laid_right(seed: int) -> None:
    assert_whole(run(seed, 8))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_in_the_end_all_is_run_once_in_many_networks() -> None:
    for seed in range(100, 500):
        assert_whole(run(seed, 12))

"""Events that wait on their way for partners: none is lost, none comes twice, less travels."""

import pytest

from simulation.network import checks, correlated
from simulation.network.correlated import CorrelatedRun
from simulation.network.scenario import Shape

FAST_SEEDS = (6, 7)
LEADING_SEEDS = (2, 4)
LONG_SEEDS = 1_000
MORE = (0, 1, *range(3, 40))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", FAST_SEEDS)
def test_nothing_is_lost_or_doubled(seed):
    assert correlated.run(seed).of_run.events >= 490


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", LEADING_SEEDS)
def test_nothing_is_lost_where_what_is_rare_goes_first(seed):
    outcome = correlated.run_with_leads(seed)
    assert outcome.waited >= outcome.found > 0
    assert outcome.probes > 0


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("first", range(0, LONG_SEEDS, 100))
def test_nothing_is_lost_where_what_is_rare_goes_first_in_many_more_runs(first):
    assert sum(correlated.run_with_leads(seed).probes for seed in range(first, first + 100)) > 0


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("first", range(0, LONG_SEEDS, 100))
def test_nothing_is_lost_or_doubled_in_many_more_runs(first):
    waited = let_go = 0
    for seed in range(first, first + 100):
        outcome = correlated.run(seed)
        waited += outcome.waited
        let_go += outcome.let_go
    assert waited > let_go > 0


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", [6])
def test_results_and_ids_are_those_without_waiting_and_less_travels(seed, monkeypatch):
    found = []
    for correlate in (False, True):
        monkeypatch.setattr(CorrelatedRun, "correlate", correlate)
        # Events that last would have all hosts ask anew, in the midst of a few minutes.
        run = CorrelatedRun(seed, Shape(faults=0, names=("Damp", "Valley", "Rise")))
        outcome = run.outcome()
        found.append((checks.ids_of(run.places), outcome.of_run.travelled))
        assert (outcome.let_go > 0) == correlate
    assert found[0][0] == found[1][0]
    assert found[0][0].total() > 0
    assert found[1][1] < found[0][1]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", [2, *(pytest.param(one, marks=pytest.mark.long) for one in MORE)])
def test_any_number_of_brokers_gives_the_same_results_under_the_same_ids(seed):
    found = []
    for brokers in (1, 6, 20):
        run = CorrelatedRun(seed, Shape(brokers=brokers, faults=0, events=200))
        run.run()
        found.append(checks.ids_of(run.places))
    assert found[0] == found[1] == found[2]
    assert found[0].total() > 0

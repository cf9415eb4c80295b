"""Sources at two brokers, that leave one of them: results are those of one engine all the same."""

import pytest

from simulation.network import twins

FAST_SEEDS = (14, 16)  # where such a source was forgotten while the other broker had it
LONG_SEEDS = 1_000


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", FAST_SEEDS)
def test_nothing_is_lost_or_doubled(seed):
    outcome = twins.run(seed)
    assert outcome.twins >= outcome.left > 0
    assert outcome.of_run.results > 30


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("first", range(0, LONG_SEEDS, 100))
def test_nothing_is_lost_or_doubled_in_many_more_runs(first):
    found = [twins.run(seed) for seed in range(first, first + 100)]
    assert sum(one.left for one in found) > 100

"""Slow brokers with real cells and coordinators: tasks move, results stay exact, all comes to rest.

A run itself checks that its results are those of one engine, and that nothing moves in the end.
"""

import pytest

from tests.simulation.network.slow import Slow
from tests.simulation.network.test_planned_changes import PHASE_MS, Changing, Line

MOVES_MAX = 6  # in three phases; each time that it comes back a task stays twice as long


class SlowLine(Slow, Line):
    """A rate doubles at one end, and is so for longer, as it is measured worse."""

    phases = 3


class SlowChanging(Slow, Changing):
    """A rate doubles, a host dies and is back."""


def moves(run):
    return sum(len(hosts) - 1 for hosts in run.hosts.values())


@pytest.mark.timeout(300)
def test_a_task_leaves_its_home_in_time_though_brokers_are_slow():
    run = SlowLine(2)
    outcome = run.run()
    (hosts,) = run.hosts.values()
    assert 0 < hosts[1][0] < PHASE_MS
    assert moves(run) <= MOVES_MAX
    assert outcome.results > 10


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_results_are_exact_and_all_rests_in_many_more_runs_of_slow_brokers():
    moved = 0
    for seed in range(3, 35):
        run = SlowLine(seed)
        run.run()
        assert moves(run) <= MOVES_MAX
        moved += moves(run)
    assert moved > 32


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_a_rate_doubles_and_a_host_dies_among_slow_brokers():
    moved = 0
    for seed in range(1, 5):
        run = SlowChanging(seed)
        run.run()
        moved += moves(run)
    assert moved > 5

"""Homes that are lost in every way, and taken over by their stand-ins, under all faults."""

import pytest

from simulation.standins.loss import LOSSES
from simulation.standins.scenario import run, run_leased

LONG = 2_000


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(len(LOSSES)))
def test_every_result_is_there_whatever_becomes_of_a_home(seed):
    outcome = run(seed)
    assert outcome.loss == LOSSES[seed]
    assert outcome.results


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(len(LOSSES)))
def test_a_stand_in_takes_over_by_itself_and_there_are_never_two(seed):
    """With clocks that differ in rate by up to twice the bound that is stated for each."""
    outcome = run_leased(seed)
    assert outcome.lease_ms
    assert outcome.results


@pytest.mark.long
@pytest.mark.timeout(36_000)
def test_many_homes_are_lost():
    adopted = again = withheld = unread = 0
    for seed in range(100, 100 + LONG):
        outcome = run(seed)
        adopted += outcome.adopted
        again += outcome.again
        withheld += outcome.withheld
        unread += outcome.unread
    # A run without these shows nothing.
    assert adopted > LONG
    assert again
    assert withheld
    assert unread > LONG


@pytest.mark.long
@pytest.mark.timeout(36_000)
def test_many_homes_with_a_lease_are_lost():
    results = unread = 0
    for seed in range(100, 100 + LONG):
        outcome = run_leased(seed)
        results += outcome.results
        unread += outcome.unread
    assert results > LONG
    assert unread

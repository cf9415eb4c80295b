"""What is sent behind *active* counts, be it the first of its type, and whatever ends just then."""

import pytest

from broker.network.origin.own import OwnLog
from broker.network.routing.wants import Wants
from simulation.network import first
from tests.simulation.planted import found_from


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(12))
def test_first_events_count_once(seed):
    first.run(seed)


@pytest.mark.long
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("part", range(10))
def test_first_events_count_once_in_many_runs(part):
    for seed in range(part * 200, (part + 1) * 200):
        first.run(seed)


def wants_that_nobody_keeps(patch):
    patch.setattr(Wants, "handle", lambda *_: None)


def a_host_that_asks_first_is_offered_what_comes_from_then_on(patch):
    place = OwnLog.place

    def late(self, host, life, position):
        return None if position is None else place(self, host, life, position)

    patch.setattr(OwnLog, "place", late)


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    "mistake",
    [
        wants_that_nobody_keeps,
        a_host_that_asks_first_is_offered_what_comes_from_then_on,
    ],
)
def test_a_mistake_is_found(mistake, monkeypatch):
    mistake(monkeypatch)
    found_from(first.run, "first")

"""A disk that goes back in time costs nothing but what was acknowledged in between, and says so."""

import pytest

from broker.network.origin.own import OwnLog
from broker.network.replication.cancellations import CancellationLog
from broker.network.replication.incarnation import Incarnation
from simulation.network import rewound
from tests.simulation.planted import found_from

FAST_SEEDS = range(12)
LONG_SEEDS = 2_000


@pytest.mark.timeout(120)
@pytest.mark.parametrize("first", range(0, len(FAST_SEEDS), 3))
def test_nothing_else_is_lost_and_nothing_is_doubled(first):
    outcomes = [rewound.run(seed) for seed in FAST_SEEDS[first : first + 3]]
    assert {outcome.kind for outcome in outcomes} == {"restored", "emptied"}
    assert all(outcome.of_run.results > 0 for outcome in outcomes)
    assert first != 3 or any(outcome.cancelled for outcome in outcomes)


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("first", range(0, LONG_SEEDS, 100))
def test_nothing_else_is_lost_in_many_more_runs(first):
    outcomes = [rewound.run(seed) for seed in range(first, first + 100)]
    assert sum(outcome.reported for outcome in outcomes) > 30


def positions_that_are_clipped_without_a_word(patch):
    """As it was before there were lives."""
    patch.setattr(Incarnation, "saw", lambda *_: False)


def a_life_that_nobody_is_asked_about(patch):
    patch.setattr(rewound.RewoundPlace, "identifies", False)


def hosts_that_begin_anew_in_each_life(patch):
    place = OwnLog.place

    def forgetful(self, host, life, position):
        return place(self, host, life, position) if life == self.life else self.position

    patch.setattr(OwnLog, "place", forgetful)


def cancellations_that_no_neighbour_hands_back(patch):
    patch.setattr(CancellationLog, "lacking", lambda *_: ())


# A seed at which each is found.
PLANTED = {
    positions_that_are_clipped_without_a_word: 4,
    a_life_that_nobody_is_asked_about: 4,
    hosts_that_begin_anew_in_each_life: 0,
    cancellations_that_no_neighbour_hands_back: 0,
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("plant", PLANTED, ids=lambda one: one.__name__)
def test_a_planted_mistake_is_found(plant, monkeypatch):
    plant(monkeypatch)
    found_from(rewound.run, "rewound", PLANTED[plant])

"""Of a disk and its copy one admits events, and none that either acknowledged is lost."""

import pytest

from broker.core.exchange.announcing import Announcing
from broker.network.replication.disk_claim import DiskClaim
from simulation.network import clones
from tests.simulation.planted import SEEDS, found_from

FAST_SEEDS = range(12)
LONG_SEEDS = 2_000


@pytest.mark.timeout(120)
@pytest.mark.parametrize("first", range(0, len(FAST_SEEDS), 3))
def test_one_goes_on_and_the_other_takes_its_place_when_it_is_gone(first):
    outcomes = [clones.run(seed) for seed in FAST_SEEDS[first : first + 3]]
    assert {outcome.kind for outcome in outcomes} == {"another", "same"}
    assert all(outcome.of_run.results > 0 for outcome in outcomes)


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("first", range(0, LONG_SEEDS, 500))
def test_one_goes_on_in_many_more_runs(first):
    outcomes = [clones.run(seed) for seed in range(first, first + 500)]
    assert sum(outcome.apart > 0 for outcome in outcomes) > 100
    assert not all(outcome.original_stayed for outcome in outcomes)


def copies_that_nobody_notices(patch):
    """As it was when only names told brokers apart."""
    patch.setattr(DiskClaim, "look", lambda *_: False)


def the_later_one_that_goes_on(patch):
    """The numbers of processes compared the wrong way round."""
    look = DiskClaim.look

    def inverted(self, claimants, reachable):
        self.run = -self.run
        turned = {name: _Turned(one) for name, one in claimants.items()}
        try:
            return look(self, turned, reachable)
        finally:
            self.run = -self.run

    patch.setattr(DiskClaim, "look", inverted)


class _Turned:
    def __init__(self, one):
        self.run, self.disk, self.forgotten = -one.run, one.disk, one.forgotten


def first_events_taken_with_the_advertisement_that_waited_before_them(patch):
    """What waited for a settlement was handed on in one, and nobody was asked in between."""
    look, inside = Announcing.look, []

    def later(self, types, now):
        if not inside:
            look(self, types, now)

    def pass_on(self, *arguments):
        inside.append(self)
        try:
            return passed(self, *arguments)
        finally:
            inside.pop()

    passed = Announcing.pass_on
    patch.setattr(Announcing, "look", later)
    patch.setattr(Announcing, "pass_on", pass_on)


# A seed at which each is found.
PLANTED = {
    copies_that_nobody_notices: 0,
    the_later_one_that_goes_on: 0,
    first_events_taken_with_the_advertisement_that_waited_before_them: 352,
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("plant", PLANTED, ids=lambda one: one.__name__)
def test_a_planted_mistake_is_found(plant, monkeypatch):
    plant(monkeypatch)
    found_from(clones.run, "cloned", PLANTED[plant], PLANTED[plant] + SEEDS)

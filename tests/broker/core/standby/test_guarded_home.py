"""A home gives out results behind its stand-in's answer, and goes on where that is forgotten."""

from types import SimpleNamespace

import pytest

from broker.core.effects import Emission, Emit
from broker.core.standby.guarded_home import GuardedHome
from broker.network.delivery.feed import NEIGHBOUR
from broker.network.delivery.messages import HomeKept, LeaseGranted, StandInChosen

RUN = 7
LEASE_MS = 30_000


class Hall:
    """A home with nothing installed, and what it has to say."""

    def __init__(self, setting, lease_ms, *neighbours, chosen=("", 0)):
        self.now = 0
        self.via = list(neighbours)
        self.offset = 0
        network = SimpleNamespace(
            adoption=SimpleNamespace(chosen=StandInChosen(*chosen)),
            catalogue=SimpleNamespace(subscriptions={}),
            book=SimpleNamespace(of={}, cells={}, state=list),
            copies=SimpleNamespace(brokers=list, fresh=(), life=0),
        )
        durable = SimpleNamespace(
            network=network,
            unstored=(),
            outbox_end=0,
            now=0,
            options=SimpleNamespace(name="hall"),
        )
        mail = SimpleNamespace(tell=lambda *_: None, bring=lambda *_: None)

        def tell(chosen):
            network.adoption.chosen = chosen

        self.home = GuardedHome(durable, RUN, mail, self.via, tell, lambda: list(self.via))
        self.home.set_up(setting, lease_ms, "log")
        self.look()

    def look(self):
        return self.home.look(self.now)

    def kept(self):
        self.home.feed.heard("roof", HomeKept(RUN, self.home.feed.number, False))

    def found(self):
        result = Emission(f"r{self.offset}", 0, "anna", "Hot", "log", b"{}", self.offset)
        self.offset += 1
        self.home.change(SimpleNamespace(), (Emit((result,)),), self.now)


@pytest.mark.parametrize("lease_ms", [0, LEASE_MS])
def test_a_home_whose_stand_in_is_forgotten_gives_out_its_results(lease_ms):
    hall = Hall("roof", lease_ms, "roof")
    hall.kept()
    hall.look()
    hall.via.clear()
    hall.look()
    hall.found()
    hall.home.forget("roof")
    assert hall.look() == 1
    hall.found()
    assert hall.look() == 2
    assert hall.home.status()["held"] == 0


def test_a_home_with_any_neighbour_waits_for_no_lease_while_there_is_none():
    hall = Hall(NEIGHBOUR, LEASE_MS, "roof")
    hall.kept()
    hall.via.clear()
    hall.look()
    hall.found()
    assert hall.look() is None
    hall.home.forget("roof")
    assert hall.look() == 1
    # Another one is asked for its lease again.
    hall.via.append("roof")
    hall.look()
    hall.found()
    assert hall.look() is None
    hall.kept()
    assert hall.look() is None
    hall.home.lease_granted("roof", LeaseGranted(RUN, 2))
    assert hall.look() == 2


def test_a_home_that_never_reached_its_stand_in_does_not_look_all_the_time():
    hall = Hall("roof", LEASE_MS)
    assert not hall.home.feed.is_bound
    hall.found()
    hall.now = 5_000
    assert hall.look() is None
    wake = hall.home.next_wake()
    assert wake is None or wake > hall.now

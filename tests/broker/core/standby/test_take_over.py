"""A person has a home taken over: not while it may count on its lease, but with `--force`."""

import json
from collections import defaultdict
from types import SimpleNamespace

import pytest

from broker.core.effects import Reply
from broker.core.standby.adoption import Adopted
from broker.core.standby.home_copy import HomeCopy, InstalledRow
from broker.core.standby.stand_ins import StandIns
from broker.network.delivery.messages import StandInChosen
from broker.network.delivery.succession import SuccessionLog
from broker.network.frames.messages import TakeOverRequested

LEASE_MS = 30_000


class Roof:
    """A broker that has a copy of `hall`."""

    def __init__(self, lease_ms, *via):
        self.told = []
        copy = HomeCopy("hall", 1, 0)
        copy.lease_ms = lease_ms
        copy.rows = {("anna", "Hot"): InstalledRow(1, None)}
        adoption = SimpleNamespace(
            chosen=StandInChosen("", 0),
            inherited=SimpleNamespace(upto=lambda _epoch: 0),
            last=Adopted("hall", (), (), ()),
        )
        network = SimpleNamespace(
            adoption=adoption,
            successions=SuccessionLog(),
            standing_in=SimpleNamespace(homes={"hall": copy}),
        )
        durable = SimpleNamespace(
            network=network,
            unstored=(),
            outbox_end=0,
            now=0,
            number=1,
            options=SimpleNamespace(name="roof"),
        )
        mail = SimpleNamespace(
            tell=None, bring=None, withholds=None, home_of=None, on_said=defaultdict(lambda: None)
        )
        sender = SimpleNamespace(via=dict.fromkeys(via, "hall"))
        sessions = SimpleNamespace(standing=[])
        self.part = StandIns(durable, 1, mail, sender, sessions, self.tell, None, None, None)
        self.network = network

    def tell(self, what):
        self.told.append(what.home)
        del self.network.standing_in.homes[what.home]

    def ask(self, now, *, is_forced=False):
        self.part.take_over(TakeOverRequested("hall", "me", is_forced))
        [reply] = [effect for effect in self.part.look(now) if isinstance(effect, Reply)]
        return json.loads(reply.payload)


@pytest.mark.parametrize("since", [0, 1_000])
def test_a_home_is_not_taken_over_while_it_may_count_on_its_lease(since):
    roof = Roof(LEASE_MS)
    roof.part.look(since)
    [error] = roof.ask(since + 1)["errors"]
    assert error["code"] == "HW522"
    assert "for 30 s more" in error["message"]
    [error] = roof.ask(since + LEASE_MS - 1)["errors"]
    assert "for 1 s more" in error["message"]
    assert roof.told == []
    assert roof.ask(since + LEASE_MS)["ok"]
    assert roof.told == ["hall"]


def test_nor_by_one_that_has_just_begun():
    roof = Roof(LEASE_MS)
    assert not roof.ask(7)["ok"]
    assert roof.told == []


def test_who_knows_that_it_has_ended_does_not_wait():
    roof = Roof(LEASE_MS, "hall")
    assert roof.ask(0)["errors"][0]["code"] == "HW519"
    assert roof.ask(1, is_forced=True)["ok"]
    assert roof.told == ["hall"]


def test_a_home_without_a_lease_is_taken_over_at_once():
    roof = Roof(0)
    assert roof.ask(0)["ok"]
    assert roof.told == ["hall"]

"""The states of all brokers: each is there or named with a reason, whatever it answers."""

import asyncio

import msgspec
import pytest

from broker.core.standby.copies_kept import CopiesKept
from broker.network.delivery.messages import HomeEntrusted
from broker.network.delivery.succession import SuccessionLog
from broker.network.overlay.calls import CallArrived, reply_to
from broker.remote import desk
from broker.remote.desk import CallDesk
from broker.remote.home_copies import HomeCopies
from broker.remote.states import BrokerState, NetworkStates, StandInState
from tests.broker.remote.network_support import state_of


def state(name):
    return BrokerState(name, "1.0", [], 1_000, 2_000, 3, 0, 5, 7)


class Reaches:
    """A network that has a way to all brokers but some."""

    def __init__(self, *cut):
        self.cut = cut

    def reaches(self, to):
        return to not in self.cut

    def leads(self, to):
        return self.reaches(to)


def asked(replies, *cut, kept=None):
    """What `hall` lists when others reply so; None is no reply. `kept` are its copies of homes."""
    sent = []

    def put(message):
        call = message.call
        sent.append(call.to)
        reply = replies[call.to]
        if reply is not None:
            body = msgspec.json.encode(reply)
            asyncio.get_running_loop().call_soon(calls.receive, CallArrived(reply_to(call, body)))

    calls = CallDesk("hall", 1, Reaches(*cut), put, lambda: ("hall", *replies))

    async def scene():
        states = NetworkStates(lambda: state("hall"))
        states.link(calls, HomeCopies("hall", calls, kept or CopiesKept(), SuccessionLog()))
        return await states.listing()

    return asyncio.run(scene()), sent


def test_each_broker_is_listed_behind_the_one_that_was_asked():
    replies = {name: msgspec.structs.asdict(state(name)) for name in ("pi2", "attic", "pi1")}
    answer, sent = asked(replies)
    assert [row["broker"] for row in answer["brokers"]] == ["hall", "attic", "pi1", "pi2"]
    assert answer["unreached"] == []
    assert sorted(sent) == ["attic", "pi1", "pi2"]


@pytest.mark.parametrize(
    "reply", [{}, {"ok": False, "errors": []}, {"broker": 3}, {"broker": "x", "version": "1"}]
)
def test_who_answers_something_else_is_named(reply):
    answer, _ = asked({"pi1": reply})
    assert [row["broker"] for row in answer["brokers"]] == ["hall"]
    assert [row["broker"] for row in answer["unreached"]] == ["pi1"]


def test_who_is_cut_off_or_silent_is_named_with_the_reason(monkeypatch):
    monkeypatch.setattr(desk, "WAIT_S", 0.05)
    answer, sent = asked({"pi1": None, "pi2": None}, "pi2")
    reasons = {row["broker"]: row["reason"] for row in answer["unreached"]}
    assert reasons == {"pi1": desk.NO_REPLY, "pi2": desk.NO_WAY}
    assert set(sent) == {"pi1"}, "nobody is asked where no way leads"


def test_a_broker_bears_the_name_by_which_it_was_asked():
    answer, _ = asked({"pi1": msgspec.structs.asdict(state("hall"))})
    assert [row["broker"] for row in answer["brokers"]] == ["hall", "pi1"]


def test_without_links_there_is_one():
    answer = asyncio.run(NetworkStates(lambda: state("hall")).listing())
    assert [row["broker"] for row in answer["brokers"]] == ["hall"]


def test_who_stands_in_for_a_home_and_how_far_it_follows_is_part_of_its_state():
    stand_in = StandInState("roof", "following", 3, 30_000, leased=False)
    other = state("pi1")
    other.stand_in = stand_in
    answer, _ = asked({"pi1": msgspec.to_builtins(other)})
    own, row = answer["brokers"]
    assert own["stand_in"] is None
    assert row["stand_in"] == msgspec.to_builtins(stand_in)


def test_an_earlier_version_tells_of_no_stand_in():
    earlier = msgspec.to_builtins(state("pi1"))
    del earlier["stand_in"]
    answer, _ = asked({"pi1": earlier})
    assert answer["brokers"][1]["stand_in"] is None


def test_of_a_home_that_is_away_its_stand_in_is_told():
    kept = CopiesKept()
    kept.entrusted(HomeEntrusted("pi2", 1, 1, state_of("pi2", [])))
    answer, _ = asked({"pi2": None, "pi3": None}, "pi2", "pi3", kept=kept)
    rows = {row["broker"]: row.get("stand_in") for row in answer["unreached"]}
    assert rows == {"pi2": "hall", "pi3": None}

"""A home that is away is listed from the copy that its stand-in has, and said to be away."""

import asyncio

import pytest

from broker.core import refusals
from broker.network.delivery.succession import Succeeded
from broker.rights.current import CurrentRights
from broker.rights.homes import EndRequest
from broker.rights.judge import Principal
from broker.rights.table import RightsTable
from tests.broker.remote.network_support import CallNetwork, installed

JUDGE = CurrentRights(RightsTable(), "headwater").judge
ANNA = Principal(None)


def network(*of_pi3):
    """`pi3` is away, `roof` has a copy of it, and `hall` and `attic` have none."""
    brokers = CallNetwork(hall=[installed("Warm")], roof=[], attic=[], pi3=of_pi3)
    brokers.away.append("pi3")
    brokers.brokers["roof"].keep("pi3", of_pi3)
    return brokers


def listing(brokers, at="hall"):
    return asyncio.run(brokers.brokers[at].subscriptions.listing(JUDGE, ANNA))


def cancelled(brokers, name, at="hall", home=""):
    request = EndRequest(ANNA, "anna", name)
    end = brokers.brokers[at].subscriptions.end(lambda: JUDGE, request, "cancelled", home)
    return asyncio.run(end)


@pytest.mark.parametrize("at", ["hall", "roof", "attic"])
def test_what_is_at_home_at_a_broker_that_is_away_is_listed_from_its_copy(at):
    answer = listing(network(installed("Frost"), installed("Hot", "bob")), at)
    rows = {row["subscription"]: row for row in answer["subscriptions"]}
    assert sorted(rows) == ["Frost", "Hot", "Warm"]
    for name in ("Frost", "Hot"):
        assert (rows[name]["home"], rows[name]["stand_in"]) == ("pi3", "roof")
        assert rows[name]["away"] is True
    assert "away" not in rows["Warm"]
    (silent,) = answer["unreached"]
    assert (silent["broker"], silent["stand_in"]) == ("pi3", "roof")


def test_nobody_is_asked_for_copies_while_all_can_be_asked():
    brokers = network(installed("Frost"))
    brokers.away.clear()
    answer = listing(brokers)
    assert [row.get("away") for row in answer["subscriptions"]] == [None, None]
    assert {verb for _, verb in brokers.asked} == {"list"}


def test_the_latest_copy_is_the_one_that_counts():
    brokers = network(installed("Frost"))
    brokers.brokers["attic"].keep("pi3", [installed("Old")], number=2)
    names = [row["subscription"] for row in listing(brokers)["subscriptions"]]
    assert names == ["Warm", "Frost"]
    brokers.brokers["attic"].keep("pi3", [installed("New")], run=6, number=0)
    names = [row["subscription"] for row in listing(brokers)["subscriptions"]]
    assert names == ["Warm", "New"]


def test_what_was_taken_over_is_listed_at_its_heir_alone():
    """Another broker may still have a copy of before: it is told late that it is none any more."""
    brokers = network(installed("Frost"))
    roof = brokers.brokers["roof"]
    roof.kept.homes.clear()
    roof.here.append(installed("Frost"))
    brokers.brokers["hall"].successions.handle(Succeeded("pi3", "roof", 9, 0, (), (), 0))
    brokers.brokers["attic"].keep("pi3", [installed("Frost")])
    answer = listing(brokers)
    rows = [(row["subscription"], row["home"], "away" in row) for row in answer["subscriptions"]]
    assert rows == [("Warm", "hall", False), ("Frost", "roof", False)]
    assert answer["unreached"][0]["taken_over_by"] == "roof"


def test_a_long_copy_comes_page_by_page():
    many = [installed(f"S{number:04}") for number in range(1_200)]
    brokers = network(*many)
    assert len(listing(brokers)["subscriptions"]) == 1 + len(many)
    assert brokers.asked.count(("roof", "copied")) > 1


@pytest.mark.parametrize("home", ["", "pi3"])
def test_a_cancellation_at_a_home_that_is_away_is_refused_and_names_its_stand_in(home):
    answer = cancelled(network(installed("Frost")), "Frost", home=home)
    unreached = [row for row in answer["errors"] if row["code"] == refusals.UNREACHED]
    assert answer["ok"] is False
    assert "`roof` has a copy of it" in unreached[0]["message"]
    assert "`headwater take-over pi3`" in unreached[0]["message"]


@pytest.mark.parametrize("at", ["hall", "roof", "attic"])
def test_after_a_take_over_a_cancellation_finds_the_heir_from_any_broker(at):
    brokers = network()
    brokers.brokers["roof"].here.append(installed("Frost"))
    answer = cancelled(brokers, "Frost", at)
    assert (answer["ok"], answer["home"]) == (True, "roof")
    assert brokers.brokers["roof"].here == []


def test_a_cancellation_that_a_take_over_outruns_ends_it_at_the_heir():
    """The home is taken over once it has given its list, and has the subscription no more."""
    brokers = network()
    brokers.away.clear()
    home, roof = brokers.brokers["pi3"], brokers.brokers["roof"]
    home.here.append(installed("Frost"))
    end = home.calls.answers["end"]

    async def outrun(question):
        roof.here.append(home.here.pop())
        return await end(question)

    home.calls.answers["end"] = outrun
    answer = cancelled(brokers, "Frost")
    assert (answer["ok"], answer.get("home")) == (True, "roof")
    assert (home.here, roof.here) == ([], [])


def test_a_later_subscription_of_its_name_at_an_heir_is_left_alone():
    brokers = network()
    brokers.away.clear()
    home, roof = brokers.brokers["pi3"], brokers.brokers["roof"]
    home.here.append(installed("Frost"))
    end = home.calls.answers["end"]

    async def outrun(question):
        home.here.clear()
        roof.here.append(installed("Frost", seq=2))
        return await end(question)

    home.calls.answers["end"] = outrun
    answer = cancelled(brokers, "Frost")
    assert answer["errors"][0]["code"] == refusals.UNKNOWN_SUBSCRIPTION
    assert len(roof.here) == 1


@pytest.mark.parametrize("reply", [{}, {"ok": 1}, {"subscriptions": ["Frost"]}])
def test_a_reply_that_confirms_nothing_is_not_taken_for_one_that_does(reply):
    brokers = network()
    brokers.away.clear()
    home = brokers.brokers["pi3"]
    home.here.append(installed("Frost"))

    async def garbled(_question):
        return reply

    home.calls.answers["end"] = garbled
    answer = cancelled(brokers, "Frost")
    assert answer["ok"] is False
    assert answer["errors"][0]["code"] == refusals.UNCONFIRMED

"""What any broker has of a home that is away, before it is taken over and after that."""

import pytest

from tests.broker.core.standby.homes import LinkedHomes

EDGES = ("h", "a"), ("a", "b")


@pytest.fixture
def homes():
    """`a` stands in for `h`, at which two subscriptions are at home."""
    line = LinkedHomes(*EDGES)
    line.start()
    line.submit("h")
    assert (line["h"].feed.stand_in, line["h"].feed.state) == ("a", "following")
    return line


def copied(homes):
    return sorted(key[1] for key in homes["a"].process.core.network.standing_in.homes["h"].rows)


def test_a_home_that_is_away_has_its_subscriptions_in_the_copy_and_no_other_broker(homes):
    homes.lose("h")
    assert copied(homes) == ["Cold", "Warm"]
    assert homes["a"].home == homes["b"].home == []


def test_what_was_cancelled_is_not_taken_over(homes):
    assert homes.cancel("h", "Warm")["ok"]
    homes.lose("h")
    assert copied(homes) == ["Cold"]
    assert homes.take_over("h", "a")["subscriptions"] == [["anna", "Cold"]]
    assert homes["a"].home == ["Cold"]


def test_nothing_is_cancelled_at_a_stand_in_before_it_takes_over(homes):
    homes.lose("h")
    assert not homes.cancel("a", "Warm")["ok"]
    assert copied(homes) == ["Cold", "Warm"]


def test_what_is_cancelled_at_an_heir_is_gone_for_good(homes):
    """Also behind its restart, and once the home is back, whose disk has it still."""
    homes.lose("h")
    assert homes.take_over("h", "a")["ok"]
    assert sorted(homes["a"].home) == ["Cold", "Warm"]
    assert homes.cancel("a", "Warm")["ok"]
    homes["a"].end()
    homes.run(20)
    assert homes["a"].home == ["Cold"]
    homes.begin("h")
    assert homes["h"].home == []
    assert homes["a"].home == ["Cold"]
    assert not homes.cancel("h", "Cold")["ok"], "it is at home at its heir"


@pytest.mark.parametrize("name", ["a", "b"])
def test_every_broker_retains_how_a_home_is(homes, name):
    topic = "status/h"
    assert homes[name].retained[topic]["state"] == "ready"
    homes.lose("h")
    assert homes[name].retained[topic]["state"] == "lost"
    homes.take_over("h", "a")
    assert homes[name].retained[topic]["state"] == "lost"
    homes.begin("h")
    assert homes[name].retained[topic]["state"] == "ready"

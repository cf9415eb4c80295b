"""A home with a lease gives out results while it has the lease, and at no other time."""

from tests.broker.core.standby.homes import LinkedHomes

LEASE_MS = 3_000
EDGE = "h", "a"


def leased():
    homes = LinkedHomes(EDGE, lease_ms=LEASE_MS)
    homes.start()
    homes.submit("h")
    homes.publish("h", 9.0)
    homes.run(2)
    assert homes.released("h") == ["Warm"]
    return homes


def test_an_answer_that_takes_longer_than_a_lease_lets_no_result_out():
    """The stand-in has the results by then, and may have been taken for the home meanwhile.

    It hears a question in the time of each lease, so it does not take over.
    """
    homes = leased()
    homes.links[EDGE].takes_ms = lambda: LEASE_MS * 3 // 5
    homes.run(10)
    homes.publish("h", 9.0, 9.0)
    homes.run(30)
    feed = homes["h"].feed
    assert (feed.state, feed.kept >= 0) == ("following", True)
    assert homes.released("h") == ["Warm"]
    assert homes["a"].home == []
    homes.links[EDGE].takes_ms = lambda: 5
    homes.run(10)
    assert homes.released("h") == ["Warm"] * 3


def test_a_home_that_is_cut_off_gives_out_nothing_and_its_stand_in_all_of_it():
    homes = leased()
    homes.links[EDGE].cut(60_000, lost=True)
    homes.run(10)
    assert sorted(homes["a"].home) == ["Cold", "Warm"], "it took over by itself"
    homes.publish("h", 9.0, 9.0)
    homes.run(20)
    assert homes.released("h") == ["Warm"]
    homes.run(60)
    assert homes["h"].home == []
    assert homes.released("h") == ["Warm"]
    assert homes.released("a") == ["Warm"] * 2

"""A home knows its stand-in over a restart, from its journal and from a snapshot alike."""

import pytest

from broker.network.delivery.messages import StandInChosen
from tests.broker.core.standby.homes import LinkedHomes

CUT_S = 60
LEASE_MS = 20_000
EDGES = ("h", "b"), ("h", "a"), ("a", "b")


def restarted(snapshot_records, lease_ms=0):
    """`h` when it has begun again; it had no way to `a` when it chose `b`.

    A process that knows nothing of that chooses `a`, as the first by name.
    """
    homes = LinkedHomes(*EDGES, snapshot_records=snapshot_records, lease_ms=lease_ms)
    homes.start(cut=[("h", "a")], cut_s=CUT_S)
    homes.submit("h")
    assert homes["h"].feed.stand_in == "b"
    homes.run(CUT_S)
    assert homes["h"].feed.stand_in == "b", "it stays with whom it has"
    homes["h"].end()
    homes.run(30)
    return homes


@pytest.mark.parametrize("lease_ms", [0, LEASE_MS])
@pytest.mark.parametrize("snapshot_records", [1, 10_000])
def test_the_stand_in_that_was_chosen_is_remembered(snapshot_records, lease_ms):
    homes = restarted(snapshot_records, lease_ms)
    home = homes["h"]
    assert home.process.core.network.adoption.chosen == StandInChosen("b", lease_ms)
    assert (home.feed.stand_in, home.feed.state) == ("b", "following")
    assert "h" in homes["b"].process.core.network.standing_in.homes
    assert "h" not in homes["a"].process.core.network.standing_in.homes


def test_a_lease_binds_over_a_restart_although_it_is_no_longer_set():
    """The stand-in may take over by it until it has heard of another one."""
    homes = LinkedHomes(*EDGES, lease_ms=LEASE_MS)
    homes.start(cut=[("h", "a")], cut_s=CUT_S)
    homes.submit("h")
    home = homes["h"]
    assert home.feed.is_bound
    homes.links["h", "b"].cut(CUT_S * 1_000, lost=True)
    home.lease_ms = 0
    home.end()
    homes.run(4)
    assert home.process is not None
    assert (home.feed.stand_in, home.feed.is_bound) == ("b", True)

"""A home never gives out results by a lease that its stand-in holds for lapsed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.network.delivery.lease import ASKS, DRIFT_PPM, HomeLease, LeaseGrants, usable_ms

LEASE_MS = 30_000
DAY_MS = 86_400_000
drifts = st.integers(-DRIFT_PPM, DRIFT_PPM)


def local(time_ms, drift_ppm):
    return time_ms + time_ms * drift_ppm // 1_000_000


def test_a_home_without_a_lease_needs_none():
    lease = HomeLease()
    assert lease.holds(DAY_MS)
    assert lease.ask(DAY_MS) is None
    assert lease.next_wake() is None


def test_a_lease_counts_from_when_it_was_asked_for():
    lease = HomeLease(LEASE_MS)
    assert not lease.holds(0)
    number = lease.ask(1_000)
    assert lease.ask(1_000 + LEASE_MS // ASKS - 1) is None
    lease.grant(number)
    assert lease.holds(1_000 + usable_ms(LEASE_MS) - 1)
    assert not lease.holds(1_000 + usable_ms(LEASE_MS))
    assert usable_ms(LEASE_MS) == 29_400  # two clocks, each off by one in a hundred


def test_an_answer_to_an_earlier_question_counts_as_much_as_that():
    lease = HomeLease(LEASE_MS)
    first = lease.ask(0)
    second = lease.ask(LEASE_MS // ASKS)
    lease.grant(second)
    lease.grant(first)
    assert lease.holds(LEASE_MS // ASKS + usable_ms(LEASE_MS) - 1)


def test_an_answer_under_way_counts_no_more_once_another_stands_in():
    lease = HomeLease(LEASE_MS)
    number = lease.ask(0)
    lease.lose()
    lease.grant(number)
    assert not lease.holds(1)
    lease.grant(lease.ask(1))
    lease.lose()
    assert not lease.holds(2)


def test_a_stand_in_grants_nothing_to_whom_it_knows_no_lease_of():
    grants = LeaseGrants()
    assert not grants.grant("hall", 0)
    assert grants.next_wake() is None
    assert grants.look([("hall", LEASE_MS)], 5) == []
    assert grants.grant("hall", 10)
    assert grants.next_wake() == 10 + LEASE_MS
    assert grants.look([], 10) == []
    assert not grants.grant("hall", 11)


def test_a_stand_in_that_begins_waits_for_a_whole_lease():
    """It may have granted one right before its process ended."""
    grants = LeaseGrants()
    assert grants.look([("hall", LEASE_MS)], DAY_MS) == []
    assert grants.look([("hall", LEASE_MS)], DAY_MS + LEASE_MS - 1) == []
    assert grants.left_ms("hall", DAY_MS + LEASE_MS - 1) == 1
    assert grants.look([("hall", LEASE_MS)], DAY_MS + LEASE_MS) == ["hall"]


@given(
    drifts,
    drifts,
    st.integers(1_000, DAY_MS),
    st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 5_000)), min_size=1, max_size=8),
)
def test_there_are_never_two(home_ppm, stand_in_ppm, lease_ms, exchanges):
    """However their clocks run within the bound: questions and answers take what they take."""
    lease, grants, time_ms = HomeLease(lease_ms), LeaseGrants(), 0
    for there_ms, back_ms in exchanges:
        time_ms = max(time_ms, (lease.next_wake() or 0) * 101 // 100)
        number = lease.ask(local(time_ms, home_ppm))
        time_ms += there_ms
        heard_ms = local(time_ms, stand_in_ppm)
        if grants.look([("hall", lease_ms)], heard_ms):
            return  # taken over: nothing is granted any more
        grants.grant("hall", heard_ms)
        time_ms += back_ms
        if number is not None:
            lease.grant(number)
    # The first moment at which the stand-in takes over, within a millisecond.
    low, high = time_ms, time_ms + 2 * lease_ms
    while low < high:
        middle = (low + high) // 2
        if grants.look([("hall", lease_ms)], local(middle, stand_in_ppm)):
            high = middle
        else:
            low = middle + 1
    assert not lease.holds(local(low, home_ppm))


@pytest.mark.parametrize("lease_ms", [1, 50, 99, 1_000])
def test_a_short_lease_is_rounded_to_less(lease_ms):
    assert usable_ms(lease_ms) < lease_ms

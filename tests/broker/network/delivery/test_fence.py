"""A result leaves a home behind the answer of its stand-in, or after a second without a lease."""

from broker.network.delivery.fence import GIVE_OUT_MS, ResultFence


def test_what_the_stand_in_has_may_leave_in_order():
    fence = ResultFence(7)
    fence.hold(3, 8, 0)
    fence.hold(5, 10, 0)
    assert not fence.look(1, 2, is_leased=True)
    assert fence.upto == 7
    assert fence.look(1, 4, is_leased=True)
    assert (fence.upto, len(fence)) == (8, 1)
    assert fence.look(1, 5, is_leased=True)
    assert (fence.upto, len(fence)) == (10, 0)
    assert not fence.look(1, 5, is_leased=True)


def test_without_a_lease_a_result_waits_for_a_second():
    fence = ResultFence(0)
    fence.hold(1, 1, 100)
    assert fence.next_wake() == 100 + GIVE_OUT_MS
    assert not fence.look(100 + GIVE_OUT_MS - 1, 0, is_leased=False)
    assert fence.look(100 + GIVE_OUT_MS, 0, is_leased=False)
    assert fence.next_wake() is None


def test_with_a_lease_it_waits_for_as_long_as_it_takes():
    fence = ResultFence(0)
    fence.hold(1, 1, 0)
    assert not fence.look(1_000 * GIVE_OUT_MS, 0, is_leased=True)
    assert fence.look(1_000 * GIVE_OUT_MS, 1, is_leased=True)


def test_without_a_stand_in_nothing_waits():
    fence = ResultFence(0)
    fence.hold(1, 4, 0)
    assert fence.look(0, None, is_leased=False)
    assert fence.upto == 4

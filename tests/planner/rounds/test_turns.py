"""A member's promises: one at a time, and nobody waits for whoever is ahead."""

from hypothesis import given
from hypothesis import strategies as st

from planner.rounds.turns import Promise


def test_the_first_is_promised_one_ahead_waits_and_one_behind_is_refused() -> None:
    promise = Promise()
    assert promise.ask((2, 1, 0)) is True
    assert promise.ask((1, 1, 0)) is None
    assert promise.ask((3, 1, 0)) is False


def test_whoever_waited_is_next_and_those_behind_it_are_refused() -> None:
    promise = Promise()
    for leader in (4, 2, 1, 3):
        promise.ask((leader, 1, 0))
    assert promise.end(4, 1)
    assert promise.next(0) == ((1, 1, 0), [], [(2, 1, 0), (3, 1, 0)])
    assert promise.queue == []


def test_who_goes_by_an_old_version_is_refused_as_stale() -> None:
    promise = Promise()
    for claim in ((4, 1, 0), (1, 1, 0), (2, 1, 1)):
        promise.ask(claim)
    promise.end(4, 1)
    assert promise.next(1) == ((2, 1, 1), [(1, 1, 0)], [])


def test_the_end_of_a_turn_that_waits_leaves_the_promise() -> None:
    promise = Promise()
    promise.ask((2, 1, 0))
    promise.ask((1, 7, 0))
    assert not promise.end(1, 7)
    assert promise.held == (2, 1, 0)
    assert promise.queue == []


@given(st.lists(st.tuples(st.sampled_from(["ask", "end"]), st.integers(0, 5)), max_size=40))
def test_nobody_ever_waits_for_a_leader_ahead_of_it(steps: list[tuple[str, int]]) -> None:
    """So no circle of leaders can wait for one another, at however many members."""
    promise = Promise()
    for what, leader in steps:
        if what == "ask":
            promise.ask((leader, 1, 0))
        elif promise.end(leader, 1):
            promise.next(0)
        assert promise.held is not None or promise.queue == []
        assert all(claim[0] < promise.held[0] for claim in promise.queue)

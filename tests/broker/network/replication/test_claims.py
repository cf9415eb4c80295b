"""When what is promised of an origin may be said later, and when not."""

from broker.network.neighbours.ways import Claim


def test_a_type_that_has_a_source_again_is_told_at_once_and_then_no_more():
    """Who was told that there is none goes on without it, and asks for none of its progress."""
    claim = Claim()
    claim.extend(0, 1, {"A": 10})
    assert not claim.may_be_owed()
    assert claim.take() == (0, 1, {"A": 10})
    claim.extend(1, 2, {"A": 20})
    assert claim.may_be_owed()
    claim.extend(2, 3, {"A": None})
    assert claim.may_be_owed()
    assert claim.take() == (1, 3, {"A": None})
    claim.extend(3, 4, {"A": 30})
    assert not claim.may_be_owed()


def test_what_is_said_without_its_time_leaves_the_beginning_to_be_told():
    claim = Claim()
    claim.extend(0, 1, {"A": 10})
    assert claim.take(promises=False) == (0, 1, {})
    assert not claim.may_be_owed()

"""The beginning of a process: nothing is admitted before it is settled in which life it counts."""

from typing import NamedTuple

from broker.network.replication.descent import Descent
from broker.network.replication.incarnation import WAITING_MAX, Incarnation, Recall, Recalled


class Asked(NamedTuple):
    host: str
    life: int
    position: int | None


def begun(life=7, position=100, hosts=("h",), identity=9):
    descent = Descent()
    if life:
        descent.begin(life, 0)
    return Incarnation(identity, descent, position, hosts, wait_ms=2_000)


def test_it_goes_on_in_its_life_when_all_have_answered_and_none_has_seen_more():
    incarnation = begun()
    assert incarnation.holds("event")
    assert incarnation.recalls("me", ["h"], 0) == [Recall("me", "h")]
    assert incarnation.recalls("me", ["h"], 1) == []
    assert incarnation.settle(["h"], ["h"], 1) is None
    incarnation.recalled(Recalled("h", "me", [(7, 100)], {"A": 5}))
    settled = incarnation.settle(["h"], ["h"], 2)
    assert (settled.life, settled.is_new, settled.gap) == (7, False, None)
    assert not incarnation.holds("another")
    assert incarnation.messages() == ["event"]


def test_who_was_rewound_begins_a_new_life_and_says_which_positions_are_gone():
    incarnation = begun()
    incarnation.recalls("me", ["h"], 0)
    incarnation.recalled(Recalled("h", "me", [(7, 115)], {"A": 5}))
    settled = incarnation.settle(["h"], ["h"], 1)
    assert (settled.life, settled.is_new, settled.shared) == (9, True, 100)
    assert (settled.gap.first, settled.gap.last, settled.gap.seen_by) == (101, 115, "h")
    assert settled.watermarks == {"A": 5}


def test_with_nobody_to_reach_it_begins_a_new_life_after_a_bounded_wait():
    incarnation = begun(hosts=())
    assert incarnation.recalls("me", [], 0) == []
    assert incarnation.settle([], [], 1_999) is None
    assert incarnation.due_ms == 2_000
    assert incarnation.settle([], [], 2_000).is_new


def test_a_host_that_the_disk_names_is_waited_for_and_without_it_a_new_life_begins():
    incarnation = begun(hosts=("h", "far"))
    incarnation.recalls("me", ["h"], 0)
    incarnation.recalled(Recalled("h", "me", [(7, 90)], {}))
    assert incarnation.settle(["h"], ["h"], 1) is None
    settled = incarnation.settle(["h"], ["h"], 2_000)
    assert settled.is_new
    assert settled.unheard == ("far",)


def test_a_question_waits_and_tells_how_far_its_host_is():
    incarnation = begun()
    incarnation.recalls("me", [], 0)
    assert incarnation.doubts("peer", 1, Asked("h", 7, 130), 100)
    assert incarnation.settle([], [], 2_000).gap.last == 130
    assert [asked.host for _, _, asked in incarnation.questions()] == ["h"]


def test_a_host_that_is_heard_of_late_has_a_life_begin_that_it_does_not_mistake():
    incarnation = begun()
    incarnation.recalls("me", ["h"], 0)
    incarnation.recalled(Recalled("h", "me", [], {}))
    assert not incarnation.settle(["h"], ["h"], 1).is_new
    assert not incarnation.doubts("peer", 1, Asked("h", 7, 105), 105)
    assert incarnation.doubts("peer", 1, Asked("late", 7, 130), 105)
    settled = incarnation.settle(["h"], ["h"], 5)
    assert (settled.life, settled.shared) == (9, 100)


def test_what_waits_is_bounded():
    incarnation = begun()
    for number in range(WAITING_MAX + 3):
        assert incarnation.holds(number)
    assert incarnation.refused == 3
    assert len(incarnation.messages()) == WAITING_MAX


def test_without_an_identity_nobody_is_asked():
    incarnation = begun(identity=0)
    assert incarnation.is_settled
    assert not incarnation.holds("event")


def test_who_is_known_and_comes_within_the_wait_is_heard_too():
    """Links come up one after the other: what is behind the second is no less there."""
    incarnation = begun(life=0, hosts=())
    incarnation.recalls("me", ["h"], 0)
    incarnation.recalled(Recalled("h", "me", [], {}))
    assert incarnation.settle(["h"], ["h", "far"], 1) is None
    incarnation.recalls("me", ["h", "far"], 2)
    incarnation.recalled(Recalled("far", "me", [(7, 115)], {}))
    assert incarnation.settle(["h", "far"], ["h", "far"], 3).gap.last == 115


def test_who_has_begun_a_life_that_a_copy_of_its_disk_went_on_in_begins_yet_another():
    """It began the same one without end, at once each time."""
    descent = Descent()
    incarnation = Incarnation(9, descent, 0, (), wait_ms=2_000)
    incarnation.recalls("me", [], 0)
    settled = incarnation.settle([], [], 2_000)
    descent.begin(settled.life, settled.shared)
    assert settled.life == 9
    assert incarnation.saw("h", 9, 6, reached=3)
    again = incarnation.settle([], [], 2_001)
    assert again.is_new
    assert again.life not in (0, 9)
    descent.begin(again.life, again.shared)
    assert not incarnation.saw("h", 9, 6, reached=3)
    assert incarnation.is_settled


def test_of_what_a_host_has_seen_the_last_word_counts():
    incarnation = begun()
    for position in (115, 120, 117):
        incarnation.saw("h", 7, position)
    assert incarnation.gaps["h"].last == 120


def test_who_is_readmitted_asks_everybody_again():
    """Others have gone on meanwhile, perhaps with what the other one sent."""
    incarnation = begun()
    incarnation.recalls("me", ["h"], 0)
    incarnation.recalled(Recalled("h", "me", [(7, 100)], {}))
    assert incarnation.settle(["h"], ["h"], 1) is not None
    incarnation.displace("another was announced before", ())
    incarnation.readmit()
    assert incarnation.holds("event")
    assert incarnation.recalls("me", ["h"], 5) == [Recall("me", "h")]

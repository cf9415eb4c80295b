"""What a home withholds until its stand-in follows, and what it says to it."""

import pytest

from broker.network.delivery.feed import CHANGES_MAX, NEIGHBOUR, SAY_AGAIN_MS, WAIT_MS, HomeFeed
from broker.network.delivery.messages import HomeChanged, HomeEntrusted, HomeKept

RUN = 7


class Wire:
    """A feed, what it said and which promises it let go of."""

    def __init__(self, setting="roof"):
        self.said = []
        self.brought = []
        self.feed = HomeFeed("hall", RUN, self.tell, self.bring, lambda: b"all")
        self.feed.setting = setting

    def tell(self, to, message):
        self.said.append((to, message))

    def bring(self, to, promise):
        self.brought.append((to, promise))

    def look(self, now, *reachable):
        self.said.clear()
        self.feed.look(now, reachable, reachable)
        return [message for _, message in self.said]

    def keep(self, number, *, lacks=False):
        self.feed.heard("roof", HomeKept(RUN, number, lacks))

    def following(self):
        self.look(0, "roof")
        self.keep(0)
        return self


def test_all_is_said_first_and_then_each_change():
    wire = Wire()
    assert wire.look(0, "roof") == [HomeEntrusted("hall", RUN, 0, b"all")]
    wire.keep(0)
    wire.feed.change([b"a", b"b"], 5)
    assert wire.look(5, "roof") == [HomeChanged("hall", RUN, 1, (b"a", b"b"))]
    wire.feed.change([b"c"], 6)
    assert wire.look(6, "roof") == [HomeChanged("hall", RUN, 3, (b"c",))]
    assert wire.feed.behind == 3
    wire.keep(3)
    assert (wire.feed.behind, wire.feed.state) == (0, "following")
    assert wire.feed.next_wake() is None  # nothing is said where nothing changes


def test_a_promise_leaves_behind_the_answer_to_what_it_rests_on():
    wire = Wire().following()
    assert not wire.feed.withholds("host", b"stored 1")
    wire.feed.change([b"a"], 1)
    assert wire.feed.withholds("host", b"stored 2")
    wire.feed.change([b"b"], 2)
    assert wire.feed.withholds("host", b"stored 3")
    wire.keep(1)
    assert wire.brought == [("host", b"stored 2")]
    wire.keep(2)
    assert wire.brought == [("host", b"stored 2"), ("host", b"stored 3")]


def test_before_it_has_all_a_stand_in_lets_nothing_go():
    wire = Wire()
    wire.look(0, "roof")
    assert wire.feed.withholds("host", b"stored 1")
    wire.keep(0)
    assert wire.brought == [("host", b"stored 1")]


def test_a_home_goes_on_alone_where_its_stand_in_stays_away_and_copies_anew():
    wire = Wire().following()
    wire.feed.change([b"a"], 1)
    wire.feed.withholds("host", b"stored")
    assert wire.look(2) == []
    assert wire.feed.next_wake() == 2 + WAIT_MS
    wire.look(1 + WAIT_MS)
    assert wire.brought == []
    wire.look(2 + WAIT_MS)
    assert (wire.brought, wire.feed.state) == ([("host", b"stored")], "alone")
    assert not wire.feed.withholds("host", b"stored on")
    assert wire.look(3 + WAIT_MS, "roof") == [HomeEntrusted("hall", RUN, 1, b"all")]
    assert wire.feed.state == "copying"


def test_what_is_not_acknowledged_is_said_again():
    wire = Wire().following()
    wire.feed.change([b"a"], 1)
    wire.look(1, "roof")
    wire.feed.change([b"b"], 2)
    assert wire.look(2, "roof") == [HomeChanged("hall", RUN, 2, (b"b",))]
    assert wire.look(2 + SAY_AGAIN_MS, "roof") == [HomeChanged("hall", RUN, 1, (b"a", b"b"))]
    wire.look(3 + SAY_AGAIN_MS)  # a link that was cut may have lost it as well
    assert wire.look(4 + SAY_AGAIN_MS, "roof") == [HomeChanged("hall", RUN, 1, (b"a", b"b"))]


def test_a_stand_in_that_lacks_something_has_it_or_all_of_it():
    wire = Wire().following()
    for change in (b"a", b"b"):
        wire.feed.change([change], 1)
        wire.look(1, "roof")
    wire.keep(1, lacks=True)
    assert wire.look(2, "roof") == [HomeChanged("hall", RUN, 2, (b"b",))]
    wire.keep(2)
    wire.feed.heard("roof", HomeKept(0, 0, True))  # its disk went back
    assert wire.look(3, "roof") == [HomeEntrusted("hall", RUN, 2, b"all")]


def test_another_neighbour_stands_in_where_the_first_stays_away_and_the_first_hears_of_it():
    wire = Wire(NEIGHBOUR)
    wire.feed.look(0, ("roof", "shed"), ("shed", "roof"))
    assert wire.feed.stand_in == "roof"
    wire.feed.look(1, ("shed",), ("shed",))
    assert wire.feed.stand_in == "roof"
    wire.feed.look(1 + WAIT_MS, ("shed",), ("shed",))
    wire.said.clear()
    wire.feed.look(2 + WAIT_MS, ("shed",), ("shed",))
    assert wire.said == [
        ("roof", HomeEntrusted("hall", RUN, 0, b"")),
        ("shed", HomeEntrusted("hall", RUN, 0, b"all")),
    ]


def test_who_is_forgotten_is_not_waited_for():
    wire = Wire().following()
    wire.feed.change([b"a"], 1)
    wire.feed.withholds("host", b"stored")
    wire.feed.forget("roof")
    assert (wire.brought, wire.feed.state) == ([("host", b"stored")], "none")
    assert wire.look(2, "roof") == []


def test_what_can_wait_is_said_with_what_cannot():
    wire = Wire().following()
    wire.feed.change([b"taken"], 1, lazy_ms=1_000)
    assert wire.look(2, "roof") == []
    assert wire.feed.next_wake() == 1_001
    wire.feed.change([b"result"], 3)
    assert wire.look(3, "roof") == [HomeChanged("hall", RUN, 1, (b"taken", b"result"))]


@pytest.mark.parametrize("count", [CHANGES_MAX, CHANGES_MAX + 1])
def test_too_many_changes_are_one_copy(count):
    wire = Wire().following()
    wire.feed.change([b"x"] * count, 1)
    (message,) = wire.look(1, "roof")
    assert isinstance(message, HomeChanged if count == CHANGES_MAX else HomeEntrusted)


def test_of_promises_that_say_more_and_more_the_first_waits_and_the_last():
    wire = Wire().following()
    wire.feed.change([b"x"], 1)
    for number in range(100):
        wire.feed.change([b"x"], 1)
        assert wire.feed.withholds("host", b"taken %d" % number, "taken")
        assert wire.feed.withholds("host", b"taken %d" % number, "taken")  # it is said again
        assert wire.feed.withholds("shed", b"taken %d" % number, "taken")
    assert len(wire.feed) == 4
    wire.keep(2)  # it has what the first rests on: that one waits for no other
    assert wire.brought == [("host", b"taken 0"), ("shed", b"taken 0")]
    wire.feed.withholds("host", b"taken on", "taken")
    wire.feed.withholds("host", b"taken still", "taken")
    wire.keep(101)
    assert wire.brought[2:] == [
        ("host", b"taken 99"),
        ("shed", b"taken 99"),
        ("host", b"taken still"),
    ]
    assert len(wire.feed) == 0

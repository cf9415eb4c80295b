"""The parts of the protocol between brokers, each by itself."""

import random

import pytest

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import event_class
from broker.network.actors.copies import Copies
from broker.network.actors.roaming import ROAMING_MS, Roaming
from broker.network.frames import frames
from broker.network.frames.frames import Frame, FrameError, Gone, decoded, encoded
from broker.network.neighbours.sessions import Sessions
from broker.network.neighbours.ways import LOCAL, Claim, Ways
from broker.network.origin import offers
from broker.network.origin.own import OwnLog

TEMP = event_class("Temp", {"val": "float"})
TYPES = {"Temp": {"val": "float"}}


def event(number):
    return TEMP(id=str(number), source="t", start=number, end=number, a_val=1.0)


def log(count, **limits):
    own = OwnLog(limits.get("retained_events_max", 1_000))
    own.descent.life = 7
    own.interest("h", TYPES, None)
    own.take([event(number) for number in range(count)])
    return own


# --- sessions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(200))
def test_ends_that_begin_anew_at_any_time_agree_once_both_hold_the_same_tree(seed):
    """Frames are let in only from a session that both ends agree on."""
    draw = random.Random(seed)
    ends = {"a": Sessions(100), "b": Sessions(200)}
    under_way = {"a": [], "b": []}  # to each end, in order
    trees = iter(f"tree {number}" for number in range(100))
    current = "first"
    for one in ends.values():
        one.tree = current

    def begin(name):
        other = "b" if name == "a" else "a"
        under_way[other].append(ends[name].begin(other))

    def deliver(name):
        other = "b" if name == "a" else "a"
        hello = under_way[name].pop(0)
        answer, stands = ends[name].heard(other, hello)
        if answer is not None:
            under_way[other].append(answer)
        if stands:
            assert other in ends[name]
            assert hello.tree == ends[name].tree

    for _ in range(30):
        step = draw.random()
        name = draw.choice("ab")
        if step < 0.2:
            begin(name)
        elif step < 0.3:
            current = next(trees)
            for one in draw.sample("ab", 2):
                ends[one].tree = current
                begin(one)
        elif under_way[name]:
            deliver(name)
    for name in "ab":
        begin(name)
    while under_way["a"] or under_way["b"]:
        deliver(draw.choice([name for name in "ab" if under_way[name]]))
    assert "b" in ends["a"]
    assert "a" in ends["b"]
    frame = Frame(*ends["a"].seal("b"), Gone("x"))
    assert ends["b"].lets_in("a", frame)
    ends["b"].begin("a")
    assert not ends["b"].lets_in("a", frame)


def test_bytes_that_are_no_frame_are_refused_with_a_sentence():
    for data in (b"", b"\xff", encoded(["hello", 1]), encoded(["sealed", 1, 2, ["gone", 3]])):
        with pytest.raises(FrameError, match="cannot be read"):
            decoded(data)


# --- claims and ways --------------------------------------------------------------------------


def test_claims_that_follow_each_other_are_one_and_a_gap_is_not_claimed():
    claim = Claim()
    claim.extend(0, 3, {"Temp": 1})
    claim.extend(3, 5, {"Temp": 2, "Wind": 1})
    assert claim.take() == (0, 5, {"Temp": 2, "Wind": 1})
    claim.extend(5, 6, {"Temp": 3})
    claim.extend(8, 9, {})
    assert claim.take() == (8, 9, {})


def test_a_way_is_there_while_some_host_beyond_needs_it():
    ways = Ways("me")
    ways.here("o", "n", ("Temp",))
    ways.open("o", "m", "h1")
    ways.open("o", "m", "h2")
    ways.open("o", LOCAL, "me")
    ways.close("o", "m", "h1")
    assert [toward for toward, _ in ways.claims("o")] == ["m", LOCAL]
    ways.leave("m")
    assert [toward for toward, _ in ways.claims("o")] == [LOCAL]
    ways.gone("o")
    assert not ways.claims("o")
    assert not ways.via


# --- answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("position", [None, 0, 5, 19, 20])
def test_an_answer_holds_all_behind_a_position_without_a_gap(position, monkeypatch):
    monkeypatch.setattr(offers, "OFFER_EVENTS", 7)
    monkeypatch.setattr(frames, "PART_EVENTS", 3)
    own = log(20)
    taken, at = [], position
    for _ in range(10):
        parts = list(offers.offers("o", own, {"Temp": 99}, at, TYPES))
        at = parts[0][0].after if at is None else at
        for what, _, _ in parts:
            assert what.after == at
            taken += what.positions
            at = what.upto
        *before, (final, last, more) = parts
        assert last
        assert not any(one for _, one, _ in before)
        # Nothing is promised before all is there.
        assert all(99 not in what.watermarks.values() for what, _, _ in before)
        assert (final.watermarks == {"Temp": 99}) != more
        if not more:
            break
    begin = 20 if position is None else position
    assert taken == list(range(begin + 1, 21))


@pytest.mark.parametrize("looked", [1, 4, 100])
def test_an_answer_holds_what_is_wanted_alone_and_looks_at_so_many_at_a_time(looked, monkeypatch):
    monkeypatch.setattr(offers, "LOOKED_EVENTS", looked)
    own = log(20)
    asked = []

    def wanted(event):
        asked.append(int(event.id))
        return int(event.id) % 5 == 0

    taken, at, answers = [], 0, 0
    while True:
        before = len(asked)
        parts = list(offers.offers("o", own, {"Temp": 99}, at, TYPES, wanted))
        answers += 1
        assert len(asked) - before <= looked
        for what, _, _ in parts:
            assert what.after == at
            taken += what.positions
            at = what.upto
        if not parts[-1][2]:
            break
    assert at == own.position
    assert taken == [1, 6, 11, 16]
    assert asked == list(range(20))
    assert answers == -(-20 // looked)


def test_an_answer_leaves_out_what_the_host_has_already():
    own = log(20)
    ((what, last, more),) = offers.offers("o", own, {"Temp": 99}, 10, TYPES, taken={12, 13, 20})
    assert what.positions == [11, 14, 15, 16, 17, 18, 19]
    assert (what.after, what.upto, last, more) == (10, 20, True, False)


def test_how_far_an_ended_type_had_come_is_said_behind_its_events_and_then_that_it_ended(
    monkeypatch,
):
    monkeypatch.setattr(frames, "PART_EVENTS", 8)
    told = {"Wind": 7}
    parts = list(offers.offers("o", log(20), told, 0, TYPES, left_off={"Temp": 99, "Wind": 3}))
    *_, final = [what.watermarks for what, _, _ in parts]
    assert [what.watermarks.get("Temp") for what, _, _ in parts] == [WATERMARK_NONE, None, 99, None]
    assert [last for _, last, _ in parts] == [False, False, False, True]
    assert final == {"Temp": None}
    assert parts[-2][0].watermarks["Wind"] == 7
    assert parts[-1][0].after == parts[-1][0].upto == 20


def test_an_answer_tells_what_is_no_longer_there():
    own = log(20, retained_events_max=5)
    ((what, _, _),) = offers.offers("o", own, {"Temp": 99}, 3, TYPES)
    assert what.after == own.floor == 15
    assert what.positions == [16, 17, 18, 19, 20]


def test_long_events_travel_in_parts_that_a_link_takes():
    text = event_class("Note", {"said": "text"})
    rows = [
        (number, text(id=str(number), start=1, end=1, a_said="x" * 60_000)) for number in range(40)
    ]
    parts = frames.cut(rows)
    assert [row for part, _ in parts for row in part] == rows
    assert len(parts) > 3


# --- copies -----------------------------------------------------------------------------------


def test_copies_are_kept_until_they_are_taken_and_the_oldest_go_first():
    copies = Copies(3)
    sent = [copies.add(("b", 1), "a", b"%d" % number, None, 5) for number in range(5)]
    assert sent == [False, False, False, True, True]
    assert [one.serial for one in copies.kept_for("b")] == [3, 4, 5]
    assert copies.floor("b") == 3
    copies.taken("b", 4, 5)  # of another life
    assert len(copies) == 3
    copies.taken("b", 5, 4)
    assert [one.serial for one in copies.kept_for("b")] == [5]
    again = Copies(3)
    again.restore(copies.state())
    assert again.kept_for("b") == copies.kept_for("b")
    assert again.floor("b") == 5


def test_a_copy_says_the_same_after_a_restart():
    copies, again = Copies(9), Copies(9)
    for asks in (None, (), (("c", 4), ("d", 0))):
        copies.add(("b", 3), "bell", b"ring", asks, 5)
    again.restore(copies.state())
    assert again.kept_for("b") == copies.kept_for("b")


def test_copies_of_an_older_format_are_read():
    copies = Copies(9)
    copies.restore([5, [["b", 8, [[7, "bell", b"ring"], [8, "bell", b"rang"]]]]])
    assert [(one.serial, one.payload) for one in copies.kept_for("b")] == [
        (7, b"ring"),
        (8, b"rang"),
    ]


# --- actors on their way ----------------------------------------------------------------------


def test_a_result_waits_for_an_actor_that_has_just_left_and_for_no_other():
    roaming = Roaming(9)
    roaming.left(["bell"], 1_000)
    assert roaming.hold("bell", b"1", 1_500)
    assert not roaming.hold("lamp", b"2", 1_500)
    again = Roaming(9)
    again.restore(roaming.state())
    for one in (roaming, again):
        assert [held.payload for held in one.came(["lamp", "bell"], 2_000)] == [b"1"]
        assert one.came(["bell"], 2_000) == []
        assert not one.hold("bell", b"3", 2_000)  # it listens


def test_what_waits_too_long_is_let_go_and_the_oldest_beyond_the_limit():
    roaming = Roaming(2)
    roaming.left(["bell"], 1_000)
    assert [roaming.hold("bell", b"%d" % number, 1_500) for number in range(3)] == [
        True,
        True,
        False,
    ]
    assert len(roaming) == 2
    assert roaming.left_below("bell", 1_500) is None
    assert roaming.came(["bell"], 1_000 + ROAMING_MS) == []


def test_of_actors_below_a_name_the_last_to_leave_is_waited_for():
    roaming = Roaming(2)
    for now, name in enumerate(["Tablet/c", "Tablet/a", "Tabletop/x"], 1):
        roaming.left([name], now)
    assert roaming.left_below("Tablet", 5) == "Tablet/a"
    roaming.came(["Tablet/a"], 6)
    assert roaming.left_below("Tablet", 7) is None  # two are known of at most


def test_what_was_published_is_known_again():
    roaming = Roaming(2)
    assert not roaming.published("bell", b"1")
    assert roaming.first("bell", b"1")
    assert roaming.published("bell", b"1")
    assert not roaming.first("bell", b"1")
    assert not roaming.published("lamp", b"1")

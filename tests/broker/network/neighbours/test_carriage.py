"""An answer names what its link has carried, and stands for the same at the other end."""

from random import Random

import msgspec
import pytest
from msgspec.structs import replace

from broker.network.frames.frames import Doubted, Offered, Passage, Passed, advanced
from broker.network.frames.told import Forwarded
from broker.network.neighbours import sessions
from broker.network.neighbours.sessions import CarriedEvents

SEAL, BACK = (1, 2), (2, 1)


def what(positions, origin="o", life=7, size=0):
    """Return what carries events of these positions, each of so many bytes or more."""
    events = msgspec.msgpack.encode([[origin, life, at, "x" * size] for at in positions])
    upto = max(positions, default=9)
    return Forwarded(origin, life, 0, upto, list(positions), events, {}, whole=True)


def answer(positions, **said):
    return Offered("h", 1, what(positions, **said), True, False)


def claimed(positions, *, is_new=False, **said):
    return advanced([Passage(what(positions, **said), 1, is_new)])


class Link:
    """Two ends; `carries` are the positions of events that went over it by themselves."""

    def __init__(self):
        self.near, self.far = CarriedEvents(), CarriedEvents()

    def send(self, body, *, refused=False, events=0):
        """Return (what goes over the link, what it stands for there, how many events it has)."""
        sent, events = self.near.sent("far", SEAL, body, events)
        heard = () if refused else self.far.received("near", BACK, sent)
        return sent, heard, events


@pytest.mark.parametrize(
    "first", [Passed(what([4, 5])), claimed([4, 5], is_new=True), answer([4, 5])]
)
def test_an_answer_names_what_was_carried_and_stands_for_all(first):
    link = Link()
    assert link.send(first, events=2) == (first, (first,), 2)
    whole = answer([3, 4, 6])
    sent, heard, events = link.send(whole, events=3)
    assert (sent.what.positions, sent.named, events) == ([3, 6], (2,), 2)
    assert heard == (whole,)
    assert link.send(whole)[0].what.positions == []  # it was carried by now
    assert link.send(whole)[1:] == ((whole,), 0)


def test_what_is_of_another_origin_life_or_session_is_carried():
    link = Link()
    link.send(answer([4, 5]))
    for other in (answer([4, 5], origin="p"), answer([4, 5], life=8)):
        assert link.send(other)[0] == other
    link.send(claimed([4, 5], life=9, is_new=True))
    again = answer([4, 5], life=8)
    assert link.send(again)[0] == again
    assert link.near.sent("far", (1, 3), again, 2) == (again, 2)


def test_who_is_no_neighbour_any_more_is_forgotten():
    link = Link()
    link.send(answer([4, 5]))
    link.near.keep(["far"])
    assert link.send(answer([4, 5]))[0].named == (1, 0)
    for end in (link.near, link.far):
        end.keep([])
    assert link.near.sent("far", SEAL, answer([4, 5]), 2) == (answer([4, 5]), 2)
    assert link.far.received("near", BACK, replace(answer([]), named=(5,))) == ()


def test_what_the_link_has_refused_cannot_be_named():
    link = Link()
    link.send(answer([4, 5]), refused=True)
    link.send(answer([6]))
    assert link.send(answer([4, 6]))[1] == ()
    assert link.send(answer([6]))[1] == (answer([6]),)


def test_other_frames_stay_as_they_are():
    link = Link()
    for body in (Doubted("o"), answer([]), claimed([])):
        assert link.send(body, events=-1) == (body, (body,), -1)


class Ends:
    """Both ends in plain words: of each origin the frames of one life, the oldest forgotten."""

    def __init__(self):
        self.frames = {}

    def known(self, body):
        """Return the positions that are remembered of a frame's origin."""
        life, kept = self.frames.get(body.origin, (0, []))
        return {at for _, positions in kept for at in positions} if life == body.life else set()

    def remember(self, body):
        """Take in what was carried."""
        life, kept = self.frames.get(body.origin, (0, []))
        kept = kept if life == body.life else []
        kept = [*kept, (len(body.events), body.positions)] if body.positions else kept
        while sum(size for size, _ in kept) > sessions.CARRIED_BYTES_MAX:
            kept = kept[1:]
        self.frames[body.origin] = body.life, kept


@pytest.mark.parametrize("seed", range(60))
def test_whatever_goes_over_a_link_both_ends_agree(seed):
    random = Random(seed)
    link, ends = Link(), Ends()
    named = 0
    for _ in range(200):
        origin, life = random.choice("op"), random.choice([7, 7, 7, 7, 7, 7, 7, 8])
        positions = sorted(random.sample(range(1, 30), random.randint(0, 5)))
        said = {"origin": origin, "life": life, "size": 10 if origin == "o" else 700}
        body = random.choice([answer, answer, lambda at, **said: Passed(what(at, **said))])
        body = body(positions, **said)
        known = ends.known(body.what)
        sent, heard, _ = link.send(body)
        assert heard == (body,)
        if isinstance(body, Offered) and positions:
            assert sorted(sent.what.positions) == [at for at in positions if at not in known]
            named += len(positions) - len(sent.what.positions)
        ends.remember(sent.what)
    assert named


def test_no_more_is_remembered_than_so_many_bytes():
    link = Link()
    for at in range(1, 20):
        link.send(answer([at], size=1_000))
    sent, heard, _ = link.send(whole := answer(list(range(1, 20)), size=1_000))
    assert heard == (whole,)
    assert sent.what.positions == list(range(1, 12))  # eight fit
    assert link.send(answer([20], size=9_000))[0].what.positions == [20]
    assert link.send(answer([19], size=1_000))[0].what.positions == [19]

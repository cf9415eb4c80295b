"""A desk waits for ways that are to come, and asks again for what changes nothing."""

import asyncio

import msgspec
import pytest

from broker.network.overlay.calls import CallArrived, reply_to
from broker.remote import desk
from broker.remote.desk import CallDesk, UnansweredError


class Tree:
    """Broker `b` is in the tree if `leads`; the way there is found at the look of this number."""

    def __init__(self, found_at, *, leads=True):
        self.looks = 0
        self.found_at = found_at
        self.leading = leads

    def reaches(self, _to):
        self.looks += 1
        return self.looks >= self.found_at

    def leads(self, _to):
        return self.leading


class Link:
    """Loses the first calls, and answers those behind them."""

    def __init__(self, lost, answers=1):
        self.lost = lost
        self.answers = answers
        self.sent = []
        self.desk = None

    def put(self, message):
        self.sent.append(message.call)
        if len(self.sent) > self.lost:
            body = msgspec.json.encode({"reply": len(self.sent)})
            arrived = CallArrived(reply_to(message.call, body))
            for _ in range(self.answers):
                asyncio.get_running_loop().call_soon(self.desk.receive, arrived)


@pytest.fixture(autouse=True)
def _hurried(monkeypatch):
    times = {"WAIT_S": 0.4, "WAY_S": 0.2, "AGAIN_S": 0.1, "LOOK_S": 0.01}
    for name, seconds in times.items():
        monkeypatch.setattr(desk, name, seconds)


def result(tree, link, way="read"):
    """What one question gives: the reply, or why there is none and if it was sent."""

    async def scene():
        link.desk = CallDesk("a", 1, tree, link.put, lambda: ("a", "b"))
        try:
            return await getattr(link.desk, way)("b", "list")
        except UnansweredError as error:
            return str(error), error.was_sent

    return asyncio.run(scene())


def test_a_question_waits_for_a_way_that_is_to_come():
    """While neighbours agree on a new tree there is no way for a moment, to nobody."""
    link = Link(lost=0)
    assert result(Tree(found_at=5), link, "ask") == {"reply": 1}
    assert len(link.sent) == 1


def test_where_no_way_will_come_nobody_waits():
    tree, link = Tree(found_at=5, leads=False), Link(lost=0)
    assert result(tree, link) == (desk.NO_WAY, False)
    assert (tree.looks, link.sent) == (1, [])


def test_a_way_that_does_not_come_is_given_up():
    link = Link(lost=0)
    assert result(Tree(found_at=10**6), link) == (desk.NO_WAY, False)
    assert not link.sent


def test_what_changes_nothing_is_asked_again_when_it_was_lost():
    link = Link(lost=1)
    assert result(Tree(found_at=1), link) == {"reply": 2}
    assert len(set(link.sent)) == 1, "a reply to either ends the one call"


def test_what_may_change_something_is_asked_once():
    link = Link(lost=1)
    assert result(Tree(found_at=1), link, "ask") == (desk.NO_REPLY, True)
    assert len(link.sent) == 1


def test_a_second_reply_ends_nothing():
    link = Link(lost=0, answers=2)
    assert result(Tree(found_at=1), link) == {"reply": 1}


def test_who_never_replies_is_given_up():
    link = Link(lost=9)
    assert result(Tree(found_at=1), link) == (desk.NO_REPLY, True)
    assert len(link.sent) == 2

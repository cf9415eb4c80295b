"""Calls among brokers find their way, end once, and are never taken for others."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.network.frames import frames
from broker.network.overlay import calls
from broker.network.overlay.calls import CallArrived, CallRelay, OpenCalls, RemoteCall, reply_to


class Broker:
    """A broker with next hops, and what it says."""

    def __init__(self, me, via, versions=None, hops=()):
        self.me = me
        self.topology = SimpleNamespace(tree=SimpleNamespace(hops=hops))
        self.ways = SimpleNamespace(via=via)
        versions = versions or {}
        self.sessions = SimpleNamespace(version=lambda peer: versions.get(peer, 2))
        self.said = []
        self.noted = []

    def say(self, peer, body):
        self.said.append((peer, body))

    def note(self, what):
        self.noted.append(what)


CALL = RemoteCall("a", "c", 7, is_reply=False, body=b"{}")


def test_a_call_goes_on_to_the_next_hop_and_is_taken_at_its_end():
    way = Broker("b", {"a": "a", "c": "c"})
    CallRelay(way).hear("a", CALL)
    assert way.said == [("c", CALL)]
    end = Broker("c", {"a": "b", "b": "b"})
    CallRelay(end).hear("b", CALL)
    assert (end.said, end.noted) == ([], [CallArrived(CALL)])
    assert reply_to(CALL, b"1") == RemoteCall("c", "a", 7, is_reply=True, body=b"1")


def test_a_neighbour_cannot_call_in_the_name_of_a_broker_that_is_elsewhere():
    """Else any broker could pass for the one whose rights were judged."""
    broker = Broker("c", {"a": "b", "x": "x"})
    with pytest.raises(ValueError, match="not behind it"):
        CallRelay(broker).hear("x", CALL)
    with pytest.raises(ValueError, match="not behind it"):
        CallRelay(broker).hear("b", RemoteCall("c", "c", 7, is_reply=False, body=b"{}"))
    assert not broker.noted


def test_a_neighbour_of_the_release_before_is_not_sent_what_it_cannot_read():
    broker = Broker("a", {"c": "b"}, {"b": 1}, hops={"a": 0, "b": 1, "c": 2})
    relay = CallRelay(broker)
    assert not relay.reaches("c")
    assert not relay.leads("c"), "nobody waits for what will not come"
    assert not relay.reaches("nowhere")
    relay.send(CALL)
    assert not broker.said


def test_the_tree_may_lead_where_no_call_can_leave_yet():
    relay = CallRelay(Broker("a", {"b": "b"}, hops={"a": 0, "b": 1, "c": 2}))
    assert [(relay.reaches(to), relay.leads(to)) for to in "bcd"] == [
        (True, False), (False, True), (False, False),
    ]  # fmt: skip


def test_a_call_does_not_go_back_where_it_came_from():
    """Ways change while it travels: two brokers could pass it to and fro for ever."""
    broker = Broker("b", {"a": "a", "c": "a"})
    CallRelay(broker).hear("a", CALL)
    assert not broker.said


def test_the_frame_is_read_as_it_was_written():
    frame = frames.Frame(1, 2, CALL)
    assert frames.decoded(frames.encoded(frame)) == [frame]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.sampled_from("xy")),
        st.tuples(st.just("reply"), st.integers(0, 12), st.sampled_from("xy"), st.booleans()),
        st.tuples(st.just("drop"), st.integers(0, 12)),
    ),
    max_size=40,
)


@given(STEPS)
def test_each_call_ends_once_and_only_by_who_was_asked(steps):
    opened, ended, machine = [], [], OpenCalls("me", 100)
    for step in steps:
        if step[0] == "open":
            call = machine.open(step[1], b"", len(opened))
            opened.append(call)
            assert call.number == 100 + len(opened)
        elif step[0] == "drop" and step[1] < len(opened):
            machine.drop(opened[step[1]])
            ended.append(step[1])
        elif step[0] == "reply":
            _, at, sender, is_reply = step
            token = machine.close(RemoteCall(sender, "me", 101 + at, is_reply, b""))
            fits = at < len(opened) and opened[at].to == sender and is_reply
            assert token == (at if fits and at not in ended else None)
            if token is not None:
                ended.append(at)
    assert len(machine) == len(opened) - len(set(ended))


def test_open_calls_are_bounded(monkeypatch):
    monkeypatch.setattr(calls, "OPEN_MAX", 2)
    machine = OpenCalls("me", 0)
    first = machine.open("x", b"", 1)
    assert machine.open("x", b"", 2) is not None
    assert machine.open("x", b"", 3) is None
    machine.drop(first)
    assert machine.open("x", b"", 3) is not None

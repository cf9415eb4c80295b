"""Cells among a few brokers with links that lose nothing: placed, refused, changed and ended."""

import json
from collections import deque
from itertools import pairwise

import pytest

from broker.core import messages
from broker.core.broker import BrokerOptions
from broker.core.cells.cell import Cell
from broker.core.cells.cell_origins import FORGOTTEN_MS
from broker.core.effects import Emit, Reply
from broker.core.network.network_broker import NetworkBroker
from broker.core.recovery.durable import DurableBroker
from broker.engine.limits import Limits
from broker.engine.runtime.budget import in_one_go
from broker.network.effects import Note, SendFrame
from broker.network.frames.messages import (
    CellPlaced,
    ForgetRequested,
    FramesReceived,
    LinkDown,
    LinkUp,
)
from broker.network.placement import hosts

TEXT = """event Temp(val: float)
define Read(val) detect Temp assign val = Temp.val
subscription Hot from x to y detect Read(val > 3)
subscription Cold from x to y detect Read(val < 1)
"""
BEGIN_MS = 1_700_000_000_000


class Net:
    """Brokers in a line, with one clock; each keeps what it wrote, told and found."""

    def __init__(self, *names, cells_max=100, retained_events_max=100_000, effort=0, **settings):
        self.now = BEGIN_MS
        self.under_way = deque()
        self.found = {name: [] for name in names}
        self.replies = []
        self.notes = []
        self.brokers = {}
        for name in names:
            told = {"name": name, "networked": True, "lateness_ms": 0, "cells": True, **settings}
            options = BrokerOptions(**told)
            limits = Limits(
                cells_max=cells_max,
                retained_events_max=retained_events_max,
                install_effort_max=effort or Limits().install_effort_max,
            )
            core, _ = DurableBroker.recover(options, limits, None, (), 0, self.now)
            self.brokers[name] = NetworkBroker(core, 1)
            self.perform(name, self.brokers[name].begun())
        for one, other in pairwise(names):
            self.link(one, other)
        said = json.dumps({"source": "s", "types": ["Temp"]}).encode()
        self.tell("b", messages.SourceAdvertised("s", said))
        self.run(10_000)

    def link(self, one, other, message=None):
        self.tell(one, message or LinkUp(other, fresh=True))
        self.tell(other, LinkDown(one) if message else LinkUp(one, fresh=True))

    def tell(self, name, message):
        self.perform(name, in_one_go(self.brokers[name].work(message, self.now)))

    def perform(self, name, effects):
        for effect in effects:
            match effect:
                case SendFrame(link, data):
                    assert link in self.brokers, "what is for a cell must not leave its broker"
                    self.under_way.append((name, link, data))
                case Emit(results):
                    self.found[name] += [json.loads(one.payload) for one in results]
                case Reply():
                    self.replies.append(json.loads(effect.payload))
                case Note():
                    self.notes.append((name, effect.event))

    def run(self, for_ms):
        end = self.now + for_ms
        while True:
            while self.under_way:
                self.step()
            wakes = {name: one.next_wake() for name, one in self.brokers.items()}
            due = min([at for at in wakes.values() if at is not None], default=end)
            if due >= end and not self.under_way:
                break
            self.now = max(due, self.now)
            for name, at in wakes.items():
                if at is not None and at <= self.now:
                    self.tell(name, messages.Woken())
        self.now = end

    def step(self):
        """Bring one frame to where it goes."""
        sender, to, data = self.under_way.popleft()
        self.tell(to, FramesReceived(sender, (data,)))

    def submit(self, name, text=TEXT):
        self.tell(name, messages.SpecificationSubmitted("x", "r", text))
        self.run(2_000)

    def send(self, name, val):
        data = json.dumps({"id": f"e{self.now}", "timestamp": self.now, "val": val}).encode()
        self.tell(name, messages.EventsReceived((messages.Payload("Temp", "s", data),)))

    def event(self, name, val):
        self.send(name, val)
        self.run(1_000)

    def cell(self, home):
        (one,) = [cell for cell in self.brokers[home].cells() if cell.home == home]
        return one

    def kept(self, home):
        """What a home has written down of its only cell."""
        (one,) = self.brokers[home].durable.network.book.cells.values()
        return one

    def values(self, home):
        return [one["values"]["Read"]["val"] for one in self.found[home]]


@pytest.fixture
def net():
    """Three brokers; the cell of the first runs at the last, events enter in the middle."""
    one = Net("a", "b", "c")
    one.submit("a")
    one.tell("a", CellPlaced("a/1", "c"))
    one.run(3_000)
    return one


def test_the_home_alone_chooses_the_nearest_actor_and_tells_where_there_is_none():
    net = Net("a", "b", "c")
    net.tell("a", messages.ActorsListening("a", 0, ("Tablet/1",)))
    net.submit("a", TEXT.replace("to y", "to nearest Tablet"))
    net.tell("a", CellPlaced("a/1", "c"))
    net.run(3_000)
    net.event("b", 5)
    net.tell("a", messages.ActorsListening("a", 0, (), gone=("Tablet/1",)))
    net.run(60_000)
    net.event("b", 6)
    assert [one["actor"] for one in net.found["a"]] == ["Tablet/1", "Tablet"]
    assert [name for name, event in net.notes if event == "no_actor_listens"] == ["a"]


def test_a_submission_is_active_when_its_cell_is(net):
    assert [one["state"] for one in net.replies] == ["accepted", "active"]


def test_a_cell_goes_where_it_is_placed_and_its_results_come_home(net):
    assert (net.cell("a").host, net.cell("a").state) == ("c", "active")
    assert list(net.brokers["c"].hosted) == ["a/1#2"]
    assert list(net.brokers["a"].hosted) == []
    net.event("b", 5.0)
    assert net.values("a") == [5.0]
    (there,) = net.brokers["c"].cells()
    assert there.counts.inputs["b", "Temp"].events == 1
    assert (there.home, there.host, there.subscriptions) == (
        "a",
        "c",
        (("x", "Hot"), ("x", "Cold")),
    )


def test_the_same_place_again_changes_nothing(net):
    net.tell("a", CellPlaced("a/1", "c"))
    net.run(1_000)
    assert net.cell("a").term == 2
    assert net.brokers["a"].counts["cells_moved"] == 1


@pytest.mark.parametrize(("cell", "broker"), [("a/9", "c"), ("b/1", "c"), ("a/1", "nobody")])
def test_what_cannot_be_placed_is_counted(net, cell, broker):
    net.tell("a", CellPlaced(cell, broker))
    assert net.cell("a").host == "c"
    assert net.brokers["a"].counts["cells_not_placed"] == 1


def test_a_broker_that_has_no_room_refuses_and_the_cell_stays():
    net = Net("a", "b", cells_max=1)
    net.submit("a")
    net.submit("b", TEXT.replace("from x", "from z"))
    net.tell("a", CellPlaced("a/1", "b"))
    net.run(3_000)
    assert (net.cell("a").host, net.cell("a").state) == ("a", "active")
    assert "cells_max" in net.cell("a").reason
    net.event("b", 5.0)
    assert net.values("a") == net.values("b") == [5.0]


def test_a_cell_that_is_about_to_go_says_so_and_not_why_it_did_not_go_before():
    net = Net("a", "b", "c", cells_max=1)
    net.submit("a")
    net.submit("b", TEXT.replace("from x", "from z"))
    net.tell("a", CellPlaced("a/1", "c"))
    net.run(3_000)
    net.tell("a", CellPlaced("a/1", "b"))
    net.run(3_000)
    assert "cells_max" in net.cell("a").reason
    net.tell("a", CellPlaced("a/1", "a"))  # its host is asked for its state first
    view = net.cell("a")
    assert (view.host, view.moving_to, view.state, view.reason) == ("c", "a", "moving", "")
    net.run(3_000)
    assert (net.cell("a").host, net.cell("a").state) == ("a", "active")


def test_a_subscription_that_is_cancelled_ends_in_its_cell_and_the_last_one_ends_that(net):
    net.tell("a", messages.CancelRequested("x", "r", "Hot"))
    net.run(1_000)
    net.event("b", 5.0)
    net.event("b", 0.0)
    assert net.values("a") == [0.0]
    net.tell("a", messages.CancelRequested("x", "r", "Cold"))
    net.run(6_000)
    assert list(net.brokers["c"].hosted) == []
    assert net.brokers["a"].cells() == ()
    for one in net.brokers.values():
        assert not one.durable.network.own.hosts  # nothing is kept for it any more


def test_a_text_of_which_nothing_is_as_before_is_another_cell(net):
    text = TEXT.replace("Hot", "Hot seq 2").replace("Read(val > 3)", "Temp(val > 7)")
    net.submit("a", text)
    net.run(3_000)
    cells = {one.cell: one.subscriptions for one in net.brokers["a"].cells()}
    assert cells == {"a/1": (("x", "Cold"),), "a/2": (("x", "Hot"),)}
    for val in (5.0, 9.0, 0.0):
        net.event("b", val)
    found = [(one["subscription"], one["values"]) for one in net.found["a"]]
    assert sorted(name for name, _ in found) == ["Cold", "Hot"]


def test_a_host_that_is_not_reached_is_left_and_what_it_found_meanwhile_comes_once(net):
    net.event("b", 4.0)
    net.link("b", "c", LinkDown("c"))
    net.run(5_000)
    net.event("b", 5.0)
    assert net.values("a") == [4.0]
    net.run(30_000)
    assert (net.cell("a").host, net.cell("a").term) == ("a", 3)
    assert net.values("a") == [4.0, 5.0]
    net.link("b", "c")
    net.run(10_000)
    assert list(net.brokers["c"].hosted) == []
    net.event("b", 6.0)
    assert net.values("a") == [4.0, 5.0, 6.0]


@pytest.fixture
def failed(monkeypatch):
    """Three brokers, the home in the middle: its cell has failed at the first."""

    def fail(*_):
        raise ZeroDivisionError("a fault")

    net = Net("c", "a", "b")
    net.submit("a")
    net.tell("a", CellPlaced("a/1", "c"))
    net.run(20_000)
    with monkeypatch.context() as patch:
        patch.setattr(Cell, "wake", fail)
        patch.setattr(Cell, "hear", fail)
        net.send("b", 4.0)
        while net.kept("a").coming is None:
            net.step()
    assert list(net.brokers["c"].hosted) == []
    assert (net.kept("a").serving.broker, net.kept("a").coming.broker) == ("c", "a")
    return net


def test_a_cell_goes_on_where_it_failed_if_it_is_placed_there_before_it_is_home(failed):
    failed.tell("a", CellPlaced("a/1", "c"))
    failed.run(3_000)
    assert list(failed.brokers["c"].hosted) == ["a/1#2"]
    failed.event("b", 5.0)
    assert failed.values("a") == [4.0, 5.0]


def test_a_cell_goes_home_if_it_failed_and_the_broker_it_goes_to_is_lost(failed):
    failed.tell("a", CellPlaced("a/1", "b"))
    failed.under_way = deque(one for one in failed.under_way if "b" not in one[:2])  # are lost
    failed.link("a", "b", LinkDown("b"))
    failed.run(30_000)
    assert list(failed.brokers["a"].hosted) == ["a/1#5"]
    failed.link("a", "b")
    failed.run(10_000)
    assert failed.values("a") == [4.0]


def test_the_cells_of_a_home_that_is_forgotten_end(net):
    net.link("a", "b", LinkDown("b"))
    net.run(30_000)
    assert list(net.brokers["c"].hosted) == ["a/1#2"]
    net.tell("b", ForgetRequested("a"))
    net.run(2_000)
    assert list(net.brokers["c"].hosted) == []
    assert net.brokers["b"].durable.network.own.hosts  # its stand-in may go on with them
    net.run(FORGOTTEN_MS)
    assert not net.brokers["b"].durable.network.own.hosts


@pytest.fixture
def forgotten(net):
    """The home is forgotten, and the origin cut off from the others before that is over."""
    net.link("a", "b", LinkDown("b"))
    net.run(30_000)
    net.tell("b", ForgetRequested("a"))
    net.run(FORGOTTEN_MS // 2)
    net.link("b", "c", LinkDown("c"))
    return net


def test_what_is_kept_for_a_forgotten_home_stays_while_its_heir_may_be_out_of_reach(forgotten):
    net = forgotten
    net.run(60_000)
    assert net.brokers["b"].durable.network.own.hosts  # `c` may have taken the home over
    net.link("b", "c")
    net.run(FORGOTTEN_MS - 1_000)
    assert net.brokers["b"].durable.network.own.hosts
    net.run(FORGOTTEN_MS + 3_000)
    assert not net.brokers["b"].durable.network.own.hosts


def test_what_is_kept_for_a_forgotten_home_ends_at_an_origin_that_restarts_meanwhile(forgotten):
    net = forgotten
    before = net.brokers["b"].durable
    after, _ = DurableBroker.recover(
        before.options, before.limits, before.snapshot(), (), 0, net.now
    )
    net.brokers["b"] = NetworkBroker(after, 2)
    net.perform("b", net.brokers["b"].begun())
    assert net.brokers["b"].durable.network.own.hosts
    net.link("b", "c")
    net.run(2 * FORGOTTEN_MS + 3_000)
    assert not net.brokers["b"].durable.network.own.hosts


def test_results_that_wait_too_many_for_a_home_that_is_away_come_again_from_the_snapshot(
    net, monkeypatch
):
    monkeypatch.setattr(hosts, "RESULTS_WAITING_MAX", 2)
    net.run(20_000)
    net.link("a", "b", LinkDown("b"))
    net.run(5_000)
    for val in (5.0, 6.0, 7.0, 8.0):
        net.event("b", val)
    assert net.brokers["c"].counts["cells_overflowed"] == 1
    monkeypatch.undo()
    net.link("a", "b")
    net.run(20_000)
    assert net.values("a") == [5.0, 6.0, 7.0, 8.0]

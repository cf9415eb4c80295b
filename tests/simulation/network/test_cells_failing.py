"""A cell that fails is its home's again, and nobody else's trouble: all is found, once."""

from collections import Counter

import pytest

from broker.core.cells.cell import Cell
from broker.core.network.network_broker import NetworkBroker
from broker.core.networked.networked import NetworkedBroker
from broker.core.recovery.durable import DurableBroker
from broker.network.effects import Note
from broker.network.placement.cell_view import home_of
from broker.network.placement.hosts import CellHosts
from simulation.network.cells import CellRun
from simulation.network.scenario import Shape

SHAPE = Shape(brokers=6, faults=0, events=200)


class Fault:
    """What fails: one of so many times, at the cells' homes or anywhere but there."""

    def __init__(self, each, *, at_home=False):
        self.each = each
        self.at_home = at_home
        self.failed = Counter()
        self.calls = Counter()
        self.over = False
        self.cell = None

    def strike(self, cell):
        home = home_of(cell.which.cell)
        if self.over or (cell.host == home) != self.at_home:
            return
        self.calls[cell.which.cell] += 1
        if self.calls[cell.which.cell] % self.each == 0:
            self.failed[cell.which.cell] += 1
            raise ZeroDivisionError("a fault")


def patched(monkeypatch, name, fault):
    """Have a method of cells fail."""
    method = getattr(Cell, name)

    def failing(self, *given):
        fault.strike(self)
        return method(self, *given)

    monkeypatch.setattr(Cell, name, failing)


def with_snapshots(monkeypatch, fault):
    save, snapshot = Cell.save_if_due, DurableBroker.snapshot

    def saving(self):
        fault.cell = self
        try:
            save(self)
        finally:
            fault.cell = None

    def failing(self):
        if fault.cell is not None:
            fault.strike(fault.cell)
        return snapshot(self)

    monkeypatch.setattr(Cell, "save_if_due", saving)
    monkeypatch.setattr(DurableBroker, "snapshot", failing)


def with_messages(monkeypatch, fault):
    tell, work = Cell._tell, NetworkedBroker.work

    def telling(self, message):
        fault.cell = self
        try:
            tell(self, message)
        finally:
            fault.cell = None

    def failing(self, message, now):
        if fault.cell is not None:
            fault.strike(fault.cell)
        return (yield from work(self, message, now))

    monkeypatch.setattr(Cell, "_tell", telling)
    monkeypatch.setattr(NetworkedBroker, "work", failing)


def counts(run, name):
    return sum(place.process.network.counts[name] for place in run.places)


@pytest.fixture
def told(monkeypatch):
    """The lines of logs, by event."""
    found = Counter()
    taken = NetworkBroker._taken

    def noted(self):
        effects = taken(self)
        found.update(one.event for one in effects if isinstance(one, Note))
        return effects

    monkeypatch.setattr(NetworkBroker, "_taken", noted)
    return found


@pytest.mark.timeout(120)
@pytest.mark.parametrize("what", ["snapshot", "message", "hear", "wake", "keep_only"])
def test_a_cell_that_fails_away_from_home_goes_on_there(what, monkeypatch, told):
    fault = Fault({"keep_only": 2, "snapshot": 3}.get(what, 5))  # the first two happen seldom
    if what == "snapshot":
        with_snapshots(monkeypatch, fault)
    elif what == "message":
        with_messages(monkeypatch, fault)
    else:
        patched(monkeypatch, what, fault)
    run = CellRun(4, SHAPE)
    run.run()
    assert fault.failed.total() > 2
    assert counts(run, "cells_failed") == told["cell_failed"] == fault.failed.total()
    assert run.came_to().results > 20


@pytest.mark.timeout(120)
def test_a_cell_at_home_goes_on_though_snapshots_of_it_fail(monkeypatch, told):
    fault = Fault(2, at_home=True)
    with_snapshots(monkeypatch, fault)
    ended = []
    end = CellHosts._cell_failed
    monkeypatch.setattr(CellHosts, "_cell_failed", lambda *given: ended.append(end(*given)))
    run = CellRun(2, SHAPE)
    run.run()
    assert told["cell_failed"] == fault.failed.total() > 0
    assert not ended


@pytest.mark.timeout(120)
def test_a_cell_that_fails_at_home_begins_again_there(monkeypatch, told):
    fault = Fault(2, at_home=True)
    patched(monkeypatch, "wake", fault)
    run = CellRun(1, SHAPE)
    settle = run._settle

    def settled():
        fault.over = True
        settle()

    run._settle = settled
    run.run()
    assert told["cell_failed"] == fault.failed.total() > 0

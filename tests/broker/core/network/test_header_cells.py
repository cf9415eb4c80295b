"""Cells whose windows are split, among a few brokers with links that lose nothing."""

import json

import pytest

from broker.core import messages
from broker.core.network import folding
from broker.core.network.network_broker import NetworkBroker
from broker.core.recovery import durable_told
from broker.core.recovery.durable import DurableBroker
from broker.engine.window.splitting import Folder
from broker.network.frames import frames
from broker.network.frames.messages import CellPlaced, ForgetRequested, LinkDown
from broker.network.host.gathered import RAW_PANES
from tests.broker.core.network.test_cells_placed import Net

TEXT = """event Temp(val: float)
define Sums(n, total) aggr every 5 s
detect Temp(val > 0)
assign n = Count(Temp), total = Sum(Temp.val)
subscription All from x to y detect Sums
"""
WHOLE = TEXT.replace("Sum(Temp.val)", "Median(Temp.val)")
LATER_MS = 70_000  # than the idle timeout


class Split(Net):
    """b - a - c; the home is a, sources are at b and c."""

    def __init__(self, text=TEXT, **settings):
        super().__init__("b", "a", "c", **{"split_windows": True, **settings})
        said = json.dumps({"source": "t", "types": ["Temp"]}).encode()
        self.tell("c", messages.SourceAdvertised("t", said))
        self.run(1_000)
        self.submit("a", text)
        self.now -= self.now % 5_000  # a window begins
        self.now += 5_000
        self.sent = 0

    def say(self, name, source, *, again=None):
        """A reading, or one again."""
        if again is None:
            self.sent += 1
            again = {"id": f"{source}-{self.sent}", "timestamp": self.now, "val": 1.0}
        payload = messages.Payload("Temp", source, json.dumps(again).encode())
        self.tell(name, messages.EventsReceived((payload,)))
        return again

    def both(self):
        """One reading at each broker."""
        self.say("b", "s")
        self.say("c", "t")
        self.run(1_000)

    def counts(self):
        """How many events each window had."""
        return [one["values"]["Sums"]["n"] for one in self.rows]

    def cut(self, name, *, on=True):
        """Cut the link of a broker to the home, or bring it back."""
        self.link(name, "a", LinkDown("a") if on else None)

    def rows_of_b(self):
        """Have rows of b come for the first window, which stays open; what it said last in it."""
        said = self.say("b", "s")
        self.run(6_000)
        self.say("b", "s")
        self.run(1_000)
        assert self.header().durable.network.header.gathered.held()
        return said

    @property
    def rows(self):
        return sorted(self.found["a"], key=lambda one: one["end"])

    def header(self):
        cells = [cell for one in self.brokers.values() for cell in one._hosts.cells.values()]
        (one,) = cells
        return one

    def noted(self, name):
        return self.header().durable.ledger.notes.get(name, 0)


@pytest.fixture
def net():
    """With readings at both brokers in one window."""
    one = Split()
    one.both()
    return one


def test_without_the_setting_or_where_it_cannot_be_nothing_is_split():
    assert Split().header().inputs.splits
    for one in (Split(split_windows=False), Split(WHOLE)):
        assert not one.header().inputs.splits
        one.both()
        one.run(LATER_MS)
        assert one.counts() == [2]


def test_a_submission_that_is_split_is_written_down_as_such():
    for split in (False, True):
        told = messages.SpecificationSubmitted("x", "r", TEXT, cells=3, split=split)
        message, now = durable_told.read(durable_told.written(told, 7))
        assert (message.split, message.cells, now) == (split, 3, 7)


def test_rows_come_and_no_event_does(net):
    net.run(LATER_MS)
    assert net.counts() == [2]
    counts = net.brokers["a"].cells()[0].counts
    assert [(origin, name) for origin, name in counts.inputs] == [
        ("b", "rows of Temp for a/1"),
        ("c", "rows of Temp for a/1"),
    ]
    assert all(not one.traffic.totals("sent") for one in net.brokers.values())


def test_origins_forget_what_is_in_a_window_that_is_complete(net):
    assert len(net.brokers["b"].durable.network.own) == 1
    net.run(LATER_MS)
    net.say("b", "s")
    net.run(LATER_MS)
    assert [len(one.durable.network.own) for one in net.brokers.values()] == [0, 0, 0]


def test_an_event_at_two_brokers_counts_once(net):
    said = net.say("b", "s")
    net.run(100)
    net.say("c", "s", again=said)
    net.run(LATER_MS)
    assert net.counts() == [3]
    status = net.header().inputs.status()["split"]
    assert status["conflicts"] == 2
    assert status["conflicts_unresolved"] == 0
    assert sorted(status["raw"]) == ["b", "c"]
    assert ("a", "split_conflict") in net.notes


def test_events_come_until_no_source_is_shared_for_some_windows(net):
    net.say("c", "s", again=net.say("b", "s"))
    for _ in range(5 * (RAW_PANES + 4)):
        net.both()
    assert net.header().inputs.status()["split"]["raw"] == []
    net.run(LATER_MS)
    assert sum(net.counts()) == net.sent
    assert net.noted("split_conflicts") == 2


def test_a_broker_that_is_away_is_waited_for_before_a_window_is_told(net):
    said = net.rows_of_b()
    net.cut("b")
    net.say("c", "s", again=said)
    net.run(LATER_MS)
    assert (net.counts(), net.header().inputs.status()["split"]["doubted"]) == ([], ["b"])
    net.cut("b", on=False)
    net.run(LATER_MS)
    assert net.counts() == [3, 1]
    assert net.noted("split_conflicts_unresolved") == 0


def test_who_will_not_come_back_leaves_a_window_that_is_said_to_be_inexact(net):
    said = net.rows_of_b()
    net.cut("b")
    net.say("c", "s", again=said)
    net.run(LATER_MS)
    assert net.counts() == []
    net.tell("a", ForgetRequested("b"))
    net.run(LATER_MS)
    assert net.counts() == [4, 1]  # one of them twice
    assert net.noted("split_conflicts_unresolved") == 1
    assert ("a", "split_conflict_unresolved") in net.notes


def test_who_has_lost_its_disk_cannot_say_again_what_is_in_doubt(net):
    said = net.rows_of_b()
    net.cut("b")
    options, limits = net.brokers["b"].durable.core.options, net.brokers["b"].durable.limits
    core, _ = DurableBroker.recover(options, limits, None, (), 0, net.now)
    net.brokers["b"] = NetworkBroker(core, 2)
    net.perform("b", net.brokers["b"].begun())
    net.cut("b", on=False)
    net.run(1_000)
    net.say("c", "s", again=said)
    net.run(LATER_MS)
    assert net.counts() == [4, 1]
    assert net.noted("split_conflicts_unresolved") > 0
    assert ("a", "split_conflict_unresolved") in net.notes


def test_who_has_let_go_of_events_cannot_say_again_what_is_in_doubt():
    net = Split(retained_events_max=2)
    net.both()
    said = net.rows_of_b()
    for _ in range(3):
        net.say("b", "s")
    net.say("c", "s", again=said)
    net.run(LATER_MS)
    assert net.counts()[0] == 4
    assert net.noted("split_conflicts_unresolved") > 0


def test_what_an_origin_cannot_fold_is_said_and_taken_in_all_the_same(net, monkeypatch):
    broken = Folder.take

    def take(self, events):
        raise ZeroDivisionError

    monkeypatch.setattr(Folder, "take", take)
    net.say("b", "s")
    net.run(25_000)
    assert net.brokers["b"].counts["folds_refused"] > 1
    assert net.notes.count(("b", "fold_refused")) == 1
    assert net.counts() == []
    monkeypatch.setattr(Folder, "take", broken)
    net.run(LATER_MS)
    net.both()
    net.run(LATER_MS)
    assert net.counts() == [3, 2]


@pytest.mark.parametrize(
    "changed",
    [
        {"ids": 0},
        {"ids": 10**6},
        {"text": b"event Temp(val: float"},
        {"tasks": ("0" * 32,)},
        {"tasks": ()},
        {"types": {"Temp": {"val": "text"}}},
        {"types": {"Other": {"val": "float"}}},
        {"types": {"Te mp": {"val": "float"}}},
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(net, changed):
    cell = net.header()
    question = cell.inputs.question(cell.me, "b", 1, {"Temp": {"val": "float"}})
    fields = {name: getattr(question, name) for name in question.__struct_fields__}
    net.brokers["b"]._origin.handlers()[frames.Fold](
        "a", frames.Fold(**{**fields, "host": "a/9#1", **changed})
    )
    assert net.brokers["b"].counts["folds_refused"] == 1
    assert "a/9#1" not in net.brokers["b"]._origin.folds._foldings
    net.run(LATER_MS)
    assert net.counts() == [2]


def test_many_groups_do_not_wait_for_the_end_of_their_window(monkeypatch):
    monkeypatch.setattr(folding, "ROWS_MAX", 3)
    monkeypatch.setattr(folding, "LOOK_EVENTS", 2)
    one = Split(TEXT.replace("subscription", "group by source\nsubscription"))
    for number in range(9):
        one.say("b", f"s{number}")
    one.run(10)
    assert one.header().counted.inputs["b", "rows of Temp for a/1"].events > 1
    one.run(LATER_MS)
    assert one.counts() == [1] * 9


def test_a_cell_that_moves_goes_on_with_what_it_has(net):
    net.run(3_000)
    net.tell("a", CellPlaced("a/1", "c"))
    net.both()
    net.run(LATER_MS)
    assert net.cell("a").host == "c"
    assert sum(net.counts()) == 4
    assert len({one["id"] for one in net.rows}) == len(net.rows)

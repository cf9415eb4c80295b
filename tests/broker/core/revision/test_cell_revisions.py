"""A changed text under the same name goes on in the cell that runs it, as far as it is the same."""

import json
from datetime import UTC, datetime
from functools import partial

import msgspec
import pytest
from msgspec.structs import replace

from broker.core import messages
from broker.core.broker import BrokerOptions
from broker.core.cells.cell import Cell
from broker.core.installer import Asker
from broker.core.networked.networked import NetworkedBroker
from broker.core.recovery import durable_told
from broker.core.recovery.durable import DurableBroker
from broker.core.standby.home_changes import HomeChanges
from broker.core.standby.home_copy import HomeCopy
from broker.engine.limits import Limits
from broker.network.frames.messages import CellPlaced, LinkDown
from broker.network.frames.told import Activated
from broker.network.placement.home_records import CellSaved, CellStood
from broker.network.placement.revisions import Reviser
from broker.network.placement.suspension import Suspension
from language import check_text
from tests.broker.core.network.test_cells_placed import BEGIN_MS, Net

TEMP = "event Temp(val: float)\n"
PAIR = (
    TEMP
    + """subscription Pair seq {seq} from x to y
detect Temp(val = 1) as a then Temp(val = 2) as b within 1 h
assign {assign}
"""
)
TRIPLE = (
    TEMP
    + """subscription Triple seq {seq} from x to y
detect (Temp(val = 1) as a then Temp(val = 2) as b) and Temp(val = {val}) as c within 1 h
assign val = b.val
"""
)
SHARED = (
    TEMP
    + """define Read(val) detect Temp assign val = Temp.val
subscription Hot seq {seq} from x to y detect Read(val > {val})
subscription Cold from x to y detect Read(val < 1)
"""
)

END_MS = BEGIN_MS + 60_000
UNTIL = f' until "{datetime.fromtimestamp(END_MS / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"'
KEEPING = """subscription Hot seq {{seq}} from x to y{hot}
detect Read(val > 3) assign val = Read.val, n = {{seq}}
subscription Cold from x to y{cold} detect Read(val < 1)
"""
READ = "".join(SHARED.splitlines(keepends=True)[:2])
ENDING = {
    "Hot": READ + KEEPING.format(hot=UNTIL, cold=""),
    "Cold": READ + KEEPING.format(hot="", cold=UNTIL),
}
BEGUN = (
    "event Hum(h: float)\n"
    + READ
    + KEEPING.format(hot="", cold="")
    + "subscription Wet seq {seq} from x to y detect Read and Hum(h > {seq}) within 1 min\n"
)


def asked(net, text):
    """Return what is said of a text beforehand."""
    core = net.brokers["a"].durable.core
    preview = core.installer.preview(text, None, Asker("x"), core.options)
    return json.loads(preview.payload())


def at_c(text):
    """Return three brokers, with the one cell of the first at the last."""
    net = Net("a", "b", "c")
    net.submit("a", text)
    net.tell("a", CellPlaced("a/1", "c"))
    net.run(3_000)
    assert net.cell("a").host == "c"
    return net


def changed(net, text):
    """Submit a text; what its two answers say, which has to be what was said beforehand."""
    said = asked(net, text)
    net.submit("a", text)
    accepted, active = net.replies[-2:]
    assert [accepted["state"], active["state"]] == ["accepted", "active"]
    rows = {row["subscription"]: row for row in accepted["changes"]}
    shown = {row["subscription"]: row for row in said["subscriptions"]}
    assert rows == {name: shown[name] for name in rows}
    return rows


def test_half_a_sequence_outlasts_a_change_of_what_is_assigned():
    net = at_c(PAIR.format(seq=1, assign="val = b.val"))
    net.event("b", 1)
    rows = changed(net, PAIR.format(seq=2, assign="val = b.val, begin = a.val"))
    assert rows["Pair"]["goes_on"]
    assert net.cell("a").cell == "a/1"
    net.event("b", 2)
    assert [found["values"] for found in net.found["a"]] == [{"val": 2.0, "begin": 1.0}]


def test_operands_that_are_the_same_outlast_a_change_of_others():
    net = at_c(TRIPLE.format(seq=1, val=3))
    net.event("b", 1)
    net.event("b", 2)
    rows = changed(net, TRIPLE.format(seq=2, val=4))
    assert not rows["Triple"]["goes_on"]
    assert [part["lines"] for part in rows["Triple"]["parts"]] == [["a, b"]]
    net.event("b", 3)
    assert not net.found["a"]
    net.event("b", 4)
    assert [found["values"] for found in net.found["a"]] == [{"val": 2.0}]


def test_what_shares_a_definition_with_the_changed_goes_on():
    net = at_c(SHARED.format(seq=1, val=3))
    rows = changed(net, SHARED.format(seq=2, val=7))
    assert (rows["Hot"]["keeps"], rows["Hot"]["goes_on"]) == (["Read"], False)
    assert net.cell("a").subscriptions == (("x", "Hot"), ("x", "Cold"))
    for val in (5.0, 9.0, 0.0):
        net.event("b", val)
    assert sorted(net.values("a")) == [0.0, 9.0]
    net.tell("a", CellPlaced("a/1", "b"))  # which begins from the snapshot of the changed text
    net.run(5_000)
    net.event("b", 10.0)
    assert net.values("a")[-1] == 10.0


def test_of_a_condition_that_is_another_nothing_goes_on_and_the_cell_is_a_new_one():
    net = at_c(TEMP + "subscription Pair from x to y detect Temp(val > 1)\n")
    rows = changed(net, TEMP + "subscription Pair seq 2 from x to y detect Temp(val > 2)\n")
    assert not rows["Pair"]["goes_on"]
    assert net.cell("a").cell == "a/2"


def test_two_changes_one_behind_the_other_are_both_taken_up():
    net = at_c(PAIR.format(seq=1, assign="val = b.val"))
    net.event("b", 1)
    for seq in (2, 3):
        text = PAIR.format(seq=seq, assign=f"val = b.val, version = {seq}")
        net.tell("a", messages.SpecificationSubmitted("x", "r", text))
    assert [found.number for found in net.kept("a").revisions] == [1, 2]
    net.run(3_000)
    assert (net.kept("a").revision, net.kept("a").revisions) == (2, [])
    net.event("b", 2)
    assert [found["values"]["version"] for found in net.found["a"]] == [3]


def test_what_is_found_under_a_text_is_given_out_once_its_state_is_stored(monkeypatch):
    net = at_c(PAIR.format(seq=1, assign="val = b.val"))
    net.event("b", 1)
    heard = []
    with monkeypatch.context() as patch:
        runs = Reviser.runs
        patch.setattr(Reviser, "runs", lambda *given: (heard.append(given[-1]), runs(*given)))
        patch.setattr(Cell, "save_if_due", lambda _: None)
        text = PAIR.format(seq=2, assign="val = b.val, begin = a.val")
        net.tell("a", messages.SpecificationSubmitted("x", "r", text))
        net.run(10)
        assert heard[-1] == 1  # at once: how subscriptions stand there is of this text
        net.event("b", 2)
        assert [one["state"] for one in net.replies[-1:]] == ["accepted"]
        assert net.found["a"] == []
    net.run(20_000)
    assert [one["values"] for one in net.found["a"]] == [{"val": 2.0, "begin": 1.0}]
    assert net.replies[-1]["state"] == "active"


@pytest.mark.parametrize(("name", "waits"), [("Hot", True), ("Cold", False)])
def test_what_ends_before_a_text_is_in_force_has_given_out_all(monkeypatch, name, waits):
    texts = [ENDING[name].format(seq=seq) for seq in (1, 2)]
    net = at_c(texts[0])
    installed = net.brokers["a"].durable.catalogue.subscriptions
    with monkeypatch.context() as patch:
        patch.setattr(Cell, "save_if_due", lambda _: None)
        net.submit("a", texts[1])
        net.event("b", {"Hot": 5, "Cold": 0}[name])
        net.run(END_MS + 1_000 - net.now)
        net.event("b", 2)
        assert [len(net.found["a"]), installed["x", name].state == "ended"] == [not waits] * 2
    net.run(20_000)
    assert [found["subscription"] for found in net.found["a"]] == [name]
    assert installed["x", name].state == "ended"


def test_while_what_a_text_begins_waits_for_an_origin_the_others_go_on():
    net = Net("a", "b", "c", "d")
    said = json.dumps({"source": "h", "types": ["Hum"]}).encode()
    net.tell("d", messages.SourceAdvertised("h", said))
    net.run(10_000)
    net.submit("a", BEGUN.format(seq=1))
    net.tell("a", CellPlaced("a/1", "c"))
    net.run(3_000)
    net.link("c", "d", LinkDown("d"))
    net.run(8_000)
    net.submit("a", BEGUN.format(seq=2))
    for val in (0.0, 5.0) * 3:
        net.event("b", val)
    assert net.kept("a").revisions  # no snapshot has it, as not all have answered
    assert [found["subscription"] for found in net.found["a"]] == ["Cold"] * 3
    net.link("c", "d")
    net.run(30_000)
    assert sorted(found["subscription"] for found in net.found["a"]) == ["Cold"] * 3 + ["Hot"] * 3


def test_once_a_text_is_in_force_a_host_has_no_more_to_say_of_what_was_resumed():
    net = at_c(SHARED.format(seq=1, val=3))
    (cell,) = net.brokers["c"].hosted.values()
    cell.hosting.tell_network(CellStood("", (Suspension("x", "Cold", "too_much_work", 0),)))
    net.run(10_000)
    net.tell("a", messages.ResumeRequested("x", "r", "Cold"))
    net.run(10_000)
    assert not cell.reports.waiting
    net.submit("a", SHARED.format(seq=2, val=7))
    net.run(10_000)
    assert net.kept("a").revision == 1
    assert not cell.reports.waiting


def test_a_text_before_is_not_suspended_for_what_the_pending_one_did(monkeypatch):
    net = at_c(PAIR.format(seq=1, assign="val = b.val"))

    def stands(host):
        (cell,) = net.brokers[host].hosted.values()
        return cell.reports.saver.revision, cell.durable.catalogue.subscriptions[
            "x", "Pair"
        ].suspended

    with monkeypatch.context() as patch:
        patch.setattr(Cell, "save_if_due", lambda _: None)
        net.submit("a", PAIR.format(seq=2, assign="val = b.val, begin = a.val"))
        (cell,) = net.brokers["c"].hosted.values()
        cell.hosting.tell_network(CellStood("", (Suspension("x", "Pair", "too_much_work", 0),)))
        net.run(1_000)
        assert stands("c") == (1, "too_much_work")
        patch.setattr(Reviser, "ask", lambda *_: None)
        net.link("b", "c", LinkDown("c"))
        net.run(15_000)
        assert stands("a") == (0, "")
    net.run(10_000)
    assert stands("a") == (1, "too_much_work")
    assert net.kept("a").revision == 1


def test_what_is_cancelled_before_its_host_hears_of_it_does_not_begin_there():
    net = at_c(SHARED.format(seq=1, val=3))
    text = SHARED.format(seq=2, val=7)
    net.tell("a", messages.SpecificationSubmitted("x", "r", text))
    net.tell("a", messages.CancelRequested("x", "r", "Hot"))
    net.run(3_000)
    (cell,) = net.brokers["c"].cells()
    assert cell.subscriptions == (("x", "Cold"),)


# --- what goes on nowhere ------------------------------------------------------------------------

TWO = (
    TEMP
    + "subscription One seq {one} from x to y detect Temp(val > 1) assign n = {one}\n"
    + "subscription Two seq {two} from x to y detect Temp(val > 2) assign n = {two}\n"
)
TOGETHER = (
    TEMP
    + "define Warm(val) detect Temp(val > 1) assign val = Temp.val\n"
    + "subscription One seq {one} from x to y detect Warm assign val = Warm.val, n = {one}\n"
    + "subscription Two seq {two} from x to y detect Warm assign val = Warm.val, n = {two}\n"
)
TABLED = TEMP + 'table T from "t.csv" key val\n'


class Home:
    """A home alone; its cells are active once somebody says so."""

    def __init__(self, text, cells=16, *, active=True, splits=False):
        options = BrokerOptions(name="a", networked=True, cells=True)
        self.core = NetworkedBroker(options, Limits())
        self.submit(text, cells, split=splits)
        if active:
            for name in list(self.core.book.cells):
                self.tell(CellSaved(name, 1, 1, 0, 0, b"state", 0))

    def tell(self, what):
        self.core.handle(messages.NetworkTold(what), 1_000)

    def submit(self, text, cells=16, **settings):
        asking = messages.SpecificationSubmitted("x", "r", text, cells=cells, **settings)
        replies = [one for one in self.core.handle(asking, 1_000) if hasattr(one, "payload")]
        said = msgspec.json.decode(replies[0].payload)
        assert said["ok"], said
        return said

    def cells(self):
        return {name: [key[1] for key in cell.keys] for name, cell in self.core.book.cells.items()}


def test_of_two_changed_cells_each_goes_on():
    home = Home(TWO.format(one=1, two=1))
    home.submit(TWO.format(one=2, two=2))
    assert home.cells() == {"a/1": ["One"], "a/2": ["Two"]}
    assert [len(cell.revisions) for cell in home.core.book.cells.values()] == [1, 1]


def test_one_cell_of_two_that_are_changed_takes_up_one_text():
    home = Home(TWO.format(one=1, two=1), cells=1)
    home.submit(TWO.format(one=2, two=2))
    assert home.cells() == {"a/1": ["One", "Two"]}
    (revision,) = home.core.book.cells["a/1"].revisions
    assert (revision.keys, revision.begins) == ((("x", "One"), ("x", "Two")), False)


def begins(home, text, **settings):
    said = home.submit(text, **settings)
    assert not any(row["goes_on"] for row in said["changes"])
    return home.cells()


def test_what_is_not_active_yet_begins_anew():
    home = Home(TOGETHER.format(one=1, two=1), active=False)
    assert begins(home, TOGETHER.format(one=2, two=2)) == {"a/2": ["One", "Two"]}


def test_what_is_changed_without_what_else_is_in_its_cell_goes_on_there():
    """What else is there stays under the text that it came with, which the snapshot has."""
    home = Home(TOGETHER.format(one=1, two=1))
    text = "\n".join(TOGETHER.format(one=2, two=1).splitlines()[:-1]) + "\n"
    (row,) = home.submit(text)["changes"]
    assert (row["subscription"], row["goes_on"]) == ("One", True)
    assert home.cells() == {"a/1": ["One", "Two"]}


def test_what_comes_of_two_cells_to_share_a_definition_begins_anew():
    home = Home(TWO.format(one=1, two=1))
    assert begins(home, TOGETHER.format(one=2, two=2)) == {"a/3": ["One", "Two"]}


def test_what_two_cells_hold_of_one_definition_begins_anew():
    """It goes on in one of them or in the other, and each has what the other lacks."""
    alone = TOGETHER.format(one=1, two=1).splitlines(keepends=True)
    home = Home("".join([*alone[:2], alone[2]]), active=False)
    home.submit("".join([*alone[:2], alone[3]]))
    for name in list(home.core.book.cells):
        home.tell(CellSaved(name, 1, 1, 0, 0, b"state", 0))
    assert home.cells() == {"a/1": ["One"], "a/2": ["Two"]}
    assert begins(home, TOGETHER.format(one=2, two=2)) == {"a/3": ["One", "Two"]}


def test_a_cell_whose_windows_are_split_has_one_text():
    text = (
        TEMP
        + "define Mean(val) aggr every 10 s detect Temp assign val = Avg(Temp.val)\n"
        + "subscription One seq {one} from x to y detect Mean assign val = Mean.val, n = {one}\n"
    )
    home = Home(text.format(one=1), splits=True)
    assert home.core.book.cells["a/1"].splits
    assert begins(home, text.format(one=2), split=True) == {"a/2": ["One"]}


def test_what_is_suspended_begins_anew():
    home = Home(TWO.format(one=1, two=1))
    home.tell(CellStood("a/1", (Suspension("x", "One", "too_much_work", 0),)))
    said = home.submit(TWO.format(one=2, two=2))
    assert [row["goes_on"] for row in said["changes"]] == [False, True]
    assert home.cells() == {"a/2": ["Two"], "a/3": ["One"]}


def test_what_a_change_before_has_begun_does_not_go_on_before_that_is_stored():
    home = Home(SHARED.format(seq=1, val=3))
    home.submit(SHARED.format(seq=2, val=4))
    assert home.core.book.cells["a/1"].revisions[0].begins
    assert begins(home, SHARED.format(seq=3, val=5)) == {"a/1": ["Cold"], "a/2": ["Hot"]}
    home.tell(CellSaved("a/2", 1, 1, 0, 0, b"state", 0))
    home.submit(SHARED.format(seq=4, val=6))
    assert home.cells() == {"a/1": ["Cold"], "a/2": ["Hot"]}


def test_a_record_of_an_earlier_version_comes_to_the_cells_that_it_came_to():
    """Else records behind it, of cells by their numbers, would be of others."""
    for older, cells in ((False, {"a/1": ["One", "Two"]}), (True, {"a/2": ["One", "Two"]})):
        home = Home(TOGETHER.format(one=1, two=1))
        text = TOGETHER.format(one=2, two=2)
        record = durable_told.written(
            messages.SpecificationSubmitted("x", "r", text, cells=16), 1_000
        )
        *fields, revises, apart = msgspec.msgpack.decode(record)
        assert revises is apart is True
        message, now = durable_told.read(msgspec.msgpack.encode(fields) if older else record)
        home.core.handle(message, now)
        assert home.cells() == cells


def test_what_ran_at_its_home_before_there_were_cells_begins_with_nothing_and_says_so():
    options = BrokerOptions(name="a", networked=True)
    before, _ = DurableBroker.recover(options, Limits(), None, (), 0, 1_000)
    asking = messages.SpecificationSubmitted("x", "r", TOGETHER.format(one=1, two=1))
    before.handle(asking, 1_000)
    keys = tuple(before.catalogue.subscriptions)
    before.handle(messages.NetworkTold(Activated(keys, apart=True)), 1_000)
    assert [each.state for each in before.catalogue.subscriptions.values()] == ["active"] * 2
    taken_up, _ = DurableBroker.recover(
        replace(options, cells=True), Limits(), before.snapshot(), (), 0, 1_000
    )
    asking = replace(asking, text=TOGETHER.format(one=2, two=2))
    replies = [one for one in taken_up.handle(asking, 1_000) if hasattr(one, "payload")]
    said = msgspec.json.decode(replies[0].payload)
    assert said["state"] == "accepted"
    assert not any(row["goes_on"] or row["keeps"] for row in said["changes"])
    assert [each.state for each in taken_up.catalogue.subscriptions.values()] == ["accepted"] * 2
    assert list(taken_up.network.book.cells) == ["a/1"]


# --- a stand-in ----------------------------------------------------------------------------------


def test_a_copy_of_a_home_has_the_texts_that_its_cells_are_to_take_up():
    home = Home(TWO.format(one=1, two=1), cells=1)
    changes = HomeChanges(home.core)
    copy = HomeCopy("a", 1, 0, changes.state())

    def follow(message):
        home.core.handle(message, 1_000)
        said = changes.of(message)
        copy.take(said, copy.number + 1)
        assert msgspec.msgpack.encode(copy.book.state()) == msgspec.msgpack.encode(
            home.core.book.state()
        )

    submitted = partial(messages.SpecificationSubmitted, "x", "r", cells=1)
    for one, two in ((2, 2), (2, 3)):
        follow(submitted(TWO.format(one=one, two=two)))
    assert [row.number for row in copy.book.cells["a/1"].revisions] == [1, 2]
    for revision in (1, 2):
        follow(messages.NetworkTold(CellSaved("a/1", 1, 1, 0, 0, b"state", revision)))
    follow(submitted(TWO.format(one=3, two=4)))
    assert [row.number for row in copy.book.cells["a/1"].revisions] == [3]


@pytest.mark.parametrize("text", [TWO, TOGETHER])
def test_the_text_of_the_first_subscription_of_a_cell_has_all_of_them(text):
    """A cell may have to begin from nothing, and the text of one alone goes to its host."""
    home = Home(text.format(one=1, two=1), cells=1)
    for one, two in ((2, 1), (2, 2), (3, 2)):
        home.submit(text.format(one=one, two=two), cells=1)
        for cell in home.core.book.cells.values():
            source = home.core.source_of(cell.keys[0])
            names = check_text(source.text).demand().subscriptions
            assert all(key in names for key in cell.keys)

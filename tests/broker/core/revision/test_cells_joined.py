"""A text that needs a definition which a cell of its home runs joins that cell."""

import json
from functools import partial

import msgspec
import pytest

from broker.core import messages
from broker.core.networked import cell_beginnings
from broker.core.recovery import durable_told
from broker.core.standby.home_changes import HomeChanges
from broker.core.standby.home_copy import HomeCopy
from broker.network.frames.messages import CellPlaced, LinkDown
from broker.network.placement import home_records as records
from broker.network.placement.book import CellBook
from broker.network.placement.revisions import JOIN_MS_MAX
from tests.broker.core.network.test_cells_placed import Net
from tests.broker.core.revision.test_cell_revisions import TEMP, Home

RISE = (
    TEMP + "define Rise(val) detect Temp(val < 2) as a then[..1 h] Temp(val > 6) as b"
    " assign val = b.val\n"
)
MORE = RISE + "event Hum(h: float)\n"
WET = MORE + "subscription W from {0} to y detect Rise and Hum within 1 h\n"


def text_of(client, seq=1, assigned="val = Rise.val"):
    return RISE + f"subscription S seq {seq} from {client} to y detect Rise assign {assigned}\n"


def submit(net, client, text=None):
    net.tell("a", messages.SpecificationSubmitted(client, "r", text or text_of(client)))
    net.run(3_000)


@pytest.fixture
def net():
    """The cell of the first broker runs at the last, and has half a match."""
    one = Net("a", "b", "c")
    submit(one, "anna")
    one.tell("a", CellPlaced("a/1", "c"))
    one.run(3_000)
    one.event("b", 1)
    return one


def found(net):
    return [(one["subscriber"], one["values"]["val"]) for one in net.found["a"]]


def instances(net, host="c"):
    """Return how many instances of the definition run at a host."""
    (cell,) = net.brokers[host].hosted.values()
    return sum(one.task.name == "Rise" for one in cell.durable.core._matcher.running.values())


def test_it_gets_what_it_would_get_alone_and_the_definition_runs_once_when_that_is_the_same(net):
    submit(net, "bob")
    assert [one["state"] for one in net.replies] == ["accepted", "active"] * 2
    assert net.kept("a").keys == [("bob", "S"), ("anna", "S")]
    assert instances(net) == 2  # it holds nothing, and the other half a match
    net.event("b", 9)
    assert found(net) == [("anna", 9)]
    net.event("b", 0)
    net.event("b", 8)
    assert sorted(found(net)) == [("anna", 8), ("anna", 8), ("anna", 9), ("bob", 8)]
    for for_ms in (3_700_000, 7_500_000):  # of what has begun before nothing is left
        net.run(for_ms)
        for val in (7, 1, 7):
            net.event("b", val)
    assert instances(net) == 1
    net.tell("a", CellPlaced("a/1", "b"))
    net.run(5_000)
    assert instances(net, "b") == 1
    net.event("b", 10)
    assert max(found(net)) == ("bob", 10)


def test_each_goes_on_when_the_other_is_cancelled_or_changed(net):
    submit(net, "bob")
    submit(net, "anna", text_of("anna", 2, "val = Rise.val, more = 1"))
    (row,) = net.replies[-2]["changes"]
    assert (row["goes_on"], row["keeps"]) == (True, ["Rise"])
    assert net.replies[-1]["state"] == "active"
    net.tell("a", CellPlaced("a/1", "b"))
    net.run(5_000)
    net.event("b", 9)
    assert found(net) == [("anna", 9)]
    net.tell("a", messages.CancelRequested("anna", "r", "S"))
    net.run(3_000)
    net.event("b", 0)
    net.tell("a", CellPlaced("a/1", "c"))
    net.run(5_000)
    net.event("b", 8)
    assert found(net) == [("anna", 9), ("bob", 8)]


def test_who_waits_for_an_origin_for_long_runs_apart_and_holds_up_nobody():
    net = Net("a", "b", "c", "d")
    said = json.dumps({"source": "h", "types": ["Hum"]}).encode()
    net.tell("d", messages.SourceAdvertised("h", said))
    net.run(10_000)
    alone = text_of("anna")[len(RISE) :]
    submit(net, "anna", WET.format("anna") + alone)
    net.tell("a", CellPlaced("a/1", "c"))
    net.run(3_000)
    net.link("c", "d", LinkDown("d"))
    net.run(8_000)
    submit(net, "bob", WET.format("bob"))
    book = net.brokers["a"].durable.network.book
    assert [cell.keys[0] for cell in book.cells.values()] == [("bob", "W")]
    saved = net.kept("a").snapshot
    net.event("b", 1)
    net.run(JOIN_MS_MAX)
    assert [cell.keys[0] for cell in book.cells.values()] == [("anna", "W"), ("bob", "W")]
    assert net.brokers["a"].counts["cells_parted"] == 1
    net.run(10_000)
    assert book.cells["a/1"].snapshot != saved
    assert [cell.revisions for cell in book.cells.values()] == [[], []]
    net.event("b", 9)
    assert found(net) == [("anna", 9)]
    net.link("c", "d")
    net.run(30_000)
    assert net.replies[-1]["state"] == "active"


def test_a_namesake_of_what_was_cancelled_gets_nothing_of_it_though_the_host_has_not_heard(net):
    submit(net, "bob")
    net.event("b", 1)
    net.link("b", "c", LinkDown("c"))
    net.tell("a", messages.CancelRequested("bob", "r", "S"))
    net.run(500)
    net.tell("a", messages.SpecificationSubmitted("bob", "r", text_of("bob")))
    net.run(500)
    net.link("b", "c")
    net.run(5_000)
    assert net.replies[-1]["state"] == "active"
    net.event("b", 9)
    assert found(net) == [("anna", 9), ("anna", 9)]
    net.event("b", 1)
    net.event("b", 8)
    assert ("bob", 8) in found(net)


# --- what joins nothing --------------------------------------------------------------------------


def joined(home, client="bob", text=None, **settings):
    asking = partial(messages.SpecificationSubmitted, client, "r", text or text_of(client))
    home.core.handle(asking(cells=16, **settings), 1_000)
    return [[key[0] for key in cell.keys] for cell in home.core.book.cells.values()]


def test_a_cell_is_joined_that_is_active_and_takes_so_many(monkeypatch):
    assert joined(Home(text_of("anna"))) == [["bob", "anna"]]
    assert joined(Home(text_of("anna"), active=False)) == [["anna"], ["bob"]]
    other = (
        TEMP + "define Rise(val) detect Temp assign val = Temp.val\n" + text_of("bob")[len(RISE) :]
    )
    assert joined(Home(text_of("anna")), text=other) == [["anna"], ["bob"]]
    monkeypatch.setattr(cell_beginnings, "MEMBERS_MAX", 1)
    assert joined(Home(text_of("anna"))) == [["anna"], ["bob"]]


def test_a_record_of_an_earlier_version_joins_nothing():
    home = Home(text_of("anna"))
    record = durable_told.written(
        messages.SpecificationSubmitted("bob", "r", text_of("bob"), cells=16), 1_000
    )
    *fields, apart = msgspec.msgpack.decode(record)
    assert apart is True
    message, now = durable_told.read(msgspec.msgpack.encode(fields))
    home.core.handle(message, now)
    assert list(home.cells()) == ["a/1", "a/2"]


def test_a_record_of_a_change_goes_on_only_with_all_that_was_in_the_cell():
    both = text_of("anna") + text_of("bob")[len(RISE) :]
    for older, cells in ((False, [["anna", "bob"]]), (True, [["bob"], ["anna"]])):
        home = Home(both)
        text = text_of("anna", 2, "val = Rise.val, more = 1")
        asked = messages.SpecificationSubmitted("x", "r", text, cells=16)
        *fields, _ = msgspec.msgpack.decode(durable_told.written(asked, 1_000))
        if older:
            asked, _ = durable_told.read(msgspec.msgpack.encode(fields))
        home.core.handle(asked, 1_000)
        known = home.core.book.cells.values()
        assert [[client for client, _ in cell.keys] for cell in known] == cells


def test_what_has_left_a_cell_does_not_join_it():
    """Its host may yet run what it was there."""
    home = Home(text_of("anna"))
    joined(home)
    home.tell(records.CellSaved("a/1", 1, 1, 0, 0, b"state", 1))
    text = text_of("bob", 2).replace("detect Rise ", "detect Rise(val > 7) ")
    assert joined(home, text=text.replace("val = Rise", "other = Rise")) == [["bob", "anna"]]
    text = "\n".join([RISE.replace("1 h", "2 h"), *text_of("bob", 3).split("\n")[2:]])
    assert joined(home, text=text) == [["anna"], ["bob"]]


def test_a_copy_of_a_home_has_what_joined_and_what_did_not():
    home = Home(text_of("anna"))
    changes = HomeChanges(home.core)
    copy = HomeCopy("a", 1, 0, changes.state())

    def follow(message):
        home.core.handle(message, 1_000)
        said = changes.of(message)
        copy.take(said, copy.number + 1)
        assert msgspec.msgpack.encode(copy.book.state()[2:]) == msgspec.msgpack.encode(
            home.core.book.state()[2:]
        )

    for client in ("bob", "carl"):
        follow(messages.SpecificationSubmitted(client, "r", text_of(client)))
    assert [each.number for each in copy.book.cells["a/1"].revisions] == [1, 2]
    follow(messages.NetworkTold(records.CellParted("a/1", 1)))
    assert list(copy.book.cells) == ["a/1", "a/2"]
    assert copy.book.of["bob", "S"] == "a/2"
    follow(messages.NetworkTold(records.CellSaved("a/1", 1, 1, 0, 0, b"state", 2)))
    follow(messages.NetworkTold(records.CellParted("a/1", 2)))  # it has joined
    assert copy.book.of["carl", "S"] == "a/1"


# --- the book ------------------------------------------------------------------------------------


def test_of_who_joins_nothing_counts_that_was_found_under_a_text_before():
    book = CellBook("a")
    cell = book.begin([("x", "S")], 0)
    book.save(records.CellSaved(cell.name, 1, 1, 0, 0, b"state", 0))
    book.join(cell.name, [("y", "T")], b"text")

    def row(name):
        return (*name, "", json.dumps({"id": "r"}).encode())

    def results(first, revision, *names):
        rows = [row(name) for name in names]
        return records.CellResults(cell.name, 1, 1, 0, first, rows, revision)

    assert book.results(results(0, 0, ("x", "S"), ("y", "T"))) == [row(("x", "S"))]
    assert book.results(results(2, 1, ("y", "T"))) == []
    active, rows = book.save(records.CellSaved(cell.name, 1, 1, 0, 3, b"state", 1))
    assert (active, rows) == ([("y", "T")], [row(("y", "T"))])


def test_of_what_is_gone_nothing_is_kept_for_its_namesake():
    book = CellBook("a")
    cell = book.begin([("x", "S"), ("y", "T")], 0)
    book.save(records.CellSaved(cell.name, 1, 1, 0, 0, b"state", 0))
    book.revise(cell.name, [("y", "T")], b"text", begins=False)
    rows = [(*key, "", json.dumps({"id": "r"}).encode()) for key in list(book.of) * 2]
    book.results(records.CellResults(cell.name, 1, 1, 0, 0, rows[:2], 0))
    book.results(records.CellResults(cell.name, 1, 1, 0, 2, rows[2:], 1))
    assert (len(cell.ids), len(cell.apart)) == (2, 1)
    book.drop([("y", "T")])
    assert (len(cell.ids), len(cell.apart)) == (1, 0)

"""A host installs of a text what runs in its cell: the limit on work is the home's to apply."""

import json

import pytest

from broker.core import messages
from broker.core.recovery import durable_told
from broker.network.frames.messages import CellPlaced
from tests.broker.core.network.test_cells_placed import Net

EACH = 18  # units of work that each of these takes
MAX = 100


def text(*seqs):
    """Return a text whose subscriptions share no definition, so that each is a cell."""
    subscriptions = [
        f"subscription S{number} seq {seq} from x to y"
        f" detect Temp(val > {number}) as a then Temp(val = {number}) as b within 1 h"
        f" assign n = {seq}\n"
        for number, seq in enumerate(seqs, 1)
    ]
    return "".join(["event Temp(val: float)\n", *subscriptions])


@pytest.fixture
def net():
    """Return brokers of which the last runs the first of three cells."""
    brokers = Net("a", "b", "c", effort=MAX)
    brokers.submit("a", text(1, 1, 1))
    brokers.tell("a", CellPlaced("a/1", "c"))
    brokers.run(3_000)
    return brokers


def test_a_text_that_its_home_accepts_is_accepted_by_all_hosts(net):
    assert 4 * EACH < MAX < 6 * EACH  # what it changes and brings, and all that it names
    net.submit("a", text(2, 1, 1, 1, 1, 1))
    assert [reply["state"] for reply in net.replies[-2:]] == ["accepted", "active"]
    net.run(60_000)
    cells = net.brokers["a"].durable.network.book.cells.values()
    assert [cell.reason for cell in cells] == [""] * 6
    assert all(cell.active for cell in cells)
    (changed,) = net.brokers["c"].hosted.values()
    assert list(changed.durable.catalogue.subscriptions) == [("x", "S1")]
    assert not [event for _, event in net.notes if event in {"cell_refused", "cell_failed"}]


def test_a_text_that_takes_too_much_is_refused_by_its_home_and_the_cells_go_on(net):
    before = list(net.brokers["a"].durable.network.book.cells)
    net.submit("a", text(2, 2, 2, 1, 1, 1))
    [error] = net.replies[-1]["errors"]
    assert "install_effort_max" in json.dumps(error)
    net.run(60_000)
    assert list(net.brokers["a"].durable.network.book.cells) == before


@pytest.mark.parametrize("only", [None, (), (("x", "S1"), ("x", "S2"))])
def test_a_record_tells_which_subscriptions_of_a_text_are_meant(only):
    asked = messages.SpecificationSubmitted("x", "r", text(1, 1, 1), only=only)
    assert durable_told.read(durable_told.written(asked, 7)) == (asked, 7)

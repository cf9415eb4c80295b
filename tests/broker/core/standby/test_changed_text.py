"""A stand-in takes over what has come with several texts, of which a later one names it all."""

import json

import pytest

from broker.core import messages
from broker.core.broker import BrokerOptions
from broker.core.effects import Reply
from broker.core.networked.networked import NetworkedBroker
from broker.core.standby.home_changes import HomeChanges
from broker.core.standby.home_copy import HomeCopy
from broker.engine.limits import Limits
from broker.network.delivery.succession import HomeTaken, Succeeded
from broker.network.placement.home_records import CellSaved

TEXT = """event Temp(val: float)
define Read(val) detect Temp assign val = Temp.val
subscription Hot seq {seq} from x to y detect Read(val > {val})
subscription Cold from x to y detect Read(val < 1)
"""
HOT, COLD = ("x", "Hot"), ("x", "Cold")


def core(name, cells):
    return NetworkedBroker(BrokerOptions(name=name, networked=True, cells=cells), Limits())


def submit(broker, text, now=1_000):
    submitted = messages.SpecificationSubmitted("x", "r", text, cells=16)
    replies = [effect for effect in broker.handle(submitted, now) if isinstance(effect, Reply)]
    assert json.loads(replies[0].payload)["ok"]


def changed_home(cells):
    """Return a home whose `Cold` is of the first text and whose `Hot` is of the second."""
    home = core("a", cells)
    for number, val in enumerate((3, 7)):
        submit(home, TEXT.format(seq=number + 1, val=val), 1_000 + number)
        if cells:
            saved = CellSaved("a/1", 1, 1, 0, 0, b"state", number)
            home.handle(messages.NetworkTold(saved), 1_000 + number)
    assert home.source_of(COLD).text != home.source_of(HOT).text
    return home


def taken_over(home, heir):
    """Return what comes of the take-over of a home by a broker that has its copy."""
    heir.standing_in.homes["a"] = HomeCopy("a", 1, 0, HomeChanges(home).state())
    heir.handle(messages.NetworkTold(HomeTaken("a")), 2_000)
    return heir.adoption.last


@pytest.mark.parametrize("cells", [True, False])
def test_both_texts_of_a_home_are_taken_over(cells):
    home, heir = changed_home(cells), core("b", cells)
    adopted = taken_over(home, heir)
    assert adopted.refusals == ()
    assert set(adopted.subscriptions) == {HOT, COLD}
    for key in (HOT, COLD):
        own, before = heir.catalogue.subscriptions[key], home.catalogue.subscriptions[key]
        assert (own.seq, own.task, own.since) == (before.seq, before.task, before.since)
        assert heir.source_of(key).text == home.source_of(key).text
    kept = {name: set(cell.keys) for name, cell in heir.book.cells.items()}
    assert kept == ({"a/1": {HOT, COLD}} if cells else {})
    submit(heir, TEXT.format(seq=3, val=9), 3_000)
    assert heir.catalogue.subscriptions[HOT].seq == 3


@pytest.mark.parametrize("cells", [True, False])
def test_of_each_text_the_heir_has_what_was_left_at_the_home(cells):
    home, heir = changed_home(cells), core("b", cells)
    home.handle(messages.CancelRequested("x", "r", "Cold", proven=True), 1_500)
    assert taken_over(home, heir).subscriptions == (HOT,)
    assert list(heir.catalogue.subscriptions) == [HOT]


@pytest.mark.parametrize("cells", [True, False])
def test_what_the_heir_has_itself_is_in_the_way_of_that_text_alone(cells):
    home, heir = changed_home(cells), core("b", cells)
    submit(heir, "event Temp(val: float)\nsubscription Cold from x to y detect Temp(val < 2)\n")
    own = heir.catalogue.subscriptions[COLD]
    adopted = taken_over(home, heir)
    assert [refusal.subscriptions for refusal in adopted.refusals] == [(COLD,)]
    assert adopted.subscriptions == (HOT,)
    assert heir.catalogue.subscriptions[COLD] is own


# --- texts that share a definition, in one cell --------------------------------------------------

MILD = ("z", "Mild")
JOINS = "\n".join([*TEXT.split("\n")[:2], "subscription Mild from z to y detect Read(val > 2)\n"])


def joined_home(*, saved):
    """Return a home whose one cell another text has joined, or is about to."""
    home = core("a", True)
    submit(home, TEXT.format(seq=1, val=3))
    home.handle(messages.NetworkTold(CellSaved("a/1", 1, 1, 0, 0, b"state", 0)), 1_000)
    submit(home, JOINS)
    if saved:
        home.handle(messages.NetworkTold(CellSaved("a/1", 1, 1, 0, 0, b"both", 1)), 1_000)
    return home


@pytest.mark.parametrize("saved", [True, False])
def test_texts_that_share_a_cell_are_taken_over_in_that_cell(saved):
    heir = core("b", True)
    adopted = taken_over(joined_home(saved=saved), heir)
    assert set(adopted.subscriptions) == {HOT, COLD, MILD}
    (cell,) = heir.book.cells.values()
    assert set(cell.keys) == {HOT, COLD, MILD}
    assert [each.joins for each in cell.revisions] == ([] if saved else [True])
    assert (heir.catalogue.subscriptions[MILD].state == "active") == saved


def test_a_home_that_begins_its_cells_under_other_names_begins_one_for_each_text():
    """What begins with nothing begins from one text."""
    home = joined_home(saved=True)
    succeeded = Succeeded("a", "b", 1_500, 0, ("a/1",), ())
    home.handle(messages.NetworkTold(succeeded), 2_000)
    assert {name: set(cell.keys) for name, cell in home.book.cells.items()} == {
        "a/2": {MILD},
        "a/3": {HOT, COLD},
    }

"""The catalogue on disk is kept in step, and is what is left where the journal is gone."""

from random import Random

import pytest

from broker.core.effects import Enlist
from broker.core.messages import CancelRequested, SpecificationSubmitted
from broker.core.recovery.durable_listed import RecoveryError
from broker.network.effects import Note
from tests.broker.core.machine import DECLARED, HOT, event, subscription
from tests.broker.core.test_durable import Disk, kinds

NAMES = ("A", "B", "C", "D")


def installed(disk):
    return [
        (*one.key, one.seq, one.actor, one.client, one.proven) for one in disk.broker.subscriptions
    ]


def listed(disk):
    return [(*one.key, one.seq, one.actor, one.client, one.proven) for one in disk.listed.values()]


def lose_the_journal(disk):
    disk.records, disk.snapshot = [], None
    return disk.start()


def text_of(names, seq, warm):
    return DECLARED + "".join(
        subscription(name, f"Temp(val > {warm})", "anna", seq=seq) for name in names
    )


def wander(disk, random, steps=12):
    """Texts of several come, replace each other's subscriptions, and go in part."""
    for _ in range(steps):
        names = random.sample(NAMES, random.randint(1, 3))
        if random.random() < 0.4:
            disk.tell(CancelRequested("anna", "2", names[0], "here"))
        else:
            client = random.choice(("anna", "cli"))
            text = text_of(names, random.randint(1, 6), random.randint(30, 33))
            disk.tell(SpecificationSubmitted(client, "1", text, "here", proven=client == "cli"))
        assert listed(disk) == installed(disk)


@pytest.mark.parametrize("seed", range(25))
def test_without_its_journal_a_broker_has_what_the_catalogue_lists(seed):
    disk = Disk()
    wander(disk, Random(f"listed {seed}"))
    before = installed(disk)
    lose_the_journal(disk)
    assert installed(disk) == before == listed(disk)
    disk.start()  # and the journal that it has begun holds all that
    assert installed(disk) == before == listed(disk)


def test_what_was_lost_is_said_and_results_go_on_behind_those_that_are_there():
    disk = Disk()
    disk.submit(HOT)
    disk.send(event(1, 31, id="a"))
    effects = lose_the_journal(disk)
    told = {one.event: one.fields for one in effects if isinstance(one, Note)}
    assert told["installed_again"] == {"subscriptions": 1}
    assert told["journal_missing"] == {"outbox_end": 1}
    assert "Reply" not in kinds(effects)
    disk.send(event(2, 31, id="b"))
    assert [one["events"]["Temp"] for one in disk.said()] == [["a"], ["b"]]


def test_a_change_that_a_crash_kept_from_the_catalogue_is_made_up_for():
    disk = Disk()
    disk.submit(HOT)
    before = dict(disk.listed)
    disk.tell(CancelRequested("anna", "2", "Hot", "here"))
    disk.submit(text_of("AB", 1, 30))
    after, disk.listed = disk.listed, before
    (step,) = [one for one in disk.start() if isinstance(one, Enlist)]
    assert disk.listed == after
    assert step.leaving == (("anna", "Hot"),)
    assert [one.subscription for one in step.coming] == ["A", "B"]
    assert "Enlist" not in kinds(disk.start())


def test_what_cannot_be_installed_again_is_not_given_up():
    """Here the table is gone that its text names."""
    tables = {"limits.csv": "place,top\nhall,30\n"}
    table = 'table Limits from "limits.csv" key place\n'
    pattern = "Temp as t where t.val > Limits[t.location].top"
    disk = Disk(tables=tables)
    disk.submit(DECLARED + table + subscription("Over", pattern))
    before = dict(disk.listed)
    assert len(before) == 1
    disk.records = []
    with pytest.raises(RecoveryError, match=r"`Over` of anna, which the catalogue lists, cannot"):
        disk.start(tables={})
    assert disk.listed == before
    disk.start(tables=tables)
    assert [one.name for one in disk.broker.subscriptions] == ["Over"]

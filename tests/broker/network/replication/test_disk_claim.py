"""Of brokers that begin on copies of one disk the one announced later yields, and no other."""

from typing import NamedTuple

import pytest

from broker.network.replication.descent import DRAWN_MIN, LIVES_MAX, Descent
from broker.network.replication.disk_claim import DiskClaim

DISK = DRAWN_MIN + 5


class Said(NamedTuple):
    disk: int = DISK
    run: int = 10
    forgotten: bool = False


def claim(run=20, disk=DISK):
    made = DiskClaim("me")
    made.run, made.disk = run, disk
    return made


def yielded(others, reachable=None, run=20, disk=DISK):
    made = claim(run, disk)
    made.look(others, others if reachable is None else reachable)
    return made.yielded_to


@pytest.mark.parametrize(
    ("other", "to"),
    [
        (Said(), "other"),
        (Said(run=30), ""),
        (Said(run=20), ""),  # of one number it is the name that decides
        (Said(disk=DISK + 1), ""),
        (Said(disk=0), ""),
        (Said(forgotten=True), ""),
    ],
)
def test_it_yields_to_one_announced_before_on_the_same_disk(other, to):
    assert yielded({"me": Said(run=1), "other": other}) == to


def test_of_one_number_the_lesser_name_goes_on():
    assert yielded({"early": Said(run=20)}) == "early"
    assert yielded({"other": Said(run=20)}) == ""


def test_the_name_that_the_disk_had_before_is_no_rival():
    """A broker that was renamed is known by its old name until that is forgotten."""
    assert yielded({"other": Said()}, reachable=()) == ""


def test_without_a_life_or_a_number_of_its_own_it_yields_to_nobody():
    assert yielded({"other": Said(disk=0)}, disk=0) == ""
    assert yielded({"other": Said()}, run=0) == ""


def test_it_stays_so_while_the_other_restarts_and_until_that_is_gone_for_good():
    made = claim()
    assert made.look({"other": Said()}, ["other"])
    assert made.told == 0
    assert not made.look({"other": Said()}, ())
    assert not made.look({"other": Said(run=99)}, ["other"])
    assert made.yielded_to == "other"
    assert made.look({"other": Said(run=99, forgotten=True)}, ())
    assert (made.yielded_to, made.told) == ("", DISK)


def test_it_goes_on_when_the_other_has_another_disk():
    made = claim()
    made.look({"other": Said()}, ["other"])
    assert made.look({"other": Said(disk=DISK + 1, run=99)}, ["other"])
    assert made.yielded_to == ""


def test_two_that_have_yielded_to_each_other_do_not_stay_so():
    """Each heard of an older process of the other; neither tells of the disk any more."""
    one, other = claim(20), DiskClaim("other")
    other.run, other.disk = 21, DISK
    one.look({"other": Said(run=11)}, ["other"])
    other.look({"me": Said(run=10)}, ["me"])
    for _ in range(3):
        said = {"me": Said(one.told, 20), "other": Said(other.told, 21)}
        one.look(said, ["me", "other"])
        other.look(said, ["me", "other"])
    assert (one.yielded_to, other.yielded_to) == ("", "me")


def test_a_disk_is_named_by_its_first_life_for_ever():
    descent = Descent()
    assert descent.first == 0
    descent.begin(1_700_000_000_000, 5)  # a time of day, which two disks may share
    assert descent.first == 0
    descent.begin(DISK, 10)
    for number in range(LIVES_MAX + 5):
        descent.begin(DISK + 1 + number, 10 + number)
        assert descent.first == DISK
    again = Descent()
    again.restore(descent.life, descent.state())
    assert again.first == DISK

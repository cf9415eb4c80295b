"""A task that is too much work away from its home is suspended for its home, too, and resumed."""

import pytest

from broker.core.cells.cell import Cell
from simulation.network import suspensions
from simulation.network.scenario import Shape
from tests.simulation.planted import found_from

SHAPE = Shape(brokers=6, events=300)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(3))
def test_home_and_host_agree_who_is_suspended_and_begins_anew(seed):
    suspensions.run(seed, SHAPE)


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_home_and_host_agree_after_any_faults():
    for seed in range(300):
        suspensions.run(seed)


def a_host_that_tells_its_home_nothing(patch):
    patch.setattr(Cell, "_standing", lambda self: self._confirmed)


def a_home_that_forgets_to_tell_hosts(patch):
    patch.setattr("broker.core.networked.networked.follow", lambda *_: None)


def a_home_that_takes_rows_from_before_a_new_beginning(patch):
    def credulous(catalogue, keys, rows):
        own = {key: catalogue.subscriptions[key] for key in keys}
        return tuple(row for row in rows if row.exceeded and not own[row.key].suspended)

    patch.setattr("broker.network.placement.homes.unheard", credulous)


def a_host_that_tells_the_subscriber_itself(patch):
    patch.setattr("broker.core.cells.cell.is_of_suspended", lambda _topic: False)


def a_word_that_is_never_said_again(patch):
    say = Cell.say_again

    def once(self):
        standing_said = self._said_standing
        say(self)
        self._said_standing = standing_said

    patch.setattr(Cell, "say_again", once)


MISTAKES = [
    a_host_that_tells_its_home_nothing,
    a_home_that_forgets_to_tell_hosts,
    a_home_that_takes_rows_from_before_a_new_beginning,
    a_host_that_tells_the_subscriber_itself,
    a_word_that_is_never_said_again,
]


@pytest.mark.long
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake, monkeypatch):
    mistake(monkeypatch)
    found_from(suspensions.run, "suspended", seeds=100)

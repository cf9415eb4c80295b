"""Mistakes in how tasks go from broker to broker are found, each within 200 seeds.

`make test` tries a few that show at once, `make long` all.
"""

import pytest
from msgspec.structs import replace

from broker.core.cells.cell import Cell
from broker.core.network import network_broker
from broker.network.neighbours.sessions import FrameSender
from broker.network.placement import book as cell_book
from broker.network.placement.book import CellBook
from broker.network.placement.homes import CellHomes
from simulation.network import cells
from tests.simulation.planted import found_from

pytestmark = pytest.mark.timeout(600)


def results_that_are_not_remembered(patch):
    results = CellBook.results

    def forgetful(self, one):
        found = results(self, one)
        if one.cell in self.cells:
            self.cells[one.cell].ids.clear()
        return found

    patch.setattr(CellBook, "results", forgetful)


def results_that_no_snapshot_remembers(patch):
    restore = CellBook.restore

    def forgetful(self, state):
        restore(self, state)
        for one in self.cells.values():
            one.ids.clear()

    patch.setattr(CellBook, "restore", forgetful)


def positions_told_before_the_home_has_them(patch):
    save = Cell.save_if_due

    def hasty(self):
        save(self)
        if self.saver.waiting is not None and self.saver.waiting.positions != self.saver.stored:
            self.saver.stored = self.saver.waiting.positions
            self._tell_stored()

    patch.setattr(Cell, "save_if_due", hasty)


def places_that_are_taken_for_stored(patch):
    patch.setattr(network_broker, "is_cell", lambda name: False)


def a_snapshot_that_goes_before_its_results(patch):
    to_say = Cell.to_say

    def hasty(self):
        one = self.saver.waiting
        if one is not None and not self.said:
            self.saver.waiting = replace(one, end=0)
        return to_say(self)

    patch.setattr(Cell, "to_say", hasty)


def snapshots_stored_while_it_moves(patch):
    def saves(self, one):
        place = self._place(one)
        return place is not None and place >= one.end

    patch.setattr(CellBook, "saves", saves)


def an_old_term_that_ends_before_the_new_one_runs(patch):
    def move(self, name, broker, reason):
        cell = self.cells.get(name)
        if cell is not None and cell.serving.broker != broker:
            cell.terms += 1
            cell.serving = cell_book.Term(cell.terms, broker)

    patch.setattr(CellBook, "move", move)


def terms_that_are_said_to_be_over_too_soon(patch):
    patch.setattr(CellBook, "is_over", lambda self, name, term: True)


def words_about_cells_that_no_disk_holds(patch):
    say = FrameSender.say

    def early(self, peer, body, after=0, events=-1):
        is_parcel = type(body).__name__ == "Parcel"
        say(self, peer, body, 0 if is_parcel else after, events)

    patch.setattr(FrameSender, "say", early)


def a_term_that_serves_before_all_origins_know_it(patch):
    def complete(self):
        return len(self.durable.catalogue) > 0 and not self.durable.network.activation.inactive()

    patch.setattr(Cell, "complete", property(complete))


def results_of_a_new_life_taken_for_those_of_the_old(patch):
    place = CellBook._place

    def confused(self, one):
        found = place(self, one)
        return found if found is None else max(found, self.cells[one.cell].term(one.term).next)

    patch.setattr(CellBook, "_place", confused)


def a_host_that_is_not_asked_again(patch):
    found = CellHomes.found

    def silent(self, origin):
        wishes, self.wishes = self.wishes, {}
        found(self, origin)
        self.wishes = wishes

    patch.setattr(CellHomes, "found", silent)


def origins_that_the_home_does_not_hear_of(patch):
    patch.setattr(CellBook, "name", lambda self, name, origins: None)


PLANTED = (
    results_that_are_not_remembered,
    results_that_no_snapshot_remembers,
    positions_told_before_the_home_has_them,
    places_that_are_taken_for_stored,
    a_snapshot_that_goes_before_its_results,
    snapshots_stored_while_it_moves,
    an_old_term_that_ends_before_the_new_one_runs,
    terms_that_are_said_to_be_over_too_soon,
    words_about_cells_that_no_disk_holds,
    a_term_that_serves_before_all_origins_know_it,
    results_of_a_new_life_taken_for_those_of_the_old,
    a_host_that_is_not_asked_again,
    origins_that_the_home_does_not_hear_of,
)
AT_ONCE = (  # those that the first runs show: `make test` has no time for all
    results_that_are_not_remembered,
    places_that_are_taken_for_stored,
    an_old_term_that_ends_before_the_new_one_runs,
)
AT_ONCE_SEEDS = 10


@pytest.mark.long
@pytest.mark.parametrize("plant", AT_ONCE, ids=lambda one: one.__name__)
def test_a_planted_mistake_is_found_at_once(plant, monkeypatch):
    plant(monkeypatch)
    found_from(cells.run, "cells", seeds=AT_ONCE_SEEDS)


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("plant", PLANTED, ids=lambda one: one.__name__)
def test_a_planted_mistake_is_found(plant, monkeypatch):
    plant(monkeypatch)
    found_from(cells.run, "cells")

"""Texts that are replaced under faults: all versions together find each match once."""

import pytest
from msgspec.structs import replace

from broker.network.placement.book import CellBook
from simulation.versions import scenario
from tests.simulation.planted import found_from


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(8))
def test_each_match_is_found_once(seed):
    scenario.run(seed)


@pytest.mark.long
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("part", range(10))
def test_each_match_is_found_once_in_many_runs(part):
    for seed in range(part * 100, (part + 1) * 100):
        scenario.run(seed)


def heirs_that_take_nothing_over(patch):
    patch.setattr("broker.core.installer.take_over", lambda *_: None)


def texts_that_all_begin_anew(patch):
    patch.setattr("broker.core.preview.heirs_of", lambda *_: {})


def texts_of_cells_that_overtake_what_is_to_be_found_again(patch):
    patch.setattr(CellBook, "lacks_results", lambda *_: False)


def results_given_out_before_their_text_is_stored(patch):
    results = CellBook.results

    def hasty(self, one):
        return results(self, replace(one, revision=0))

    patch.setattr(CellBook, "results", hasty)


PLANTS = (
    heirs_that_take_nothing_over,
    texts_that_all_begin_anew,
    texts_of_cells_that_overtake_what_is_to_be_found_again,
    results_given_out_before_their_text_is_stored,
)


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("plant", PLANTS)
def test_what_is_planted_is_found(plant, monkeypatch):
    plant(monkeypatch)
    assert found_from(scenario.run, "versions") >= 0

"""Texts that are replaced under faults: all versions together find each match once."""

import pytest

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


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("plant", [heirs_that_take_nothing_over, texts_that_all_begin_anew])
def test_what_is_planted_is_found(plant, monkeypatch):
    plant(monkeypatch)
    assert found_from(scenario.run, "versions") >= 0

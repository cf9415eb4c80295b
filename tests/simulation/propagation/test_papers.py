"""The paper's settings, drawn small: what is drawn, and how near to the least load it comes."""

from itertools import pairwise
from pathlib import Path

import pytest

from simulation.propagation.needed import needed
from simulation.propagation.papers import ATTRIBUTES, Setting, least_load, read_series, scenario_of
from simulation.propagation.reading import read_scenario
from simulation.propagation.run import simulate
from simulation.propagation.scenario import check_tree
from tests.oracles import propagation as oracle
from tests.simulation.propagation.drawn import draw, write

DATA = Path(__file__).parents[3] / "examples/data/grand_st_bernard.csv.gz"
LITTLE = Setting("little", 26, 4, (3, 5), (30,))


@pytest.fixture(scope="module")
def series():
    return read_series(DATA, 0.5)


def test_a_setting_is_what_it_says(series):
    scenario = scenario_of(LITTLE, series, 30, seed=3)
    check_tree(scenario.nodes, scenario.edges)
    assert (scenario.nodes, len(scenario.sensors)) == (26, 4 * len(ATTRIBUTES))
    assert all(a.t <= b.t for a, b in pairwise(scenario.readings))
    stations = [
        {name.split("/")[0] for name in one.filters} for one in scenario.subscriptions.values()
    ]
    assert all(len(each) == 1 for each in stations)
    assert {len(one.filters) for one in scenario.subscriptions.values()} == {3, 4, 5}
    assert all(needed(scenario).values())
    across = scenario_of(LITTLE, series, 8, seed=3, near=3)
    assert all(
        len({name.split("/")[0] for name in one.filters}) == 3
        for one in across.subscriptions.values()
        if len(one.filters) >= 3
    )
    assert scenario_of(LITTLE, series, 30, seed=3) == scenario
    more = scenario_of(LITTLE, series, 31, seed=3)
    assert list(more.subscriptions.values())[:30] == list(scenario.subscriptions.values())
    assert more.readings == scenario.readings
    rarely = scenario_of(LITTLE, series, 2, seed=3, mixed_rates=True)
    assert len(rarely.readings) < 0.7 * len(scenario.readings)


def test_behind_the_last_junction_the_load_is_the_least(series):
    """Seed paper 2's gain: whole matches travel, and each event once over a link."""
    scenario = scenario_of(LITTLE, series, 30, seed=3)
    wanted = needed(scenario)
    least = least_load(scenario, wanted)
    outcome = simulate(scenario, "filter-split-forward", wanted)
    assert outcome.recall == 1.0
    assert least <= outcome.publication <= 1.25 * least
    assert simulate(scenario, "multi-join", wanted).publication > 1.25 * least


@pytest.mark.parametrize("seed", range(8))
def test_the_least_load_is_that_of_a_count_link_by_link(seed, tmp_path):
    scenario, rows = draw(seed)
    read = read_scenario(write(tmp_path, scenario, rows))
    assert least_load(read, needed(read)) == oracle.bound(scenario, rows)

"""Generated scenarios of all kinds: every approach delivers what the definition says, no more."""

import pytest

from broker.network.routing.matching.strategies import FILTER_SPLIT_FORWARD
from simulation.propagation.reading import read_scenario
from simulation.propagation.run import APPROACHES, simulate
from tests.oracles import propagation as oracle
from tests.simulation.propagation.drawn import draw, write

FAST, MANY = 12, 700
KINDS = {
    "mixed": {},
    "identified": {"abstract": False},
    "abstract": {"abstract": True},
    "crowded": {"crowded": True},
    "changing": {"script": True},
    "changing crowded": {"script": True, "crowded": True},
    "changing abstract": {"script": True, "abstract": True},
}


def outcomes(folder, scenario, rows, approaches=APPROACHES):
    read = read_scenario(write(folder, scenario, rows))
    return {approach: simulate(read, approach) for approach in approaches}


def delivers(folder, seed, drawn):
    scenario, rows = draw(seed, **drawn)
    wanted = oracle.delivered(scenario, rows)
    for approach, outcome in outcomes(folder, scenario, rows).items():
        got = {name: set(some) for name, some in outcome.delivered.items()}
        assert got == wanted, (seed, approach)
        assert outcome.recall == 1.0, (seed, approach)


def loads(folder, seed, drawn):
    scenario, rows = draw(seed, **drawn)
    out = outcomes(folder, scenario, rows)
    shared = out["filter-split-forward"]
    operators, events, once = oracle.loads(scenario, rows)
    assert (out["naive"].subscription, out["naive"].publication) == (operators, events), seed
    assert shared.publication == once, seed
    central = out["centralised"]
    assert (central.subscription, central.publication) == oracle.centralised(scenario, rows), seed
    placed, joined = out["operator-placement"], out["multi-join"]
    assert (placed.subscription, placed.publication) == oracle.placed(scenario, rows), seed
    assert oracle.bound(scenario, rows) <= shared.publication <= joined.publication, seed
    assert shared.subscription <= placed.subscription, seed


@pytest.mark.parametrize("kind", KINDS)
def test_recall_is_one_and_nothing_is_extra(kind, tmp_path):
    for seed in range(FAST):
        delivers(tmp_path, seed, KINDS[kind])


@pytest.mark.parametrize("kind", ["mixed", "identified", "abstract", "crowded"])
def test_loads_are_those_that_a_count_link_by_link_gives(kind, tmp_path):
    for seed in range(FAST):
        loads(tmp_path, seed, KINDS[kind])


def test_clipping_to_what_sources_promise_changes_no_delivery(tmp_path):
    saved = 0
    for seed in range(4 * FAST):
        scenario, rows = draw(seed, abstract=True, crowded=seed % 2 > 0, script=seed % 4 > 1)
        read = read_scenario(write(tmp_path, scenario, rows))
        plain = simulate(read, FILTER_SPLIT_FORWARD)
        clipped = simulate(read, FILTER_SPLIT_FORWARD._replace(clip=True))
        assert clipped.delivered == plain.delivered
        if seed % 4 < 2:  # without a script nothing is asked anew
            assert clipped.publication == plain.publication
            assert clipped.subscription <= plain.subscription
            saved += plain.subscription - clipped.subscription
    assert saved > 0


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS)
def test_recall_is_one_in_many(kind, tmp_path):
    for seed in range(FAST, MANY):
        delivers(tmp_path, seed, KINDS[kind])
        if "script" not in KINDS[kind]:
            loads(tmp_path, seed, KINDS[kind])

"""Whatever leads, and whenever that changes: each subscription gets what it would get without."""

from random import Random

import pytest

from broker.network.routing import router
from broker.network.routing.matching.strategies import FILTER_SPLIT_FORWARD, HOLD_AND_PROBE
from simulation.propagation.reading import read_scenario
from simulation.propagation.run import PropagationNetwork, simulate
from tests.oracles import propagation as oracle
from tests.simulation.propagation.drawn import draw, write

FAST, MANY = 40, 1_000
KINDS = {
    "identified": {"abstract": False},
    "crowded": {"crowded": True},
    "abstract": {"abstract": True},
    "changing": {"script": True},
    "changing crowded": {"script": True, "crowded": True},
}


def leads_drawn(draw_of, share):
    def leads_of(operator, held, rates, directory):
        if not operator.correlated or operator.delta_t_ms is None or draw_of.random() > share:
            return held if draw_of.random() < 0.7 else ()
        may = [k.name for k in operator.keys if not k.optional and k.name not in operator.silent]
        wanted = [k.name for k in operator.keys if k.name not in operator.silent]
        most = min(len(may), len(wanted) - 1)
        return tuple(sorted(draw_of.sample(may, draw_of.randint(0, most)))) if most > 0 else ()

    return leads_of


def delivers(folder, seed, drawn, monkeypatch):
    scenario, rows = draw(seed, **drawn)
    wanted = oracle.delivered(scenario, rows)
    read = read_scenario(write(folder, scenario, rows))
    draw_of = Random(seed)
    monkeypatch.setattr(router, "leads_of", leads_drawn(draw_of, 0.6))
    publish = PropagationNetwork.publish

    def published(self, node, event):
        if draw_of.random() < 0.2:
            self.look_at_rates(event.start)
        publish(self, node, event)

    monkeypatch.setattr(PropagationNetwork, "publish", published)
    outcome = simulate(read, HOLD_AND_PROBE)
    monkeypatch.undo()
    got = {name: set(some) for name, some in outcome.delivered.items()}
    assert got == wanted, seed
    return outcome.publication, simulate(read, FILTER_SPLIT_FORWARD).publication


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_leads_all_is_delivered_and_nothing_else(kind, tmp_path, monkeypatch):
    loads = [delivers(tmp_path, seed, KINDS[kind], monkeypatch) for seed in range(FAST)]
    assert any(held != plain for held, plain in loads)  # leads were drawn that matter


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_leads_in_many_networks(kind, tmp_path, monkeypatch):
    for seed in range(FAST, MANY):
        delivers(tmp_path, seed, KINDS[kind], monkeypatch)

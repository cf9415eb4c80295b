"""Drawn networks, texts, recordings and faults: always the results of one engine, each once."""

import importlib.util
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from language import check_text
from simulation.rehearsal.faults import FaultError, NetworkFault, check_apart
from simulation.rehearsal.material import Material, located
from simulation.rehearsal.network import Rehearsed, read_rehearsed
from simulation.rehearsal.run import rehearse
from tests.simulation.rehearsal.small import beside_engine

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 30
LASTS_MS = (50, 500, 3_000, 15_000, 60_000)


@pytest.fixture(scope="module")
def bench():
    found = importlib.util.spec_from_file_location("predicted_of", ROOT / "bench" / "predicted.py")
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # its dataclasses look for it there
    found.loader.exec_module(module)
    yield module
    del sys.modules[found.name]


def meshed(draw: Random, network: dict[str, Any]) -> dict[str, Any]:
    """The network with up to two links more."""
    names = [node["id"] for node in network["nodes"]]
    links = list(network["links"])
    for _ in range(draw.randint(0, 2)):
        a, b = draw.sample(names, 2)
        if all({one["a"], one["b"]} != {a, b} for one in links):
            links.append({"a": a, "b": b})
    return {**network, "links": links}


def faults(draw: Random, network: Rehearsed, first_ms: int) -> list[NetworkFault]:
    """Two to eight, some of them longer than the recording; no broker ends twice at a time."""
    found: list[NetworkFault] = []
    for _ in range(draw.randint(2, 8)):
        kind = draw.choice(("cut", "end", "slow"))
        where = (draw.choice(network.brokers),) if kind == "end" else draw.choice(network.links)
        at_ms = first_ms + draw.randint(0, SECONDS * 1000)
        by_ms = draw.choice((100, 2_000)) if kind == "slow" else 0
        more = [*found, NetworkFault(kind, where, at_ms, draw.choice(LASTS_MS), by_ms)]
        try:
            check_apart(more)
        except FaultError:
            continue
        found = more
    return found


def check(bench: Any, seed: int) -> None:
    """Run one and compare."""
    draw = Random(seed)
    found = bench.drawn(seed, SECONDS, swinging=False)
    network = read_rehearsed(meshed(draw, found.network))
    material = Material(
        network,
        check_text(found.text).demand(),
        located(found.events, network),
        lateness_ms=draw.choice((0, 1_000)),
        idle_ms=draw.choice((10_000, 60_000)),
    )
    asked = faults(draw, network, material.first_ms)
    outcome = rehearse(material, asked)
    comparison = beside_engine(material, outcome, text=found.text)
    assert comparison.equal, (asked, comparison.subscriptions, comparison.actors)
    assert outcome.unsettled == []


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_fails_nothing_is_lost_or_doubled(bench, seed):
    check(bench, seed)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("start", range(100, 200, 10))
def test_whatever_fails_nothing_is_lost_or_doubled_in_many(bench, start):
    for seed in range(start, start + 10):
        check(bench, seed)

"""The bytes over each link that a plan's flow predicts, beside what simulated links carried."""

import importlib.util
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
OFF_MAX = 0.05


@pytest.fixture(scope="module")
def bench():
    found = importlib.util.spec_from_file_location("predicted", ROOT / "bench" / "predicted.py")
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # its dataclasses look for it there
    found.loader.exec_module(module)
    yield module
    del sys.modules[found.name]


def good(found):
    """Each link within the bound, and none that carries what was not foreseen."""
    assert found.predicted.keys() <= found.carried.keys()
    assert sum(one.content_bytes for one in found.carried.values()) > 0
    for arc, one in found.carried.items():
        assert (found.predicted.get(arc, 0.0) > 0) == (one.content_bytes > 0), arc
        assert one.size_bytes >= one.content_bytes
    assert found.worst <= OFF_MAX


def test_a_minute_is_predicted_link_by_link(bench):
    good(bench.compare(1, 60))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 7))
def test_ten_minutes_are_predicted_link_by_link(bench, seed):
    good(bench.compare(seed, bench.SECONDS))


def test_a_wrong_home_is_seen(bench):
    """What is predicted for other places is not what links carry."""
    found = bench.drawn(2, 30)
    specification = bench.check_text(found.text).demand()
    right = bench.predicted(found, specification, 30)
    first = found.tasks[0]
    broker = next(node["id"] for node in found.network["nodes"] if node["id"] != first.home)
    homes = {**found.network["homes"], first.name: broker}
    moved = replace(
        found,
        network={**found.network, "homes": homes},
        tasks=[replace(first, home=broker), *found.tasks[1:]],
    )
    wrong = bench.predicted(moved, specification, 30)
    both = {*right, *wrong}
    off = [abs(right.get(arc, 0) - wrong.get(arc, 0)) / max(right.get(arc, 1), 1) for arc in both]
    assert max(off) > OFF_MAX


def test_a_link_that_carries_nothing_foreseen_is_as_wrong_as_can_be(bench):
    carried = {
        ("a", "b"): bench.RehearsalTraffic(),
        ("b", "a"): bench.RehearsalTraffic(events_bytes=100),
    }
    foreseen = {("a", "b"): 1.0, ("b", "a"): 100.0}
    found = bench.Compared(1, 2, 1, 1, foreseen, carried)
    assert found.worst == math.inf
    assert bench.Compared(1, 2, 1, 1, {("b", "a"): 90.0}, carried).worst == pytest.approx(0.1)

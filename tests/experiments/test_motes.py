"""Nodes that detect by themselves: the network that is rehearsed, and that figures are counted."""

import pytest

import headwater
from experiments.motes import (
    CENTRAL,
    IN_NODES,
    KINDS,
    LENGTHS,
    MODES,
    NODES,
    SECONDS,
    MoteRun,
    events,
    memory,
    network,
    runs,
    text_of,
)


def test_all_lengths_and_modes_run_in_the_nodes():
    made = list(runs(1))
    inside = {(run.length, run.mode) for run in made if run.place == IN_NODES}
    assert inside == {(length, mode) for length in LENGTHS for mode in MODES}
    assert {run.length for run in made if run.place == CENTRAL} == set(LENGTHS)


def test_each_node_leads_to_the_sink():
    links = {link["a"]: link["b"] for link in network(MoteRun(2, "first", IN_NODES, 1))["links"]}
    assert len(links) == NODES - 1
    for node in links:
        steps, place = 0, node
        while place != "n0":
            place, steps = links[place], steps + 1
        number = int(node[1:])
        assert steps == number % 5 + number // 5


def test_each_node_reports_once_a_second():
    made = events(MoteRun(2, "first", IN_NODES, 1))
    assert made == events(MoteRun(5, "recent", CENTRAL, 1))
    assert len(made) == NODES * SECONDS
    assert {event["type"] for event in made} == set(KINDS)


@pytest.mark.parametrize("length", LENGTHS)
def test_modes_find_fewer_than_all(length):
    """As in the paper: one sequence at a time, not each combination."""
    found = {}
    for mode in MODES:
        run = MoteRun(length, mode, IN_NODES, 1)
        engine = headwater.Engine(text_of(run), lateness_ms=None)
        engine.push(events(run))
        found[mode] = len(engine.finish())
    assert 0 < found["first"] <= found["unrestricted"]
    assert 0 < found["recent"] <= found["unrestricted"]
    assert memory(MoteRun(length, "first", IN_NODES, 1)) > 0

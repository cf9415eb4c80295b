"""The least publication load that any propagation along the tree can have.

Owns the bound. Must not know routers. Invariant: no approach that delivers everything is below it.
"""

from __future__ import annotations

from simulation.propagation.scenario import PropagationScenario


def lower_bound(scenario: PropagationScenario, wanted: dict[str, set[str]]) -> int:
    """Each needed event once over each link of the union of paths to its subscribers' brokers.

    `wanted` is what `needed` tells of the scenario. Who sends less has to know beforehand what will
    match, and even so cannot deliver: a tree has one path between two brokers.
    """
    homes: dict[str, dict[int, None]] = {}
    for name, some in wanted.items():
        node = scenario.subscriptions[name].node
        for event in some:
            homes.setdefault(event, {})[node] = None
    near = scenario.neighbours
    paths: dict[int, list[int]] = {}
    total = 0
    for reading in scenario.readings:
        nodes = homes.get(reading.id)
        if nodes is None:
            continue
        at = scenario.sensors[reading.sensor].node
        if at not in paths:
            paths[at] = links_to(near, at)
        union = 0
        for node in nodes:
            union |= paths[at][node]
        total += union.bit_count()
    return total


def links_to(near: list[list[int]], origin: int) -> list[int]:
    """For each broker the links on the way to it, as bits: a link is its further end's number."""
    found = [0] * len(near)
    order = [(origin, -1)]
    for node, came_from in order:
        for other in near[node]:
            if other != came_from:
                found[other] = found[node] | 1 << other
                order.append((other, node))
    return found

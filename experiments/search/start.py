"""Where a search begins: each piece where it seems cheapest, one after the other.

Owns the paper's estimate of a candidate and the greedy placement by it. Must not know the search.
Invariant: a piece goes where there is room for it as long as there is any.
"""

from collections.abc import Sequence

from experiments.search.evaluator import ABSENT
from experiments.search.instance import ROOM, Instance
from planner.flow import over


def estimate(instance: Instance, piece: int, hosts: Sequence[int]) -> list[float]:
    """Return the paper's v_is: inputs there and outputs on from there, by broker.

    Every input and destination counts for itself, whatever is shared; consumers that are not placed
    yet do not count. Seed 003, section 4.2.
    """
    rows: list[tuple[float, list[int]]] = []
    for number in instance.of_piece[piece]:
        flow = instance.flows[number]
        topology = flow.topology
        if flow.header is not None:
            makers = sorted({hosts[p] for p in flow.consumers} - {ABSENT})
            if flow.header == piece:
                rows += [(flow.weight, topology.hops_from(node)) for node in makers]
            elif makers:  # the header will not be far from those that are there
                away = [topology.hops_to(node) for node in makers]
                rows.append((flow.weight, list(map(min, *away)) if len(away) > 1 else away[0]))
        elif flow.sender == piece:
            ends = {hosts[consumer] for consumer in flow.consumers} | {*flow.destinations}
            rows += [(flow.weight, topology.hops_to(end)) for end in sorted(ends - {ABSENT})]
        else:
            source = flow.origin if flow.sender is None else hosts[flow.sender]
            if source is not None and source != ABSENT:
                rows.append((flow.weight, topology.hops_from(source)))
    found = [0.0] * instance.nodes
    for weight, row in rows:
        found = [total + weight * hops for total, hops in zip(found, row, strict=True)]
    return found


def greedy(instance: Instance) -> list[int]:
    """Return a host for each piece, tasks after those that feed them, the cheapest with room."""
    hosts = [ABSENT] * instance.pieces
    work = [0.0] * instance.nodes
    order = sorted(range(instance.pieces), key=lambda piece: (instance.rank[piece], piece))
    for piece in order:
        costs = estimate(instance, piece, hosts)
        own = instance.costs[piece]
        roomy = [
            host
            for host in instance.hosts[piece]
            if work[host] + own <= instance.capacity[host] * (1 + ROOM)
        ]
        if roomy:
            hosts[piece] = min(roomy, key=lambda host: (costs[host], host))
        else:
            beyond = {
                h: over(work[h] + own, instance.capacity[h]) - over(work[h], instance.capacity[h])
                for h in instance.hosts[piece]
            }
            hosts[piece] = min(beyond, key=lambda host: (beyond[host], host))
        work[hosts[piece]] += own
    return hosts

"""Where a search begins: each piece where it seems cheapest, one after the other.

Owns the paper's estimate of a candidate and the greedy placement by it. Must not know the search.
Invariant: a piece goes where there is room for it as long as there is any.
"""

from collections.abc import Sequence

from experiments.search.distances import packed, unpacked
from experiments.search.evaluator import ABSENT
from experiments.search.instance import ROOM, Instance
from planner.flow import over


def estimate(instance: Instance, pieces: Sequence[int], hosts: Sequence[int]) -> list[int]:
    """Return the paper's v_is of a group of pieces by broker, in parts of the greatest rate.

    Every input and destination counts for itself, whatever is shared; consumers that are not placed
    yet do not count, nor do streams within the group. Paper 003, section 4.2.
    """
    total = 0
    for number in dict.fromkeys(n for piece in pieces for n in instance.of_piece[piece]):
        flow = instance.flows[number]
        ahead, back = flow.topology.ahead, flow.topology.back
        others = {hosts[p] for p in flow.consumers if p not in pieces} - {ABSENT}
        if flow.header is not None and flow.header not in pieces:
            if others:  # the header will not be far from the partials that there are
                rows = [back.rows()[node] for node in sorted(others)]
                total += flow.share * packed(list(map(min, *rows)) if len(rows) > 1 else rows[0])
        elif flow.header is not None:
            total += flow.share * sum(ahead.lanes(node) for node in others)
        elif flow.sender is not None and flow.sender in pieces:
            ends = others.union(flow.destinations)
            total += flow.share * sum(back.lanes(end) for end in ends)
        else:
            source = flow.origin if flow.sender is None else hosts[flow.sender]
            if source is not None and source != ABSENT:
                total += flow.share * ahead.lanes(source)
    return unpacked(total, instance.nodes)


def greedy(instance: Instance) -> list[int]:
    """Return a host for each piece, tasks after those that feed them, the cheapest with room."""
    hosts = [ABSENT] * instance.pieces
    work = [0.0] * instance.nodes
    order = sorted(range(instance.pieces), key=lambda piece: (instance.rank[piece], piece))
    for piece in order:
        costs = estimate(instance, (piece,), hosts)
        own = instance.costs[piece]
        roomy = [
            host
            for host in instance.hosts[piece]
            if work[host] + own <= instance.capacity[host] * (1 + ROOM)
        ]
        if roomy:
            host = min(roomy, key=costs.__getitem__)
        else:
            beyond = {
                h: over(work[h] + own, instance.capacity[h]) - over(work[h], instance.capacity[h])
                for h in instance.hosts[piece]
            }
            host = min(beyond, key=lambda h: (beyond[h], h))
        hosts[piece] = host
        work[host] += own
    return hosts

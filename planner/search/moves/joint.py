"""A piece and the one that it feeds, brought together to the pair of brokers where both cost least.

Owns that one move. Must not know which changes are kept. Invariant: as every operator, it hands
back what undoes it, and pieces go to allowed brokers only.

A chain of tasks has to move as a whole: each of its pieces alone stays beside the next one, since
what it sends is paid for on every link between them. Of two pieces all pairs of brokers are weighed
here, as if links bore everything; of longer chains each two in turn.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import ClassVar

from planner.search.context import Changes, MoveContext
from planner.search.distances import FAR
from planner.search.evaluator import Moves
from planner.search.instance import ABSENT

# What a piece costs at a broker, and the broker.
Choice = tuple[float, int]


class MoveJointly:
    """Bring a piece and one that it feeds to the pair of brokers where both cost least."""

    name: ClassVar[str] = "jointly"

    def fits(self, context: MoveContext) -> bool:
        """Return whether any piece feeds another."""
        return any(context.instance.fed)

    def propose(self, context: MoveContext) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        instance, random = context.instance, context.random
        piece = context.draw(self.name, instance.feeding)
        number, other = random.choice(instance.fed[piece])
        return context.made(self.cheapest(context, piece, other, number))

    @staticmethod
    def cheapest(
        context: MoveContext, piece: int, other: int, number: int, *, anywhere: bool = False
    ) -> Moves:
        """Return the brokers for `piece` and for `other`, which it feeds by stream `number`.

        Those that `MoveContext.choices` names, or any: among many the pair that is cheapest
        together may be far from where each is cheapest alone.
        """
        hosts = context.evaluator.hosts
        flow = context.instance.flows[number]
        own, others = hosts[piece], hosts[other]
        # Rows and candidates read hosts alone, so an absence need not be laid and undone.
        hosts[other] = ABSENT
        senders = context.choices((piece,), anywhere=anywhere)
        hosts[other], hosts[piece] = others, ABSENT
        takers = context.choices((other,), anywhere=anywhere)
        hosts[piece] = own
        start, end = cheapest_pair(senders, takers, flow.weight, flow.topology.hops_from)
        if start == ABSENT:
            return (piece, own), (other, others)
        return (piece, start), (other, end)


def cheapest_pair(
    senders: Sequence[Choice],
    takers: Sequence[Choice],
    weight: float,
    hops_from: Callable[[int], Sequence[int]],
) -> tuple[int, int]:
    """Return the sender and the taker that cost least with the links between, at `weight` each.

    What is cheapest from one sender bounds what it is from others: less by their links at most. So
    few senders of many are looked at, 5 of 800 on a geometric graph of 1,000 brokers, where costs
    that spread link by link (Dijkstra) would reach most. ABSENT, where none is reached.
    """
    takers = sorted(takers)
    least, costs = takers[0][0] + weight, {host: cost for cost, host in takers}
    together = ((cost + costs[host], host) for cost, host in senders if host in costs)
    best, host = min(together, default=(inf, ABSENT))
    pair = host, host
    bounds: list[tuple[float, Sequence[int]]] = []
    for cost, start in sorted(senders):
        if cost + least >= best:
            break
        if any(cost + onward - weight * hops[start] >= best for onward, hops in bounds):
            continue
        hops, onward, end = hops_from(start), inf, ABSENT
        for taken, host in takers:
            if taken + weight >= onward:
                break
            if hops[host] < FAR and taken + weight * hops[host] < onward:
                onward, end = taken + weight * hops[host], host
        bounds.append((onward, hops))
        if cost + onward < best:
            best, pair = cost + onward, (start, end)
    return pair

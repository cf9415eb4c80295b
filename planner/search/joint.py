"""A piece and the one that it feeds, brought together to the pair of brokers where both cost least.

Owns that one move. Must not know which changes are kept. Invariant: as every operator, it hands
back what undoes it, and pieces go to allowed brokers only.

A chain of tasks has to move as a whole: each of its pieces alone stays beside the next one, since
what it sends is paid for on every link between them. Of two pieces all pairs of brokers are weighed
here, as if links bore everything; of longer chains each two in turn.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from math import inf
from typing import ClassVar

from planner.search.context import Changes, MoveContext
from planner.search.evaluator import ABSENT

# What a piece costs at a broker, and the broker.
Choice = tuple[float, int]


class MoveJointly:
    """Bring a piece and one that it feeds to the pair of brokers where both cost least."""

    name: ClassVar[str] = "jointly"

    def fits(self, context: MoveContext) -> bool:
        """Return whether any piece feeds another."""
        return any(context.instance.fed)

    def propose(self, context: MoveContext, piece: int | None = None) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        instance, random = context.instance, context.random
        if piece is None:
            piece = random.choice(instance.feeding)
        number, other = random.choice(instance.fed[piece])
        pair = self.cheapest(context, piece, other, number)
        hosts = context.evaluator.hosts
        moves = [(p, host) for p, host in pair if hosts[p] != host]
        return [context.evaluator.apply(moves)] if moves else []

    @staticmethod
    def cheapest(
        context: MoveContext, piece: int, other: int, number: int, *, anywhere: bool = False
    ) -> tuple[tuple[int, int], tuple[int, int]]:
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
        start, end = cheapest_pair(senders, takers, flow.weight, flow.topology.onward)
        if start == ABSENT:
            return (piece, own), (other, others)
        return (piece, start), (other, end)


def cheapest_pair(
    senders: Sequence[Choice],
    takers: Sequence[Choice],
    weight: float,
    onward: Sequence[Sequence[int]],
) -> tuple[int, int]:
    """Return the sender and the taker that cost least with the links between, at `weight` each.

    Least costs spread from all senders at once, link by link (Dijkstra), until what is left to
    spread costs as much as the best pair with the least taker. ABSENT, where none is reached.
    """
    taken = {host: cost for cost, host in takers}
    least = min(taken.values())
    spread = [(cost, host, host) for cost, host in senders]
    heapify(spread)
    costs: dict[int, float] = {}
    best, pair = inf, (ABSENT, ABSENT)
    while spread:
        cost, host, start = heappop(spread)
        if cost + least >= best:
            break
        if host in costs:
            continue
        costs[host] = cost
        if host in taken and cost + taken[host] < best:
            best, pair = cost + taken[host], (start, host)
        for other in onward[host]:
            if other not in costs:
                heappush(spread, (cost + weight, other, start))
    return pair

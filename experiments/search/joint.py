"""A piece and the one that it feeds, brought together to the pair of brokers where both cost least.

Owns that one move. Must not know which changes are kept. Invariant: as every operator, it hands
back what undoes it, and pieces go to allowed brokers only.

A chain of tasks has to move as a whole: each of its pieces alone stays beside the next one, since
what it sends is paid for on every link between them. Of two pieces all pairs of brokers are weighed
here, as if links bore everything; of longer chains each two in turn.
"""

from math import inf
from typing import ClassVar

from experiments.search.context import Changes, Context
from experiments.search.evaluator import ABSENT


class MoveJointly:
    """Bring a piece and one that it feeds to the pair of brokers where both cost least."""

    name: ClassVar[str] = "jointly"

    def fits(self, context: Context) -> bool:
        """Return whether any piece feeds another."""
        return any(context.instance.fed)

    def propose(self, context: Context, piece: int | None = None) -> Changes:
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
        context: Context, piece: int, other: int, number: int
    ) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the brokers for `piece` and for `other`, which it feeds by stream `number`."""
        hosts = context.evaluator.hosts
        flow = context.instance.flows[number]
        own, others = hosts[piece], hosts[other]
        # Rows and candidates read hosts alone, so an absence need not be laid and undone.
        hosts[other] = ABSENT
        senders = sorted(context.choices((piece,)))
        hosts[other], hosts[piece] = others, ABSENT
        takers = sorted(context.choices((other,)))
        hosts[piece] = own
        best, pair = inf, ((piece, own), (other, others))
        for sent, start in senders:
            if sent + takers[0][0] >= best:
                break
            hops = flow.topology.hops_from(start)
            for taken, end in takers:
                if sent + taken >= best:
                    break
                cost = sent + taken + flow.weight * hops[end]
                if cost < best:
                    best, pair = cost, ((piece, start), (other, end))
        return pair

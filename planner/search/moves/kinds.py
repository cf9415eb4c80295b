"""Moves as objects: each proposes a change of a placement and makes it; the loop judges it.

Owns what is tried. Must not know what is kept. Invariant: an operator hands back what undoes all
that it did, in order; pieces go to allowed brokers only.

A new move is a class here (or in a file beside this) with a `name`, `fits` and `propose`, and its
entry in `OPERATORS` of `planner.search.search`.
"""

from collections.abc import Iterator
from random import Random
from typing import ClassVar, Protocol

from planner.search.context import Changes, MoveContext
from planner.search.evaluator import Moves


class MoveKind(Protocol):
    """A kind of move."""

    name: ClassVar[str]

    def fits(self, context: MoveContext) -> bool:
        """Return whether there is anything for it to do in this problem."""
        ...

    def propose(self, context: MoveContext) -> Changes:
        """Make a change; return what undoes it, [] where none came to mind."""
        ...


class Recreate:
    """Take up some pieces that concern each other, and place each anew where it costs least."""

    name: ClassVar[str] = "recreate"

    def fits(self, context: MoveContext) -> bool:
        """Return whether the move can change anything in this problem."""
        return any(len(hosts) > 1 for hosts in context.instance.hosts)

    def propose(self, context: MoveContext) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        params, random, instance = context.params, context.random, context.instance
        size_max = max(params.removed_min, min(params.removed_max, instance.pieces // 2))
        pieces = context.some_near(random.randint(params.removed_min, size_max))
        return self.renew(context, pieces)

    @staticmethod
    def renew(context: MoveContext, pieces: list[int]) -> Changes:
        """Take up these pieces and place them anew, feeders first or in any order."""
        instance, random = context.instance, context.random
        chance = random.random()
        if chance < 0.5:
            pieces = sorted(pieces, key=lambda piece: (instance.rank[piece], piece))
        elif chance < 0.7:
            pieces = sorted(pieces, key=lambda piece: (-instance.costs[piece], piece))
        return context.renew(pieces)


class Together:
    """Move what streams connect at one broker to another broker, as one.

    Two aggregates over the same shards hold each other where they are: each piece that leaves alone
    has its streams come to both brokers, and so has a whole aggregate without the other.
    """

    name: ClassVar[str] = "together"

    def fits(self, context: MoveContext) -> bool:
        """Return whether the move can change anything in this problem."""
        return context.instance.pieces > 1

    def propose(self, context: MoveContext) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        evaluator, random = context.evaluator, context.random
        group = self._connected(context, context.instance.draw(random), random)
        # All of it may fit nowhere, where two of it still do.
        size = len(group)
        group = group[: random.choice((2, random.randint(min(2, size), size), size))]
        origin = evaluator.hosts[group[0]]
        scores = sorted(each for each in context.choices(group) if each[1] != origin)
        if len(group) < 2 or not scores:
            return []
        rank = min(int(random.expovariate(1.0)), len(scores) - 1)
        return context.made([(piece, scores[rank][1]) for piece in group])

    def settle(self, context: MoveContext, piece: int) -> Changes:
        """Bring all that is connected with `piece` at its broker, or else two, to the cheapest."""
        brought = self.cheapest(context, piece)
        return next((context.made(moves) for _, moves in brought), [])

    @classmethod
    def cheapest(cls, context: MoveContext, piece: int) -> Iterator[tuple[float, Moves]]:
        """Yield the same of all that is connected, and of two, with what it changes."""
        origin, group = context.evaluator.hosts[piece], cls._connected(context, piece)
        for size in dict.fromkeys((len(group), 2)) if len(group) > 1 else ():
            scores = context.choices(group[:size])
            score, host = min(scores, default=(0.0, origin))
            if host != origin:
                score -= sum(now for now, place in scores if place == origin)
                yield score, [(each, host) for each in group[:size]]

    @staticmethod
    def _connected(context: MoveContext, piece: int, random: Random | None = None) -> list[int]:
        """Return what streams connect with `piece` at its broker, itself first, by hops."""
        hosts, near = context.evaluator.hosts, context.instance.near
        met, group = {piece}, [piece]
        for each in group:  # grows while it is walked
            more = [p for p in near[each] if hosts[p] == hosts[piece] and p not in met]
            if random is not None:
                random.shuffle(more)
            met.update(more)
            group += more
        return group

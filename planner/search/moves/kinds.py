"""Moves as objects: each proposes a change of a placement and makes it; the loop judges it.

Owns what is tried. Must not know what is kept. Invariant: an operator hands back what undoes all
that it did, in order; pieces go to allowed brokers only.

A new move is a class here (or in a file beside this) with a `name`, `fits` and `propose`, and its
entry in `OPERATORS` of `planner.search.search`.
"""

from typing import ClassVar, Protocol

from planner.search.context import Changes, MoveContext


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
        return context.instance.pieces > 1

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


class Relocate:
    """Bring a few pieces to any of their brokers, the cheaper the likelier."""

    name: ClassVar[str] = "relocate"

    def fits(self, context: MoveContext) -> bool:
        """Return whether the move can change anything in this problem."""
        return any(len(hosts) > 1 for hosts in context.instance.hosts)

    def propose(self, context: MoveContext) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        evaluator, random = context.evaluator, context.random
        changes = []
        for piece in context.some_near(random.randint(1, 3)):
            scores = sorted(context.choices((piece,)))
            rank = min(int(random.expovariate(1 / 3)), len(scores) - 1)
            if scores[rank][1] != evaluator.hosts[piece]:
                changes.append(evaluator.apply([(piece, scores[rank][1])]))
        return changes


class Swap:
    """Let two pieces of different brokers change places."""

    name: ClassVar[str] = "swap"
    sampled: ClassVar[int] = 12

    def fits(self, context: MoveContext) -> bool:
        """Return whether the move can change anything in this problem."""
        return context.instance.capped and context.instance.pieces > 1

    def propose(self, context: MoveContext, piece: int | None = None) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        evaluator, random, instance = context.evaluator, context.random, context.instance
        if piece is None:
            piece = instance.draw(random)
        origin, hosts, loads = evaluator.hosts[piece], evaluator.hosts, evaluator.loads
        others = self._others(context, piece)
        row = evaluator.row((piece,), [hosts[other] for other in others])
        best: tuple[float, int] | None = None
        for flow, other in zip(row, others, strict=True):
            target = hosts[other]
            change = instance.costs[piece] - instance.costs[other]
            score = flow + context.penalty * (
                loads.pressure(target, change) + loads.pressure(origin, -change)
            )
            # Else the same pair would be proposed again and again, and undone each time.
            score *= 1.0 + 0.5 * random.random()
            if best is None or score < best[0]:
                best = (score, other)
        if best is None:
            return []
        return [evaluator.apply([(piece, hosts[best[1]]), (best[1], origin)])]

    def _others(self, context: MoveContext, piece: int) -> list[int]:
        """Return some pieces with which `piece` may change places."""
        evaluator, random, instance = context.evaluator, context.random, context.instance
        hosts, origin = evaluator.hosts, evaluator.hosts[piece]
        if instance.many:
            near = [p for _, host in context.choices((piece,)) for p in evaluator.at[host]]
            drawn = random.sample(near, min(len(near), self.sampled))
        else:
            drawn = [random.randrange(instance.pieces) for _ in range(self.sampled)]
        return [
            other
            for other in drawn
            if hosts[other] != origin
            and hosts[other] in instance.allowed[piece]
            and origin in instance.allowed[other]
        ]


class Together:
    """Move pieces that are at one broker and concern each other, as one."""

    name: ClassVar[str] = "together"

    def fits(self, context: MoveContext) -> bool:
        """Return whether the move can change anything in this problem."""
        return context.instance.pieces > 1

    def propose(self, context: MoveContext) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        evaluator, random, instance = context.evaluator, context.random, context.instance
        piece = instance.draw(random)
        origin = evaluator.hosts[piece]
        near = [p for p in instance.near[piece] if evaluator.hosts[p] == origin]
        if len(near) < 2:
            return []
        # All that is near may fit nowhere together, where two of it still do: so every other time
        # two go.
        if len(near) > 2 and random.random() < 0.5:
            near = [piece, random.choice([p for p in near if p != piece])]
        scores = sorted(choice for choice in context.choices(near) if choice[1] != origin)
        if not scores:
            return []
        rank = min(int(random.expovariate(1.0)), len(scores) - 1)
        return [evaluator.apply([(p, scores[rank][1]) for p in near])]

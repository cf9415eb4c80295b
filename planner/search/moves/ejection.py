"""A piece brought to a full broker where it costs less, and what it takes there sent on.

Owns that one move, and how room is made at a broker. Must not know which changes are kept.
Invariant: as every operator, it hands back what undoes it, and pieces go to allowed brokers only.

Where brokers have little room, heavy pieces are kept off by light ones that came first. No piece
alone can mend that, and an exchange of two only where both fit the other's broker: so what is in
the way goes on to its own cheapest broker with room, as in ejection chains for generalised
assignment (Yagiura, Ibaraki and Glover, 2004).
"""

from math import inf
from typing import ClassVar

from planner.search.context import Changes, MoveContext
from planner.search.evaluator import Moves

# Cheaper brokers that are tried.
TRIED = 4


class Eject:
    """Bring a piece to a broker where it costs less, full or not."""

    name: ClassVar[str] = "eject"

    def fits(self, context: MoveContext) -> bool:
        """Return whether the move can change anything in this problem."""
        return context.instance.capped and context.instance.pieces > 1

    def propose(self, context: MoveContext, piece: int | None = None) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        evaluator, penalty = context.evaluator, context.penalty
        if piece is None:
            piece = context.draw(self.name)
        origin, loads = evaluator.hosts[piece], evaluator.loads
        scores = sorted(context.choices((piece,), free=True))
        own = next((score for score, host in scores if host == origin), inf)
        # At a broker that runs too much it costs what limits are broken by as well.
        own -= penalty * min(0.0, loads.pressure(origin, -context.instance.costs[piece]))
        before = evaluator.cost(penalty)
        for score, host in [choice for choice in scores if choice[0] < own][:TRIED]:
            dearer, moves = self.chain(context, piece, host)
            if score + dearer < own:
                change = evaluator.apply(moves)
                if evaluator.cost(penalty) < before:
                    return [change]
                evaluator.undo(change)
        return []

    @staticmethod
    def chain(context: MoveContext, piece: int, host: int) -> tuple[float, Moves]:
        """Return the moves that bring `piece` to `host`, and what those of others cost together.

        Others go until it fits, those that it costs least, each to its cheapest broker with room:
        an ejection chain of two links. They cost infinitely much where that makes no room.
        """
        evaluator, costs = context.evaluator, context.instance.costs
        loads, origin = evaluator.loads, evaluator.hosts[piece]
        moves, more, lost = [(piece, host)], costs[piece], 0.0
        options: list[tuple[float, float, int, int]] = []
        for other in () if loads.fits(host, more) else evaluator.at[host]:
            scores = context.choices((other,), free=True) if costs[other] > 0 else []
            own = next((score for score, goal in scores if goal == host), inf)
            roomy = [
                (score - own, goal)
                for score, goal in scores
                if goal != host and loads.fits(goal, costs[other] - costs[piece] * (goal == origin))
            ]
            if roomy:
                dearer, goal = min(roomy)
                options.append((dearer / (min(costs[other], more) or 1.0), dearer, other, goal))
        for _, dearer, other, goal in sorted(options):
            if loads.fits(host, more):
                break
            moves.append((other, goal))
            more -= costs[other]
            lost += dearer
        return (lost if loads.fits(host, more) else inf), moves

"""Moves for limits that are broken, and for streams that go around because of limits.

Owns `Reroute` and `Relieve`. Must not know which changes are kept. Invariant: as every operator,
they hand back what undoes them, and pieces go to allowed brokers only.
"""

from random import Random
from typing import ClassVar

from planner.search.context import Changes, MoveContext
from planner.search.evaluator import Evaluator
from planner.search.moves.ejection import Eject
from planner.search.moves.kinds import Recreate


class Reroute:
    """Lay a stream that goes around before some in its way, or to its ends in any order."""

    name: ClassVar[str] = "reroute"

    def fits(self, context: MoveContext) -> bool:
        """Return whether the move can change anything in this problem."""
        return context.instance.limited and bool(context.instance.flows)

    def propose(self, context: MoveContext) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        evaluator, random = context.evaluator, context.random
        flows = range(len(evaluator.laid))
        wasted = [n for n in random.sample(flows, min(len(flows), 30))
                  if evaluator.laid[n].links > evaluator.least(n)]  # fmt: skip
        return self.lay(context, random.choice(wasted)) if wasted else []

    @staticmethod
    def lay(context: MoveContext, number: int) -> Changes:
        """Lay a stream first, then some that share a full limit with it."""
        evaluator, random = context.evaluator, context.random
        first = [number]
        if random.random() < 0.7:
            first += Reroute.in_the_way(evaluator, number, random)
        # What a broker may send bounds its branches: another order of ends has others branch.
        order = random if random.random() < 0.3 else None
        return [evaluator.apply([], first, order)]

    @staticmethod
    def in_the_way(evaluator: Evaluator, number: int, random: Random) -> list[int]:
        """Return one or two streams that take room on the way that a stream would go alone."""
        instance, loads = evaluator.instance, evaluator.loads
        flow = instance.flows[number]
        full: list[int] = []
        for source, targets in evaluator.ends(number):
            for arc in flow.topology.tree(source, targets):
                full += [
                    limit
                    for limit in loads.limits_of[instance.numbers[arc]]
                    if loads.loads[limit] + flow.rate > loads.room[limit]
                ]
        if not full:
            return []
        users = [user for user in sorted(loads.users[random.choice(full)]) if user != number]
        return random.sample(users, min(len(users), random.randint(1, 2)))


class Relieve:
    """Take a limit that is broken, and lay or move something of what breaks it."""

    name: ClassVar[str] = "relieve"

    def fits(self, context: MoveContext) -> bool:
        """Return whether the move can change anything in this problem."""
        return context.instance.limited or context.instance.capped

    def propose(self, context: MoveContext) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        evaluator, random = context.evaluator, context.random
        loads = evaluator.loads
        if not loads.broken:
            return []
        limit = random.choice(list(loads.broken))
        if limit >= loads.first_work:
            costs = evaluator.instance.costs
            heavy = [p for p in evaluator.at[limit - loads.first_work] if costs[p] > 0]
            return self._displace(context, random.choice(heavy)) if heavy else []
        users = sorted(loads.users[limit])
        if not users:  # what is left of its load is a trifle of sums
            return []
        number = random.choice(users)
        # Where there is one way alone, only pieces can go elsewhere.
        chance = random.uniform(0.6 * evaluator.instance.whole.is_forest, 1.0)
        pieces = evaluator.instance.flows[number].pieces
        if chance < 0.6 or not pieces:
            return Reroute.lay(context, number)
        piece = random.choice(pieces)
        if chance < 0.8:
            # At one of the stream's other ends the piece takes none of it over any link.
            hosts = evaluator.hosts
            ends = dict.fromkeys(evaluator.laid[number].trees)
            ends.update(dict.fromkeys(hosts[other] for other in pieces if other != piece))
            return self.squeeze(context, piece, random.choice(list(ends)))
        return self._displace(context, piece)

    @staticmethod
    def squeeze(context: MoveContext, piece: int, host: int) -> Changes:
        """Put a piece at `host`, and others from there, until it fits, where there is room."""
        evaluator = context.evaluator
        if evaluator.hosts[piece] == host or host not in context.instance.allowed[piece]:
            return []
        return [evaluator.apply(Eject.chain(context, piece, host)[1])]

    def _displace(self, context: MoveContext, piece: int) -> Changes:
        random = context.random
        if random.random() < 0.5:
            return Recreate.renew(context, context.some_near(random.randint(1, 6), piece))
        # What is full there goes on to brokers with room.
        return self.squeeze(context, piece, random.choice(context.instance.hosts[piece]))

"""Moves for limits that are broken, and for streams that go around because of limits.

Owns `Reroute` and `Relieve`. Must not know which changes are kept. Invariant: as every operator,
they hand back what undoes them, and pieces go to allowed brokers only.
"""

from random import Random
from typing import ClassVar

from planner.search.context import Changes, MoveContext
from planner.search.evaluator import Evaluator
from planner.search.operators import Recreate, Swap, Together

# The price of a limit that a stream is to be laid past.
AVOIDED = 1e6


class Reroute:
    """Lay a stream that goes around before some of those that are in its way, or by any way."""

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
        number = random.choice(wasted) if wasted else random.choice(flows)
        return self.lay(context, number)

    @staticmethod
    def lay(context: MoveContext, number: int) -> Changes:
        """Lay a stream first, then some that share a full limit with it."""
        evaluator, random = context.evaluator, context.random
        first = [number]
        if random.random() < 0.7:
            first += Reroute.in_the_way(evaluator, number, random)
        wild = random if random.random() < 0.3 else None
        return [evaluator.apply([], first, wild)]

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
        users = [user for user in evaluator.users(random.choice(full)) if user != number]
        return random.sample(users, min(len(users), random.randint(1, 2)))


class Relieve:
    """Take a limit that is broken, and lay or move something of what breaks it."""

    name: ClassVar[str] = "relieve"
    pushed: ClassVar[int] = 8
    tried_best: ClassVar[int] = 3
    tried_any: ClassVar[int] = 4

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
        users = evaluator.users(limit)
        if not users:
            return []
        number = random.choice(users)
        chance = random.random()
        if chance < 0.3:
            return Reroute.lay(context, number)
        if chance < 0.6:
            return self._make_way(context, limit, number)
        pieces = evaluator.instance.flows[number].pieces
        if not pieces:
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
        """Put a piece at `host`, and as many others as it takes from there to where there is room.

        The others go to their cheapest brokers with room: an ejection chain of two links.
        """
        evaluator, instance, random = context.evaluator, context.instance, context.random
        loads, costs = evaluator.loads, instance.costs
        if evaluator.hosts[piece] == host or host not in instance.allowed[piece]:
            return []
        moves, more = [(piece, host)], costs[piece]
        others = [other for other in evaluator.at[host] if costs[other] > 0]
        random.shuffle(others)
        for other in others:
            if loads.fits(host, more):
                break
            roomy = [
                choice
                for choice in context.choices((other,))
                if choice[1] != host and loads.fits(choice[1], costs[other])
            ]
            if roomy:
                moves.append((other, min(roomy)[1]))
                more -= costs[other]
        return [evaluator.apply(moves)]

    def _displace(self, context: MoveContext, piece: int) -> Changes:
        chance = context.random.random()
        if chance < 0.25:
            return self._elsewhere(context, piece)
        if chance < 0.5:
            return Swap().propose(context, piece)
        if chance < 0.6:
            return Together().propose(context, piece)
        if chance < 0.75:
            return Recreate.renew(context, context.some_near(context.random.randint(2, 6), piece))
        return self._push(context, piece)

    def _make_way(self, context: MoveContext, limit: int, number: int) -> Changes:
        """Lay a stream past `limit` whatever that breaks, and move what is in its way there."""
        evaluator, random = context.evaluator, context.random
        loads = evaluator.loads
        before = evaluator.cost(context.penalty)
        usual, broken = loads.prices[limit], dict(loads.broken)
        loads.prices[limit] = AVOIDED
        changes = [evaluator.apply([], [number])]
        loads.prices[limit] = usual
        crowded = [other for other in loads.broken if other not in broken]
        random.shuffle(crowded)
        for other in crowded:
            if other not in loads.broken:
                continue
            users = [user for user in evaluator.users(other) if user != number]
            pieces = [p for user in users for p in evaluator.instance.flows[user].pieces]
            if not pieces:
                break
            changes += self._elsewhere(context, random.choice(pieces))
        if evaluator.cost(context.penalty) < before:
            return changes
        for change in reversed(changes):
            evaluator.undo(change)
        return []

    def _elsewhere(self, context: MoveContext, piece: int) -> Changes:
        """Bring a piece to the first of several brokers where that costs less than now."""
        evaluator, random = context.evaluator, context.random
        origin = evaluator.hosts[piece]
        scores = sorted(context.choices((piece,)))
        order = [host for _, host in scores if host != origin]
        further = order[self.tried_best :]
        random.shuffle(further)
        before = evaluator.cost(context.penalty)
        for host in order[: self.tried_best] + further[: self.tried_any]:
            change = evaluator.apply([(piece, host)])
            if evaluator.cost(context.penalty) < before:
                return [change]
            evaluator.undo(change)
        return []

    def _push(self, context: MoveContext, piece: int) -> Changes:
        """Bring a piece to a broker from which another goes on to one with room."""
        evaluator, random, instance = context.evaluator, context.random, context.instance
        for _ in range(self.pushed):
            host = random.choice(instance.hosts[piece])
            others = [p for p in evaluator.at[host] if instance.costs[p] > 0 and p != piece]
            if host == evaluator.hosts[piece] or not others:
                continue
            other = random.choice(others)
            roomy = [
                h
                for h in instance.hosts[other]
                if h != host and evaluator.loads.fits(h, instance.costs[other])
            ]
            if roomy:
                return [evaluator.apply([(piece, host), (other, random.choice(roomy))])]
        return []

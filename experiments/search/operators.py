"""Moves as objects: each proposes a change of a placement and makes it; the loop judges it.

Owns what is tried. Must not know what is kept. Invariant: an operator hands back what undoes all
that it did, in order; pieces go to allowed brokers only.

A new move is a class here (or in a file of its own) with a `name`, `fits` and `propose`, and its
entry in `OPERATORS`.
"""

from collections.abc import Iterable, Sequence
from math import inf
from random import Random
from typing import ClassVar, Protocol

from experiments.search.evaluator import ABSENT, Evaluator, Undo
from experiments.search.instance import Instance
from experiments.search.params import SearchParams
from experiments.search.start import estimate

Changes = list[Undo]


class Context:
    """What an operator works on: the evaluator, chances, parameters, the penalty of the moment."""

    def __init__(self, evaluator: Evaluator, random: Random, params: SearchParams) -> None:
        self.evaluator = evaluator
        self.instance: Instance = evaluator.instance
        self.random = random
        self.params = params
        self.penalty = 0.0

    def candidates(self, group: Sequence[int]) -> Sequence[int]:
        """Return the brokers where `group` may be cheap: all allowed ones, but among many brokers.

        There, as in a granular neighbourhood (Toth and Vigo, 2003): those on the trees of its
        streams, and the cheapest by the paper's estimate, with room and without.
        """
        instance, evaluator = self.instance, self.evaluator
        if len(group) == 1 and not instance.many:
            return instance.hosts[group[0]]
        allowed = frozenset.intersection(*(instance.allowed[piece] for piece in group))
        if not instance.many or len(allowed) <= self.params.granular:
            return sorted(allowed)
        found = {evaluator.hosts[piece]: None for piece in group}
        arcs = instance.arcs
        for number in dict.fromkeys(n for piece in group for n in instance.of_piece[piece]):
            flow = instance.flows[number]
            if flow.origin is not None:
                found[flow.origin] = None
            for links, _ in evaluator.trees[number].values():
                found.update((arcs[link][1], None) for link in links)
        guide = estimate(instance, group, evaluator.hosts)
        granular = self.params.granular
        most = sorted(guide)[min(2 * granular, instance.nodes - 1)]
        near = [host for host, value in enumerate(guide) if value <= most]
        cheapest = sorted(near, key=guide.__getitem__)[: 2 * granular]
        cost = sum(instance.costs[piece] for piece in group)
        loads, room, first = evaluator.loads, evaluator.room, evaluator.first_work
        roomy = [host for host in cheapest if loads[first + host] + cost <= room[first + host]]
        found.update(dict.fromkeys(roomy[:granular]))
        found.update(dict.fromkeys(cheapest[: granular // 2]))
        found.pop(ABSENT, None)
        return [host for host in found if host in allowed]

    def scores(self, group: Sequence[int], hosts: Iterable[int]) -> list[tuple[float, int]]:
        """Return what `group` costs at each of `hosts`, with what limits of brokers cost there."""
        evaluator = self.evaluator
        where = list(hosts)
        row = evaluator.row(group, where)
        if not self.instance.capped:
            return list(zip(row, where, strict=True))
        cost = sum(self.instance.costs[piece] for piece in group)
        penalty, pressure = self.penalty, evaluator.pressure
        loads, room, first = evaluator.loads, evaluator.room, evaluator.first_work
        return [
            (
                flow + penalty * pressure(host, cost)
                if loads[first + host] + cost > room[first + host]
                else flow,
                host,
            )
            for flow, host in zip(row, where, strict=True)
        ]

    def some_near(self, size: int, first: int | None = None) -> list[int]:
        """Return a piece, some that concern it or share its broker, and so on from these."""
        evaluator, random, instance = self.evaluator, self.random, self.instance
        found = [random.randrange(instance.pieces) if first is None else first]
        met = set(found)
        for piece in found:  # grows while it is walked
            near = [other for other in instance.near[piece] if other not in met]
            host = evaluator.hosts[piece]
            near += [other for other in evaluator.at[host] if other not in met]
            random.shuffle(near)
            for other in near[: min(3, size - len(found))]:
                if other not in met:
                    met.add(other)
                    found.append(other)
            if len(found) >= size:
                break
        while len(found) < min(size, instance.pieces):
            other = random.randrange(instance.pieces)
            if other not in met:
                met.add(other)
                found.append(other)
        return found

    def insert(self, piece: int) -> Undo:
        """Put an absent piece where it costs least, or now and then at the next best."""
        evaluator, random, params = self.evaluator, self.random, self.params
        scores = self.scores((piece,), self.candidates((piece,)))
        if self.instance.limited and len(scores) > 1 and params.tried > 1:
            return self._try_out(piece, sorted(scores)[: 2 * params.tried])
        if len(scores) > 1 and random.random() < params.passed_over:
            scores.remove(min(scores))
        least = min(scores)
        if random.random() < 0.3:  # among equals any will do, and the first is not always good
            equal = [score for score in scores if score[0] <= least[0]]
            least = random.choice(equal)
        return evaluator.apply([(piece, least[1])])

    def _try_out(self, piece: int, scores: list[tuple[float, int]]) -> Undo:
        """Try the cheapest brokers with the links that they take; take the best."""
        evaluator, random, params = self.evaluator, self.random, self.params
        if random.random() < params.passed_over:
            del scores[0]
        scores = scores[: params.tried]
        before = evaluator.cost(self.penalty)
        best, lower = (inf, ABSENT), scores[0][0]
        kept: Undo | None = None
        for score, host in scores:
            if score - lower + before >= best[0]:
                break  # what links add only makes it dearer
            if kept is not None:
                evaluator.undo(kept)
            kept = evaluator.apply([(piece, host)])
            cost = evaluator.cost(self.penalty)
            if cost < best[0]:
                best = (cost, host)
        assert kept is not None
        if evaluator.hosts[piece] != best[1]:
            evaluator.undo(kept)
            kept = evaluator.apply([(piece, best[1])])
        return kept


class Operator(Protocol):
    """A kind of move."""

    name: ClassVar[str]

    def fits(self, context: Context) -> bool:
        """Return whether there is anything for it to do in this problem."""
        ...

    def propose(self, context: Context) -> Changes:
        """Make a change; return what undoes it, [] where none came to mind."""
        ...


class Recreate:
    """Take up some pieces that concern each other, and place each anew where it costs least."""

    name: ClassVar[str] = "recreate"

    def fits(self, context: Context) -> bool:
        """Return whether the move can change anything in this problem."""
        return context.instance.pieces > 1

    def propose(self, context: Context) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        params, random, instance = context.params, context.random, context.instance
        most = max(params.removed_min, min(params.removed_max, instance.pieces // 2))
        pieces = context.some_near(random.randint(params.removed_min, most))
        return self.renew(context, pieces)

    @staticmethod
    def renew(context: Context, pieces: list[int]) -> Changes:
        """Take up these pieces and place them anew, feeders first or in any order."""
        instance, random = context.instance, context.random
        changes = [context.evaluator.apply([(piece, ABSENT) for piece in pieces])]
        chance = random.random()
        if chance < 0.5:
            pieces = sorted(pieces, key=lambda piece: (instance.rank[piece], piece))
        elif chance < 0.7:
            pieces = sorted(pieces, key=lambda piece: (-instance.costs[piece], piece))
        changes += [context.insert(piece) for piece in pieces]
        return changes


class Relocate:
    """Bring a piece to another broker, the cheapest or one of the next."""

    name: ClassVar[str] = "relocate"

    def fits(self, context: Context) -> bool:
        """Return whether the move can change anything in this problem."""
        return any(len(hosts) > 1 for hosts in context.instance.hosts)

    def propose(self, context: Context, piece: int | None = None) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        evaluator, random, instance = context.evaluator, context.random, context.instance
        if piece is None:
            piece = random.randrange(instance.pieces)
        here = evaluator.hosts[piece]
        scores = context.scores((piece,), (h for h in context.candidates((piece,)) if h != here))
        if not scores:
            return []
        rank = min(int(random.expovariate(0.8)), len(scores) - 1)
        host = sorted(scores)[rank][1] if rank else min(scores)[1]
        return [evaluator.apply([(piece, host)])]


class Settle:
    """Bring each piece in turn to the broker where it costs least."""

    name: ClassVar[str] = "settle"

    def __init__(self) -> None:
        self.left: list[int] = []

    def fits(self, context: Context) -> bool:
        """Return whether there are so many brokers that chance would leave pieces out for long."""
        return context.instance.many

    def propose(self, context: Context) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        if not self.left:
            self.left = list(range(context.instance.pieces))
            context.random.shuffle(self.left)
        piece = self.left.pop()
        host = min(context.scores((piece,), context.candidates((piece,))))[1]
        if host == context.evaluator.hosts[piece]:
            return []
        return [context.evaluator.apply([(piece, host)])]


class Swap:
    """Let two pieces of different brokers change places."""

    name: ClassVar[str] = "swap"
    sampled: ClassVar[int] = 12

    def fits(self, context: Context) -> bool:
        """Return whether the move can change anything in this problem."""
        return context.instance.capped and context.instance.pieces > 1

    def propose(self, context: Context, piece: int | None = None) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        evaluator, random, instance = context.evaluator, context.random, context.instance
        if piece is None:
            piece = random.randrange(instance.pieces)
        here, hosts = evaluator.hosts[piece], evaluator.hosts
        others = self._others(context, piece)
        row = evaluator.row((piece,), [hosts[other] for other in others])
        best: tuple[float, int] | None = None
        for flow, other in zip(row, others, strict=True):
            there = hosts[other]
            change = instance.costs[piece] - instance.costs[other]
            score = flow + context.penalty * (
                evaluator.pressure(there, change) + evaluator.pressure(here, -change)
            )
            score *= 1.0 + 0.5 * random.random()
            if best is None or score < best[0]:
                best = (score, other)
        if best is None:
            return []
        return [evaluator.apply([(piece, hosts[best[1]]), (best[1], here)])]

    def _others(self, context: Context, piece: int) -> list[int]:
        """Return some pieces with which `piece` may change places."""
        evaluator, random, instance = context.evaluator, context.random, context.instance
        hosts, here = evaluator.hosts, evaluator.hosts[piece]
        if instance.many:
            near = [p for host in context.candidates((piece,)) for p in evaluator.at[host]]
            drawn = random.sample(near, min(len(near), self.sampled))
        else:
            drawn = [random.randrange(instance.pieces) for _ in range(self.sampled)]
        return [
            other
            for other in drawn
            if hosts[other] != here
            and hosts[other] in instance.allowed[piece]
            and here in instance.allowed[other]
        ]


class Together:
    """Move pieces that are at one broker and concern each other, as one."""

    name: ClassVar[str] = "together"

    def fits(self, context: Context) -> bool:
        """Return whether the move can change anything in this problem."""
        return context.instance.pieces > 1

    def propose(self, context: Context, piece: int | None = None) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        evaluator, random, instance = context.evaluator, context.random, context.instance
        if piece is None:
            piece = random.randrange(instance.pieces)
        here = evaluator.hosts[piece]
        near = [p for p in instance.near[piece] if evaluator.hosts[p] == here]
        if len(near) < 2:
            return []
        if len(near) > 2 and random.random() < 0.5:
            near = [piece, random.choice([p for p in near if p != piece])]
        shared = [host for host in context.candidates(near) if host != here]
        if not shared:
            return []
        scores = sorted(context.scores(near, shared))
        rank = min(int(random.expovariate(1.0)), len(scores) - 1)
        return [evaluator.apply([(p, scores[rank][1]) for p in near])]


class Scatter:
    """Put a few pieces at any of their brokers, the cheaper the likelier."""

    name: ClassVar[str] = "scatter"

    def fits(self, context: Context) -> bool:
        """Return whether the move can change anything in this problem."""
        return any(len(hosts) > 1 for hosts in context.instance.hosts)

    def propose(self, context: Context) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        evaluator, random = context.evaluator, context.random
        changes = []
        for piece in context.some_near(random.randint(1, 3)):
            scores = sorted(context.scores((piece,), context.candidates((piece,))))
            rank = min(int(random.expovariate(1 / 3)), len(scores) - 1)
            if scores[rank][1] != evaluator.hosts[piece]:
                changes.append(evaluator.apply([(piece, scores[rank][1])]))
        return changes


class Reroute:
    """Lay a stream that goes around before some of those that are in its way, or by any way."""

    name: ClassVar[str] = "reroute"

    def fits(self, context: Context) -> bool:
        """Return whether the move can change anything in this problem."""
        return context.instance.limited and bool(context.instance.flows)

    def propose(self, context: Context) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        evaluator, random = context.evaluator, context.random
        flows = range(len(evaluator.trees))
        wasted = [n for n in random.sample(flows, min(len(flows), 30))
                  if evaluator.links[n] > evaluator.least(n)]  # fmt: skip
        number = random.choice(wasted) if wasted else random.choice(flows)
        return self.lay(context, number)

    @staticmethod
    def lay(context: Context, number: int) -> Changes:
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
        instance = evaluator.instance
        flow = instance.flows[number]
        full: list[int] = []
        for source, targets in evaluator.ends(number):
            for arc in flow.topology.tree(source, targets):
                full += [
                    limit
                    for limit in evaluator.limits_of[instance.numbers[arc]]
                    if evaluator.loads[limit] + flow.rate > evaluator.room[limit]
                ]
        if not full:
            return []
        users = [user for user in evaluator.users(random.choice(full)) if user != number]
        return random.sample(users, min(len(users), random.randint(1, 2)))


class Relieve:
    """Take a limit that is broken, and lay or move something of what breaks it."""

    name: ClassVar[str] = "relieve"
    pushed: ClassVar[int] = 8

    def fits(self, context: Context) -> bool:
        """Return whether the move can change anything in this problem."""
        return context.instance.limited or context.instance.capped

    def propose(self, context: Context) -> Changes:
        """Change the placement and return the changes, to be kept or undone."""
        evaluator, random = context.evaluator, context.random
        if not evaluator.broken:
            return []
        limit = random.choice(list(evaluator.broken))
        if limit >= evaluator.first_work:
            there = list(evaluator.at[limit - evaluator.first_work])
            there = [piece for piece in there if evaluator.instance.costs[piece] > 0]
            return self._displace(context, random.choice(there)) if there else []
        users = evaluator.users(limit)
        if not users:
            return []
        number = random.choice(users)
        chance = random.random()
        if chance < 0.5:
            return Reroute.lay(context, number)
        pieces = evaluator.instance.flows[number].pieces
        if not pieces:
            return Reroute.lay(context, number)
        return self._displace(context, random.choice(pieces))

    def _displace(self, context: Context, piece: int) -> Changes:
        chance = context.random.random()
        if chance < 0.25:
            return Relocate().propose(context, piece)
        if chance < 0.5:
            return Swap().propose(context, piece)
        if chance < 0.6:
            return Together().propose(context, piece)
        if chance < 0.75:
            return Recreate.renew(context, context.some_near(context.random.randint(2, 6), piece))
        return self._push(context, piece)

    def _push(self, context: Context, piece: int) -> Changes:
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
                if h != host
                and evaluator.loads[evaluator.first_work + h] + instance.costs[other]
                <= instance.capacity[h]
            ]
            if roomy:
                return [evaluator.apply([(piece, host), (other, random.choice(roomy))])]
        return []


OPERATORS: tuple[type[Operator], ...] = (
    Recreate, Relocate, Settle, Swap, Together, Scatter, Reroute, Relieve,
)  # fmt: skip

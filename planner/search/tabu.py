"""Tabu search as the paper has it: always the best move that is not forbidden, even for the worse.

Owns the choice of a step and what it forbids. Must not know when the search ends, nor what is best
of all. Invariant: a step moves one piece, or what is connected at a broker, or lets two change
places; a piece does not return to a broker that it left lately, unless that makes a better
placement than any since the start.

Paper 003, section 4.2, algorithm 2, with three repairs. All candidates of a step are weighed from
the same placement (the paper's loop over tasks stacks one on another). What is forbidden is a
piece's return and not one whole placement. A broken limit has a price, which adapts, so that the
search crosses what is not feasible.
"""

from math import inf

from planner.search.context import MoveContext
from planner.search.evaluator import Moves
from planner.search.moves.kinds import Together

TENURE_MIN, TENURE_SPREAD = 6, 10
"""Steps for which a piece may not return to where it was."""
# So many steps on one side of the limits change the price of breaking them.
SIDE_STEPS = 6
DEARER, CHEAPER = 1.6, 1 / 1.3
# Moves that are tried out where links are limited, since rows do not tell what links cost.
TRIED = 4
SAME = 1e-9
# What is connected at a broker costs a row each, so now and then that of some pieces is looked at.
GROUPS_EVERY, GROUPS_MAX = 8, 40
# What a step takes beside rows, for each piece: so many brokers are compared.
WEIGHED = 20


class TabuSearch:
    """Steps from the placement at hand; `best` is the least cost without broken limits so far."""

    def __init__(self, context: MoveContext) -> None:
        self.context = context
        self.steps = 0
        self.best = inf
        self.within, self.side = True, 0
        self._until: dict[tuple[int, int], int] = {}
        self._rows: dict[int, tuple[list[tuple[float, int]], dict[int, float]]] = {}

    def restart(self) -> None:
        """Forget what is forbidden, and all rows, as after changes from outside."""
        self._until.clear()
        self._rows.clear()
        evaluator = self.context.evaluator
        self.within, self.side = not evaluator.loads.broken, 0
        self.best = evaluator.flow if self.within else inf

    def step(self) -> str:
        """Make the best move that is not forbidden; return its kind, "" where there is none."""
        context, evaluator = self.context, self.context.evaluator
        self.steps += 1
        evaluator.effort += WEIGHED * context.instance.pieces
        moves = self._choose()
        for piece, _ in moves:
            tenure = TENURE_MIN + context.random.randrange(TENURE_SPREAD)
            self._until[piece, evaluator.hosts[piece]] = self.steps + tenure
        if moves:
            evaluator.apply(moves)
            for piece, _ in moves:
                for stale in context.instance.near[piece]:
                    self._rows.pop(stale, None)
        if not evaluator.loads.broken and evaluator.flow < self.best:
            self.best = evaluator.flow
        self._adapt()
        if len(moves) == 2 and evaluator.hosts[moves[0][0]] != evaluator.hosts[moves[1][0]]:
            return "swap"
        return ("", "relocate", Together.name)[min(2, len(moves))]

    def _choose(self) -> Moves:
        context, instance = self.context, self.context.instance
        ranked = self._relocations()
        if instance.capped:
            ranked += self._exchanges(min(ranked)[0] if ranked else inf)
        if self.steps % GROUPS_EVERY == 0:
            count = min(instance.pieces, GROUPS_MAX)
            for piece in context.random.sample(range(instance.pieces), count):
                ranked += Together.cheapest(context, piece)
        if not ranked:
            return []
        ranked.sort(key=lambda scored: scored[0])
        if instance.limited:
            tried, evaluator = [moves for _, moves in ranked[:TRIED]], context.evaluator
            return min(tried, key=lambda moves: evaluator.delta(moves, context.penalty))
        least = ranked[0][0]
        equal = [moves for score, moves in ranked if score <= least + SAME * abs(least)]
        return context.random.choice(equal)

    def _relocations(self) -> list[tuple[float, Moves]]:
        """Return for each piece its best move and what that changes."""
        context = self.context
        evaluator, penalty, costs = context.evaluator, context.penalty, context.instance.costs
        loads, hosts = evaluator.loads, evaluator.hosts
        load, room, first = loads.loads, loads.room, loads.first_work
        spare = self.best - evaluator.flow if self.within else -inf
        until, steps = self._until, self.steps
        ranked: list[tuple[float, Moves]] = []
        for piece, cost in enumerate(costs):
            row, values = self._rows.get(piece) or self._row(piece)
            origin = hosts[piece]
            now = values[origin]
            if first + origin in loads.broken:
                now -= penalty * loads.pressure(origin, -cost)
            least, goal = inf, -1
            for value, host in row:
                if value - now >= least:
                    break
                barred = until.get((piece, host), 0) >= steps
                if host == origin or (barred and value - values[origin] >= spare - SAME):
                    continue
                score = value - now
                if load[first + host] + cost > room[first + host]:
                    score += penalty * loads.pressure(host, cost)
                if score < least:
                    least, goal = score, host
            if goal >= 0:
                ranked.append((least, [(piece, goal)]))
        return ranked

    def _exchanges(self, least: float) -> list[tuple[float, Moves]]:
        """Return the best exchange of two pieces, if it changes the cost by less than `least`.

        What two pieces change adds up where neither concerns the other; else it is tried out.
        """
        context = self.context
        instance, evaluator, penalty = context.instance, context.evaluator, context.penalty
        loads, hosts, costs = evaluator.loads, evaluator.hosts, instance.costs
        evaluator.effort += instance.pieces**2 // 2
        rows = [self._row(piece) for piece in range(instance.pieces)]
        # No exchange gains more than both pieces would alone, and what two brokers are over by.
        gains = [
            row[0][0] - changes[host] for (row, changes), host in zip(rows, hosts, strict=True)
        ]
        over = [loads.prices[limit] * part for limit, part in loads.broken.items()]
        relief = 2 * penalty * max(over, default=0.0)
        gain_max = min(gains, default=0.0) - relief
        best: list[tuple[float, Moves]] = []
        for first in range(instance.pieces):
            if gains[first] + gain_max >= least:
                continue
            origin, changes = hosts[first], rows[first][1]
            now = changes[origin]
            for second in range(first):
                target = hosts[second]
                others = rows[second][1]
                if target == origin or target not in changes or origin not in others:
                    continue
                score = changes[target] - now + others[origin] - others[target]
                if score - relief >= least:
                    continue
                more = costs[first] - costs[second]
                score += penalty * (loads.pressure(target, more) + loads.pressure(origin, -more))
                if score >= least or self._barred(first, target) or self._barred(second, origin):
                    continue
                moves = [(first, target), (second, origin)]
                if second in instance.near[first]:
                    score = evaluator.delta(moves, penalty)
                if score < least:
                    least, best = score, [(score, moves)]
        return best

    def _barred(self, piece: int, host: int) -> bool:
        return self._until.get((piece, host), 0) >= self.steps

    def _row(self, piece: int) -> tuple[list[tuple[float, int]], dict[int, float]]:
        """Return what a piece costs by broker, ascending and by the broker's number."""
        if (row := self._rows.get(piece)) is None:
            hosts = self.context.instance.hosts[piece]
            values = self.context.evaluator.row((piece,), hosts)
            by_host = dict(zip(hosts, values, strict=True))
            row = self._rows[piece] = (sorted(zip(values, hosts, strict=True)), by_host)
        return row

    def _adapt(self) -> None:
        """Make broken limits dearer after some steps over them, cheaper after some within."""
        within = not self.context.evaluator.loads.broken
        self.side = self.side + 1 if within == self.within else 0
        self.within = within
        if self.side >= SIDE_STEPS:
            self.side = 0
            self.context.scale_penalty(CHEAPER if within else DEARER)

"""The search: an operator changes the placement, and the change is kept or undone.

Owns acceptance, the weights of operators, the penalty of broken limits and the best plan. Must not
know clocks: a stop criterion says when it ends. Invariant: the best plan never gets worse; after
the same number of steps with the same seed it is the same.

Adaptive large neighbourhood search (Ropke and Pisinger, 2006): operators are chosen by weights that
follow their success, changes for the worse are kept with a chance that falls within a cycle
(simulated annealing), and limits may be broken at a penalty that adapts so that some placements
keep them (as in PyVRP). While none does, limits that stay broken become dearer (Morris, 1993).

Every other cycle is tabu search from the best plan; where it is stuck, some pieces are placed anew.
"""

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random

from planner.layout import carried
from planner.plan import Plan
from planner.search.context import Changes, MoveContext
from planner.search.evaluator import Evaluator, StreamTrees
from planner.search.instance import ABSENT, Instance
from planner.search.moves.ejection import Eject
from planner.search.moves.joint import MoveJointly
from planner.search.moves.kinds import MoveKind, Recreate, Together
from planner.search.moves.relief import Relieve, Reroute
from planner.search.params import SearchParams
from planner.search.start import FirstDescent, greedy
from planner.search.stops import Progress, Stop
from planner.search.tabu import TabuSearch

# A smaller part of the flow is no gain.
GAIN = 1e-9
# Steps after which sums are counted again: each change may leave a trifle of rounding.
RECOUNT_EVERY = 20_000
# From so many pieces on a search descends rather than anneals.
LARGE_PIECES = 400
CANONICAL_NODES_MAX = 300
# Up to so many pieces the first cycle is one of tabu search: its steps take little. It moves pieces
# alone, so not where links are limited: there what helps may be to lay a stream another way.
TABU_FIRST_PIECES = 100
FAITHLESS_MIN, FAITHLESS_MAX = 10, 30
"""Kicks that make no better plan, until tabu search goes on from elsewhere."""
HALF, RETURNS = 0.5, 0.4
"""The chance that all pieces are placed anew then and not half, and that none are."""
# The weight of an operator that has nothing to do: the least of others is 0.2.
SELDOM = 1e-9
# Of a single limit: beyond, all prices are 1 again.
PRICE_MAX = 1e4

# The flow of a placement that keeps all limits, its hosts and how its streams are laid.
Standpoint = tuple[float, list[int], list[StreamTrees]]

OPERATORS: tuple[type[MoveKind], ...] = (
    Recreate, Together, MoveJointly, Eject, Reroute, Relieve,
)  # fmt: skip


@dataclass
class BestPlan:
    """The best plan so far: fewer broken limits first, then less flow."""

    flow: float = inf
    excess: float = inf
    hosts: tuple[int, ...] = ()
    laid: list[StreamTrees] = field(default_factory=list)

    def beaten(self, excess: float, flow: float) -> bool:
        """Return whether that is better."""
        if (excess > 0) != (self.excess > 0):
            return excess == 0
        if excess > 0 and abs(excess - self.excess) > GAIN:
            return excess < self.excess
        return flow < self.flow - GAIN * abs(self.flow)


class Search:
    """One search; `run` goes on, `best` is the outcome."""

    def __init__(
        self,
        instance: Instance,
        seed: int,
        params: SearchParams | None = None,
        operators: Sequence[type[MoveKind]] = OPERATORS,
        *,
        start: Sequence[int] | None = None,
        check: bool = False,
    ) -> None:
        self.instance = instance
        self.params = params or SearchParams()
        self.random = Random(seed)
        hosts = greedy(instance) if start is None else start
        self.evaluator = Evaluator(instance, hosts, check=check)
        self.context = MoveContext(self.evaluator, self.random, self.params)
        self.operators = [
            each for each in (kind() for kind in operators) if each.fits(self.context)
        ]
        self.weights = [1.0] * len(self.operators)
        # How many changes of each kind were kept.
        self.moves: dict[str, int] = {}
        self.best = BestPlan()
        self.steps = self.improved_at = self.cycles = 0
        self.keeps = 0  # placements that kept all limits since the penalty was last adapted
        self.vain = 0  # steps without a gain while prices of limits may rise
        self.began = 0
        self.length = self.params.cycle + self.params.cycle_each * instance.pieces
        self.tabu = TabuSearch(self.context)
        # Where tabu search goes on from, and the best since it did: `local`.
        self.base: Standpoint = (inf, [], [])
        self.local = self.base
        self.faithless = self.kicked_at = 0  # kicks that made no better plan; when the last was
        self.descent = FirstDescent(self.context)
        self.context.renew([piece for piece, host in enumerate(hosts) if host == ABSENT])
        self._consider()
        if instance.pieces <= TABU_FIRST_PIECES and not (instance.limited or instance.many):
            self.cycles = 1
            self._begin_cycle()

    def run(self, stop: Stop, callback: Callable[[Progress], None] | None = None) -> BestPlan:
        """Search until `stop` says so, between steps; `callback` is told of each."""
        # A search makes no cycles of references: to look for them would take a twentieth of it.
        collecting = gc.isenabled()
        gc.disable()
        try:
            # Without operators there is one placement alone; without pieces, none.
            while self.instance.pieces and self.operators and not stop(self.progress()):
                self.step()
                if callback is not None:
                    callback(self.progress())
        finally:
            if collecting:
                gc.enable()
        return self.best

    def progress(self) -> Progress:
        """Return how far the search is."""
        best = self.best
        return Progress(
            self.steps, self.improved_at, best.excess == 0, self.evaluator.flow, best.flow,
            best.excess, self.evaluator.effort, self.moves,
        )  # fmt: skip

    # --- one step -------------------------------------------------------------------------------

    def step(self) -> None:
        """Change the placement by one operator; keep that or undo it."""
        if self.steps % RECOUNT_EVERY == RECOUNT_EVERY - 1:
            self.evaluator.adopt(*self.evaluator.snapshot())
        self.steps += 1
        self.evaluator.effort += 1  # so that all that is bounded by effort ends
        # Among many brokers ways that break limits take long to find, and are hardly ever kept.
        self.evaluator.builder.strict = self.instance.many and not self.evaluator.loads.broken
        if not self.descent.over:
            self._descend()
        else:
            self._cool()
            if self.cycles % 2 and not self.instance.many:
                self._intensify()
            else:
                self._anneal()

    def _descend(self) -> None:
        """Make one step of the beginning; keep it unless it is for the worse."""
        # The penalty is what a new pass may change, so it is read once the pass has begun.
        if not self.descent.queue:
            self.descent.next_pass()
        penalty = self.context.penalty
        before = self.evaluator.cost(penalty)
        kind, changes = self.descent.propose()
        after = self.evaluator.cost(penalty)
        if after <= before:
            self.descent.keep()
            self._keep(kind, changes)
        else:
            self._undo(changes)
        if self.best.excess > 0 and kind == Relieve.name:
            self._press(good=after < before)

    def _intensify(self) -> None:
        """Make a step of tabu search; after some in vain, take up a few pieces and go on."""
        tabu, evaluator = self.tabu, self.evaluator
        if self.vain > self.params.patience + self.instance.pieces:
            # From what the last kick came to, as long as that is good: else from where it began.
            room = 1 + self.params.tolerance * self.random.random()
            if self.local[0] <= self.base[0] * room:
                self.base = self.local
            self._kick()
            return
        kind = tabu.step()
        if kind:
            self.moves[kind] = self.moves.get(kind, 0) + 1
        self._consider()
        self.vain += 1
        if not evaluator.loads.broken and evaluator.flow < self.local[0] * (1 - GAIN):
            self.local = (evaluator.flow, *evaluator.snapshot())
            self.vain = 0

    def _kick(self) -> None:
        """Go back to the base, and place a few of its pieces anew; at times many of the best's."""
        context, pieces = self.context, self.instance.pieces
        self.faithless = 0 if self.improved_at > self.kicked_at else self.faithless + 1
        self.kicked_at = self.steps
        if self.faithless > min(max(FAITHLESS_MIN, pieces // 3), FAITHLESS_MAX):
            # What is near was searched: begin elsewhere, or from the best once more.
            self.faithless = 0
            self._return_to_best()
            size = pieces if self.random.random() < HALF else pieces // 2
            if self.random.random() >= RETURNS:
                context.renew(context.some_near(max(2, size)))
                self.base = (inf, *self.evaluator.snapshot())
        else:
            self.evaluator.adopt(*self.base[1:])
            Recreate().propose(context)
        self.moves["recreate"] = self.moves.get("recreate", 0) + 1
        self._consider()
        self.tabu.restart()
        self.local = (inf, *self.base[1:])
        self.vain = 0

    def _anneal(self) -> None:
        """Change the placement by an operator that is drawn; keep that by Metropolis."""
        # What relieves limits is of use only while some are broken.
        idle = "" if self.evaluator.loads.broken else Relieve.name
        pairs = zip(self.operators, self.weights, strict=True)
        weights = [SELDOM if each.name == idle else weight for each, weight in pairs]
        (place,) = self.random.choices(range(len(weights)), weights)
        operator, evaluator, penalty = self.operators[place], self.evaluator, self.context.penalty
        before = evaluator.cost(penalty)
        spare = self.context.spare = self.heat * self.random.expovariate(1.0)
        changes = operator.propose(self.context)
        self.context.spare = inf
        worse = evaluator.cost(penalty) - before
        good = worse < -GAIN * abs(before)
        learned = self.params.weight_learned
        if good or worse <= spare:
            if self._keep(operator.name, changes):
                self.weights[place] += 4 * learned
        else:
            self._undo(changes)
        self.weights[place] = max(0.2, (1 - learned) * self.weights[place] + 2 * learned * good)
        self._adapt(good=good)

    def _keep(self, kind: str, changes: Changes) -> bool:
        """Count changes that are kept; return whether they made the best plan."""
        if changes:
            self.moves[kind] = self.moves.get(kind, 0) + 1
            self.context.unsettle(changes)
        return self._consider()

    def _undo(self, changes: Changes) -> None:
        for change in reversed(changes):
            self.evaluator.undo(change)

    def _consider(self) -> bool:
        """Keep the present placement if it is the best; return whether it is."""
        evaluator = self.evaluator
        excess = evaluator.excess()
        if not self.best.beaten(excess, evaluator.flow):
            return False
        hosts, laid = evaluator.snapshot()
        self.best = BestPlan(evaluator.flow, excess, tuple(hosts), laid)
        self.improved_at = self.steps
        return True

    # --- what adapts ----------------------------------------------------------------------------

    def _cool(self) -> None:
        """Set the temperature by the place in the cycle; begin another where one is over."""
        params = self.params
        part = (self.steps - self.began) / self.length
        if part >= 1:
            self.began, part = self.steps, 0.0
            self.length = int(self.length * params.cycle_growth)
            self.cycles += 1
            self._begin_cycle()
        share = params.heat_large if self.instance.pieces > LARGE_PIECES else params.heat
        self.heat = share * self.context.usual * params.cooled**part

    def _begin_cycle(self) -> None:
        """Go back to the best every other time; prices of single limits are 1 again."""
        self.evaluator.loads.even_prices()
        if self.cycles % 2:
            self._return_to_best()
            self.local, self.vain = self.base, 0
            self.tabu.restart()

    def _return_to_best(self) -> None:
        flow = self.best.flow if self.best.excess == 0 else inf
        self.base = (flow, list(self.best.hosts), self.best.laid)
        self.evaluator.adopt(*self.base[1:])
        self.context.settled.clear()

    def _adapt(self, *, good: bool) -> None:
        """Adapt the penalty of broken limits, and their prices while no plan keeps all."""
        params, loads = self.params, self.evaluator.loads
        self.keeps += not loads.broken
        if self.steps % params.penalty_every == 0:
            few = self.keeps < params.feasible_least * params.penalty_every
            self.context.scale_penalty(params.penalty_rise if few else params.penalty_fall)
            self.keeps = 0
        if self.best.excess > 0 and loads.broken and self.cycles % 2:
            self._press(good=good)

    def _press(self, *, good: bool) -> None:
        """Make limits that stay broken dearer than others."""
        self.vain = 0 if good else self.vain + 1
        if self.vain >= self.params.price_patience:
            self.vain = 0
            self.evaluator.loads.raise_prices(self.params.price_rise, PRICE_MAX)


def as_plan(instance: Instance, best: BestPlan) -> Plan:
    """Return the best as a plan; a route is told only where it differs from the canonical one.

    On many brokers all are told: to work out the canonical ones takes longer than to read them.
    """
    net, names = instance.network, instance.network.names
    routes = {}
    for stream in carried(instance.layout, best.hosts):
        tree = best.laid[stream.number].trees[stream.source]
        arcs = sorted(instance.arcs[link] for link in tree.links)
        if instance.nodes <= CANONICAL_NODES_MAX:
            usual, lost = net.canonical(stream.source, stream.targets)
            if not lost and (
                sorted(usual) == arcs or (not instance.limited and len(usual) == len(arcs))
            ):
                continue
        routes[stream.name] = tuple((names[a], names[b]) for a, b in arcs)
    return Plan(best.hosts, routes)

"""The search: an operator changes the placement, and the change is kept or undone.

Owns acceptance, the weights of operators, the penalty of broken limits and the best plan. Must not
know clocks: a stop criterion says when it ends. Invariant: the best plan never gets worse; after
the same number of steps with the same seed it is the same.

Adaptive large neighbourhood search (Ropke and Pisinger, 2006): operators are chosen by weights that
follow their success, changes for the worse are kept with a chance that falls within a cycle
(simulated annealing), and limits may be broken at a penalty that adapts so that some placements
keep them (as in PyVRP). While none does, limits that stay broken become dearer (Morris, 1993).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import exp, inf
from random import Random

from experiments.search.evaluator import Evaluator, Way
from experiments.search.instance import Instance
from experiments.search.operators import OPERATORS, Changes, Context, Operator
from experiments.search.params import Progress, SearchParams
from experiments.search.start import greedy
from planner.layout import carried
from planner.network import Arc
from planner.plan import Plan

GAIN = 1e-9
"""A smaller part of the flow is no gain."""
RECOUNT_EVERY = 20_000
"""Iterations after which sums are counted anew: each change may leave a trifle of rounding."""
LARGE_PIECES = 400
"""From so many pieces on a search descends rather than anneals."""
CANONICAL_NODES_MAX = 300
OPENING_PENALTY = 0.05
"""Of the usual penalty: pieces settle where they are cheapest, and limits push them out later."""
SETTLED_GAIN = 0.01
"""Of the flow: once all pieces have settled and gained less, operators are drawn."""

Stop = Callable[[Progress], bool]


@dataclass
class Best:
    """The best plan so far: fewer broken limits first, then less flow."""

    flow: float = inf
    excess: float = inf
    hosts: tuple[int, ...] = ()
    trees: list[dict[int, Way]] = field(default_factory=list)

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
        operators: Sequence[type[Operator]] = OPERATORS,
        *,
        check: bool = False,
    ) -> None:
        self.instance = instance
        self.params = params or SearchParams()
        self.random = Random(seed)
        self.evaluator = Evaluator(instance, greedy(instance), check=check)
        self.context = Context(self.evaluator, self.random, self.params)
        self.operators = [one for one in (kind() for kind in operators) if one.fits(self.context)]
        self.place_of = {one.name: place for place, one in enumerate(self.operators)}
        self.weights = [1.0] * len(self.operators)
        self.moves = dict.fromkeys((one.name for one in self.operators), 0)
        self.best = Best()
        self.steps = self.improved_at = self.cycles = 0
        self.keeps = 0  # placements that kept all limits since the penalty was last adapted
        self.vain = 0
        self.opening = instance.many
        """Whether pieces settle in turn, before operators are drawn."""
        self.settled_from = self.evaluator.flow
        self.usual = 1e-6 + self.evaluator.flow / max(1, instance.pieces)
        """What a piece causes on average."""
        self.context.penalty = self.usual * (OPENING_PENALTY if self.opening else 1.0)
        self._consider()

    def run(self, stop: Stop, callback: Callable[[Progress], None] | None = None) -> Best:
        """Search until `stop` says so, between steps; `callback` is told of each."""
        while self.operators and not stop(self.progress()):
            self.step()
            if callback is not None:
                callback(self.progress())
        return self.best

    def progress(self) -> Progress:
        """Return how far the search is."""
        best = self.best
        return Progress(
            self.steps, self.improved_at, best.excess == 0, self.evaluator.flow, best.flow,
            best.excess, self.moves,
        )  # fmt: skip

    # --- one step -------------------------------------------------------------------------------

    def step(self) -> None:
        """Change the placement by one operator; keep that or undo it."""
        if self.steps % RECOUNT_EVERY == RECOUNT_EVERY - 1:
            self.evaluator.adopt(*self.evaluator.snapshot())
        self._cool()
        self.steps += 1
        place = self._choose()
        operator, evaluator, penalty = self.operators[place], self.evaluator, self.context.penalty
        before = evaluator.cost(penalty)
        changes = operator.propose(self.context)
        after = evaluator.cost(penalty)
        good = after < before - GAIN * abs(before)
        if good or self._accepts(after - before):
            if changes:
                self.moves[operator.name] += 1
            if self._consider():
                self.weights[place] += 4 * self.params.weight_learned
        else:
            self._undo(changes)
        learned = self.params.weight_learned
        self.weights[place] = max(0.2, (1 - learned) * self.weights[place] + 2 * learned * good)
        self._adapt(good=good)

    def _undo(self, changes: Changes) -> None:
        for change in reversed(changes):
            self.evaluator.undo(change)

    def _choose(self) -> int:
        """Draw an operator by its weight; what relieves limits only while some are broken."""
        if self.opening:
            if self.steps % max(1, self.instance.pieces) == 0:
                gained = self.settled_from - self.evaluator.flow
                self.opening = gained > SETTLED_GAIN * self.evaluator.flow
                self.settled_from = self.evaluator.flow
            return self.place_of["settle"]
        usable = [
            0.0 if one.name == "relieve" and not self.evaluator.broken else weight
            for one, weight in zip(self.operators, self.weights, strict=True)
        ]
        if not any(usable):
            return 0
        return self.random.choices(range(len(usable)), usable)[0]

    def _accepts(self, worse: float) -> bool:
        """Return whether a change for the worse is kept, by Metropolis."""
        return worse <= 0 or self.random.random() < exp(-min(700.0, worse / self.heat))

    def _consider(self) -> bool:
        """Keep the present placement if it is the best; return whether it is."""
        evaluator = self.evaluator
        excess = evaluator.excess() if evaluator.broken or evaluator.lost else 0.0
        if not self.best.beaten(excess, evaluator.flow):
            return False
        hosts, trees = evaluator.snapshot()
        self.best = Best(evaluator.flow, excess, tuple(hosts), trees)
        self.improved_at = self.steps
        return True

    # --- what adapts ----------------------------------------------------------------------------

    def _cool(self) -> None:
        """Set the temperature by the place in the cycle; begin another where one is over."""
        params, pieces = self.params, self.instance.pieces
        if not self.steps:
            self.began, self.length = 0, params.cycle + params.cycle_each * pieces
        part = (self.steps - self.began) / self.length
        if part >= 1:
            self.began, part = self.steps, 0.0
            self.length = int(self.length * params.cycle_growth)
            self.cycles += 1
            self._begin_cycle()
        share = params.heat_large if pieces > LARGE_PIECES else params.heat
        self.heat = share * self.usual * params.cooled**part

    def _begin_cycle(self) -> None:
        """Go back to the best every other time; prices of single limits are 1 again."""
        if self.cycles % 2:
            self.evaluator.adopt(self.best.hosts, self.best.trees)
        self.evaluator.prices = [1.0] * len(self.evaluator.prices)

    def _adapt(self, *, good: bool) -> None:
        """Adapt the penalty of broken limits, and their prices while no plan keeps all."""
        params, evaluator = self.params, self.evaluator
        self.keeps += not evaluator.broken
        if self.steps % params.penalty_every == 0:
            few = self.keeps < params.feasible_least * params.penalty_every
            factor = params.penalty_rise if few else params.penalty_fall
            penalty = self.context.penalty * factor
            self.context.penalty = min(max(penalty, 1e-3 * self.usual), 1e7 * self.usual)
            self.keeps = 0
        if self.best.excess > 0 and evaluator.broken and self.cycles % 2:
            self.vain = 0 if good else self.vain + 1
            if self.vain >= params.price_patience:
                self.vain = 0
                for limit in evaluator.broken:
                    evaluator.prices[limit] *= params.price_rise
                if max(evaluator.prices) > 1e4:
                    evaluator.prices = [1.0] * len(evaluator.prices)


def as_plan(instance: Instance, best: Best) -> Plan:
    """Return the best as a plan; a route is told only where it differs from the canonical one.

    On many brokers all are told: to work out the canonical ones takes longer than to read them.
    """
    net, names = instance.network, instance.network.names
    trees: dict[str, list[Arc]] = {}
    for number, kept in enumerate(best.trees):
        for source, way in kept.items():
            trees[instance.name_of(number, source)] = [instance.arcs[link] for link in way[0]]
    routes = {}
    for stream in carried(instance.layout, best.hosts):
        arcs = sorted(trees[stream.name])
        usual: list[Arc] = []
        if instance.nodes <= CANONICAL_NODES_MAX:
            usual, lost = net.canonical(stream.source, stream.targets)
            if not lost and (
                sorted(usual) == arcs or (not instance.limited and len(usual) == len(arcs))
            ):
                continue
        routes[stream.name] = tuple((names[a], names[b]) for a, b in arcs)
    return Plan(best.hosts, routes)

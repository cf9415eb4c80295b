"""The search from begin to end: start, tabu, kicks, renewal, routes.

Owns the order of steps and what is the best so far. Must not know clocks: `Stop` objects say when
it ends. Invariant: the best plan is one whose limits were counted with its routes, and it never
gets worse; after the same number of steps with the same seed it is the same.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from planner.layout import carried
from planner.network import Arc
from planner.plan import Plan
from planner.search.closing import Closing
from planner.search.kicks import recreate, scatter, some_near
from planner.search.large import Renewal
from planner.search.loaded import TOLL_FIRST, LoadedState
from planner.search.model import Model
from planner.search.relief import Relief
from planner.search.repair import Repair
from planner.search.routing import ROUNDS_FEW, ROUNDS_MAX, Routed, route
from planner.search.start import greedy
from planner.search.state import State
from planner.search.stops import Progress, Stop
from planner.search.tabu import Tabu
from planner.search.traffic import TrafficState
from planner.search.untangle import untangle

CELLS_MAX = 40_000  # of (piece, broker): beyond, a step looks at a few pieces only
SETTLE_EVERY_STEPS = 2000
CANONICAL_NODES_MAX = 300
DESCENDED_AGAIN = 0.03  # of the flow: after a descent that gained less, renewing pays more
KEPT_EVERY_STEPS = 400  # to write down all ways takes as long as some steps
ROUTE_EVERY_STEPS = 25
POLISHED_ENDS_MAX = 40
SHORT_STEPS = 20  # and one a piece: without a better placement, a kick has come to nothing
TOLERANCE = 0.004  # by so much a placement may be worse than the one that it came from
TOLLS = (4.0, 16.0, 64.0)  # hops, one of them for each kick, while limits are broken
MENDED_KICKS = 4  # so many, and a plan is mended that breaks limits, or what the last came to
RELIEVED_KICKS = 8  # where small moves find no way, a kick may
VAIN_STEPS = 40  # and one a piece: then a descent gives way to others, while limits are broken
CLOSED_KICKS = 4  # and small steps go on from a plan that is the best meanwhile
FAITHLESS_KICKS_MIN, FAITHLESS_KICKS_MAX = 10, 30  # that find no better plan: then elsewhere
KICKED_MAX = 12
LAYS_A_STEP, LAYS_MAX = 2, 100  # streams laid in better orders; more would take half the time
EXACT = 0.5  # of the descents try out what two pieces that concern each other change together
SCATTERED = 0.2  # of the kicks
RETURNS = 0.4  # the chance of going back to the best rather than beginning anew
GAIN = 1e-9  # a smaller part of the flow is no gain


@dataclass(frozen=True)
class Report:
    """Where the search is, for an observer: `cost` is that of the placement at hand."""

    steps: int
    flow: float
    excess: float
    kicks: int
    cost: float
    moves: Mapping[str, int]


@dataclass
class Best:
    """The best plan so far: fewer broken limits first, then less flow."""

    flow: float = float("inf")
    excess: float = float("inf")
    hosts: tuple[int, ...] = ()
    trees: dict[str, tuple[Arc, ...]] = field(default_factory=dict)

    def beaten(self, excess: float, flow: float) -> bool:
        """Whether that is better."""
        if (excess > 0) != (self.excess > 0):
            return excess == 0
        if excess > 0 and abs(excess - self.excess) > GAIN:
            return excess < self.excess
        return flow < self.flow - GAIN * abs(self.flow)


Observer = Callable[[Report], None]


class Search:
    """One search; `step` goes on, `best` is the outcome."""

    def __init__(self, model: Model, seed: int, start: Sequence[int] | None = None) -> None:
        self.model = model
        self.random = Random(seed)
        self.best = Best()
        self.steps = 0
        self.improved_at = 0
        self.kicks = 0
        self.moves: dict[str, int] = {}
        self.lays = 0
        """How many streams may be laid in better orders: some for each step, so that it lasts."""
        self.judged: set[tuple[int, ...]] = set()
        self.closed: Best | None = None
        self.repair = Repair(self)
        self.fitted = True  # the last descent came by a placement that keeps all limits
        self.wanders = True
        """Whether small moves come before each descent as long as limits are broken."""
        hosts = greedy(model) if start is None else start
        self.whole = model.pieces * model.nodes <= CELLS_MAX
        with_ways = LoadedState if self.whole else TrafficState
        self.state = with_ways(model, hosts) if model.limited else State(model, hosts)
        self.consider(thorough=True)

    # --- the best ----------------------------------------------------------------------------

    def consider(self, *, thorough: bool = False) -> bool:
        """Routes the present placement and keeps it if it is the best."""
        hosts = tuple(self.state.hosts)
        if isinstance(self.state, TrafficState):
            found = Routed(self.state.named_trees(), self.state.flow, self.state.excess())
            return self.keep(hosts, 0.0, found)
        if hosts in self.judged and not thorough:
            return False
        if len(self.judged) > 100_000:
            self.judged.clear()
        self.judged.add(hosts)
        excess = self.state.excess()
        if not self.model.limited and not self.best.beaten(excess, self.state.flow):
            return False
        if isinstance(self.state, LoadedState) and not excess and self._untangled(self.state):
            return True
        found = route(self.model, hosts, ROUNDS_MAX if thorough else ROUNDS_FEW)
        return self.keep(hosts, excess, found)

    def _untangled(self, state: LoadedState) -> bool:
        """Keeps the trees as they are laid, or laid in a better order, where they are the best."""
        kept, flow = state.snapshot(), state.flow
        if self.lays >= 0:
            self.lays -= untangle(state)
        found = Routed(state.named_trees(), state.flow, 0.0)
        good = state.fits() and self.keep(tuple(state.hosts), 0.0, found)
        state.put_back(kept, flow)
        return good

    def keep(self, hosts: tuple[int, ...], excess: float, found: Routed) -> bool:
        """Makes this the best if it is."""
        if not self.best.beaten(excess + found.excess, found.flow):
            return False
        self.best = Best(found.flow, excess + found.excess, hosts, found.trees)
        self.improved_at = self.steps
        return True

    def promising(self) -> bool:
        """Whether the placement may be better than the best, by the least that it may cost."""
        if self.best.excess > 0:
            return self.best.beaten(self.state.excess(), 0.0)
        if self.state.excess() > 0:
            return False
        if isinstance(self.state, LoadedState):
            most = self.best.flow * (1 - GAIN)
            return self.state.flow < most or (self.lays >= 0 and self.state.least_flow() < most)
        return self.state.flow < self.best.flow * (1 - GAIN)

    # --- going on ----------------------------------------------------------------------------

    def run(self, stop: Stop, observer: Observer | None = None) -> Best:
        """Searches until the stop says so, between steps."""
        if self.model.pieces:
            if isinstance(self.state, TrafficState):
                self._limited(self.state, stop, observer)
            else:
                (self._whole if self.whole else self._large)(stop, observer)
            self.close()
        return self.best

    def progress(self) -> Progress:
        """How far the search is."""
        return Progress(self.steps, self.improved_at, self.best.excess == 0)

    def ends(self, stop: Stop) -> bool:
        """Whether the search is to end here."""
        return stop(self.progress())

    def tell(self, observer: Observer | None) -> None:
        """Tells an observer where the search is."""
        if observer is not None:
            best, cost = self.best, self.state.flow
            observer(Report(self.steps, best.flow, best.excess, self.kicks, cost, self.moves))

    def count(self, kind: str) -> None:
        """Count a move of a kind."""
        self.moves[kind] = self.moves.get(kind, 0) + 1

    def first_price(self) -> float:
        """What breaking a broker's limit wholly costs at first: what a usual piece causes."""
        return 1e-6 + self.state.flow / max(1, self.model.pieces)

    def _whole(self, stop: Stop, observer: Observer | None) -> None:
        """Tabu over all pieces, and kicks: from what the last one came to while that is good."""
        if self.wanders and self.best.excess > 0:
            self.repair.wander(self.best.hosts, stop, observer)
            if self.best.excess == 0:
                now, there = self.state.hosts, enumerate(self.best.hosts)
                self.state.apply([(p, h) for p, h in there if now[p] != h])
                self.state.recount()
        tabu = Tabu(self.state, range(self.model.pieces), self.random, self.first_price())
        patience = SHORT_STEPS + self.model.pieces
        base = self._descend(tabu, 3 * patience, stop, observer)
        since = self.kicks
        faithless = min(max(FAITHLESS_KICKS_MIN, self.model.pieces // 3), FAITHLESS_KICKS_MAX)
        while not self.ends(stop):
            improved_at = self.improved_at
            self._kick(tabu, base[2])
            found = self._descend(tabu, patience, stop, observer)
            if self.best.excess == 0 and not self.fitted and found[1] < self.best.flow:
                found = self.repair.refit(found, stop, observer)
            if self.improved_at > improved_at:
                since = self.kicks
            worse = base[1] + TOLERANCE * self.random.random() * abs(base[1])
            if found[0] <= base[0] and (found[1] <= worse or found[0] < base[0]):
                base = found
            if self.wanders and self.best.excess > 0:
                self.repair.wander(found[2], stop, observer)
                if self.best.excess == 0:
                    base = (0.0, self.best.flow, list(self.best.hosts))
            if self.best.excess > 0 and self.model.limited and self.kicks % RELIEVED_KICKS == 1:
                self.repair.relieve(found[2], stop, observer)
                if self.best.excess == 0:
                    base = (0.0, self.best.flow, list(self.best.hosts))
            if self.best.excess > 0:
                hosts = self.repair.freely(stop, observer)
                base = self._from(hosts, tabu, patience, stop, observer)
            if self.best.excess > 0 and self.kicks % MENDED_KICKS == 0:
                mended = self.best.hosts if self.kicks % (2 * MENDED_KICKS) else found[2]
                self.repair.mend(mended, stop, observer)
            if self.model.limited and self.kicks % CLOSED_KICKS == 0:
                self.close()  # where links are free, moves were weighed exactly
            if self.kicks - since > faithless:
                since, base = self.kicks, self._anew(tabu, patience, stop, observer)

    def _from(
        self,
        hosts: Sequence[int],
        tabu: Tabu,
        patience: int,
        stop: Stop,
        observer: Observer | None,
    ) -> tuple[float, float, list[int]]:
        """Descends from another placement, or stays with the best where that keeps all limits."""
        if self.best.excess == 0:
            return 0.0, self.best.flow, list(self.best.hosts)
        now = self.state.hosts
        self.state.apply([(p, h) for p, h in enumerate(hosts) if now[p] != h])
        self.state.recount()
        tabu.all_anew()
        return self._descend(tabu, patience, stop, observer)

    def close(self) -> None:
        """Small steps from the best plan, if it is another than when this was last done."""
        if self.best.excess > 0 or not self.whole or self.closed is self.best:
            return
        closing = Closing(self.model, self.best.hosts, self.best.trees)
        if closing.fits():
            closing.run()
            hosts, routed = tuple(closing.state.hosts), closing.routed()
            better = self.keep(hosts, 0.0, routed)
            if not better and hosts == self.best.hosts and routed.flow <= self.best.flow:
                self.best.trees = routed.trees
        self.closed = self.best

    def _descend(
        self, tabu: Tabu, patience: int, stop: Stop, observer: Observer | None
    ) -> tuple[float, float, list[int]]:
        """Tabu until nothing better was found for some steps; what was best on the way."""
        local = (self.state.excess(), self.state.flow, list(self.state.hosts))
        since, began, self.fitted = 0, self.steps, not isinstance(self.state, LoadedState)
        while since <= patience and not self.ends(stop):
            if self.best.excess > 0 and self.steps - began > VAIN_STEPS + self.model.pieces:
                break
            flow_before = self.state.flow
            tabu.step(local[1] if local[0] == 0 else float("inf"))
            self.count(tabu.kind)
            self.steps += 1
            self.lays = min(self.lays + LAYS_A_STEP, LAYS_MAX)
            since += 1
            self.tell(observer)
            if self._due(flow_before) and self.promising():
                self.consider()
            now = (self.state.excess(), self.state.flow)
            if now < (local[0], local[1] - GAIN * abs(local[1])):
                local, since = (*now, list(self.state.hosts)), 0
        return local

    def _due(self, flow_before: float) -> bool:
        """Whether to look at the placement for a better plan; routing it takes long."""
        if isinstance(self.state, LoadedState):
            fits = self.state.fits()
            self.fitted |= fits and self.state.excess() == 0
            return fits or self.steps % ROUTE_EVERY_STEPS == 0
        return not self.model.limited or self.state.flow < flow_before

    def _anew(
        self, tabu: Tabu, patience: int, stop: Stop, observer: Observer | None
    ) -> tuple[float, float, list[int]]:
        """Back to the best, or to a new beginning: half of all pieces or all of them anew."""
        best = (0.0, self.best.flow, list(self.best.hosts))
        if self.random.random() < RETURNS:
            return best
        share = self.random.choice((2, 1))
        self._kick(tabu, self.best.hosts, max(2, self.model.pieces // share))
        found = self._descend(tabu, 2 * patience, stop, observer)
        return found if found[0] <= best[0] else best

    def _kick(self, tabu: Tabu, base: Sequence[int], size: int = 0) -> None:
        """Back to a placement, and some of its pieces elsewhere."""
        self.kicks += 1
        state, random = self.state, self.random
        if isinstance(state, LoadedState):
            self._charge(state)
        state.apply([(p, h) for p, h in enumerate(base) if state.hosts[p] != h])
        state.recount()
        most = max(2, min(KICKED_MAX, self.model.pieces // 2))
        pieces = some_near(state, random, size or random.randint(2, most))
        if not size and random.random() < SCATTERED:
            moves = scatter(state, random, pieces[:4])
            self.count("scatter")
        else:
            self.count("recreate")
            moves = recreate(state, random, pieces)
        state.apply([(p, h) for p, h in moves if state.hosts[p] != h])
        state.relax()
        tabu.exact = random.random() < EXACT
        tabu.all_anew()

    def _charge(self, state: LoadedState) -> None:
        """Other tolls while no plan keeps all limits, so that what is over them becomes less."""
        toll, graded = TOLL_FIRST, False
        if self.best.excess > 0:
            toll, graded = self.random.choice(TOLLS), True
        if (toll, graded) != (state.toll, state.graded):
            state.set_toll(toll, graded=graded)

    # --- problems too large to look at whole ----------------------------------------------------

    def _large(self, stop: Stop, observer: Observer | None) -> None:
        """Descends over all pieces, then renews a few at a time; routes now and then."""
        renewal = Renewal(self.state, self.random)
        better_at = 0
        while not self.ends(stop):
            self.count("descend" if renewal.queue else "renew")
            if renewal.step():
                better_at = self.steps
            self.steps += 1
            self.tell(observer)
            due = self.steps % SETTLE_EVERY_STEPS == 0 and better_at > self.improved_at
            if renewal.stuck() and self.best.excess == 0:
                now = self.state.hosts
                renewal.apply([(p, h) for p, h in enumerate(self.best.hosts) if now[p] != h])
            if due or (self.best.excess > 0 and not self.steps % self.model.pieces):
                self._settle()
        self._settle()
        self._polish()

    def _polish(self) -> None:
        """Improves the trees of the best plan, which a search of many brokers leaves alone."""
        if self.best.excess > 0:
            return
        metric = self.model.metrics[0][0] if self.model.metrics[0] else None
        for stream in carried(self.model.layout, self.best.hosts):
            arcs = self.best.trees[stream.name]
            if metric is not None and 2 < len(stream.targets) <= POLISHED_ENDS_MAX:
                better = metric.improved(stream.source, stream.targets, list(arcs))
                self.best.flow -= stream.rate * (len(arcs) - len(better))
                self.best.trees[stream.name] = tuple(better)

    def _settle(self) -> None:
        """Counts anew, and routes."""
        self.state.recount()
        self.consider(thorough=True)

    def _limited(self, state: TrafficState, stop: Stop, observer: Observer | None) -> None:
        """As `_large`, where links are limited too: relieves limits first, then does the same."""
        relief = Relief(state, self.random)
        flow_before = float("inf")
        while not self.ends(stop):
            if not relief.queue and state.flow < flow_before * (1 - DESCENDED_AGAIN):
                flow_before = state.flow
                relief.descend_again()
            self.count("relieve" if relief.excess else "descend" if relief.queue else "renew")
            relief.step()
            self.steps += 1
            due = relief.excess == 0 < self.best.excess or self.steps % KEPT_EVERY_STEPS == 0
            if due and self.best.beaten(relief.excess, state.flow):
                self.consider()
            self.tell(observer)
        if self.best.beaten(relief.excess, state.flow):
            self.consider()


def as_plan(model: Model, best: Best) -> Plan:
    """The best as a plan; a route is told only where it differs from the canonical one.

    On many brokers all are told: to work out the canonical ones takes longer than to read them.
    """
    names = model.network.names
    if model.nodes > CANONICAL_NODES_MAX:
        told = {n: tuple((names[a], names[b]) for a, b in arcs) for n, arcs in best.trees.items()}
        return Plan(best.hosts, told)
    sources = {s.name: s for s in carried(model.layout, best.hosts)}
    routes = {}
    for name, arcs in best.trees.items():
        stream = sources[name]
        usual, lost = model.network.canonical(stream.source, stream.targets)
        if not lost and sorted(usual) != sorted(arcs):
            routes[name] = tuple((names[a], names[b]) for a, b in arcs)
    return Plan(best.hosts, routes)

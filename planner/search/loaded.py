"""A placement with the trees of its streams, where links and what brokers send are limited.

Owns the trees and the loads on what is limited. Must not know which moves a search wants.
Invariant: `load` is what the trees put on each limit, and `flow` is the hops of all trees by their
rates and, for what is over limits, the toll besides.

A stream sees a link as blocked where the others leave no room for it; it may pass for a toll, so
that a search is led away from what is over its limit without being walled in.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from planner.layout import partial_name
from planner.network import Arc
from planner.search.metric import FAR, Metric, Vector
from planner.search.model import Model
from planner.search.state import State

TOLL_FIRST = 2.0  # hops
PARTS = np.array([0.0, 0.02, 0.1, 0.4, 1.0])  # of a stream, that are told apart
FULL = np.uint8(len(PARTS) - 1)
METRICS_MAX = 300  # kept between steps; each holds a matrix of distances and what was asked of it
LAID_AGAIN_MAX = 2  # streams a step
ROOM = 1e-9


class LoadedState(State):
    """Where each piece is, over which links each stream goes, and what is over limits."""

    def __init__(
        self, model: Model, hosts: Sequence[int], toll: float = TOLL_FIRST, *, walled: bool = False
    ) -> None:
        self.toll = toll
        self.graded = False
        """Whether a stream is charged for what of it is over a limit, or for all of it."""
        rates = sum(model.rates) + sum(model.partial_rates)
        self.wall = float(FAR * rates) if walled else 0.0
        """What it costs that anything is over its limit at all."""
        limits: list[float] = []
        self.limits_of: dict[Arc, list[int]] = {}
        for arc, limit in sorted(model.network.limits.items()):
            self.limits_of.setdefault(arc, []).append(len(limits))
            limits.append(float(limit))
        for node, out in enumerate(model.egress):
            if out is not None:
                for other in model.network.neighbours[node]:
                    self.limits_of.setdefault((node, other), []).append(len(limits))
                limits.append(float(out))
        self.limit: Vector = np.array(limits)
        self.arcs_of: list[list[Arc]] = [[] for _ in limits]
        for arc, numbers in self.limits_of.items():
            for number in numbers:
                self.arcs_of[number].append(arc)
        self.room = self.limit * (1 + ROOM)
        self.all_rates: Vector = np.array([*model.rates, *model.partial_rates])
        layout = model.layout
        given = [s.rate for s in layout.streams] + [a.rate for a in layout.aggregates]
        self.real_rates: Vector = np.array(given, dtype=np.float64)
        """What each stream puts on a link: without the trifle of those that have no rate."""
        self._metrics: dict[tuple[int, bytes], Metric] = {}
        self._bases: list[Metric] = [*model.metrics[0], *model.metrics[1]]
        super().__init__(model, hosts)

    # --- counting ----------------------------------------------------------------------------

    def recount(self) -> None:
        """Lays all streams anew, the greatest rates first."""
        model = self.model
        self.work = np.bincount(
            np.array(self.hosts, dtype=np.int64), weights=model.costs, minlength=model.nodes
        ).astype(np.float64)
        count = len(self.all_rates)
        self.load: Vector = np.zeros(len(self.limit))
        self.on: Vector = np.zeros((count, len(self.limit)))
        self.trees: list[dict[int, tuple[Arc, ...]]] = [{} for _ in range(count)]
        self.hops: Vector = np.zeros(count)
        self.blocked: npt.NDArray[np.uint8] = np.zeros((0, 0), dtype=np.uint8)
        self._seen: list[Metric | None] = []
        self._lay(range(count))
        self._look()

    def _look(self) -> list[int]:
        """What is blocked for each stream now; the streams for which that changed."""
        others = self.load - np.minimum(self.on, self.real_rates[:, None])
        found = self._levels(others, self.real_rates[:, None])
        old, self.blocked = self.blocked, found
        if old.shape != found.shape:
            self._seen = [None] * len(found)
            return list(range(len(found)))
        changed = np.flatnonzero((old != found).any(axis=1)).tolist()
        for number in changed:
            self._seen[number] = None
        return list(changed)

    def _levels(self, others: Vector, rates: Vector) -> npt.NDArray[np.uint8]:
        """How much of a stream no limit has room for beside others: 0 is none; a row each."""
        if not self.graded:
            return np.asarray(others + rates > self.room, dtype=np.uint8) * FULL
        beyond = others + rates - self.limit
        with np.errstate(over="ignore"):  # to inf parts, of what has hardly a rate
            parts = beyond / np.maximum(rates, 1e-300)
        found = np.searchsorted(PARTS[1:-1], parts).astype(np.uint8) + np.uint8(1)
        return np.where(others + rates > self.room, found, np.uint8(0))

    def _lay(self, numbers: Iterable[int]) -> None:
        """Lays streams anew, one after the other, each in the room that the others leave."""
        todo = sorted(numbers, key=lambda n: (-self.all_rates[n], n))
        for number in todo:
            self._take_up(number)
        for number in todo:
            rate = self.real_rates[number]
            for source, targets in self._ends_of(number):
                metric = self._metric_by(number, self._levels(self.load, rate))
                cost, arcs = metric.tree(source, targets)
                self.trees[number][source] = arcs
                lost = cost >= FAR
                self.hops[number] += len(arcs) + (FAR * (cost // FAR) if lost else 0.0)
                self._count(number, arcs, float(rate))
        self.flow = float(self.hops @ self.all_rates) + self._fine()

    def _ends_of(self, number: int) -> list[tuple[int, tuple[int, ...]]]:
        streams = len(self.model.rates)
        if number < streams:
            source, targets = self.ends(number)
            return [(source, targets)] if targets else []
        aggregate = self.model.layout.aggregates[number - streams]
        header = self.hosts[aggregate.header]
        sources = {self.hosts[piece] for piece in aggregate.partials} - {header}
        return [(source, (header,)) for source in sorted(sources)]

    def _take_up(self, number: int) -> None:
        carried = np.flatnonzero(self.on[number])
        self.on[number] = 0.0
        self.load[carried] = self.on[:, carried].sum(axis=0)  # taken off, it would leave a trifle
        self.trees[number] = {}
        self.hops[number] = 0.0

    def _count(self, number: int, arcs: Iterable[Arc], rate: float) -> None:
        for arc in arcs:
            for limit in self.limits_of.get(arc, ()):
                self.load[limit] += rate
                self.on[number, limit] += rate

    def overload(self) -> float:
        """By how much loads are over limits, in bytes a second."""
        over = self.load > self.room
        return float((self.load - self.limit)[over].sum())

    def _fine(self) -> float:
        """What it costs that limits are broken."""
        over = self.overload()
        return self.toll * over + (self.wall if over else 0.0)

    def fits(self) -> bool:
        """Whether limits of links and of what brokers send are kept, and all targets reached."""
        return not (self.load > self.room).any() and not (self.hops >= FAR).any()

    # --- metrics -----------------------------------------------------------------------------

    def _metric_by(self, number: int, blocked: npt.NDArray[np.uint8]) -> Metric:
        base = self._bases[number]
        if not blocked.any():
            return base
        key = (id(base), blocked.tobytes())
        if (known := self._metrics.get(key)) is None:
            if len(self._metrics) >= METRICS_MAX:
                for old in list(self._metrics)[: METRICS_MAX // 2]:
                    del self._metrics[old]
            weights = dict(base.weights)
            for limit in np.flatnonzero(blocked):
                for arc in self.arcs_of[int(limit)]:
                    if arc in weights:
                        part = PARTS[blocked[limit]]
                        weights[arc] = max(weights[arc], 1.0 + self.toll * float(part))
            known = self._metrics[key] = Metric(self.model.nodes, weights, base.exact_ends)
        return known

    def metric(self, number: int) -> Metric:
        """The network as a stream sees it in what the others leave."""
        if (seen := self._seen[number]) is None:
            seen = self._seen[number] = self._metric_by(number, self.blocked[number])
        return seen

    def partial_metric(self, number: int) -> Metric:
        """The network as the partials of an aggregate see it."""
        return self.metric(len(self.model.rates) + number)

    # --- moves -------------------------------------------------------------------------------

    def apply(self, moves: Iterable[tuple[int, int]]) -> float:
        """Puts pieces elsewhere and lays their streams anew; returns the change of the flow."""
        moves = list(moves)
        model, before = self.model, self.flow
        for piece, host in moves:
            cost = model.costs[piece]
            self.work[self.hosts[piece]] -= cost
            self.work[host] += cost
            self.hosts[piece] = host
        self._lay(self.touched(moves))
        return self.flow - before

    def touched(self, moves: Iterable[tuple[int, int]]) -> list[int]:
        """The streams that some moves concern."""
        model = self.model
        found = {}
        for piece, _ in moves:
            found.update(dict.fromkeys(model.of_piece[piece]))
            if (of := model.aggregate_of[piece]) is not None:
                found[len(model.rates) + of] = None
        return list(found)

    def delta(self, moves: Sequence[tuple[int, int]]) -> float:
        """By how much these moves would change the flow: made, and all put back as it was."""
        hosts, work, flow = list(self.hosts), self.work.copy(), self.flow
        touched = self.touched(moves)
        trees = [self.trees[number] for number in touched]
        hops = [float(self.hops[number]) for number in touched]
        change = self.apply(moves)
        self.hosts, self.work = hosts, work
        self._hang(touched, trees, hops)
        self.flow = flow
        return change

    def _hang(
        self,
        numbers: Sequence[int],
        trees: Sequence[dict[int, tuple[Arc, ...]]],
        hops: Sequence[float],
    ) -> None:
        """Gives streams trees that they had before."""
        for number in numbers:
            self._take_up(number)
        for number, kept, far in zip(numbers, trees, hops, strict=True):
            self.trees[number] = kept
            self.hops[number] = far
            for arcs in kept.values():
                self._count(number, arcs, float(self.real_rates[number]))

    def relax(self) -> list[int]:
        """Lays a few streams that are over limits again; the pieces whose rows are now stale."""
        over = np.flatnonzero(self.load > self.room)
        if len(over):
            users = np.flatnonzero(self.on[:, over].any(axis=1))
            for number in users[np.argsort(self.all_rates[users], kind="stable")][:LAID_AGAIN_MAX]:
                self.lay_again([int(number)], self.flow)
        stale: dict[int, None] = {}
        for number in self._look():
            stale.update(dict.fromkeys(self._pieces_of(number)))
        return list(stale)

    def lay_again(self, numbers: Sequence[int], most: float) -> bool:
        """Takes streams up and lays them in this order; all stays as it was where the flow is more.

        `most` is the flow that is still good enough; the streams must not have moved since.
        """
        before, trees = self.flow, [self.trees[number] for number in numbers]
        hops = [float(self.hops[number]) for number in numbers]
        for number in numbers:
            self._take_up(number)
        for number in numbers:
            self._lay([number])
        if self.flow <= most:
            return True
        self._hang(numbers, trees, hops)
        self.flow = before
        return False

    def least(self, number: int) -> float:
        """What a stream would cost, were the others not in its way."""
        base, rate = self._bases[number], float(self.all_rates[number])
        return rate * sum(base.tree(source, ends)[0] for source, ends in self._ends_of(number))

    def least_flow(self) -> float:
        """What all streams would cost, were none in another's way."""
        return sum(self.least(number) for number in range(len(self.all_rates)))

    def in_the_way(self, number: int) -> list[int]:
        """The streams that take room from one on the way that it would go without them."""
        ways = [self._bases[number].tree(*ends)[1] for ends in self._ends_of(number)]
        limits = {n for arcs in ways for arc in arcs for n in self.limits_of.get(arc, ())}
        rate = float(self.real_rates[number])
        full = [
            n for n in sorted(limits) if self.load[n] - self.on[number, n] + rate > self.room[n]
        ]
        users = np.flatnonzero(self.on[:, full].any(axis=1)).tolist()
        return [user for user in users if user != number]

    def snapshot(self) -> tuple[object, ...]:
        """What `put_back` needs to undo whatever is laid again meanwhile."""
        return self.load.copy(), self.on.copy(), [dict(t) for t in self.trees], self.hops.copy()

    def put_back(self, kept: tuple[object, ...], flow: float) -> None:
        """The trees and loads as they were, and the flow that they came to."""
        self.load, self.on, self.trees, self.hops = kept  # type: ignore[assignment]
        self.flow = flow

    def adopt(self, trees: Mapping[str, tuple[Arc, ...]]) -> None:
        """Takes the trees of a plan, of this placement, for its own."""
        for number in range(len(self.trees)):
            self._take_up(number)
            for source, _ in self._ends_of(number):
                self._hang_one(number, source, trees[self.name_of(number, source)])
        self.flow = float(self.hops @ self.all_rates) + self._fine()
        self._look()

    def _hang_one(self, number: int, source: int, arcs: tuple[Arc, ...]) -> None:
        self.trees[number][source] = arcs
        self.hops[number] += len(arcs)
        self._count(number, arcs, float(self.real_rates[number]))

    def prefer_default(self) -> None:
        """Lays each stream by the canonical tree where that is as short and there is room."""
        for number in range(len(self.trees)):
            for source, targets in self._ends_of(number):
                usual, lost = self.model.network.canonical(source, targets)
                arcs = self.trees[number][source]
                if lost or len(usual) > len(arcs) or set(usual) == set(arcs):
                    continue
                before, trees, hops = self.load.copy(), self.trees[number], float(self.hops[number])
                fewer = len(arcs) - len(usual)
                self._hang([number], [{**trees, source: tuple(usual)}], [hops - fewer])
                if (self.load > np.maximum(self.room, before)).any():
                    self._hang([number], [trees], [hops])
        self.flow = float(self.hops @ self.all_rates) + self._fine()

    def name_of(self, number: int, source: int) -> str:
        """A stream's name; of an aggregate's partials, that of the one at a broker."""
        layout, streams = self.model.layout, len(self.model.rates)
        if number < streams:
            return layout.streams[number].name
        task = layout.aggregates[number - streams].task
        return partial_name(task, self.model.network.names[source])

    def _pieces_of(self, number: int) -> list[int]:
        streams = len(self.model.rates)
        if number >= streams:
            aggregate = self.model.layout.aggregates[number - streams]
            return [*aggregate.partials, aggregate.header]
        stream = self.model.layout.streams[number]
        return [*stream.consumers, *([] if stream.piece is None else [stream.piece])]

    def set_toll(self, toll: float, *, graded: bool) -> None:
        """Another toll; everything is laid anew."""
        self.toll, self.graded = toll, graded
        self._metrics.clear()
        self.recount()

    def named_trees(self) -> dict[str, tuple[Arc, ...]]:
        """The trees by the streams' names."""
        return {
            self.name_of(number, source): arcs
            for number, trees in enumerate(self.trees)
            for source, arcs in trees.items()
        }

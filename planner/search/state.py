"""A placement as a search changes it: what each stream costs, and what any move would change.

Owns the placement, its flow and the work at each broker. Must not know which moves a search wants.
Invariant: after `apply`, and after undoing by applying the other way, `flow` and `work` are what
they would be counted anew.
"""

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from planner.search.metric import Metric, Vector
from planner.search.model import Model

LEAST = 1e-100  # a capacity below it is broken as one of it is, so that all sums stay finite
ROOM = 1e-9  # of a limit: sums of fractions may be this much over it


class State:
    """Where each piece is, and what that costs under the model's metrics."""

    def __init__(self, model: Model, hosts: Sequence[int]) -> None:
        self.model = model
        self.hosts = list(hosts)
        self.limits = Limits(model.capacity)
        self.recount()

    def recount(self) -> None:
        """Counts everything anew, as after a change of prices."""
        model = self.model
        self.work: Vector = np.bincount(
            np.array(self.hosts, dtype=np.int64), weights=model.costs, minlength=model.nodes
        ).astype(np.float64)
        self.costs = [self._stream_cost(number) for number in range(len(model.rates))]
        self.partial_costs = [self._partial_cost(n) for n in range(len(model.partial_rates))]
        self.flow = float(sum(self.costs) + sum(self.partial_costs))

    def metric(self, number: int) -> Metric:
        """The network as a stream sees it."""
        return self.model.metrics[0][number]

    def partial_metric(self, number: int) -> Metric:
        """The network as the partials of an aggregate see it."""
        return self.model.metrics[1][number]

    def relax(self) -> list[int]:
        """The pieces whose rows changed for other reasons than that a piece near them moved."""
        return []

    # --- what is -----------------------------------------------------------------------------

    def ends(self, number: int) -> tuple[int, tuple[int, ...]]:
        """A stream's source and its targets, ascending."""
        stream = self.model.layout.streams[number]
        hosts = self.hosts
        source = hosts[stream.piece] if stream.piece is not None else stream.origin
        assert source is not None
        found = {hosts[piece] for piece in stream.consumers}
        found.update(stream.destinations)
        found.discard(source)
        return source, tuple(sorted(found))

    def _stream_cost(self, number: int) -> float:
        source, targets = self.ends(number)
        return self.model.rates[number] * self.metric(number).cost(source, targets)

    def _partial_cost(self, number: int) -> float:
        aggregate = self.model.layout.aggregates[number]
        header = self.hosts[aggregate.header]
        distance = self.partial_metric(number).distance
        used = {self.hosts[piece] for piece in aggregate.partials}
        return self.model.partial_rates[number] * sum(
            float(distance[b, header]) for b in sorted(used)
        )

    # --- what would be -----------------------------------------------------------------------

    def row(self, group: Sequence[int], absent: Collection[int] = ()) -> Vector:
        """What the streams of some pieces cost if all of these were at a broker, for each broker.

        As if those that are absent did not exist. Exact where the metric is; else as near as adding
        one end to a tree comes.
        """
        model, hosts = self.model, self.hosts
        found = np.zeros(model.nodes)
        moved = {*group, *absent}
        numbers = dict.fromkeys(n for piece in group for n in model.of_piece[piece])
        for number in numbers:
            stream = model.layout.streams[number]
            ends = {hosts[piece] for piece in stream.consumers if piece not in moved}
            ends.update(stream.destinations)
            metric = self.metric(number)
            if stream.piece is not None and stream.piece in moved:
                if stream.piece not in absent:
                    found += model.rates[number] * metric.from_everywhere(tuple(sorted(ends)))
            else:
                source = hosts[stream.piece] if stream.piece is not None else stream.origin
                assert source is not None
                ends.discard(source)
                way = metric.to_everywhere(source, tuple(sorted(ends)))
                found += model.rates[number] * way
        touched = dict.fromkeys(model.aggregate_of[piece] for piece in group)
        for of in touched:
            if of is not None:
                found += self._partial_row(of, moved, absent)
        return found

    def _partial_row(self, number: int, moved: set[int], absent: Collection[int]) -> Vector:
        """What the partials of an aggregate would send, with some of its pieces at each broker."""
        aggregate = self.model.layout.aggregates[number]
        distance = self.partial_metric(number).distance
        rate = self.model.partial_rates[number]
        stay = sorted({self.hosts[piece] for piece in aggregate.partials if piece not in moved})
        if aggregate.header in absent:  # it will not be far from the partials that there are
            beside = distance[:, stay].min(axis=1) if stay else np.zeros(len(distance))
            return np.asarray(rate * beside, dtype=np.float64)
        if aggregate.header in moved:
            merged: Vector = rate * distance[stay].sum(axis=0)
            return merged
        header = self.hosts[aggregate.header]
        found = distance[:, header].copy()
        found[stay] = 0.0  # there is a partial already
        rest: Vector = rate * (found + distance[stay, header].sum())
        return rest

    def present(self, group: Sequence[int]) -> float:
        """What the streams of some pieces cost now: what `row` is to be compared with."""
        numbers = dict.fromkeys(n for piece in group for n in self.model.of_piece[piece])
        found = sum(self.costs[number] for number in numbers)
        for of in dict.fromkeys(self.model.aggregate_of[piece] for piece in group):
            if of is not None:
                found += self.partial_costs[of]
        return found

    def apply(self, moves: Iterable[tuple[int, int]]) -> float:
        """Puts pieces elsewhere and returns by how much the flow changed, exactly."""
        moves = list(moves)
        for piece, host in moves:
            cost = self.model.costs[piece]
            self.work[self.hosts[piece]] -= cost
            self.work[host] += cost
            self.hosts[piece] = host
        before = self.flow
        change = 0.0
        for number in dict.fromkeys(n for piece, _ in moves for n in self.model.of_piece[piece]):
            cost = self._stream_cost(number)
            change += cost - self.costs[number]
            self.costs[number] = cost
        for of in dict.fromkeys(self.model.aggregate_of[piece] for piece, _ in moves):
            if of is not None:
                cost = self._partial_cost(of)
                change += cost - self.partial_costs[of]
                self.partial_costs[of] = cost
        self.flow = before + change
        return change

    def delta(self, moves: Sequence[tuple[int, int]]) -> float:
        """By how much these moves would change the flow: made, and undone."""
        back = [(piece, self.hosts[piece]) for piece, _ in moves]
        change = self.apply(moves)
        self.apply(back)
        return change

    # --- limits of brokers -------------------------------------------------------------------

    def excess(self) -> float:
        """By how much the work exceeds capacities, each as a part of its broker's."""
        return float(self.limits.excess(self.work).sum())


class Limits:
    """The capacities of brokers, ready to tell by how much loads exceed them."""

    def __init__(self, capacity: Vector) -> None:
        finite = np.isfinite(capacity)
        self.capacity: Vector = np.where(finite, capacity, 0.0)
        scale = np.where(finite & (capacity > 0), np.maximum(capacity, LEAST), 1.0)
        self.parts: Vector = np.where(finite, 1.0 / scale, 0.0)
        self.nothing: Vector = np.where(capacity == 0, 1.0, 0.0)
        self.any_nothing = bool(self.nothing.any())

    def excess(self, work: Vector, nodes: npt.NDArray[np.int64] | None = None) -> Vector:
        """By how much each load exceeds its limit, as a part of it; as `flow.over` has it.

        The last axis of `work` is all brokers, or those that are named.
        """
        capacity, parts, nothing = self.capacity, self.parts, self.nothing
        if nodes is not None:
            capacity, parts, nothing = capacity[nodes], parts[nodes], nothing[nodes]
        beyond: Vector = (work - capacity) * parts
        beyond[beyond <= ROOM] = 0.0
        if self.any_nothing:
            beyond += nothing * (beyond > 0)
        return beyond

"""A layout as the searches read it: arrays, and which streams concern which piece.

Owns the compiled problem. Must not know a placement. Invariant: nothing here changes while a search
runs.
"""

from bisect import bisect_left
from functools import cached_property

import numpy as np
import numpy.typing as npt

from planner.layout import Layout, Role
from planner.network import Arc, Network
from planner.search.metric import Metric, Vector

EXACT_CELLS_MAX = 20_000  # up to 140 brokers, trees to six ends are exact; beyond, to fewer
CLASSES_LARGE_MAX = 4  # metrics of many brokers are large; streams of about one rate share one
ROOM = 1e-9  # of a limit: sums of fractions may be this much over it
TINY = 1e-6  # streams without a rate weigh so much of the smallest that has one: they must arrive


class Model:
    """What of a problem a search needs to know."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.network = Network(layout.problem)
        self.nodes = len(layout.problem.nodes)
        self.pieces = len(layout.pieces)
        self.costs: Vector = np.array([float(piece.cost) for piece in layout.pieces])
        limits = [node.capacity for node in layout.problem.nodes]
        self.capacity: Vector = np.array([np.inf if x is None else float(x) for x in limits])
        self.egress = [node.egress for node in layout.problem.nodes]
        self.limited = bool(self.network.limits) or any(x is not None for x in self.egress)
        self.allowed: npt.NDArray[np.bool_] = np.zeros((self.pieces, self.nodes), dtype=bool)
        for number, piece in enumerate(layout.pieces):
            self.allowed[number, list(piece.hosts)] = True
        self._streams()
        self.exact_ends = 6 if self.nodes**2 <= EXACT_CELLS_MAX else 3 if self.nodes <= 300 else 1
        self.classes_max = 1000 if self.nodes <= 300 else CLASSES_LARGE_MAX
        self.metrics = self._metrics()

    def _streams(self) -> None:
        layout = self.layout
        given = [float(s.rate) for s in layout.streams]
        given += [float(a.rate) for a in layout.aggregates]
        tiny = TINY * min((rate for rate in given if rate > 0), default=1.0)
        rates = [rate or tiny for rate in given]
        self.rates = rates[: len(layout.streams)]
        self.partial_rates = rates[len(layout.streams) :]
        self.of_piece: list[list[int]] = [[] for _ in range(self.pieces)]
        for number, stream in enumerate(layout.streams):
            ends = [*stream.consumers, *([] if stream.piece is None else [stream.piece])]
            for piece in dict.fromkeys(ends):
                self.of_piece[piece].append(number)
        self.aggregate_of: list[int | None] = [None] * self.pieces
        for number, aggregate in enumerate(layout.aggregates):
            for piece in (*aggregate.partials, aggregate.header):
                self.aggregate_of[piece] = number
        ranks = {task.id: rank for rank, task in enumerate(self.layout.problem.in_order())}
        self.rank = [ranks[piece.task] for piece in layout.pieces]
        """The place of a piece's task among all, those that feed it before it."""
        self.near: list[tuple[int, ...]] = [self._near(piece) for piece in range(self.pieces)]

    def _near(self, piece: int) -> tuple[int, ...]:
        """The pieces whose costs hang on where this one is."""
        found: dict[int, None] = {piece: None}
        for number in self.of_piece[piece]:
            stream = self.layout.streams[number]
            found.update(dict.fromkeys(stream.consumers))
            if stream.piece is not None:
                found[stream.piece] = None
        if (of := self.aggregate_of[piece]) is not None:
            aggregate = self.layout.aggregates[of]
            found.update(dict.fromkeys((*aggregate.partials, aggregate.header)))
        return tuple(found)

    def is_header(self, piece: int) -> bool:
        """Whether a piece merges partials."""
        return self.layout.pieces[piece].role is Role.HEADER

    # --- metrics ------------------------------------------------------------------------------

    def _metrics(self) -> tuple[list[Metric], list[Metric]]:
        """For each stream, and each aggregate's partials, the metric of its rate."""
        limits = {limit for limit in (*self.network.limits.values(), *self.egress) if limit}
        steps = sorted(limits)
        if len(steps) > self.classes_max:  # what is too large for a link within a class is routed
            steps = [steps[len(steps) * i // self.classes_max] for i in range(self.classes_max)]
        made: dict[int, Metric] = {}

        def of(rate: float) -> Metric:
            kind = bisect_left(steps, rate / (1 + ROOM))
            if kind not in made:
                least = steps[kind - 1] * (1 + 2 * ROOM) if kind else 0.0
                made[kind] = Metric(self.nodes, self.weights(least), self.exact_ends)
            return made[kind]

        return [of(rate) for rate in self.rates], [of(rate) for rate in self.partial_rates]

    @cached_property
    def hops(self) -> Vector:
        """Hop counts whatever is limited."""
        ways = [(a, b) for a, others in enumerate(self.network.neighbours) for b in others]
        return Metric(self.nodes, dict.fromkeys(ways, 1.0), 1).distance

    def weights(self, rate: float) -> dict[Arc, float]:
        """The links with room for a stream of that rate or just above: a hop each."""
        found: dict[Arc, float] = {}
        for a, others in enumerate(self.network.neighbours):
            out = self.egress[a]
            if out is not None and rate > out * (1 + ROOM):
                continue
            for b in others:
                limit = self.network.limits.get((a, b))
                if limit is None or rate <= limit * (1 + ROOM):
                    found[a, b] = 1.0
        return found

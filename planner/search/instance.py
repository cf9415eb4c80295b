"""A layout compiled for a search: lists by number, and which streams concern which piece.

Owns the compiled problem. Must not know a placement. Invariant: nothing here changes while a search
runs, but for answers that are kept.

A *stream* here is one of the layout's, or what the partials of an aggregate send to their header:
then each broker with a partial is a source of its own (`header` is not None).
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import frexp, gcd, inf, ldexp
from random import Random

from planner.layout import Layout
from planner.network import Arc, Network
from planner.problem import Number
from planner.search.distances import WEIGHT_BITS, wide
from planner.search.topology import KEPT_CELLS_MAX, Ends, RatedTopology

# The host of a piece that is not placed, and the origin of a stream that a piece sends.
ABSENT = -1
# Of a limit: sums of fractions may be this much over it.
ROOM = 1e-9
# Of the smallest rate: a stream without one weighs so much, since it has to arrive as well.
TINY = 1e-6
# Up to so many brokers, trees to `EXACT_ENDS` are least ones; beyond, to fewer.
EXACT_NODES_MAX = 140
EXACT_ENDS, EXACT_ENDS_MANY = 4, 2
KINDS_MAX, KINDS_MAX_MANY = 1000, 2
"""Topologies by rate; of many brokers they are large, so streams of about one rate share one."""
MANY_NODES = 300

# About so many bits has the greatest rate in units of a search: bytes a second as they are usual.
RATE_BITS = 20
# A float holds what is below two to the power of 1024, and so the sums and prices of limits.
BITS_MAX = 500

# By piece, the broker where it runs and the price of having it elsewhere.
Prices = Mapping[int, tuple[int, float]]


@dataclass(frozen=True, slots=True)
class CompiledStream:
    """A stream as a search sees it; `weight` is its rate, or a trifle where it has none."""

    rate: float
    weight: float
    origin: int
    sender: int | None
    consumers: tuple[int, ...]
    destinations: tuple[int, ...]
    header: int | None
    pieces: tuple[int, ...]
    topology: RatedTopology
    # The weight as a whole part of the greatest, for sums of lanes.
    share: int


class Instance:
    """Hold what a search needs of a problem; brokers, pieces, flows and links count from 0."""

    def __init__(
        self,
        layout: Layout,
        prices: Prices | None = None,
        limits: Mapping[Arc, float] | None = None,
        cells_max: int = KEPT_CELLS_MAX,
    ) -> None:
        self.layout = layout
        # Answers about trees that are kept at once; a broker has less room than a planner of all.
        self.cells_max = cells_max
        self.network = net = Network.of(layout.problem)
        # A link of a live network may carry more one way than the other.
        net.limits.update(limits or {})
        # Rates of 1e-20 or 1e25 would be lost in rounding, so a search has its own units: powers of
        # two, by which no number is rounded and the same limits are kept.
        rates = [float(stream.rate) for stream in layout.streams]
        rates += [float(aggregate.rate) for aggregate in layout.aggregates]
        self.power = _rate_power(rates)
        cost_power = _cost_power([float(piece.cost) for piece in layout.pieces])
        # What it costs, in flow, to have a piece elsewhere than where it runs.
        self.prices = {p: (host, ldexp(x, self.power)) for p, (host, x) in (prices or {}).items()}
        self.nodes = len(net.names)
        self.pieces = len(layout.pieces)
        self.costs = [ldexp(float(piece.cost), cost_power) for piece in layout.pieces]
        nodes = layout.problem.nodes
        self.capacity = [_limit(node.capacity, cost_power) for node in nodes]
        self.egress = [_limit(node.egress, self.power) for node in nodes]
        self.arcs: list[Arc] = [(a, b) for a, o in enumerate(net.neighbours) for b in o]
        self.numbers = {arc: number for number, arc in enumerate(self.arcs)}
        self.limits = [_limit(net.limits.get(arc), self.power) for arc in self.arcs]
        self.onward: list[list[tuple[int, int]]] = [[] for _ in nodes]
        for number, (a, b) in enumerate(self.arcs):
            self.onward[a].append((b, number))
        self.limited = any(x < inf for x in (*self.limits, *self.egress))
        self.capped = any(x < inf for x in self.capacity)
        self.hosts = [piece.hosts for piece in layout.pieces]
        self.allowed = [frozenset(piece.hosts) for piece in layout.pieces]
        self.whole = RatedTopology(net.neighbours, 1, cells_max)
        # Each broker's number as lanes.
        self.by_number = wide(range(self.nodes))
        # Whether moves look at some brokers alone, those where a piece may be cheap.
        self.many = self.nodes > MANY_NODES
        rates = [ldexp(rate, self.power) for rate in rates]
        tiny = TINY * min((rate for rate in rates if rate > 0), default=1.0)
        weights = [rate or tiny for rate in rates]
        # The weight that one part of a share stands for.
        self.part = _part(weights)
        self.flows = self._flows(rates, weights)
        self.of_piece: list[list[int]] = [[] for _ in layout.pieces]
        for number, flow in enumerate(self.flows):
            for piece in flow.pieces:
                self.of_piece[piece].append(number)
        # By piece, the streams by which it feeds a task or shard, each with that piece.
        self.fed = self._fed()
        self.feeding = [piece for piece, fed in enumerate(self.fed) if fed]
        # By piece, what it gets and sends.
        self.weights = [sum(self.flows[n].rate for n in numbers) for numbers in self.of_piece]
        mean = sum(self.weights) / max(1, self.pieces) or 1.0
        self._sums = list(accumulate(weight + mean for weight in self.weights))
        self.near = [self._near(piece) for piece in range(self.pieces)]
        self.rank = layout.ranks

    def _flows(self, rates: list[float], weights: list[float]) -> list[CompiledStream]:
        layout = self.layout
        # Origin, sender, consumers, destinations and header of each.
        ends: list[tuple[int, int | None, Ends, Ends, int | None]] = [
            (ABSENT if s.origin is None else s.origin, s.piece, s.consumers, s.destinations, None)
            for s in layout.streams
        ]
        ends += [(ABSENT, None, each.partials, (), each.header) for each in layout.aggregates]
        flows = []
        for rate, weight, topology, (origin, sender, consumers, destinations, header) in zip(
            rates, weights, self._topologies(rates), ends, strict=True
        ):
            pieces = dict.fromkeys(
                piece for piece in (*consumers, sender, header) if piece is not None
            )
            flows.append(
                CompiledStream(
                    rate, weight, origin, sender, consumers, destinations, header,
                    tuple(pieces), topology, max(1, round(weight / self.part)),
                )
            )  # fmt: skip
        return flows

    def _topologies(self, rates: list[float]) -> list[RatedTopology]:
        """Return for each rate the links that have room for it; rates between two limits share."""
        kinds_max = KINDS_MAX_MANY if self.many else KINDS_MAX
        steps = sorted({x for x in (*self.limits, *self.egress) if 0 < x < inf})
        if len(steps) > kinds_max:  # what has no room within a kind is found out when it is laid
            steps = [steps[len(steps) * i // kinds_max] for i in range(kinds_max)]
        exact = EXACT_ENDS if self.nodes <= EXACT_NODES_MAX else 1 if self.many else EXACT_ENDS_MANY
        made: dict[int, RatedTopology] = {}
        topologies = []
        for rate in rates:
            kind = bisect_left(steps, rate / (1 + ROOM))
            if kind not in made:
                least = steps[kind - 1] * (1 + 2 * ROOM) if kind else 0.0
                made[kind] = self._topology_for(least, exact)
            topologies.append(made[kind])
        return topologies

    def _topology_for(self, rate: float, exact: int) -> RatedTopology:
        arcs = zip(self.limits, self.arcs, strict=True)
        room = [min(limit, self.egress[a]) * (1 + ROOM) for limit, (a, _) in arcs]
        onward = [[b for b, arc in others if rate <= room[arc]] for others in self.onward]
        if onward == self.whole.onward and exact == self.whole.exact_ends:
            return self.whole
        return RatedTopology(onward, exact, self.cells_max)

    def _fed(self) -> list[list[tuple[int, int]]]:
        fed: list[list[tuple[int, int]]] = [[] for _ in range(self.pieces)]
        for number, flow in enumerate(self.flows):
            if flow.sender is not None:
                fed[flow.sender] = [(number, p) for p in flow.consumers if p != flow.sender]
        return fed

    def _near(self, piece: int) -> tuple[int, ...]:
        """Return the pieces whose costs hang on where `piece` is, itself first."""
        others = (other for n in self.of_piece[piece] for other in self.flows[n].pieces)
        return tuple(dict.fromkeys((piece, *others)))

    def given(self, flow: float) -> float:
        """Return a flow in the units of the problem."""
        return ldexp(flow, -self.power)

    def draw(self, random: Random) -> int:
        """Return a piece by chance; among many, half of it by what the piece gets and sends."""
        if not self.many:
            return random.randrange(self.pieces)
        return random.choices(range(self.pieces), cum_weights=self._sums)[0]


def _bits(number: float) -> int:
    return frexp(number)[1]


def _rate_power(rates: Iterable[float]) -> int:
    greatest = max(rates, default=0.0)
    return RATE_BITS - _bits(greatest) if greatest and not 1e-3 <= greatest <= 1e15 else 0


def _cost_power(costs: Iterable[float]) -> int:
    positive = [cost for cost in costs if cost]
    if not positive or 1e-3 <= min(positive) <= 1e9:
        return 0
    return min(1 - _bits(min(positive)), BITS_MAX - _bits(max(positive)))


def _limit(limit: Number | None, power: int) -> float:
    """Return a limit in other units; infinite where nothing comes to so much."""
    return inf if limit is None or _bits(limit) + power > BITS_MAX else ldexp(limit, power)


def _part(weights: Iterable[float]) -> float:
    """Return the part of which all weights are multiples where that can be; else the least one.

    The greatest weight has at most WEIGHT_BITS bits of it.
    """
    counted = list(weights)
    greatest, parts_max = max(counted, default=1.0), (1 << WEIGHT_BITS) - 1
    # What has no rate weighs less than any part; it counts for one.
    whole = [int(weight) for weight in counted if weight.is_integer()]
    divisor = gcd(*whole)
    if divisor and all(weight < 1 for weight in counted if not weight.is_integer()):
        # Powers of two of the divisor divide all rates as well, and leave room for what is less.
        halvings = int(parts_max * divisor // int(greatest)).bit_length() - 1
        if halvings >= 0:
            return divisor / (1 << halvings)
    return greatest / parts_max

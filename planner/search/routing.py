"""Routes for all streams of a placement, within the limits of links and of what brokers send.

Owns the trees that streams take. Must not change a placement. Invariant: each tree leads from its
stream's source to all targets that can be reached at all, and has no link that leads to none.

Where limits are broken, streams are taken up and laid again one at a time, by ways that grow dearer
where too many want to pass (after McMurchie and Ebeling's PathFinder, 1995).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from planner.flow import MISSED, over
from planner.layout import Carried, carried
from planner.network import Arc
from planner.search.branching import branching
from planner.search.metric import Metric
from planner.search.model import Model

ROUNDS_MAX, ROUNDS_FEW = 24, 8
ROUNDS_LEAST = 2  # where many placements are looked at, and most come to nothing
TOLL_FIRST = 0.5  # hops; what a link over its limit costs more, in the first round
TOLL_GROWTH = 1.5
HARD_TOLL = 1e6


@dataclass
class Routed:
    """Trees by stream, the flow over them, and by how much limits are broken."""

    trees: dict[str, tuple[Arc, ...]]
    flow: float
    excess: float


@dataclass
class _Load:
    """What goes over each link, and the limits."""

    model: Model
    on: dict[Arc, float] = field(default_factory=dict)
    out: list[float] = field(default_factory=list)
    streams: dict[Arc, int] = field(default_factory=dict)
    """How many are on each link."""
    sent: list[int] = field(default_factory=list)
    """How often each broker sends one."""

    def __post_init__(self) -> None:
        self.out = [0.0] * self.model.nodes
        self.sent = [0] * self.model.nodes

    def add(self, arcs: Iterable[Arc], rate: float) -> None:
        """Puts a stream on links."""
        for arc in arcs:
            self.streams[arc] = self.streams.get(arc, 0) + 1
            self.sent[arc[0]] += 1
            self.on[arc] = self.on.get(arc, 0.0) + rate
            self.out[arc[0]] += rate

    def remove(self, arcs: Iterable[Arc], rate: float) -> None:
        """Takes a stream off; where none is left there is no load, whatever sums came to."""
        for arc in arcs:
            self.streams[arc] -= 1
            self.sent[arc[0]] -= 1
            self.on[arc] = self.on[arc] - rate if self.streams[arc] else 0.0
            self.out[arc[0]] = self.out[arc[0]] - rate if self.sent[arc[0]] else 0.0

    def beyond(self, arc: Arc, rate: float, sent: float = 0.0) -> float:
        """By how much limits at a link would be exceeded with so much more on it.

        `sent`: what the broker at its beginning sends besides.
        """
        found = 0.0
        if (limit := self.model.network.limits.get(arc)) is not None:
            found = over(self.on.get(arc, 0.0) + rate, limit)
        if (limit := self.model.egress[arc[0]]) is not None:
            found += over(self.out[arc[0]] + rate + sent, limit)
        return found

    def broken(self) -> list[Arc]:
        """The links over their limit, or out of brokers that send too much."""
        return [arc for arc, load in sorted(self.on.items()) if load > 0 and self.beyond(arc, 0)]

    def excess(self) -> float:
        """By how much limits are broken together."""
        links = sum(
            over(self.on.get(arc, 0.0), limit) for arc, limit in self.model.network.limits.items()
        )
        out = zip(self.out, self.model.egress, strict=True)
        return links + sum(over(load, limit) for load, limit in out if limit is not None)


def _metrics(model: Model, streams: Sequence[Carried]) -> list[Metric]:
    metrics = [*model.metrics[0], *model.metrics[1]]
    return [metrics[stream.number] for stream in streams]


def route(model: Model, hosts: Sequence[int], rounds: int = ROUNDS_MAX) -> Routed:
    """Trees for all streams of a placement, laid again in so many rounds where limits break."""
    streams = carried(model.layout, hosts)
    metrics = _metrics(model, streams)
    trees = [
        list(metric.tree(stream.source, stream.targets)[1])
        for stream, metric in zip(streams, metrics, strict=True)
    ]
    load = _Load(model)
    for stream, arcs in zip(streams, trees, strict=True):
        load.add(arcs, stream.rate)
    if model.limited:
        _force(model, streams, trees, load)
    if model.limited and load.broken():
        before = [tuple(arcs) for arcs in trees]
        _negotiate(model, streams, trees, load, rounds)
        again = [i for i, arcs in enumerate(trees) if tuple(arcs) != before[i]]
        _shorten(model, streams, trees, load, again)
    lost = sum(len(_lost(s, t)) for s, t in zip(streams, trees, strict=True))
    flow = sum(s.rate * len(t) for s, t in zip(streams, trees, strict=True))
    named = {s.name: tuple(sorted(t)) for s, t in zip(streams, trees, strict=True)}
    excess = (load.excess() if model.limited else 0.0) + MISSED * lost
    return Routed(named, flow, excess)


def _force(model: Model, streams: Sequence[Carried], trees: list[list[Arc]], load: _Load) -> None:
    """Lays what no link has room for over links that have none."""
    for index, stream in enumerate(streams):
        if _lost(stream, trees[index]):
            load.remove(trees[index], stream.rate)
            trees[index] = _lay(model, stream, load, TOLL_FIRST, {})
            load.add(trees[index], stream.rate)


def _lost(stream: Carried, arcs: Sequence[Arc]) -> list[int]:
    got = {b for _, b in arcs}
    return [target for target in stream.targets if target not in got]


def _negotiate(
    model: Model,
    streams: Sequence[Carried],
    trees: list[list[Arc]],
    load: _Load,
    rounds: int,
) -> None:
    """Lays streams that pass where limits are broken again, until none are or rounds are over."""
    memory: dict[Arc, float] = {}
    toll = TOLL_FIRST
    best = (load.excess(), [list(arcs) for arcs in trees])
    order = sorted(range(len(streams)), key=lambda i: (streams[i].rate, streams[i].name))
    for _ in range(rounds):
        for arc in load.broken():
            memory[arc] = memory.get(arc, 0.0) + 0.3 * min(load.beyond(arc, 0), 1.0) + 0.1
        for index in order:
            arcs, stream = trees[index], streams[index]
            if not any(load.beyond(arc, 0) for arc in arcs):
                continue
            load.remove(arcs, stream.rate)
            trees[index] = _lay(model, stream, load, toll, memory)
            load.add(trees[index], stream.rate)
        excess = load.excess()
        if excess < best[0]:
            best = (excess, [list(arcs) for arcs in trees])
        if not excess:
            return
        toll *= TOLL_GROWTH
    for index, stream in enumerate(streams):
        load.remove(trees[index], stream.rate)
        trees[index] = best[1][index]
        load.add(trees[index], stream.rate)


def _shorten(
    model: Model,
    streams: Sequence[Carried],
    trees: list[list[Arc]],
    load: _Load,
    numbers: Sequence[int],
) -> None:
    """Lays some streams again within the room that the others leave, where that is shorter."""
    for index in sorted(numbers, key=lambda i: (-streams[i].rate, streams[i].name)):
        stream, arcs = streams[index], trees[index]
        if len(arcs) <= len(stream.targets):
            continue
        before = sum(load.beyond(arc, 0) for arc in arcs)
        load.remove(arcs, stream.rate)
        new = _lay(model, stream, load, HARD_TOLL, {})
        worse = sum(load.beyond(arc, stream.rate) for arc in new) > before
        if (
            len(new) < len(arcs)
            and not worse
            and len(_lost(stream, new)) <= len(_lost(stream, arcs))
        ):
            trees[index] = new
        load.add(trees[index], stream.rate)


def _lay(
    model: Model, stream: Carried, load: _Load, toll: float, memory: dict[Arc, float]
) -> list[Arc]:
    """A tree, each link dearer by what it is over limits."""

    def free(arc: Arc) -> float:
        return 1.0 + memory.get(arc, 0.0)

    known: dict[tuple[Arc, int], float] = {}  # a tree asks for most links again and again

    def cost(arc: Arc, branches: int) -> float:
        if (found := known.get((arc, branches))) is None:
            beyond = load.beyond(arc, stream.rate, stream.rate * branches)
            found = free(arc) + (toll * (1 + beyond) if beyond else 0.0)
            known[arc, branches] = found
        return found

    return branching(model, stream.source, stream.targets, cost, free)

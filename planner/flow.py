"""What a plan costs, and whether the network bears it.

Owns the flow and the limits. Must not know how a plan was found. Invariant: every stream is counted
once on each directed link that carries it, however many share it, and never within a broker.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from planner.layout import Carried, Layout, carried
from planner.network import Arc, Network
from planner.plan import Plan
from planner.problem import Number, Problem

MISSED = 1000.0
ROOM_RELATIVE = 1e-9  # sums of fractions may be this much over a limit that they meet


@dataclass(frozen=True, slots=True)
class Violation:
    """A limit that a plan breaks; `excess` is by how much, as a part of the limit.

    `kind` is capacity, egress, link, host (a broker that the task must not run at) or unreached (a
    broker that a stream does not get to). The last two have no parts; each counts as MISSED, so
    that no overload is spared by not doing what is wanted.
    """

    kind: str
    where: str
    excess: float
    sentence: str


@dataclass(frozen=True)
class Evaluation:
    """Report what a plan comes to."""

    flow: Number
    violations: tuple[Violation, ...]
    streams: Mapping[str, tuple[Arc, ...]]
    """The directed links that carry each stream; streams that stay at one broker are left out."""
    work: tuple[Number, ...]
    """The cost at each broker."""
    loads: Mapping[Arc, Number]
    """What each directed link carries."""

    @property
    def feasible(self) -> bool:
        """Tell whether no limit is broken."""
        return not self.violations

    @property
    def excess(self) -> float:
        """By how much limits are broken together, each as a part of itself (the paper's vv)."""
        return math.fsum(violation.excess for violation in self.violations)


def total(numbers: Iterable[Number]) -> Number:
    """The sum, the same in any order, whole where it is whole; whole numbers are not rounded."""
    parts = list(numbers)
    if all(isinstance(part, int) for part in parts):
        return sum(parts)
    exact = math.fsum(parts)
    return int(exact) if exact.is_integer() else exact


def over(load: Number, limit: Number) -> float:
    """By how much a load exceeds a limit, as a part of the limit; 0 where it does not.

    A limit of 0 has no parts: what exceeds it counts as once the limit and what it is, so that less
    is still better.
    """
    if load <= limit * (1 + ROOM_RELATIVE):
        return 0.0
    return (load - limit) / limit if limit > 0 else 1.0 + load


def evaluate(layout: Layout, plan: Plan, network: Network | None = None) -> Evaluation:
    """The flow of a plan and the limits that it breaks."""
    net = network or Network.of(layout.problem)
    violations: list[Violation] = []
    streams: dict[str, tuple[Arc, ...]] = {}
    parts: dict[Arc, list[Number]] = {}
    flows: list[Number] = []
    for stream in carried(layout, plan.hosts, plan.routes):
        arcs, lost = _way(stream, plan, net)
        streams[stream.name] = tuple(arcs)
        flows += [stream.rate] * len(arcs)
        for arc in arcs:
            parts.setdefault(arc, []).append(stream.rate)
        for target in lost:
            where = net.names[target]
            sentence = f"{stream.name} does not get from {net.names[stream.source]} to {where}"
            violations.append(Violation("unreached", where, MISSED, sentence))
    loads = {arc: total(rates) for arc, rates in sorted(parts.items())}
    work = _work(layout, plan.hosts)
    violations += _misplaced(layout, plan.hosts, net.names)
    violations += _overloads(layout.problem, net, work, loads)
    return Evaluation(total(flows), tuple(violations), streams, work, loads)


def _way(stream: Carried, plan: Plan, net: Network) -> tuple[list[Arc], list[int]]:
    """The links of a stream, and the targets that they do not lead to."""
    explicit = plan.routes.get(stream.name)
    if explicit is None:
        return net.canonical(stream.source, stream.targets)
    arcs = [(net.numbers[a], net.numbers[b]) for a, b in explicit]
    onward: dict[int, list[int]] = {}
    for a, b in arcs:
        onward.setdefault(a, []).append(b)
    reached = [stream.source]
    met = {stream.source}
    for node in reached:
        for other in onward.get(node, ()):
            if other not in met:
                met.add(other)
                reached.append(other)
    return list(dict.fromkeys(arcs)), [target for target in stream.targets if target not in met]


def _work(layout: Layout, hosts: Sequence[int]) -> tuple[Number, ...]:
    parts: list[list[Number]] = [[] for _ in layout.problem.nodes]
    for piece, host in zip(layout.pieces, hosts, strict=True):
        parts[host].append(piece.cost)
    return tuple(total(costs) for costs in parts)


def _misplaced(layout: Layout, hosts: Sequence[int], names: Sequence[str]) -> list[Violation]:
    return [
        Violation("host", names[host], MISSED, f"{piece} must not run at {names[host]}")
        for piece, host in zip(layout.pieces, hosts, strict=True)
        if len(piece.hosts) < len(names) and host not in piece.hosts
    ]


def _overloads(
    problem: Problem, net: Network, work: Sequence[Number], loads: Mapping[Arc, Number]
) -> list[Violation]:
    sent: dict[int, list[Number]] = {}
    for (a, _), load in loads.items():
        sent.setdefault(a, []).append(load)
    judged: list[tuple[str, str, Number, Number | None, str]] = []
    for number, node in enumerate(problem.nodes):
        judged.append(("capacity", node.id, work[number], node.capacity, "runs"))
        judged.append(("egress", node.id, total(sent.get(number, ())), node.egress, "sends"))
    for (a, b), load in loads.items():
        where = f"{net.names[a]}->{net.names[b]}"
        judged.append(("link", where, load, net.limits.get((a, b)), "carries"))
    return [
        Violation(kind, where, excess, f"{where} {verb} {load:g} of at most {limit:g}")
        for kind, where, load, limit, verb in judged
        if limit is not None and (excess := over(load, limit))
    ]

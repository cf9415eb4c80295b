"""The overlay tree: ways between brokers, and who is in whose vicinity.

Owns hops, next hops and link limits on an acyclic network. Must not know streams or plans.
Invariant: there is one way between any two brokers that stand in the same tree; brokers are
numbered as in the problem, and a broker that is gone stands in no tree.
"""

from collections.abc import Iterable, Mapping

from planner.network import Arc, Network
from planner.problem import Link, Number, Problem
from planner.rounds.units import scaled


class Tree:
    """Neighbours in ascending order, and what each direction of a link carries at most."""

    def __init__(
        self, count: int, links: Iterable[tuple[int, int]], limits: Mapping[Arc, int]
    ) -> None:
        self.neighbours: list[list[int]] = [[] for _ in range(count)]
        for a, b in links:
            self.neighbours[a].append(b)
            self.neighbours[b].append(a)
        for ends in self.neighbours:
            ends.sort()
        self.limits = dict(limits)
        self._toward: dict[int, tuple[dict[int, int], dict[int, int]]] = {}

    def hops(self, a: int) -> dict[int, int]:
        """Count the hops from `a` to each broker that can be reached, the nearest first."""
        return self._look(a)[0]

    def next_hop(self, a: int, to: int) -> int | None:
        """The neighbour of `a` on the way to `to`; None where there is no way."""
        return self._look(to)[1].get(a)

    def way(self, a: int, b: int) -> list[int]:
        """The brokers from `a` to `b`, both included."""
        nearer = self._look(b)[1]
        found = [a]
        while found[-1] != b:
            found.append(nearer[found[-1]])
        return found

    def within(self, a: int, radius: int) -> list[int]:
        """The vicinity of `a`, itself first, nearer ones before those farther away."""
        return [node for node, hops in self.hops(a).items() if hops <= radius]

    def overseen(self, a: int, radius: int, others: int) -> bool:
        """Tell whether another sees all that `a` sees, and sees more or is ahead in rank.

        `radius` is how far `a` sees, `others` how far the others do.
        """
        own = self.within(a, radius)
        for other in own[1:]:
            there = self.hops(other)
            if all(there[one] <= others for one in own) and (
                other < a or len(self.within(other, others)) > len(own)
            ):
                return True
        return False

    def _look(self, a: int) -> tuple[dict[int, int], dict[int, int]]:
        if (found := self._toward.get(a)) is None:
            hops, nearer = {a: 0}, {}
            reached = [a]
            for node in reached:
                for other in self.neighbours[node]:
                    if other not in hops:
                        hops[other] = hops[node] + 1
                        nearer[other] = node
                        reached.append(other)
            found = self._toward[a] = hops, nearer
        return found


def overlay(problem: Problem, gone: Iterable[int] = (), cut: Iterable[Arc] = ()) -> Tree:
    """The tree of shortest ways from the most central broker of each part of the network.

    Left out are the brokers `gone` and the links `cut`. The most central is the one with the fewest
    hops to all others, the first of these.
    """
    net = Network(problem)
    away = set(gone)
    lost = {*cut, *((b, a) for a, b in cut)}
    names = net.numbers
    links = [
        (names[link.a], names[link.b])
        for link in problem.links
        if (names[link.a], names[link.b]) not in lost and not away & {names[link.a], names[link.b]}
    ]
    limits = {arc: scaled(limit) for arc, limit in net.limits.items()}
    graph = Tree(len(net.names), links, limits)
    kept: list[tuple[int, int]] = []
    done = set(away)
    for node in range(len(net.names)):
        if node in done:
            continue
        part = list(graph.hops(node))
        done.update(part)
        center = min(part, key=lambda one: (sum(graph.hops(one).values()), one))
        hops = graph.hops(center)
        kept += [
            (next(o for o in graph.neighbours[n] if hops[o] < hops[n]), n)
            for n in sorted(part)
            if n != center
        ]
    return Tree(len(net.names), kept, limits)


def on_tree(problem: Problem, tree: Tree) -> Problem:
    """The problem with no other links than those of a tree: what a live coordinator plans."""
    kept = []
    for link in problem.links:
        a, b = (
            next(i for i, n in enumerate(problem.nodes) if n.id == end) for end in (link.a, link.b)
        )
        if b in tree.neighbours[a]:
            kept.append(Link(link.a, link.b, link.capacity))
    return Problem(
        problem.nodes, tuple(kept), problem.contents, problem.tasks, problem.name, problem.server
    )


def whole(value: Number | None) -> int | None:
    """A limit in whole units; None stays unlimited."""
    return None if value is None else scaled(value)

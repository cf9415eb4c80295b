"""Brokers and links as numbers: neighbours, hop counts, canonical routes.

Owns the graph of a problem. Must not know tasks or streams. Invariant: neighbours stand in the
order of the problem's brokers, so that the canonical tree from a broker is one and the same for all
who compute it.
"""

from collections.abc import Iterable

from planner.problem import Number, Problem

Arc = tuple[int, int]
"""A directed link."""


class Network:
    """The graph of a problem. Brokers are numbered in the problem's order."""

    def __init__(self, problem: Problem) -> None:
        self.names = tuple(node.id for node in problem.nodes)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.neighbours: list[list[int]] = [[] for _ in self.names]
        self.limits: dict[Arc, Number] = {}
        """What a link carries at most in that direction, where that is limited."""
        for link in problem.links:
            a, b = self.numbers[link.a], self.numbers[link.b]
            self.neighbours[a].append(b)
            self.neighbours[b].append(a)
            if link.capacity is not None:
                self.limits[a, b] = self.limits[b, a] = link.capacity
        for ends in self.neighbours:
            ends.sort()
        self._trees: dict[int, list[int]] = {}

    def hops_from(self, source: int) -> list[int]:
        """The hop count to each broker; -1 where there is no way."""
        hops = [-1] * len(self.names)
        hops[source] = 0
        reached = [source]
        for node in reached:
            for other in self.neighbours[node]:
                if hops[other] < 0:
                    hops[other] = hops[node] + 1
                    reached.append(other)
        return hops

    def tree_from(self, source: int) -> list[int]:
        """The canonical tree: each broker's parent, the first neighbour that is one hop nearer.

        The source is its own parent; -1 where there is no way.
        """
        if (tree := self._trees.get(source)) is None:
            hops = self.hops_from(source)
            tree = [
                next((o for o in ends if 0 <= hops[o] < hops[node]), -1)
                for node, ends in enumerate(self.neighbours)
            ]
            tree[source] = source
            self._trees[source] = tree
        return tree

    def canonical(self, source: int, targets: Iterable[int]) -> tuple[list[Arc], list[int]]:
        """The links from a broker to others by its canonical tree, and whom they do not reach."""
        tree = self.tree_from(source)
        arcs: list[Arc] = []
        met, lost = {source}, []
        for target in targets:
            if tree[target] < 0:
                lost.append(target)
                continue
            node = target
            while node not in met:
                met.add(node)
                arcs.append((tree[node], node))
                node = tree[node]
        return arcs, lost

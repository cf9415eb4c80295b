"""Brokers and links as a graph: hop counts, next hops, canonical routes, and vicinities.

Owns the graph of a network, which is one of networkx. Must not know tasks or streams. Invariant:
neighbours stand in the order of the brokers' numbers, so that the canonical tree from a broker is
one and the same for all who compute it; where the network is a tree, it is that tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from planner.problem import Number, Problem

if TYPE_CHECKING:
    import networkx as nx

Arc = tuple[int, int]
"""A directed link."""


class Network:
    """Brokers, numbered in the order of `names`, and their links; a part may have no way out."""

    def __init__(
        self, names: Sequence[str], links: Iterable[Arc], limits: Mapping[Arc, Number] | None = None
    ) -> None:
        # Loaded with the first network: a broker without links does without its 25 MB.
        import networkx as nx

        self.names = tuple(names)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.graph: nx.Graph[int] = nx.Graph()
        self.graph.add_nodes_from(range(len(self.names)))
        self.graph.add_edges_from(sorted((min(arc), max(arc)) for arc in links))
        # Links were added in their order, so each broker's neighbours ascend.
        self.neighbours = [list(self.graph.adj[node]) for node in self.graph]
        self.limits = dict(limits or {})
        """What a link carries at most in that direction, where that is limited."""
        self._hops: dict[int, dict[int, int]] = {}
        self._trees: dict[int, list[int]] = {}

    @classmethod
    def of(cls, problem: Problem) -> Network:
        """Return the network of a problem, its limits as they are given."""
        numbers = {node.id: number for number, node in enumerate(problem.nodes)}
        limits: dict[Arc, Number] = {}
        for link in problem.links:
            if link.capacity is not None:
                arc = numbers[link.a], numbers[link.b]
                limits[arc] = limits[arc[::-1]] = link.capacity
        links = [(numbers[link.a], numbers[link.b]) for link in problem.links]
        return cls(list(numbers), links, limits)

    def hops(self, source: int) -> dict[int, int]:
        """Return the hop count to each broker that can be reached, the nearest first."""
        if (hops := self._hops.get(source)) is None:
            hops = self._hops[source] = self._counted(source)
        return hops

    def tree_from(self, source: int) -> list[int]:
        """Return each broker's parent in the canonical tree: the first neighbour one hop nearer.

        The source is its own parent; -1 where there is no way.
        """
        if (tree := self._trees.get(source)) is None:
            hops = self._counted(source)
            tree = [-1] * len(self.names)
            for node, away in hops.items():
                ends = self.neighbours[node]
                tree[node] = next((o for o in ends if hops[o] < away), source)
            self._trees[source] = tree
        return tree

    def _counted(self, source: int) -> dict[int, int]:
        import networkx as nx

        return nx.single_source_shortest_path_length(self.graph, source)

    def next_hop(self, node: int, to: int) -> int | None:
        """Return the neighbour of `node` on the way to `to`; None where there is no way."""
        parent = self.tree_from(to)[node]
        return None if node == to or parent < 0 else parent

    def path(self, a: int, b: int) -> list[int]:
        """Return the brokers from `a` to `b`, both included; there has to be a way."""
        tree, path = self.tree_from(b), [a]
        while path[-1] != b:
            path.append(tree[path[-1]])
        return path

    def canonical(self, source: int, targets: Iterable[int]) -> tuple[list[Arc], list[int]]:
        """Return the links from a broker to others by its canonical tree, and whom they miss."""
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

    # --- vicinities -----------------------------------------------------------------------------

    def within(self, center: int, radius: int) -> list[int]:
        """Return the vicinity of `center`, itself first, nearer brokers before farther ones."""
        return [node for node, hops in self.hops(center).items() if hops <= radius]

    def overseen(self, center: int, radius: int, others: int) -> bool:
        """Tell whether another sees all that `center` sees, and sees more or is ahead in rank.

        `radius` is how far `center` sees, `others` how far the others do.
        """
        own = self.within(center, radius)
        for other in own[1:]:
            hops = self.hops(other)
            if all(hops[node] <= others for node in own) and (
                other < center or len(self.within(other, others)) > len(own)
            ):
                return True
        return False

"""The overlay tree: of all links those on which messages travel.

Owns its choice and the ways on it. Must not know how links became known. Invariant: the same links
give the same tree everywhere, whatever their order; and a link that goes or comes changes one edge.

The tree is the minimum spanning tree of the links ordered by cost, then by the two names (Kruskal,
On the shortest spanning subtree of a graph, 1956): as no two links are equal in that order there is
exactly one, and by the exchange property losing a link that is not in it changes nothing, and one
that is in it replaces that edge alone. A tree of shortest paths would be flatter and would move
more when something fails, and each edge that moves is paid for by saying and offering all anew.

Links are a graph of networkx, which is imported with the first of them: its 25 MB are for brokers
that have links.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import networkx as nx


class Edge(Struct, frozen=True, order=True):
    """A link, ordered as the tree chooses; the name `low` sorts before `high`."""

    cost: int
    low: str
    high: str


def graph_of(edges: Iterable[Edge]) -> nx.Graph[str]:
    """The graph of links: each has its `edge`, and as `weight` its place in their order."""
    import networkx as nx

    graph: nx.Graph[str] = nx.Graph()
    for place, edge in enumerate(sorted(edges)):
        graph.add_edge(edge.low, edge.high, weight=place, edge=edge)
    return graph


class Tree:
    """The tree as one broker stands in it: its component, and the way to each of its brokers."""

    __slots__ = ("_parents", "edges", "hops", "id", "me", "neighbours", "next_hops")

    def __init__(self, me: str, edges: Iterable[Edge] = ()) -> None:
        self.me = me
        self.hops = {me: 0}  # by broker; in the order of their distance, then of names
        self.next_hops: dict[str, str] = {}
        self._parents: dict[str, str] = {}
        links = list(edges)
        self.edges = self._grow(links) if links else ()
        self.neighbours = tuple(name for name, hops in self.hops.items() if hops == 1)
        # Neighbours compare this in their hellos: frames pass only between two that hold the same
        # tree, or an event could go in a circle while one of them is behind.
        told = "\n".join(f"{edge.cost} {edge.low!r} {edge.high!r}" for edge in self.edges)
        self.id = hashlib.blake2b(told.encode(), digest_size=8).hexdigest()

    def _grow(self, links: list[Edge]) -> tuple[Edge, ...]:
        import networkx as nx

        # Kruskal takes edges in the order that is total here, and gives a tree for each
        # component: of brokers that cannot be reached the links are known, too.
        forest = nx.minimum_spanning_tree(graph_of(links), algorithm="kruskal")
        if self.me not in forest:
            return ()
        for parent, name in nx.bfs_edges(forest, self.me, sort_neighbors=sorted):
            self.hops[name] = self.hops[parent] + 1
            self._parents[name] = parent
            self.next_hops[name] = name if parent == self.me else self.next_hops[parent]
        chosen: Iterable[tuple[str, str, Edge]] = forest.edges(data="edge")
        return tuple(sorted(edge for low, _, edge in chosen if low in self.hops))

    def path(self, to: str) -> tuple[str, ...] | None:
        """The brokers on the way to one, both ends included; None where there is no way."""
        if to not in self.hops:
            return None
        way = [to]
        while way[-1] != self.me:
            way.append(self._parents[way[-1]])
        return tuple(reversed(way))

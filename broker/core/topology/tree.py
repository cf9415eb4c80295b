"""The overlay tree: of all links those on which messages travel.

Owns its choice and the ways on it. Must not know how links became known. Invariant: the same links
give the same tree everywhere, whatever their order; and a link that goes or comes changes one edge.

The tree is the minimum spanning tree of the links ordered by cost, then by the two names (Kruskal,
On the shortest spanning subtree of a graph, 1956): as no two links are equal in that order there is
exactly one, and by the exchange property losing a link that is not in it changes nothing, and one
that is in it replaces that edge alone. A tree of shortest paths would be flatter and would move
more when something fails, and each edge that moves is paid for by saying and offering all anew.

It is computed here and not by networkx, whose import would cost each broker some 25 MB and 0.2 s;
tests hold it to networkx's own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from msgspec import Struct


class Edge(Struct, frozen=True, order=True):
    """A link, ordered as the tree chooses; the name `low` sorts before `high`."""

    cost: int
    low: str
    high: str


def spanning(edges: Iterable[Edge]) -> list[Edge]:
    """The edges of the minimum spanning forest, in order."""
    parents: dict[str, str] = {}

    def root(name: str) -> str:
        while (parent := parents.setdefault(name, name)) != name:
            parents[name] = parents[parent]
            name = parents[name]
        return name

    chosen = []
    for edge in sorted(edges):
        low, high = root(edge.low), root(edge.high)
        if low != high:
            parents[high] = low
            chosen.append(edge)
    return chosen


class Tree:
    """The tree as one broker stands in it: its component, and the way to each of its brokers."""

    __slots__ = ("_parents", "edges", "hops", "id", "me", "neighbours", "next_hops")

    def __init__(self, me: str, edges: Iterable[Edge] = ()) -> None:
        forest = spanning(edges)
        beside: dict[str, list[str]] = {me: []}
        for edge in forest:
            beside.setdefault(edge.low, []).append(edge.high)
            beside.setdefault(edge.high, []).append(edge.low)
        self.me = me
        self.hops = {me: 0}  # by broker; in the order of their distance, then of names
        self.next_hops: dict[str, str] = {}
        self._parents: dict[str, str] = {}
        level = [me]
        while level:
            following = []
            for name in level:
                for other in sorted(beside[name]):
                    if other not in self.hops:
                        self.hops[other] = self.hops[name] + 1
                        self._parents[other] = name
                        self.next_hops[other] = other if name == me else self.next_hops[name]
                        following.append(other)
            level = following
        self.neighbours = tuple(sorted(beside[me]))
        self.edges = tuple(sorted(edge for edge in forest if edge.low in self.hops))
        told = "\n".join(f"{edge.cost} {edge.low!r} {edge.high!r}" for edge in self.edges)
        self.id = hashlib.blake2b(told.encode(), digest_size=8).hexdigest()

    def path(self, to: str) -> tuple[str, ...] | None:
        """The brokers on the way to one, both ends included; None where there is no way."""
        if to not in self.hops:
            return None
        way = [to]
        while way[-1] != self.me:
            way.append(self._parents[way[-1]])
        return tuple(reversed(way))

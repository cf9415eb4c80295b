"""The overlay tree of a described network, as brokers make theirs of the links that are there.

Owns the choice of links. Must not know streams or plans. Invariant: each part of the network has
one tree; brokers are numbered as in the problem, and a broker that is gone stands in no tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import networkx as nx

from planner.network import Arc, Network
from planner.problem import Number, Problem
from planner.rounds.units import scaled


def overlay(problem: Problem, gone: Iterable[int] = (), cut: Iterable[Arc] = ()) -> Network:
    """Return the tree of shortest paths from the most central broker of each part of the network.

    Left out are the brokers `gone` and the links `cut`. The most central is the one with the fewest
    hops to all others, the first of these. Limits are in whole units.
    """
    whole_network = Network.of(problem)
    away, lost = set(gone), {frozenset(arc) for arc in cut}
    arcs = [
        arc for arc in whole_network.graph.edges if not away & {*arc} and frozenset(arc) not in lost
    ]
    standing = Network(whole_network.names, arcs)
    kept: list[Arc] = []
    for part in nx.connected_components(standing.graph):
        center = min(part, key=lambda node: (sum(standing.hops(node).values()), node))
        parents = standing.tree_from(center)
        kept += [(parents[node], node) for node in sorted(part) if node != center]
    limits = {arc: scaled(limit) for arc, limit in whole_network.limits.items()}
    return Network(whole_network.names, kept, limits)


def on_tree(problem: Problem, tree: Network) -> Problem:
    """Return the problem with no other links than a tree's: what a live coordinator plans."""
    numbers = tree.numbers
    kept = [link for link in problem.links if tree.graph.has_edge(numbers[link.a], numbers[link.b])]
    return replace(problem, links=tuple(kept))


def whole(value: Number | None) -> int | None:
    """Return a limit in whole units; None stays unlimited."""
    return None if value is None else scaled(value)

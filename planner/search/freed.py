"""Searches of the same problem with fewer limits, for other places to begin from.

Owns the problems with limits left out and how far the search of each is. Must not know what is made
of the placements that are found. Invariant: however it is asked, the same seed goes the same way.

Where limits leave no room, what breaks them least is often far from any plan that keeps them, and
what costs least without them may be near one: limits that are just what somebody's good plan takes.
"""

from dataclasses import replace

from planner.layout import Layout
from planner.search.model import Model

STEPS_FIRST, STEPS_A_PIECE = 100, 10
GROWTH = 1.3


def without_limits(layout: Layout, *, brokers_too: bool) -> Layout:
    """The same with links and brokers that bear and send everything, or run everything besides."""
    problem = layout.problem
    nodes = [replace(node, egress=None) for node in problem.nodes]
    if brokers_too:
        nodes = [replace(node, capacity=None) for node in nodes]
    links = [replace(link, capacity=None) for link in problem.links]
    return replace(layout, problem=replace(problem, nodes=tuple(nodes), links=tuple(links)))


def kinds(model: Model) -> list[Model]:
    """The problems with fewer limits: with those of brokers' work alone, and with none."""
    capped = any(node.capacity is not None for node in model.layout.problem.nodes)
    found = []
    if model.limited:
        found.append(Model(without_limits(model.layout, brokers_too=False)))
    if capped:
        found.append(Model(without_limits(model.layout, brokers_too=True)))
    return found


def steps_of(turn: int, pieces: int) -> int:
    """How many steps such a search goes on for when its turn comes, later more."""
    return int((STEPS_FIRST + STEPS_A_PIECE * pieces) * min(GROWTH**turn, 30.0))

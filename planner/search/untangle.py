"""Streams that are in each other's way: who goes the short way, and who goes around.

Owns the order in which such streams are laid again. Must not change a placement. Invariant: the
state's flow, with its toll for what is over limits, never grows.

Streams are laid one after the other, so one may go far around because another, which could have
gone another way for little, was there first. Here the one that goes around is laid first, and then
those that were in its way.
"""

from itertools import combinations

import numpy as np

from planner.search.loaded import LoadedState

GAIN = 1e-9
ALONE_MAX = 12  # streams in the way that are tried one by one
LAID_MAX = 150  # so that a step of a search stays short
PAIRED_MAX = 5  # and two at a time


def untangle(state: LoadedState) -> int:
    """Lays streams again while that makes the flow less; how many were laid."""
    laid = 0
    better = True
    while better and laid < LAID_MAX:
        better = False
        waste = state.hops * state.all_rates - [state.least(n) for n in range(len(state.hops))]
        for number in np.argsort(-waste, kind="stable").tolist():
            if waste[number] <= GAIN * abs(state.flow):
                break
            good, count = _first(state, number)
            laid += count
            if good or laid >= LAID_MAX:
                better = good
                break
    return laid


def _first(state: LoadedState, number: int) -> tuple[bool, int]:
    """Lays a stream before some of those that are in its way, the smallest of them first."""
    others = sorted(state.in_the_way(number), key=lambda n: (state.all_rates[n], n))
    groups = [(), *((one,) for one in others[:ALONE_MAX]), *combinations(others[:PAIRED_MAX], 2)]
    laid = 0
    for group in groups:
        laid += 1 + len(group)
        if state.lay_again((number, *group), state.flow * (1 - GAIN)):
            return True, laid
    return False, laid

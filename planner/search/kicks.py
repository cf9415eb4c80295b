"""Ways out of where a search is stuck: some pieces are taken up and placed anew.

Owns which pieces, and where they go. Must not know when to kick, nor what is kept. Invariant: the
moves put pieces at allowed brokers only; the state is as it was when they are handed back.
"""

from collections.abc import Iterable, Sequence
from random import Random

import numpy as np

from planner.search.state import State

Moves = list[tuple[int, int]]

PASSED_OVER = 0.12  # the chance that a piece does not get its best broker, again and again
SCATTER_MEAN = 3.0  # how far down its list a scattered piece lands, about


def some_near(state: State, random: Random, size: int) -> list[int]:
    """A piece and others that concern it or share its broker, and strangers if these are few."""
    model = state.model
    found = [random.randrange(model.pieces)]
    met = set(found)
    for piece in found:  # grows while it is walked
        near = [other for other in model.near[piece] if other not in met]
        near += [
            other
            for other, host in enumerate(state.hosts)
            if host == state.hosts[piece] and other not in met and other not in near
        ]
        random.shuffle(near)
        for other in near[: min(3, size - len(found))]:
            met.add(other)
            found.append(other)
        if len(found) >= size:
            break
    while len(found) < min(size, model.pieces):
        other = random.randrange(model.pieces)
        if other not in met:
            met.add(other)
            found.append(other)
    return found


def recreate(state: State, random: Random, pieces: Sequence[int]) -> Moves:
    """Takes pieces up and puts each where it is cheapest beside what is placed, with room."""
    model, before = state.model, list(state.hosts)
    work = state.work.copy()
    for piece in pieces:
        work[before[piece]] -= model.costs[piece]
    absent = set(pieces)
    order = sorted(pieces, key=lambda piece: (model.rank[piece], piece))
    if random.random() < 0.4:
        order = list(pieces)
    moves = []
    for piece in order:
        absent.discard(piece)
        row = state.row((piece,), absent)
        fits = model.allowed[piece] & (
            (work + model.costs[piece] - model.capacity) <= 1e-9 * np.maximum(work, 1.0)
        )
        usable = fits if fits.any() else model.allowed[piece]
        left = np.where(usable, row, np.inf)
        host = int(left.argmin())
        while random.random() < PASSED_OVER:
            left[host] = np.inf
            other = int(left.argmin())
            host = other if np.isfinite(left[other]) else host
        state.hosts[piece] = host
        work[host] += model.costs[piece]
        moves.append((piece, host))
    state.hosts[:] = before
    return moves


def some_around(
    state: State, at: Sequence[Iterable[int]], random: Random, first: int, size: int
) -> list[int]:
    """A piece, some that concern it or share its broker, and so on from these.

    `at` are the pieces by broker, which the searches of large problems keep.
    """
    found = [first]
    met = set(found)
    for piece in found:  # grows while it is walked
        near = [other for other in state.model.near[piece] if other not in met]
        near += [other for other in at[state.hosts[piece]] if other not in met]
        random.shuffle(near)
        for other in dict.fromkeys(near[: min(3, size - len(found))]):
            met.add(other)
            found.append(other)
        if len(found) >= size:
            break
    return found


def scatter(state: State, random: Random, pieces: Sequence[int]) -> Moves:
    """Puts pieces at any of their cheaper brokers."""
    moves = []
    for piece in pieces:
        row = state.row((piece,))
        order = sorted(state.model.layout.pieces[piece].hosts, key=lambda h: (row[h], h))
        rank = min(int(random.expovariate(1 / SCATTER_MEAN)), len(order) - 1)
        moves.append((piece, int(order[rank])))
    return moves

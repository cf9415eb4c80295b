"""Steps for problems too large to weigh every move of every piece: descend, then renew a few.

Owns which pieces are looked at next. Must not know routes, limits of links, or when to end.
Invariant: after a step the placement breaks limits of brokers no more than before, and where it
breaks them no less, its flow is not greater.
"""

from collections.abc import Sequence
from random import Random

import numpy as np

from planner.search.kicks import recreate
from planner.search.state import State

RENEWED_MIN, RENEWED_MAX = 2, 9
DESCENTS_MAX = 12
DESCENT_GAIN = 2e-3  # of the flow: below, descending once more pays less than renewing


class Renewal:
    """Improves a state piece by piece, then by taking up a few pieces at a time."""

    def __init__(self, state: State, random: Random) -> None:
        self.state = state
        self.random = random
        self.at: list[dict[int, None]] = [{} for _ in range(state.model.nodes)]
        for piece, host in enumerate(state.hosts):
            self.at[host][piece] = None
        self.queue = list(range(state.model.pieces))
        self.descents = 0
        self.flow_before = state.flow

    def apply(self, moves: Sequence[tuple[int, int]]) -> None:
        """Moves pieces, and keeps book of who is where."""
        for piece, host in moves:
            del self.at[self.state.hosts[piece]][piece]
            self.at[host][piece] = None
        self.state.apply(moves)

    def step(self) -> bool:
        """One piece to its best broker, or a few anew; whether anything became better."""
        if self.descents < DESCENTS_MAX:
            if not self.queue:
                gained = self.flow_before - self.state.flow
                small = gained <= DESCENT_GAIN * self.flow_before
                self.descents = DESCENTS_MAX if small else self.descents + 1
                self.flow_before = self.state.flow
                self.queue = list(range(self.state.model.pieces))
            return self._descend(self.queue.pop(0))
        return self._renew()

    def _descend(self, piece: int) -> bool:
        """Brings a piece to its best broker with room, or out of one that has too much."""
        state, model = self.state, self.state.model
        here = state.hosts[piece]
        row = state.row((piece,))
        after = state.work + model.costs[piece]
        usable = model.allowed[piece] & (after <= model.capacity * (1 + 1e-9))
        usable[here] = False
        if not usable.any():
            return False
        host = int(np.argmin(np.where(usable, row, np.inf)))
        crowded = state.work[here] > model.capacity[here] * (1 + 1e-9)
        if not crowded and row[host] >= row[here] - 1e-9 * abs(row[here]):
            return False
        return self._kept([(piece, host)], crowded=bool(crowded))

    def _renew(self) -> bool:
        """Takes up some pieces and places them anew; undone where that is no better."""
        size = self.random.randint(RENEWED_MIN, RENEWED_MAX)
        moves = recreate(self.state, self.random, self._some(size))
        return self._kept([(p, h) for p, h in moves if self.state.hosts[p] != h], crowded=False)

    def _kept(self, moves: list[tuple[int, int]], *, crowded: bool) -> bool:
        if not moves:
            return False
        state = self.state
        back = [(piece, state.hosts[piece]) for piece, _ in moves]
        flow, excess = state.flow, state.excess()
        self.apply(moves)
        after = state.excess()
        if after > excess + 1e-12 or (not crowded and after >= excess and state.flow > flow):
            self.apply(back)
            state.flow = flow
            return False
        return after < excess or state.flow < flow * (1 - 1e-12)

    def _some(self, size: int) -> list[int]:
        """A piece, some that concern it or share its broker, and so on from these."""
        random, model = self.random, self.state.model
        found = [random.randrange(model.pieces)]
        met = set(found)
        for piece in found:  # grows while it is walked
            near = [other for other in model.near[piece] if other not in met]
            near += [other for other in self.at[self.state.hosts[piece]] if other not in met]
            random.shuffle(near)
            for other in dict.fromkeys(near[: min(3, size - len(found))]):
                met.add(other)
                found.append(other)
            if len(found) >= size:
                break
        return found

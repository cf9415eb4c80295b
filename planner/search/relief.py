"""Steps for large problems in which links are limited: relieve what is over, descend, renew a few.

Owns which pieces and streams are looked at next. Must not know when to end, nor what is kept.
Invariant: a step breaks limits no more than before, and where it breaks them no less, the flow is
not greater.
"""

from collections.abc import Sequence
from itertools import accumulate
from random import Random

import numpy as np

from planner.search.attempts import Attempts
from planner.search.kicks import recreate, some_around
from planner.search.traffic import TrafficState

RENEWED_MIN, RENEWED_MAX = 2, 7
TRIED_BEST, TRIED_ANY = 3, 4  # of a piece's brokers, to relieve a limit
AMONG = 40  # the brokers that any are taken from: the cheapest so many
RENEWED, SQUEEZED = 0.3, 0.3  # of what may relieve a limit; else one piece goes elsewhere
RELIEVED = 0.7  # of the steps, while a limit is broken and the descent is over


class Relief(Attempts):
    """Improves a state with its ways by small moves that are undone where they are no better."""

    def __init__(self, state: TrafficState, random: Random) -> None:
        super().__init__(state, random)
        self.queue: list[int] = []
        rates = [sum(state.rates[number] for number in of) for of in state.model.of_piece]
        mean = sum(rates) / max(1, len(rates)) or 1.0
        self.order = [int(piece) for piece in np.argsort(rates, kind="stable")]
        self.weights = list(accumulate(rate + mean for rate in rates))
        """Half of what is renewed is chosen by chance alone, half by what it gets and sends."""

    def descend_again(self) -> None:
        """All pieces again, each to its best broker: those that get and send most first."""
        self.queue = list(self.order)

    def step(self) -> bool:
        """One small change, unless it is for the worse; whether it was kept."""
        if self.excess > 0 and (not self.queue or self.random.random() < RELIEVED):
            return self._relieve()
        if self.queue:
            return self._descend(self.queue.pop())
        return self.attempt(recreate(self.state, self.random, self._some()))

    def _descend(self, piece: int) -> bool:
        """Brings a piece to the broker with room where it costs least."""
        row = self._row(piece)
        host = int(np.argmin(row))
        here = self.state.hosts[piece]
        if host == here or not row[host] < row[here]:
            return False
        return self.attempt([(piece, host)])

    def _row(self, piece: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """What a piece costs at each broker with room for it."""
        state, model = self.state, self.state.model
        row = state.row((piece,))
        work = state.work + model.costs[piece]
        work[state.hosts[piece]] -= model.costs[piece]
        fits = model.allowed[piece] & (state.limits.excess(work) <= 0)
        return np.asarray(np.where(fits, row, np.inf))

    # --- limits that are broken ---------------------------------------------------------------

    def _relieve(self) -> bool:
        """Takes a limit that is broken, and lays or moves something of what breaks it."""
        state, random = self.state, self.random
        full = np.flatnonzero(state.limits.excess(state.work) > 0).tolist()
        place = random.randrange(len(full) + len(state.broken) + 1)
        if place < len(full):
            here = list(self.at[full[place]])
            return bool(here) and self._elsewhere(random.choice(here))
        if not state.broken:
            return self.attempt(recreate(state, random, self._some()))
        users = state.users(random.choice(list(state.broken)))
        if not users:
            return False
        number = random.choice(users)
        if self.lay_again(number):
            return True
        pieces = state.pieces_of(number)
        if not pieces:
            return False
        piece = random.choice(pieces)
        way = random.random()
        if way < RENEWED:
            return self.attempt(recreate(state, random, self._some(piece)))
        if way < RENEWED + SQUEEZED:
            ends = [*state.ways[number], *(state.hosts[p] for p in pieces if p != piece)]
            return bool(ends) and self._squeeze(piece, random.choice(ends))
        return self._elsewhere(piece)

    def _elsewhere(self, piece: int) -> bool:
        """Tries a piece at some other brokers until limits are broken less."""
        row = self._row(piece)
        row[self.state.hosts[piece]] = np.inf
        order = [int(host) for host in np.argsort(row, kind="stable")[:AMONG]]
        order = [host for host in order if np.isfinite(row[host])]
        some = order[TRIED_BEST:]
        self.random.shuffle(some)
        before = self.excess
        for host in order[:TRIED_BEST] + some[:TRIED_ANY]:
            if self.attempt([(piece, host)]) and self.excess < before:
                return True
        return False

    def _squeeze(self, piece: int, host: int) -> bool:
        """Puts a piece at a broker from which others make way, each to its best with room."""
        state, model = self.state, self.state.model
        if not model.allowed[piece, host] or state.hosts[piece] == host:
            return False
        moves = [(piece, host)]
        room = float(model.capacity[host] - state.work[host] - model.costs[piece])
        others = list(self.at[host])
        self.random.shuffle(others)
        for other in others:
            if room >= 0:
                break
            row = self._row(other)
            row[host] = np.inf
            best = int(np.argmin(row))
            if model.costs[other] > 0 and np.isfinite(row[best]):
                moves.append((other, best))
                room += float(model.costs[other])
        return self.attempt(moves)

    def _some(self, first: int | None = None) -> Sequence[int]:
        """Some pieces that concern each other, from this one on or from any, by its weight."""
        random = self.random
        size = random.randint(RENEWED_MIN, RENEWED_MAX)
        if first is None:
            first = random.choices(range(self.state.model.pieces), cum_weights=self.weights)[0]
        return some_around(self.state, self.at, random, first, size)

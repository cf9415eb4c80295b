"""Small moves at what is over its limit, by prices of limits that rise where the search is stuck.

Owns which pieces and streams are moved next, and when prices rise. Must not know when a search
ends, nor what is kept. Invariant: a step is kept only where what limits are broken by, at the
prices of the moment, is less, or no more and the flow less.

Where nothing near breaks limits less, what is still broken becomes dearer, until it is worth
breaking another limit instead (after Morris's breakout method, 1993). So an overload wanders, from
broker to broker and link to link, to where there is room for it. Limits that leave none to anybody
are met by pieces that change places.
"""

from random import Random

import numpy as np

from planner.search.attempts import Attempts
from planner.search.kicks import recreate, some_around
from planner.search.metric import Vector
from planner.search.traffic import TrafficState

PATIENCE = 8  # steps in vain until prices rise
RISE = 1.3
RISEN_MAX = 1e4  # of a price: then all are 1 again
BEST_TRIED, ROOMY_TRIED, ANY_TRIED = 3, 3, 2  # brokers of a piece
WILD, WILD_TRIED = 0.7, 6  # of the steps at links, a stream is laid by so many any ways
PAIRED = 0.5  # of which, another with it
PUSHED_TRIED = 8  # brokers from which another goes on
SWAPPED_TRIED = 8  # pieces to change places with
SWAPS = 0.5  # of the steps
RENEWED = 0.06
RENEWED_MIN, RENEWED_MAX = 2, 6


class Breakout(Attempts):
    """Brings a state with its ways to keep limits, by small moves that are undone if in vain."""

    sideways = False

    def __init__(self, state: TrafficState, random: Random) -> None:
        super().__init__(state, random)
        self.vain = 0

    def step(self) -> bool:
        """One try at something that is broken; whether anything was kept."""
        state, random = self.state, self.random
        full = np.flatnonzero(state.limits.excess(state.work) > 0).tolist()
        broken = list(state.broken)
        place = random.randrange(max(1, len(full) + len(broken)))
        if not (full or broken) or random.random() < RENEWED:
            good = self._renew()
        elif place < len(full):
            good = self._unload(full[place])
        else:
            good = self._clear(broken[place - len(full)])
        self.vain = 0 if good else self.vain + 1
        if self.vain >= PATIENCE:
            self.vain = 0
            state.raise_prices(RISE, RISEN_MAX)
            self.excess = state.excess()
        return good

    # --- what is tried ------------------------------------------------------------------------

    def _unload(self, node: int) -> bool:
        """Takes something from a broker that runs too much."""
        costs = self.state.model.costs
        here = [piece for piece in self.at[node] if costs[piece] > 0]
        if not here:
            return False
        piece = self.random.choice(here)
        return self._displace(piece) or any(self._push(piece) for _ in range(PUSHED_TRIED))

    def _clear(self, what: int) -> bool:
        """Lays something that a link or broker carries too much with again, or moves its ends."""
        state, random = self.state, self.random
        users = state.users(what)
        if not users:
            return False
        number = random.choice(users)
        if self.lay_again(number):
            return True
        if random.random() < WILD and any(self._wild(number) for _ in range(WILD_TRIED)):
            return True
        pieces = state.pieces_of(number)
        if not pieces:
            return False
        piece = random.choice(pieces)
        return self._displace(piece) or self._together(piece)

    def _wild(self, number: int) -> bool:
        """Lays a stream by any way, and now and then another with it that has to make way."""
        some = [number]
        if self.random.random() < PAIRED:
            some.append(self.random.randrange(len(self.state.rates)))
        return self.lay_wild(list(dict.fromkeys(some)))

    def _renew(self) -> bool:
        random = self.random
        size = random.randint(RENEWED_MIN, RENEWED_MAX)
        first = random.randrange(self.state.model.pieces)
        some = some_around(self.state, self.at, random, first, size)
        return self.attempt(recreate(self.state, random, some))

    def _displace(self, piece: int) -> bool:
        """Tries a piece elsewhere, or changes its place with another's."""
        row = self.state.row((piece,))
        row[self.state.hosts[piece]] = np.inf
        row = np.where(self.state.model.allowed[piece], row, np.inf)
        if self.random.random() < SWAPS:
            return self._swap(piece, row) or self._elsewhere(piece, row)
        return self._elsewhere(piece, row) or self._swap(piece, row)

    def _push(self, piece: int) -> bool:
        """Tries a piece at any broker from which another goes on to one that has room for it."""
        state, model, random = self.state, self.state.model, self.random
        host = random.choice(model.layout.pieces[piece].hosts)
        others = [other for other in self.at[host] if model.costs[other] > 0 and other != piece]
        if host == state.hosts[piece] or not others:
            return False
        other = random.choice(others)
        fits = state.limits.excess(state.work + model.costs[other]) <= 0
        fits[host] = False
        room = np.flatnonzero(fits & model.allowed[other]).tolist()
        before = self.excess
        return (
            bool(room)
            and self.attempt([(piece, host), (other, random.choice(room))])
            and self.excess < before
        )

    def _together(self, piece: int) -> bool:
        """Tries a partial and those that share it elsewhere: one alone would send as much again."""
        state, of = self.state, self.state.model.aggregate_of
        here = state.hosts[piece]
        group = [other for other in self.at[here] if of[other] == of[piece]]
        if of[piece] is None or len(group) < 2:
            return False
        fits = state.model.allowed[group].all(axis=0)
        row = np.where(fits, state.row(group), np.inf)
        row[here] = np.inf
        order = np.argsort(row, kind="stable")[: int(np.isfinite(row).sum())].tolist()
        some = order[:BEST_TRIED] + self.random.sample(order, min(ANY_TRIED, len(order)))
        before = self.excess
        return any(
            self.attempt([(one, host) for one in group]) and self.excess < before
            for host in dict.fromkeys(some)
        )

    def _elsewhere(self, piece: int, row: Vector) -> bool:
        """Tries a piece at the brokers that are best for it, that have room, and at any."""
        state, random = self.state, self.random
        cost = float(state.model.costs[piece])
        more = state.limits.excess(state.work + cost) - state.limits.excess(state.work)
        more *= state.work_price
        order = np.argsort(row, kind="stable")[: int(np.isfinite(row).sum())]
        roomy = order[np.argsort(more[order], kind="stable")]
        some = [*order[:BEST_TRIED].tolist(), *roomy[:ROOMY_TRIED].tolist()]
        some += random.sample(order.tolist(), min(ANY_TRIED, len(order)))
        before = self.excess
        return any(
            self.attempt([(piece, host)]) and self.excess < before for host in dict.fromkeys(some)
        )

    def _swap(self, piece: int, row: Vector) -> bool:
        """Tries to change places with pieces that may run here and load brokers least by it."""
        state, model = self.state, self.state.model
        here, before = state.hosts[piece], self.excess
        hosts = np.array(state.hosts)
        apart = hosts != here  # which the row need not tell: a piece may have moved since
        others = np.flatnonzero(model.allowed[:, here] & np.isfinite(row[hosts]) & apart)
        there = hosts[others]
        change = model.costs[others] - model.costs[piece]
        excess, price = state.limits.excess, state.work_price
        now = excess(state.work)
        more = (excess(state.work[there] - change, there) - now[there]) * price[there]
        own = np.full(len(others), here)
        more += (excess(state.work[here] + change, own) - now[here]) * price[here]
        noise = np.array([self.random.random() for _ in others])
        order = np.lexsort((row[there] * (1 + noise), np.round(more, 9)))
        return any(
            self.attempt([(piece, int(hosts[other])), (int(other), here)]) and self.excess < before
            for other in others[order[:SWAPPED_TRIED]].tolist()
        )

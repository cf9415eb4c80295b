"""Steps for problems too large to weigh every move of every piece: descend, then renew a few.

Owns which pieces are looked at next. Must not know routes, limits of links, or when to end.
Invariant: once the descents are over, a step breaks limits of brokers no more than before, and
where it breaks them no less, the flow is not greater.

The first descents are free to overload brokers: each piece, with the one that it feeds alone, goes
where it would cost least. What is too much there is then moved on at a price that grows, so that it
goes where that adds least; a placement that keeps all limits from the start does not find that.
"""

from collections.abc import Sequence
from random import Random

import numpy as np

from planner.search.kicks import recreate, some_around
from planner.search.state import State

RENEWED_MIN, RENEWED_MAX = 2, 9
DESCENTS_MAX = 30
PRICE_FIRST = 0.02  # of what a piece causes on average
PRICE_GROWTH = 2.0
GAIN = 1e-12  # of the flow: what is no more than rounding moves nothing
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
        self.free = not state.model.limited
        """Whether brokers may be overloaded for nothing: at first, unless routes need the time."""
        self.price = 0.0
        """Of breaking a broker's limit wholly: nothing at first, more with each descent."""

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
                self._next_descent()
            return self._descend(self.queue.pop(0))
        return self._renew()

    def stuck(self) -> bool:
        """Whether all descents were made and brokers are still overloaded."""
        return self.descents >= DESCENTS_MAX and self.state.excess() > 0

    def _next_descent(self) -> None:
        """All pieces again, at a higher price; or no more, where limits are kept and it is slow."""
        state = self.state
        gained = self.flow_before - state.flow
        slow = gained <= DESCENT_GAIN * abs(self.flow_before)
        self.flow_before = state.flow
        self.queue = list(range(state.model.pieces))
        self.descents += 1
        self.free = self.free and not slow
        if state.excess() > 0:
            if not self.free:
                first = PRICE_FIRST * state.flow / max(1, state.model.pieces)
                self.price = self.price * PRICE_GROWTH or first
        elif slow:
            self.descents = DESCENTS_MAX

    def _descend(self, piece: int) -> bool:
        """Brings a piece to where it costs least, with the price of what is over limits there."""
        state, model = self.state, self.state.model
        if not self.price and self.free and (fed := self._fed_alone(piece)) is not None:
            return self._both(piece, *fed)
        here = state.hosts[piece]
        score = state.row((piece,)) - GAIN * state.flow * (np.arange(model.nodes) == here)
        work, cost = state.work, model.costs[piece]
        before = work.copy()
        before[here] -= cost
        limits = state.limits
        more = limits.excess(before + cost) - limits.excess(before)
        if self.price:
            score += self.price * more
        elif not self.free:
            score = np.where(more > 0, np.inf, score)
        host = int(np.argmin(np.where(model.allowed[piece], score, np.inf)))
        if host == here:
            return False
        self.apply([(piece, host)])
        return True

    def _fed_alone(self, piece: int) -> tuple[int, int] | None:
        """The stream by which a piece feeds one other and nobody else, and that other."""
        model = self.state.model
        for number in model.of_piece[piece]:
            stream = model.layout.streams[number]
            if stream.piece == piece and len(stream.consumers) == 1 and not stream.destinations:
                return number, stream.consumers[0]
        return None

    def _both(self, piece: int, number: int, other: int) -> bool:
        """Brings a piece and the one that it feeds to where both together cost least."""
        state, model = self.state, self.state.model
        before = state.row((piece,), {other})
        after = state.row((other,), {piece})
        if model.aggregate_of[piece] is not None or model.aggregate_of[other] is not None:
            return False
        before = np.where(model.allowed[piece], before, np.inf)
        after = np.where(model.allowed[other], after, np.inf)
        rate, distance = model.rates[number], state.metric(number).distance
        least = before.min() + after.min()
        near = (before + rate * distance[:, after.argmin()]).min() + after.min()
        from_near = (after + rate * distance[before.argmin()]).min() + before.min()
        spare = (min(near, from_near) - least) * (1 + 1e-9) + GAIN * abs(least)
        # No pair with one of them elsewhere is as cheap as a pair that is known.
        starts = np.flatnonzero(before <= before.min() + spare)
        ends = np.flatnonzero(after <= after.min() + spare)
        ways = before[starts, None] + rate * distance[np.ix_(starts, ends)]
        place = int((ways.min(axis=0) + after[ends]).argmin())
        there = int(ends[place])
        hosts = ((piece, int(starts[ways[:, place].argmin()])), (other, there))
        moves = [(one, host) for one, host in hosts if state.hosts[one] != host]
        flow = state.flow
        back = [(one, state.hosts[one]) for one, _ in moves]
        if moves:
            self.apply(moves)
        if state.flow > flow:
            self.apply(back)
            state.flow = flow
        return state.flow < flow

    def _renew(self) -> bool:
        """Takes up some pieces and places them anew; undone where that is no better."""
        random = self.random
        size = random.randint(RENEWED_MIN, RENEWED_MAX)
        first = random.randrange(self.state.model.pieces)
        moves = recreate(self.state, random, some_around(self.state, self.at, random, first, size))
        return self._kept([(p, h) for p, h in moves if self.state.hosts[p] != h])

    def _kept(self, moves: list[tuple[int, int]]) -> bool:
        """Makes moves that break limits no more and, if no less, cost no more; else none."""
        if not moves:
            return False
        state = self.state
        back = [(piece, state.hosts[piece]) for piece, _ in moves]
        flow, excess = state.flow, state.excess()
        self.apply(moves)
        after = state.excess()
        if after > excess + 1e-12 or (after >= excess and state.flow > flow):
            self.apply(back)
            state.flow = flow
            return False
        return after < excess or state.flow < flow * (1 - 1e-12)

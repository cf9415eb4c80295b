"""Tabu search over placements: always the best move that is not forbidden, even a worse one.

Owns the choice of moves within a window of pieces. Must not know routes or when to end. Invariant:
each step makes exactly one move, and the state's flow is exact after it.

This is the paper's search with greedy moves (seed 003, section 4.2, algorithms 1 and 2), repaired
and strengthened: every candidate is weighed from the same placement; what is forbidden is to bring
a piece back to a broker that it lately left, rather than one whole placement; a limit of a broker
may be broken for a price that adapts, so that the search crosses what is not feasible; beside one
piece elsewhere, two may change places, and pieces at one broker may move together.
"""

from collections.abc import Iterator, Sequence
from random import Random

import numpy as np
import numpy.typing as npt

from planner.search.metric import Vector
from planner.search.model import Model
from planner.search.state import State

Moves = list[tuple[int, int]]

TENURE_MIN, TENURE_SPREAD = 6, 10  # steps for which a piece may not return
PATIENCE_STEPS = 6  # so many steps on one side of the limits change the price of breaking them
GROUPS_EVERY_STEPS = 12  # together-moves cost a row each, so they are looked at now and then
SAME = 1e-9  # of the flow: differences below this are rounding


class Tabu:
    """The search within a window of pieces; everything else stays where it is."""

    def __init__(self, state: State, window: Sequence[int], random: Random, price: float) -> None:
        self.state = state
        self.model: Model = state.model
        self.window = np.array(window, dtype=np.int64)
        self.places = {piece: place for place, piece in enumerate(window)}
        self.random = random
        self.price = price
        self.steps = 0
        self.kind = ""  # of the last step's move
        self.run = 0  # steps since the limits of brokers were last crossed
        self.within = state.excess() <= 0
        shape = (len(window), self.model.nodes)
        self.rows: npt.NDArray[np.float64] = np.zeros(shape)
        self.until: npt.NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        self.allowed = self.model.allowed[self.window]
        self.own = self.model.costs[self.window]
        self.near: npt.NDArray[np.bool_] = np.zeros((len(window), len(window)), dtype=bool)
        for place, piece in enumerate(window):
            beside = [
                self.places[other] for other in self.model.near[piece] if other in self.places
            ]
            self.near[place, beside] = True
        self.exact = True
        self.capped = bool(np.isfinite(self.model.capacity).any())
        self.refresh(window)

    def refresh(self, pieces: Sequence[int]) -> None:
        """Computes the rows of these anew, as far as they are in the window."""
        for piece in pieces:
            place = self.places.get(piece)
            if place is not None:
                self.rows[place] = self.state.row((piece,))

    def all_anew(self) -> None:
        """As after a change of prices or of the placement from outside."""
        self.refresh(self.window.tolist())
        self.until[:] = 0
        self.steps, self.run = 0, 0

    # --- one step -----------------------------------------------------------------------------

    def step(self, best: float) -> float:
        """Makes one move; returns the price-free flow. `best` may be beaten by what is tabu."""
        self.steps += 1
        self.kind = "none"
        if self.steps % GROUPS_EVERY_STEPS == 0 and (together := self._together()):
            self.kind = "together"
            self.make(together)
        elif moves := self._choose(best):
            self.kind = "relocate" if len(moves) == 1 else "swap"
            self.make(moves)
        self._adapt()
        return self.state.flow

    def make(self, moves: Moves) -> None:
        """Makes moves, forbids going back, and refreshes what hangs on them."""
        for piece, _ in moves:
            place = self.places[piece]
            tenure = TENURE_MIN + self.random.randrange(TENURE_SPREAD)
            self.until[place, self.state.hosts[piece]] = self.steps + tenure
        self.state.apply(moves)
        stale = dict.fromkeys(p for piece, _ in moves for p in self.model.near[piece])
        stale.update(dict.fromkeys(self.state.relax()))
        self.refresh(list(stale))

    def _choose(self, best: float) -> Moves:
        hosts = np.array([self.state.hosts[piece] for piece in self.window.tolist()])
        count = np.arange(len(hosts))
        now = self.rows[count, hosts]
        change = self.rows - now[:, None]
        score = change + self.price * self._pressure(hosts) if self.capped else change.copy()
        free = self.until < self.steps
        if self.within:
            free |= self.state.flow + change < best * (1 - SAME)
        usable = self.allowed & free
        usable[count, hosts] = False
        score = np.where(usable, score, np.inf)
        found = self._any_of(score)
        moves: Moves = []
        least = np.inf
        if found is not None:
            place, host = found
            least = float(score[place, host])
            moves = [(int(self.window[place]), host)]
        if self.capped and len(hosts) > 1:
            pair, value = self._exchange(hosts, change, usable)
            if value < least:
                moves = [
                    (int(self.window[pair[0]]), int(hosts[pair[1]])),
                    (int(self.window[pair[1]]), int(hosts[pair[0]])),
                ]
        return moves

    def _any_of(self, score: npt.NDArray[np.float64]) -> tuple[int, int] | None:
        """One of the best places of a matrix, by chance where several are."""
        least = score.min()
        if not np.isfinite(least):
            return None
        equal = np.flatnonzero(score <= least + SAME * abs(float(least)))
        chosen = int(equal[self.random.randrange(len(equal))])
        return chosen // score.shape[1], chosen % score.shape[1]

    def _pressure(self, hosts: npt.NDArray[np.int64]) -> Vector:
        """By how much each move changes what limits of brokers are exceeded by."""
        work, limits = self.state.work, self.state.limits
        now = limits.excess(work)
        there: Vector = limits.excess(work + self.own[:, None]) - now
        there += (limits.excess(work[hosts] - self.own, hosts) - now[hosts])[:, None]
        return there

    def _exchange(
        self,
        hosts: npt.NDArray[np.int64],
        change: npt.NDArray[np.float64],
        usable: npt.NDArray[np.bool_],
    ) -> tuple[tuple[int, int], float]:
        """The best pair to change places; pieces of one broker cannot, and `usable` says so.

        What two pieces change adds up where neither concerns the other. Else it is tried out where
        `exact` says so; taking the sum for it leads elsewhere, which is good for a change.
        """
        each = np.where(usable, change, np.inf)[:, hosts]
        both = each + each.T
        work, limits = self.state.work[hosts], self.state.limits
        grown = work + self.own[:, None] - self.own[None, :]  # at the second's broker
        more = limits.excess(grown, hosts) - limits.excess(work, hosts)
        more = self.price * (more + more.T)
        both = both + more
        one, other = divmod(int(np.argmin(both)), len(hosts))
        value = float(both[one, other])
        if self.exact and self.near[one, other] and np.isfinite(value):
            first, second = int(self.window[one]), int(self.window[other])
            moves = [(first, int(hosts[other])), (second, int(hosts[one]))]
            value = self.state.delta(moves) + float(more[one, other])
        return (one, other), value

    # --- pieces at one broker -----------------------------------------------------------------

    def _together(self) -> Moves:
        """The best move of pieces that are at one broker and exchange streams, if any gains."""
        least, moves = -SAME * (1.0 + abs(self.state.flow)), []
        work, limits = self.state.work, self.state.limits
        now = limits.excess(work) if self.capped else np.zeros(self.model.nodes)
        for group in self._groups():
            row = self.state.row(group)
            here = self.state.hosts[group[0]]
            score = row - row[here]
            usable = self.model.allowed[list(group)].all(axis=0)
            if self.capped:
                cost = float(self.model.costs[list(group)].sum())
                left = limits.excess(work[[here]] - cost, np.array([here]))[0] - now[here]
                score += self.price * (limits.excess(work + cost) - now + left)
            score = np.where(usable, score, np.inf)
            score[here] = np.inf
            host = int(np.argmin(score))
            if score[host] < least:
                least, moves = float(score[host]), [(piece, host) for piece in group]
        return moves

    def _groups(self) -> Iterator[tuple[int, ...]]:
        """Pieces of the window at one broker: a stream's sender with consumers; one partial's."""
        hosts = self.state.hosts
        seen = set()
        for piece in self.window.tolist():
            near = [
                p for p in self.model.near[piece] if hosts[p] == hosts[piece] and p in self.places
            ]
            if len(near) < 2:
                continue
            for group in [tuple(sorted(near)), *[tuple(sorted((piece, p))) for p in near[1:4]]]:
                if group not in seen:
                    seen.add(group)
                    yield group

    # --- the price of breaking limits ---------------------------------------------------------

    def _adapt(self) -> None:
        within = self.state.excess() <= 0
        self.run = self.run + 1 if within == self.within else 0
        self.within = within
        if self.capped and self.run >= PATIENCE_STEPS:
            self.run = 0
            self.price *= 1 / 1.3 if within else 1.6
            self.price = min(max(self.price, 1e-6), 1e18)

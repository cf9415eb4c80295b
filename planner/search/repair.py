"""Ways to a plan that keeps all limits, for a search that has none or comes back to none.

Owns where such ways begin and how long each is gone. Must not know when they are wanted. Invariant:
what is found goes to the search's best plan if it is better, and nowhere else; steps count there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.search.breakout import Breakout
from planner.search.freed import kinds, steps_of
from planner.search.mend import mend
from planner.search.relief import Relief
from planner.search.routing import ROUNDS_LEAST, Routed, route
from planner.search.start import greedy
from planner.search.traffic import TrafficState

if TYPE_CHECKING:
    from planner.search.run import Observer, Report, Search
    from planner.search.stops import Stop

RELIEVED_STEPS_A_PIECE = 20
BREAKOUT_STEPS, GROWTH = 200, 1.15  # at first, and each time more
WANDERED_STEPS_A_PIECE = 10.0  # between two descents, at first
WANDERED_STEPS_A_PIECE_FEW, WANDERED_STEPS_FEW = 24.0, 600.0  # more where pieces are few
WANDERED_GROWTH, WANDERED_STEPS_MAX = 1.15, 2000
REFITTED_STEPS = 150  # until all limits are kept
REFITTED_VAIN_A_PIECE = 10  # then, by flow
REFITTED_OTHERS = 2  # beginnings, besides where the descent came to
REFITTED_A_STEP = 10  # a descent's step takes longer; and a search that stalls counts steps
REFITTED_PARTS = (2, 3, 4)  # one of so many pieces
MENDED_STEPS = 300  # of which each routes all streams
NEAR = 0.005  # of the flow: what costs so little more with fewer limits is tried with all of them

Found = tuple[float, float, list[int]]
"""What a descent came to: by how much brokers are over limits, the flow, and where pieces are."""


class Repair:
    """The ways of one search to plans that keep limits."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.freed: list[Search] | None = None
        self.turns = 0
        self.wanderer: Breakout | None = None
        self.wanders = 0
        pieces = search.model.pieces
        few = min(WANDERED_STEPS_FEW, WANDERED_STEPS_A_PIECE_FEW * pieces)
        self.wandered = max(few, WANDERED_STEPS_A_PIECE * pieces)

    def wander(self, hosts: Sequence[int], stop: Stop, observer: Observer | None) -> None:
        """Small moves at what is over its limit: from where the last came to, or else from these.

        A descent weighs each piece at each broker by what links have left, which takes long where
        they are full; so these moves, which are cheap, are what finds most plans without any room.
        How long one that began elsewhere takes differs much, so every other time another begins.
        """
        search = self.search
        self.wanders += 1
        if self.wanderer is None:
            self.wanderer = self._begin(greedy(search.model))
        wanderer = self.wanderer if self.wanders % 2 else self._begin(hosts)
        steps = min(int(self.wandered), WANDERED_STEPS_MAX)
        self.wandered = WANDERED_GROWTH * steps
        self._go(wanderer, steps, stop, observer)

    def refit(self, found: Found, stop: Stop, observer: Observer | None) -> Found:
        """Small moves from where a descent broke limits, and from far off the best; the better.

        Where limits leave hardly any room a descent comes back to no plan from most beginnings, and
        what was found first would stay the best.
        """
        search = self.search
        others = [self._shaken(search.best.hosts) for _ in range(REFITTED_OTHERS)]
        fits = [self._refitted(hosts, stop, observer) for hosts in (found[2], *others)]
        return min((fit for fit in fits if fit is not None), default=found)

    def _shaken(self, hosts: Sequence[int]) -> list[int]:
        """The same with some of the pieces anywhere."""
        model, random = self.search.model, self.search.random
        count = max(2, model.pieces // random.choice(REFITTED_PARTS))
        shaken = list(hosts)
        for piece in random.sample(range(model.pieces), min(model.pieces, count)):
            shaken[piece] = random.choice(model.layout.pieces[piece].hosts)
        return shaken

    def _refitted(
        self, hosts: Sequence[int], stop: Stop, observer: Observer | None
    ) -> Found | None:
        """Small moves until all limits are kept, then some by flow; None where some is broken."""
        search = self.search
        breakout = self._begin(hosts)
        self._go(breakout, REFITTED_STEPS, stop, observer, REFITTED_A_STEP)
        if breakout.excess > 0:
            return None
        state = breakout.state
        relief = Relief(state, search.random)
        relief.descend_again()
        vain = moves = 0
        while vain < REFITTED_VAIN_A_PIECE * search.model.pieces and not search.ends(stop):
            flow = state.flow
            relief.step()
            vain = 0 if state.flow < flow else vain + 1
            moves += 1
            self._count(moves, REFITTED_A_STEP, observer)
        self._hold(state)
        return 0.0, state.flow, list(state.hosts)

    def _begin(self, hosts: Sequence[int]) -> Breakout:
        return Breakout(TrafficState(self.search.model, hosts), self.search.random)

    def _go(
        self,
        breakout: Breakout,
        steps: int,
        stop: Stop,
        observer: Observer | None,
        a_step: int = 1,
    ) -> None:
        """So many small moves, unless all limits are kept before; the outcome is held."""
        for moves in range(1, steps + 1):
            if breakout.excess == 0 or self.search.ends(stop):
                break
            breakout.step()
            self._count(moves, a_step, observer)
        self._hold(breakout.state)

    def _count(self, moves: int, a_step: int, observer: Observer | None) -> None:
        """Counts small moves, so many of them as a step."""
        self.search.count("small")
        if moves % a_step == 0:
            self.search.steps += 1
            self.search.tell(observer)

    def _hold(self, state: TrafficState) -> None:
        """Keeps what a breakout came to, if it is the best: by parts of limits, at no price."""
        found = Routed(state.named_trees(), state.flow, state.excess_by_parts())
        self.search.keep(tuple(state.hosts), 0.0, found)

    def relieve(self, hosts: Sequence[int], stop: Stop, observer: Observer | None) -> None:
        """Small moves of pieces and streams at what is over its limit, until nothing is."""
        search = self.search
        state = TrafficState(search.model, hosts)
        relief = Relief(state, search.random)
        for _ in range(RELIEVED_STEPS_A_PIECE * search.model.pieces):
            if relief.excess == 0 or search.ends(stop):
                break
            relief.step()
            search.count("relieve")
            search.steps += 1
            search.tell(observer)
        found = Routed(state.named_trees(), state.flow, state.excess())
        search.keep(tuple(state.hosts), 0.0, found)

    def mend(self, hosts: Sequence[int], stop: Stop, observer: Observer | None) -> None:
        """Descends by what limits are broken by, until one is found that breaks none."""
        search = self.search
        model, limits = search.model, search.state.limits
        known: dict[tuple[int, ...], tuple[float, float]] = {}
        most = float("inf")
        end = search.steps + MENDED_STEPS

        def judge(hosts: tuple[int, ...]) -> tuple[float, float] | None:
            nonlocal most
            if search.best.excess == 0 or search.steps >= end or search.ends(stop):
                return None
            if (found := known.get(hosts)) is None:
                work = np.bincount(hosts, weights=model.costs, minlength=model.nodes)
                excess = float(limits.excess(work.astype(np.float64)).sum())
                found = (excess, float("inf"))
                if excess <= most:
                    search.steps += 1
                    search.tell(observer)
                    routed = route(model, hosts)
                    search.keep(hosts, excess, routed)
                    found = (excess + routed.excess, routed.flow)
                    most = min(most, found[0])
                known[hosts] = found
            return found

        mend(model, search.random, hosts, judge)

    def freely(self, stop: Stop, observer: Observer | None) -> Sequence[int]:
        """Searches with fewer limits a while, from where that was, and relieves what it finds."""
        search = self.search
        model = search.model
        if self.freed is None:
            seed = search.random.randrange(1 << 30)
            self.freed = [type(search)(freed, seed) for freed in kinds(model)]
            for free in self.freed:
                free.wanders = False  # these are to tell what costs little
        if not self.freed:
            return search.best.hosts
        free = self.freed[self.turns % len(self.freed)]
        end = free.steps + steps_of(self.turns // len(self.freed), model.pieces)

        def counted(_: Report) -> None:
            search.steps += 1
            search.tell(observer)
            self._try(free)

        free.run(lambda now: now.steps >= end or search.ends(stop), counted)
        self.turns += 1
        for hosts in (free.best.hosts, search.best.hosts):
            if model.limited and search.best.excess > 0:
                self.relieve(hosts, stop, observer)
        if model.limited and search.best.excess > 0:
            begins = (greedy(model), free.best.hosts, search.best.hosts)
            self.break_out(begins[(self.turns - 1) % len(begins)], stop, observer)
        return free.best.hosts

    def break_out(self, hosts: Sequence[int], stop: Stop, observer: Observer | None) -> None:
        """Small moves at what is over its limit, with prices of limits that rise."""
        steps = int(BREAKOUT_STEPS * GROWTH**self.turns)
        self._go(self._begin(hosts), steps, stop, observer)

    def _try(self, free: Search) -> None:
        """Routes a placement that costs little with fewer limits, if brokers bear it."""
        search, state = self.search, free.state
        if search.best.excess == 0 or state.flow > free.best.flow * (1 + NEAR):
            return
        excess = float(search.state.limits.excess(state.work).sum())
        hosts = tuple(state.hosts)
        if excess < search.best.excess and hosts not in search.judged:
            search.judged.add(hosts)
            search.keep(hosts, excess, route(search.model, hosts, ROUNDS_LEAST))

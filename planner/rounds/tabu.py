"""Tabu search in a vicinity: always the best step that is not forbidden, even a worse one.

Owns the choice of steps. Must not know when the search ends, nor where it begins anew. Invariant:
each step makes one move at most, of one piece, of two that change places, or of some that are
together; the ball counts exactly what it comes to.

As in `planner.search.tabu`: what is forbidden is a piece's return to where it was lately, and work
over a limit has a price that adapts, so that a search gets to plans at which it cannot arrive by
steps that all keep the limits. Here in whole numbers and without arrays, so that a broker needs no
library for it, and with the price of moves and the edge of the vicinity as the ball has them.
"""

from __future__ import annotations

from collections.abc import Generator
from random import Random

from planner.rounds.ball import Ball
from planner.rounds.rows import FAR, Rows
from planner.rounds.units import PARTS, broken

Moves = list[tuple[int, int]]

TENURE_MIN, TENURE_SPREAD = 6, 10  # steps for which a piece may not return
PATIENCE_STEPS = 6  # so many steps on one side of the limits change the price of breaking them
GROUPS_EVERY_STEPS = 12  # together-moves cost a row each, so they are looked at now and then
GROUPED = 3  # neighbours of a piece with which, one by one, it is tried together
STEP_SPENT = 100  # what a step takes at least, in streams looked at on links
PRICE_MAX = 1 << 90
NEVER = 1 << 300


class Tabu:
    """The search over all pieces of a ball; `best` and `kept` are the best value, and where."""

    def __init__(self, ball: Ball, random: Random) -> None:
        self.ball, self.random = ball, random
        self.rows = Rows(ball)
        self.pieces = sorted(ball.at)
        self.exact = True
        """Whether to try out what two pieces that concern each other come to together."""
        self.steps = 0
        self.best, self.kept = ball.value, dict(ball.at)
        self._price = max(1, ball.flow // (max(1, len(self.pieces)) * PARTS))
        self._limits = [NEVER if limit is None else limit for limit in ball.capacity]
        self._capped = any(limit is not None for limit in ball.capacity)
        self.all_anew()

    def all_anew(self) -> None:
        """As after moves that the search did not make."""
        self._known: dict[int, tuple[list[int], list[tuple[int, int]]]] = {}
        self._until: dict[tuple[int, int], int] = {}
        self._run = 0
        self._within = not self.ball.violation

    def place(self, at: dict[int, int]) -> None:
        """Puts pieces where they were at some time."""
        for piece, node in at.items():
            self.ball.move(piece, node)

    # --- one step ---------------------------------------------------------------------------

    def step(self) -> Generator[None, None, None]:
        """Makes one step; it may be interrupted wherever it yields."""
        self.steps += 1
        self.rows.spent += STEP_SPENT
        for piece in self.pieces:
            if piece not in self._known:
                row = self.rows.row((piece,))
                some = sorted((row[x], x) for x in self.ball.allowed[piece] if row[x] < FAR // 2)
                self._known[piece] = row, some
                yield
        moves: Moves = []
        if self.steps % GROUPS_EVERY_STEPS == 0:
            moves = yield from self._together()
        self._make(moves or self._choose())
        self._adapt()
        if self.ball.value < self.best:
            self.best, self.kept = self.ball.value, dict(self.ball.at)

    def _make(self, moves: Moves) -> None:
        for piece, node in moves:
            tenure = TENURE_MIN + self.random.randrange(TENURE_SPREAD)
            self._until[piece, self.ball.at[piece]] = self.steps + tenure
            self.ball.move(piece, node)
        for piece, _ in moves:
            for other in self.rows.near(piece):
                self._known.pop(other, None)

    def _adapt(self) -> None:
        """Raises the price of breaking limits while they are broken, and else lowers it."""
        within = not self.ball.violation
        self._run = self._run + 1 if within == self._within else 0
        self._within = within
        if self._run >= PATIENCE_STEPS:
            self._run = 0
            price = self._price * 10 // 13 if within else self._price * 8 // 5 + 1
            self._price = min(max(price, 1), PRICE_MAX)

    def _over(self, node: int, work: int) -> int:
        limit = self._limits[node]
        return 0 if work <= limit else broken(work, limit)

    def _forbidden(self, piece: int, node: int, violation: int, flow: int) -> bool:
        """Whether a piece may not go there, unless that is better than all that there was."""
        if self._until.get((piece, node), 0) < self.steps:
            return False
        ball = self.ball
        return (ball.violation + violation, ball.flow + flow) >= self.best

    def _choose(self) -> Moves:
        """The best step: a piece elsewhere, or two that change places."""
        ball, work = self.ball, self.ball.work
        over = [self._over(node, load) for node, load in enumerate(work)]
        least, equal = NEVER, 0
        moves: Moves = []
        gains: dict[int, int] = {}
        for piece in self.pieces:
            here, cost = ball.at[piece], ball.cost(piece)
            row, nodes = self._known[piece]
            now = row[here]
            left = self._over(here, work[here] - ball.cost_at(piece, here)) - over[here]
            for flow, node in nodes:
                if piece in gains and flow - now + self._price * left > least:
                    break  # those that follow cost more flow
                self.rows.spent += 1
                grown = left + self._over(node, work[node] + cost) - over[node]
                if node == here or self._forbidden(piece, node, grown, flow - now):
                    continue
                gains.setdefault(piece, flow - now)
                score = flow - now + self._price * grown
                equal = 1 if score < least else equal + (score == least)
                if score < least or (score == least and not self.random.randrange(equal)):
                    least, moves = score, [(piece, node)]
        exchange = self._exchange(over, gains, least) if self._capped else []
        return exchange or moves

    def _exchange(self, over: list[int], gains: dict[int, int], least: int) -> Moves:
        """The best two to change places where that is below `least`; none where it is not.

        What two pieces change adds up where neither concerns the other. Else it is tried out where
        `exact` says so; to take the sum for it leads elsewhere, which is good for a change.
        """
        ball, at, work = self.ball, self.ball.at, self.ball.work
        relief = self._price * 2 * max(over)
        most = min(gains.values(), default=0) - relief  # what the other may gain at best
        value, pair = least, (-1, -1)
        for place, one in enumerate(self.pieces):
            if one not in gains or gains[one] + most >= value:
                continue
            a, row, allowed = at[one], self._known[one][0], ball.allowed[one]
            here = row[a]
            self.rows.spent += len(self.pieces) - place
            for other in self.pieces[place + 1 :]:
                b = at[other]
                there = self._known[other][0]
                flow = row[b] - here + there[a] - there[b]
                if flow - relief >= value or b not in allowed or a not in ball.allowed[other]:
                    continue
                grown = ball.cost(other) - ball.cost(one)
                more = self._over(a, work[a] + grown) + self._over(b, work[b] - grown)
                more -= over[a] + over[b]
                if flow + self._price * more < value and not (
                    a == b
                    or self._forbidden(one, b, more, flow)
                    or self._forbidden(other, a, more, flow)
                ):
                    value, pair = flow + self._price * more, (one, other)
        if pair[0] < 0:
            return []
        moves = [(pair[0], at[pair[1]]), (pair[1], at[pair[0]])]
        if self.exact and pair[1] in self.rows.near(pair[0]):
            return moves if self._tried(moves) < least else []
        return moves

    def _tried(self, moves: Moves) -> int:
        """What moves come to: made, and undone."""
        ball = self.ball
        back = [(piece, ball.at[piece]) for piece, _ in moves]
        violation, flow = ball.value
        for piece, node in moves:
            ball.move(piece, node)
        found = ball.flow - flow + self._price * (ball.violation - violation)
        for piece, node in back:
            ball.move(piece, node)
        return found

    # --- pieces at one member -----------------------------------------------------------------

    def _together(self) -> Generator[None, None, Moves]:
        """The best move of pieces that are together and concern each other, if any gains."""
        ball, work = self.ball, self.ball.work
        least = 0
        moves: Moves = []
        for group in self._groups():
            row = self.rows.row(group)
            here = ball.at[group[0]]
            cost = sum(ball.cost(piece) for piece in group)
            gone = sum(ball.cost_at(piece, here) for piece in group)
            left = self._over(here, work[here] - gone) - self._over(here, work[here])
            for node in sorted(frozenset.intersection(*(ball.allowed[one] for one in group))):
                more = left + self._over(node, work[node] + cost) - self._over(node, work[node])
                score = row[node] - row[here] + self._price * more
                if node != here and score < least:
                    least, moves = score, [(piece, node) for piece in group]
            yield
        return moves

    def _groups(self) -> list[tuple[int, ...]]:
        """A piece with all that concern it and are at the same member, and with some of them."""
        at = self.ball.at
        found: dict[tuple[int, ...], None] = {}
        for piece in self.pieces:
            near = [one for one in self.rows.near(piece) if at[one] == at[piece]]
            if len(near) > 1:
                found[tuple(sorted(near))] = None
                found.update((tuple(sorted((piece, one))), None) for one in near[1 : GROUPED + 1])
        return list(found)

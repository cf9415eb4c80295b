"""A thorough look at a vicinity: tabu search, and kicks out of where it is stuck, in slices.

Owns the order of descents and kicks, and when the search ends. Must not know messages or time.
Invariant: the ball ends at the best that was met, never worse than it was found; the same ball,
effort and numbers give the same moves, whatever the slices.

The order is that of iterated local search: from what the last kick came to while that is good, else
from the best, or with many pieces placed anew.
"""

from __future__ import annotations

from collections.abc import Generator
from random import Random

from planner.rounds.ball import Ball, Value
from planner.rounds.improve import Effort
from planner.rounds.rows import FAR
from planner.rounds.tabu import Tabu

SHORT_STEPS = 20  # and one a piece: without a better placement, a kick has come to nothing
FAITHLESS_KICKS_MIN, FAITHLESS_KICKS_MAX = 10, 30  # that find nothing better: then elsewhere
TOLERANCE = 0.004  # by so much a placement may be worse than the one that it came from
KICKED_MAX = 12
SCATTERED = 0.2  # of the kicks
SCATTERED_MAX = 4
SCATTER_MEAN = 3.0  # how far down its list a scattered piece lands, about
AS_TOLD = 0.6  # of the times pieces that are placed anew come in the order of their numbers
PASSED_OVER = 0.12  # the chance that a piece does not get its best place, again and again
EXACT = 0.5  # of the descents try out what two pieces that concern each other change together
RETURNS = 0.4  # the chance of going back to the best rather than beginning anew

Found = tuple[Value, dict[int, int]]


class Thorough:
    """One thorough look; `go_on` until it is done, then the ball has the best."""

    def __init__(self, ball: Ball, effort: Effort, random: Random) -> None:
        self.tabu = Tabu(ball, random)
        self._ball, self._random = ball, random
        cells = len(ball.at) * len(ball.parent)
        self._most = min(effort.steps, effort.steps_for_each * cells)
        self._at_once = effort.steps_at_once
        self._slice = 0
        self._way = self._search()

    def go_on(self) -> bool:
        """One slice more; whether that was the last."""
        self._slice += self._at_once
        spent = self.tabu.rows
        for _ in self._way:
            if spent.spent >= self._most:
                break
            if spent.spent >= self._slice:
                return False
        self.tabu.place(self.tabu.kept)
        return True

    def _search(self) -> Generator[None, None, None]:
        tabu, random = self.tabu, self._random
        pieces = len(tabu.pieces)
        if pieces < 2 or len(self._ball.parent) < 2:  # one alone was tried everywhere
            return
        patience = SHORT_STEPS + pieces
        (value, at) = yield from self._descend(3 * patience)
        faithless = min(max(FAITHLESS_KICKS_MIN, pieces // 3), FAITHLESS_KICKS_MAX)
        vain = 0
        while True:
            best = tabu.best
            yield from self._kick(at)
            found, there = yield from self._descend(patience)
            vain = 0 if tabu.best < best else vain + 1
            room = int(value[1] * TOLERANCE * random.random())
            if found < value or (found[0] == value[0] and found[1] <= value[1] + room):
                value, at = found, there
            if vain > faithless:
                vain, value, at = 0, tabu.best, tabu.kept
                if random.random() >= RETURNS:
                    yield from self._kick(at, max(2, pieces // random.choice((2, 1))))
                    found, there = yield from self._descend(2 * patience)
                    if found[0] <= value[0]:
                        value, at = found, there

    def _descend(self, patience: int) -> Generator[None, None, Found]:
        """Steps until nothing better was found for some; what was best on the way, and where."""
        ball, tabu = self._ball, self.tabu
        value, at, since = ball.value, dict(ball.at), 0
        while since <= patience:
            yield from tabu.step()
            since += 1
            if ball.value < value:
                value, at, since = ball.value, dict(ball.at), 0
            yield
        return value, at

    # --- kicks --------------------------------------------------------------------------------

    def _kick(self, at: dict[int, int], size: int = 0) -> Generator[None, None, None]:
        """Back to a placement, and some of its pieces elsewhere."""
        tabu, random = self.tabu, self._random
        tabu.place(at)
        most = max(2, min(KICKED_MAX, len(tabu.pieces) // 2))
        pieces = self._some_near(size or random.randint(2, most))
        if not size and random.random() < SCATTERED:
            yield from self._scatter(pieces[:SCATTERED_MAX])
        else:
            yield from self._recreate(pieces)
        tabu.exact = random.random() < EXACT
        tabu.all_anew()

    def _some_near(self, size: int) -> list[int]:
        """A piece and others that concern it or are together with it; strangers if too few."""
        tabu, random, at = self.tabu, self._random, self._ball.at
        found = [random.choice(tabu.pieces)]
        met = set(found)
        for piece in found:  # grows while it is walked
            together = (one for one in tabu.pieces if at[one] == at[piece])
            near = dict.fromkeys((*tabu.rows.near(piece), *together))
            some = [one for one in near if one not in met]
            random.shuffle(some)
            chosen = some[: min(3, size - len(found))]
            met.update(chosen)
            found += chosen
            if len(found) >= size:
                return found
        rest = [piece for piece in tabu.pieces if piece not in met]
        return found + random.sample(rest, min(len(rest), size - len(found)))

    def _recreate(self, pieces: list[int]) -> Generator[None, None, None]:
        """Takes pieces up and puts each where it is cheapest beside what is placed, with room."""
        ball, random, rows = self._ball, self._random, self.tabu.rows
        work = list(ball.work)
        for piece in pieces:
            work[ball.at[piece]] -= ball.cost_at(piece, ball.at[piece])
        absent = set(pieces)
        order = sorted(pieces) if random.random() < AS_TOLD else pieces
        for piece in order:
            absent.discard(piece)
            row, cost = rows.row((piece,), absent), ball.cost(piece)
            nodes = [(row[x], x) for x in ball.allowed[piece] if row[x] < FAR // 2]
            roomy = [
                (flow, x)
                for flow, x in nodes
                if (limit := ball.capacity[x]) is None or work[x] + cost <= limit
            ]
            usable = sorted(roomy or nodes) or [(0, ball.at[piece])]
            place = 0
            while place + 1 < len(usable) and random.random() < PASSED_OVER:
                place += 1
            node = usable[place][1]
            ball.move(piece, node)
            work[node] += cost
            yield

    def _scatter(self, pieces: list[int]) -> Generator[None, None, None]:
        """Puts pieces at any of their cheaper places."""
        ball, random = self._ball, self._random
        for piece in pieces:
            row = self.tabu.rows.row((piece,))
            nodes = sorted((row[x], x) for x in ball.allowed[piece] if row[x] < FAR // 2)
            if nodes:
                place = min(int(random.expovariate(1 / SCATTER_MEAN)), len(nodes) - 1)
                ball.move(piece, nodes[place][1])
            yield

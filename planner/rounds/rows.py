"""What the streams of pieces come to at each member, counted for all members at once.

Owns that count. Must not know which move is wanted. Invariant: the difference between two members
is what the ball's flow would change by if the pieces went from one to the other; the ball stays as
it is.

On a tree a stream is on each link that parts its ends. With one end more, a step away from all the
others costs the stream's rate, and a step toward all of them saves it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from planner.rounds.ball import Ball

FAR = 1 << 200
"""More than any flow: there a partial result more or less would leave the vicinity."""


class Rows:
    """The rows of a ball's pieces; `spent` counts streams looked at on links."""

    def __init__(self, ball: Ball) -> None:
        self.ball = ball
        self.spent = 0
        self._count = len(ball.parent)
        self._above = list(enumerate(ball.parent))[1:]
        self._streams = {piece: tuple(ball.streams_of(piece)) for piece in ball.at}
        of_any = dict.fromkeys(one for some in self._streams.values() for one in some)
        self._ends = {stream: tuple(ball.ends(stream)) for stream in of_any}
        self._hops: dict[int, list[int]] = {}
        self._near: dict[int, tuple[int, ...]] = {}

    def row(self, group: Sequence[int], absent: Collection[int] = ()) -> list[int]:
        """The flow with all of a group at each member, but for what is the same wherever it is.

        As if those that are absent did not exist.
        """
        ball, away = self.ball, {*group, *absent}
        found = [0] * self._count
        streams = dict.fromkeys(one for piece in group for one in self._streams[piece])
        self.spent += self._count * (1 + len(streams))
        for stream in streams:
            rate = ball.rate[stream]
            below, total = self._without(stream, away)
            if total:
                for node, count in enumerate(below):
                    if not count:
                        found[node] += rate
                    elif count == total:
                        found[node] -= rate
        found[0] = 0
        for node, above in self._above:
            found[node] += found[above]
        for number in ball.aggregates_of(group):
            self._join(number, group, away, found)
        if ball.prices:
            for piece in group:
                found[ball.start[piece]] -= ball.prices.get(piece, 0)
        return found

    def _without(self, stream: int, away: Collection[int]) -> tuple[list[int], int]:
        """A stream's ends at or below each member and in all, but for those of some pieces."""
        ball = self.ball
        below = ball.below[stream]
        lifted = [ball.at[piece] for piece in self._ends[stream] if piece in away]
        if lifted:
            below, parent = below[:], ball.parent
            for node in lifted:
                above = node
                while above >= 0:
                    below[above] -= 1
                    above = parent[above]
        return below, below[0]

    def _join(
        self, number: int, group: Sequence[int], away: Collection[int], found: list[int]
    ) -> None:
        """Adds what the partial results of an aggregate come to."""
        ball = self.ball
        joint, aggregate = ball.view.joints[number], ball.view.layout.aggregates[number]
        makers = {
            ball.at[piece]: 1
            for piece in aggregate.partials
            if piece in ball.at and piece not in away
        }
        parts = any(piece in group for piece in aggregate.partials)
        if aggregate.header in group:
            sent = dict(makers)
            for node, _, count in joint.come:
                sent[node] = sent.get(node, 0) + count
            for node, count in sent.items():
                for other, hops in enumerate(self.hops(node)):
                    found[other] += joint.rate * hops * count
        elif aggregate.header not in away:
            for node, hops in enumerate(self.hops(ball.header[number])):
                if node not in makers:
                    found[node] += joint.rate * hops
        elif makers:  # the header will not be far from the partials that there are
            for node in range(self._count):
                found[node] += joint.rate * min(self.hops(node)[one] for one in makers)
        if parts and joint.beyond >= 0:
            for node in range(self._count):
                if len(makers) + (node not in makers) != ball.made_first[number]:
                    found[node] += FAR

    def hops(self, node: int) -> list[int]:
        """How many hops away each member is."""
        if (known := self._hops.get(node)) is None:
            known = self._hops[node] = [-1] * self._count
            known[node] = 0
            reached = [node]
            for one in reached:
                for other in self.ball.neighbours[one]:
                    if known[other] < 0:
                        known[other] = known[one] + 1
                        reached.append(other)
        return known

    def near(self, piece: int) -> tuple[int, ...]:
        """The pieces whose rows hang on where this one is, itself first."""
        if (known := self._near.get(piece)) is None:
            ball = self.ball
            found = {piece: None}
            for stream in self._streams[piece]:
                found.update(dict.fromkeys(self._ends[stream]))
            for number in ball.aggregates_of((piece,)):
                aggregate = ball.view.layout.aggregates[number]
                every = (*aggregate.partials, aggregate.header)
                found.update(dict.fromkeys(one for one in every if one in ball.at))
            known = self._near[piece] = tuple(found)
        return known

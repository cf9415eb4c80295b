"""A vicinity with what runs there, changed step by step at little cost.

Owns loads, violations and the flow among the members, and every change of them. Must not know which
change is wanted. Invariant: `value` is what the links and limits of the members come to, whole
units, whatever was moved to and fro; on a tree that is all that changes in the whole network.

A stream lies on the links that part its ends, so a move over one link changes that link alone.
What leaves the vicinity leaves by the same links after any move; aggregates must not change the
number of partial results that leave, and count as broken where they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from planner.layout import Aggregate
from planner.rounds.units import PARTS, SCALE, broken
from planner.rounds.view import View

Value = tuple[int, int]
"""(violation, flow): both whole, the first weighs more."""

OUTSIDE_PARTS = 1000 * PARTS  # for a partial result more or less that leaves: never to be chosen


class Ball:
    """The members of a view by number: parents before children, the leader is 0.

    `prices` is what it costs to have a piece elsewhere than where it was found, in flow.
    """

    def __init__(self, view: View, prices: Mapping[int, int] | None = None) -> None:
        self.view = view
        self.parent = view.parent
        count = len(view.brokers)
        self.neighbours: list[list[int]] = [[] for _ in range(count)]
        for child, parent in enumerate(self.parent):
            if parent >= 0:
                self.neighbours[parent].append(child)
                self.neighbours[child].append(parent)
        self._number()
        self.flow = self.violation = 0
        brokers = view.brokers
        self._up_limit = [self._limit(brokers[c], p) for c, p in enumerate(self.parent)]
        self._down_limit = [
            self._limit(brokers[c], p, down=True) for c, p in enumerate(self.parent)
        ]
        self.up = [0] * count
        self.down = [0] * count
        self.work = [0] * count
        self.sent = [0] * count
        self.drained = [summary.drained for summary in view.summaries]
        self.capacity = [0 if one.drained else one.capacity for one in view.summaries]
        self.egress = [summary.egress for summary in view.summaries]
        self.at = dict(view.at)
        self.start = dict(view.at)
        self.prices = prices or {}
        self._cost = {
            one.piece: one.cost for summary in view.summaries for one in summary.tables.hosted
        }
        numbers = view.numbers
        self.allowed: dict[int, frozenset[int]] = {
            piece: frozenset(
                numbers[host]
                for host in view.layout.pieces[piece].hosts
                if host in numbers and not self.drained[numbers[host]]
            )
            for piece in self.at
        }
        for piece, node in self.at.items():
            self._work(node, self.cost_at(piece, node))
        self._lay_streams()
        self._lay_joints()

    @property
    def value(self) -> Value:
        """What is to be lessened."""
        return self.violation, self.flow

    # --- moves ------------------------------------------------------------------------------

    def step(self, piece: int, a: int, b: int) -> None:
        """Move a piece from `a` over the link to its neighbour `b`."""
        self._work(a, -self.cost_at(piece, a))
        self._work(b, self.cost_at(piece, b))
        if self.prices and (price := self.prices.get(piece, 0)):
            start = self.start[piece]
            self.flow += price if a == start else -price if b == start else 0
        self.at[piece] = b
        edge, change = (a, -1) if self.parent[a] == b else (b, 1)
        for stream in self._consumed.get(piece, ()):
            self._shift(stream, edge, change)
        for stream in self._sent_by.get(piece, ()):
            self._shift_source(stream, edge, change, b)
        part = self._part.get(piece)
        if part is not None:
            self._step_part(part, a, b)
        headed = self._heads.get(piece)
        if headed is not None:
            self._step_header(headed, edge, a, b)

    def move(self, piece: int, to: int) -> None:
        """Move a piece to a member, link by link."""
        while (at := self.at[piece]) != to:
            self.step(piece, at, self.toward(at, to))

    def toward(self, a: int, b: int) -> int:
        """The neighbour of `a` on the way to `b`."""
        if not self._first[a] <= self._first[b] < self._past[a]:
            return self.parent[a]
        return next(
            child
            for child in self.neighbours[a]
            if child != self.parent[a] and self._first[child] <= self._first[b] < self._past[child]
        )

    def consumers(self, stream: int) -> list[int]:
        """The pieces among the members that consume a stream."""
        return [p for p in self.view.layout.streams[stream].consumers if p in self.at]

    def consumed(self, piece: int) -> Sequence[int]:
        """The streams that a piece consumes."""
        return self._consumed.get(piece, ())

    def streams_of(self, piece: int) -> list[int]:
        """The streams that a piece consumes, and those that it sends."""
        return [*self._consumed.get(piece, ()), *self._sent_by.get(piece, ())]

    def ends(self, stream: int) -> list[int]:
        """The pieces among the members that consume or send a stream."""
        maker = self.view.layout.streams[stream].piece
        return [*self.consumers(stream), *([maker] if maker in self.at else [])]

    def aggregates_of(self, pieces: Iterable[int]) -> list[int]:
        """The aggregates that some pieces are parts or headers of."""
        found: dict[int, None] = {}
        for piece in pieces:
            for number in (self._part.get(piece), self._heads.get(piece)):
                if number is not None:
                    found[number] = None
        return list(found)

    def cost(self, piece: int) -> int:
        """What a piece costs where it may be."""
        return self._cost[piece]

    def cost_at(self, piece: int, node: int) -> int:
        """What a piece costs; where it is to go away, at least as much as is felt."""
        cost = self._cost[piece]
        return max(cost, SCALE) if self.drained[node] else cost

    def overloaded(self) -> list[int]:
        """The members at which work or egress is over its limit, or that a full link leaves."""
        found = []
        for node in range(len(self.parent)):
            over = [
                (self.work[node], self.capacity[node]),
                (self.sent[node], self.egress[node]),
                (self.up[node], self._up_limit[node]),
                (self.down[node], self._down_limit[node]),
            ]
            if any(limit is not None and broken(load, limit) for load, limit in over):
                found.append(node)
        return found

    # --- laying out -------------------------------------------------------------------------

    def _number(self) -> None:
        """Numbers each subtree in a row, so that to lie in it is to lie between two numbers."""
        count = len(self.parent)
        size = [1] * count
        for node in range(count - 1, 0, -1):
            size[self.parent[node]] += size[node]
        self._first = [0] * count
        free = [1] * count
        for node in range(1, count):
            above = self.parent[node]
            self._first[node] = self._first[above] + free[above]
            free[above] += size[node]
        self._past = [first + own for first, own in zip(self._first, size, strict=True)]

    def _limit(self, child: int, parent: int, *, down: bool = False) -> int | None:
        if parent < 0:
            return None
        above = self.view.brokers[parent]
        arc = (above, child) if down else (child, above)
        return self.view.tree.limits.get(arc)

    def _lay_streams(self) -> None:
        self.source: dict[int, int] = {}
        self.rate: dict[int, int] = {}
        self.below: dict[int, list[int]] = {}
        self._total: dict[int, int] = {}
        self._consumed: dict[int, list[int]] = {}
        self._sent_by: dict[int, list[int]] = {}
        for stream, ends in self.view.streams.items():
            self.source[stream], self.rate[stream] = ends.source, ends.rate
            below = self.below[stream] = self._sums(ends.at)
            total = self._total[stream] = below[0]
            for node in range(1, len(below)):
                if 0 < below[node] < total:
                    self._load(node, self._holds(node, ends.source), ends.rate)
            for node, _ in ends.out:
                self._send(node, ends.rate)
            known = self.view.layout.streams[stream]
            for piece in known.consumers:
                if piece in self.at:
                    self._consumed.setdefault(piece, []).append(stream)
            if known.piece is not None and known.piece in self.at:
                self._sent_by.setdefault(known.piece, []).append(stream)

    def _lay_joints(self) -> None:
        self.keys_at: dict[int, list[int]] = {}
        self._joined_below: dict[int, list[int]] = {}
        self._part: dict[int, int] = {}
        self._heads: dict[int, int] = {}
        self.header: dict[int, int] = {}
        self.made: dict[int, int] = {}
        self.made_first: dict[int, int] = {}
        for number, joint in self.view.joints.items():
            aggregate: Aggregate = self.view.layout.aggregates[number]
            self.header[number] = joint.header
            keys = self.keys_at[number] = [0] * len(self.parent)
            for piece in aggregate.partials:
                if piece in self.at:
                    keys[self.at[piece]] += 1
                    self._part[piece] = number
            if aggregate.header in self.at:
                self._heads[aggregate.header] = number
            at = {node: 1 for node, count in enumerate(keys) if count}
            self.made[number] = self.made_first[number] = len(at)
            for node, _, count in joint.come:
                at[node] = at.get(node, 0) + count
            below = self._joined_below[number] = self._sums(at)
            inside = self._holds
            for node in range(1, len(below)):
                lies_below = inside(node, joint.header)
                through = below[0] - below[node] if lies_below else below[node]
                if through:
                    self._load(node, not lies_below, through * joint.rate)
            if joint.beyond >= 0:
                self._send(joint.header, below[0] * joint.rate)

    def _sums(self, at: Mapping[int, int]) -> list[int]:
        below = [0] * len(self.parent)
        for node, count in at.items():
            below[node] = count
        for node in range(len(below) - 1, 0, -1):
            below[self.parent[node]] += below[node]
        return below

    def _holds(self, node: int, other: int) -> bool:
        return self._first[node] <= self._first[other] < self._past[node]

    # --- one link, one limit ----------------------------------------------------------------

    def _shift(self, stream: int, edge: int, change: int) -> None:
        """One end more or less below a link."""
        below, total = self.below[stream], self._total[stream]
        before = below[edge]
        below[edge] = after = before + change
        carried = 0 < before < total
        if carried != (0 < after < total):
            rate = self.rate[stream]
            self._load(edge, self._holds(edge, self.source[stream]), -rate if carried else rate)

    def _shift_source(self, stream: int, edge: int, change: int, to: int) -> None:
        """The beginning of a stream goes over a link: what it carries turns round."""
        below, total = self.below[stream], self._total[stream]
        rate, was_below = self.rate[stream], change < 0
        if 0 < below[edge] < total:
            self._load(edge, was_below, -rate)
        below[edge] += change
        if 0 < below[edge] < total:
            self._load(edge, not was_below, rate)
        self.source[stream] = to

    def _step_part(self, number: int, a: int, b: int) -> None:
        keys = self.keys_at[number]
        keys[a] -= 1
        if not keys[a]:
            self._make(number, a, -1)
        keys[b] += 1
        if keys[b] == 1:
            self._make(number, b, 1)

    def _make(self, number: int, node: int, change: int) -> None:
        """One partial result more or less that begins at a member."""
        joint = self.view.joints[number]
        below, header = self._joined_below[number], self.header[number]
        above = node
        while above >= 0:
            below[above] += change
            above = self.parent[above]
        at = node
        while at != header:
            onward = self.toward(at, header)
            upward = self.parent[at] == onward
            self._load(at if upward else onward, upward, change * joint.rate)
            at = onward
        if joint.beyond >= 0:
            self._send(header, change * joint.rate)
            first = self.made_first[number]
            self.violation -= OUTSIDE_PARTS * abs(self.made[number] - first)
            self.violation += OUTSIDE_PARTS * abs(self.made[number] + change - first)
        self.made[number] += change

    def _step_header(self, number: int, edge: int, a: int, b: int) -> None:
        below, rate = self._joined_below[number], self.view.joints[number].rate
        under, over = below[edge], below[0] - below[edge]
        upward = edge == a
        self._load(edge, not upward, -rate * (over if upward else under))
        self._load(edge, upward, rate * (under if upward else over))
        self.header[number] = b

    def _load(self, edge: int, upward: bool, change: int) -> None:
        self.flow += change
        loads, limits = (self.up, self._up_limit) if upward else (self.down, self._down_limit)
        limit = limits[edge]
        if limit is not None:
            self.violation += broken(loads[edge] + change, limit) - broken(loads[edge], limit)
        loads[edge] += change
        node = edge if upward else self.parent[edge]
        if self.egress[node] is None:
            self.sent[node] += change
        else:
            self._send(node, change)

    def _send(self, node: int, change: int) -> None:
        limit = self.egress[node]
        if limit is not None:
            self.violation += broken(self.sent[node] + change, limit) - broken(
                self.sent[node], limit
            )
        self.sent[node] += change

    def _work(self, node: int, change: int) -> None:
        limit = self.capacity[node]
        if limit is not None:
            self.violation += broken(self.work[node] + change, limit) - broken(
                self.work[node], limit
            )
        self.work[node] += change

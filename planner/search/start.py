"""How a search begins: each piece where it seems cheapest, and then, among many, in turn again.

Owns the paper's estimate, the greedy placement by it, and the queue of pieces of a descent with the
penalty of broken limits meanwhile. Must not know what operators do afterwards. Invariant: a piece
goes where there is room for it as long as there is any; a descent never keeps a change for the
worse, and each pass looks only at pieces for which something near has changed.

Chance would leave pieces out for long. Where brokers alone are limited, limits cost nothing at
first and more with each pass, so that pieces settle where they are cheapest and are pushed out of
what is full little by little, in the end by chains. Where links are limited too that would take too
long: what the start breaks is relieved first, and from then on no limit is broken. Where a pass
gains little, the next is of another kind: pieces alone, what streams connect at a broker, chains.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress, repeat
from operator import ge

from planner.flow import over
from planner.search.context import Changes, MoveContext
from planner.search.distances import unpacked
from planner.search.instance import ABSENT, ROOM, Instance
from planner.search.moves.ejection import Eject
from planner.search.moves.joint import MoveJointly
from planner.search.moves.kinds import Together
from planner.search.moves.relief import Relieve

# Of what a piece causes on average, after a pass for nothing: equal places with room count.
PENALTY_FREE = 1e-4
# Of what a piece causes on average: the price of breaking a limit wholly, after free passes.
PENALTY_FIRST = 0.4
PENALTY_GROWTH = 2.0
# The same where limits are to be kept from the beginning.
PENALTY_HARD = 1e6
# The same once a plan keeps them; at 4 the descent breaks limits that nothing mends for long.
PENALTY_SOFT = 400.0
# Of the flow: after a pass that gained less comes one of another kind.
PASS_GAIN = 2e-3
PASSES_MAX = 100
SETTLE, TOGETHER, EJECT = range(3)


def estimate(
    instance: Instance, pieces: Sequence[int], hosts: Sequence[int], *, alike: bool = False
) -> list[int]:
    """Return the paper's v_is of a group of pieces by broker, in parts of the greatest rate.

    Every input and destination counts for itself, whatever is shared; consumers that are not placed
    yet do not count, nor do streams within the group. Paper 003, section 4.2. Where streams are
    taken to be `alike`, hops alone count.
    """
    total = 0
    for number in dict.fromkeys(n for piece in pieces for n in instance.of_piece[piece]):
        flow = instance.flows[number]
        share = 1 if alike else flow.share
        ahead, back = flow.topology.ahead, flow.topology.back
        others = {hosts[p] for p in flow.consumers if p not in pieces} - {ABSENT}
        if flow.header is not None and flow.header not in pieces:
            if others:  # the header will not be far from the partials that there are
                total += share * back.nearest(sorted(others), 0)
        elif flow.header is not None:
            total += share * sum(ahead.lanes(node) for node in others)
        elif flow.sender is not None and flow.sender in pieces:
            ends = others.union(flow.destinations)
            total += share * sum(back.lanes(end) for end in ends)
        else:
            source = flow.origin if flow.sender is None else hosts[flow.sender]
            if source != ABSENT:
                total += share * ahead.lanes(source)
    return unpacked(total, instance.nodes)


def greedy(instance: Instance, *, alike: bool = False) -> list[int]:
    """Return a host for each piece, tasks after those that feed them, the cheapest with room.

    The greedy move of paper 003, algorithm 1, made once for each piece; `alike` as for `estimate`.
    """
    hosts = [ABSENT] * instance.pieces
    work, limits = [0.0] * instance.nodes, instance.capacity
    room = [limit * (1 + ROOM) for limit in limits]
    order = sorted(range(instance.pieces), key=lambda piece: (instance.rank[piece], piece))
    for piece in order:
        costs = estimate(instance, (piece,), hosts, alike=alike)
        own = instance.costs[piece]
        allowed = instance.hosts[piece]
        roomy = compress(allowed, map(ge, map(room.__getitem__, allowed), repeat(own)))
        host = min(roomy, key=costs.__getitem__, default=ABSENT)
        if host == ABSENT:
            beyond = [over(work[h] + own, limits[h]) - over(work[h], limits[h]) for h in allowed]
            _, host = min(zip(beyond, allowed, strict=True))
        hosts[piece] = host
        work[host] += own
        room[host] -= own
    return hosts


class FirstDescent:
    """The operators of the beginning; `over` says that it has ended."""

    def __init__(self, context: MoveContext) -> None:
        instance = context.instance
        self.context = context
        self.over = not instance.many
        # What weighs most comes first: it is taken from the end.
        self.queue = sorted(range(instance.pieces), key=instance.weights.__getitem__)
        self.order = {piece: place for place, piece in enumerate(self.queue)}
        self.passes = self.vain = 0  # all, and those in turn that gained little
        self.pressed: set[int] = set()
        self.flow_before = context.evaluator.flow
        # What is done with a piece, by kind; ejection only where brokers are limited.
        self.kinds: list[tuple[str, Callable[[int], Changes]]] = [("settle", self._settle)]
        self.kinds.append((Together.name, partial(Together().settle, context)))
        if instance.capped:
            self.kinds.append((Eject.name, partial(Eject().propose, context)))
        self.kind, self.priced = SETTLE, False
        context.penalty = context.usual
        if not self.over:
            # All are looked at in each way: at first by themselves, which the queue begins with.
            context.settled = {name: set() for name, _ in self.kinds}
            context.settled[self.kinds[SETTLE][0]].update(self.queue)
            context.penalty = PENALTY_HARD * context.usual if instance.limited else 0.0

    def propose(self) -> tuple[str, Changes]:
        """Make a change; return the name of its kind and what undoes it."""
        if self.context.instance.limited and self.context.evaluator.loads.broken:
            return Relieve.name, Relieve().propose(self.context)
        name, change = self.kinds[self.kind]
        return name, change(self.queue.pop()) if self.queue else []

    def _settle(self, piece: int) -> Changes:
        """Bring a piece to where it costs least, with the one that it alone feeds."""
        context, instance = self.context, self.context.instance
        fed = instance.fed[piece]
        if len(fed) == 1 and not instance.flows[fed[0][0]].destinations:
            ((number, other),) = fed
            # All brokers are looked at while that is cheap, or where it is full.
            anywhere = not instance.limited and (not context.penalty or piece in self.pressed)
            pair = MoveJointly.cheapest(context, piece, other, number, anywhere=anywhere)
            return context.made(pair)
        return context.made([(piece, min(context.choices((piece,)))[1])])

    def keep(self) -> None:
        """Have limits cost less once a plan keeps them all."""
        # Others may then break them a little on the way to a better one.
        if self.context.instance.limited and not self.context.evaluator.loads.broken:
            self.context.penalty = PENALTY_SOFT * self.context.usual

    def next_pass(self) -> None:
        """Look again at what something changed for, in another way where that gained little."""
        evaluator, context = self.context.evaluator, self.context
        gained = self.flow_before - evaluator.flow
        self.vain = self.vain + 1 if gained <= PASS_GAIN * abs(self.flow_before) else 0
        self.flow_before = evaluator.flow
        self.passes += 1
        broken = bool(evaluator.loads.broken) and not context.instance.limited
        first = evaluator.loads.first_work
        full = [limit - first for limit in evaluator.loads.broken if limit >= first]
        crowded = [piece for node in full for piece in evaluator.at[node]]
        self.pressed = {other for piece in crowded for other in context.instance.near[piece]}
        if broken and self.priced:
            self.vain = 0
            self.kind = SETTLE if self.kind == EJECT else EJECT
            context.penalty *= PENALTY_GROWTH
            context.settled[self.kinds[self.kind][0]].difference_update(crowded)
        elif self.vain:
            kinds = EJECT if broken else len(self.kinds)
            self.kind = (self.kind + 1) % kinds
            self.over = self.vain > kinds and not broken
            if self.vain > kinds and broken:
                self.priced, self.kind, self.vain = True, SETTLE, 0
                context.penalty = PENALTY_FIRST * context.usual
                context.settled[self.kinds[SETTLE][0]].difference_update(crowded)
        elif broken and not context.penalty:
            context.penalty = PENALTY_FREE * context.usual
        self.over = self.over or self.passes >= PASSES_MAX
        # Those at brokers that run too much come first, with what concerns them: what they leave
        # may already be a plan. While limits are broken a pass is for those alone.
        alone = broken and self.priced
        settled = context.settled[self.kinds[self.kind][0]]
        waiting = (self.pressed if alone else self.order.keys()) - settled
        self.queue = sorted(waiting, key=lambda piece: (piece in self.pressed, self.order[piece]))
        settled |= waiting

"""How a search begins: each piece where it seems cheapest, and then, among many, in turn again.

Owns the paper's estimate, the greedy placement by it, and the queue of pieces of a descent with the
penalty of broken limits meanwhile. Must not know what operators do afterwards. Invariant: a piece
goes where there is room for it as long as there is any; a descent never keeps a change for the
worse, and each pass looks only at pieces for which something near has changed.

Chance would leave pieces out for long. Where brokers alone are limited, limits cost nothing at
first and more with each pass, so that pieces settle where they are cheapest and are pushed out of
what is full little by little. Where links are limited too that would take too long: what the start
breaks is relieved first, and from then on no limit is broken.
"""

from collections.abc import Sequence
from itertools import compress, repeat
from operator import ge

from planner.flow import over
from planner.search.context import Changes, MoveContext
from planner.search.distances import unpacked
from planner.search.evaluator import ABSENT, Evaluator
from planner.search.instance import ROOM, Instance
from planner.search.moves.joint import MoveJointly
from planner.search.moves.relief import Relieve

# Of what a piece causes on average, after a pass for nothing: equal places with room count.
PENALTY_FREE = 1e-4
# Of what a piece causes on average: the price of breaking a limit wholly, after free passes.
PENALTY_FIRST = 0.05
PENALTY_GROWTH = 2.0
# The same where limits are to be kept from the beginning.
PENALTY_HARD = 1e6
# The same once a plan keeps them; at 4 the descent breaks limits that nothing mends for long.
PENALTY_SOFT = 400.0
# Of the flow: a pass that gained less was the last, if limits are kept.
PASS_GAIN = 2e-3
# Of the pieces of a pass: where no more move, breaking a limit becomes dearer.
MOVED_FEW = 0.05
PASSES_MAX = 100


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
            if source is not None and source != ABSENT:
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
        self.context, self.usual = context, context.usual
        self.over = not context.instance.many
        self.queue = context.instance.lightest_first()
        self.next: dict[int, None] = {}
        self.passes = 0
        self.moved, self.looked = 0, 1  # pieces, in this pass
        self.proposed: list[int] = []
        self.pressed: set[int] = set()
        self.flow_before = context.evaluator.flow
        self.jointly, self.relieve = MoveJointly(), Relieve()
        context.penalty = self.usual
        if not self.over:
            context.penalty = PENALTY_HARD * self.usual if context.instance.limited else 0.0

    def propose(self) -> tuple[str, Changes]:
        """Make a change; return the name of its kind and what undoes it."""
        self.proposed = []
        instance, evaluator = self.context.instance, self.context.evaluator
        if instance.limited and evaluator.loads.broken:
            return self.relieve.name, self.relieve.propose(self.context)
        return "settle", self._settle(self.queue.pop()) if self.queue else []

    def _settle(self, piece: int) -> Changes:
        """Bring a piece to where it costs least, with the one that it alone feeds."""
        context, instance = self.context, self.context.instance
        hosts = context.evaluator.hosts
        fed = instance.fed[piece]
        if len(fed) == 1 and not instance.flows[fed[0][0]].destinations:
            ((number, other),) = fed
            # All brokers are looked at while that is cheap, or where it is full.
            free = not context.penalty or piece in self.pressed
            anywhere = free and not instance.limited
            goals = list(MoveJointly.cheapest(context, piece, other, number, anywhere=anywhere))
        else:
            goals = [(piece, min(context.choices((piece,)))[1])]
        moves = [(p, host) for p, host in goals if hosts[p] != host]
        if not moves:
            return []
        self.proposed = [p for p, _ in moves]
        return [context.evaluator.apply(moves)]

    def keep(self) -> None:
        """Look again, in the next pass, at all that the change that was kept concerns."""
        if self.context.instance.limited and not self.context.evaluator.loads.broken:
            # A plan that keeps all limits is known: others may break them a little on the way.
            self.context.penalty = PENALTY_SOFT * self.usual
        self.moved += bool(self.proposed)
        for piece in self.proposed:
            self.next.update(dict.fromkeys(self.context.instance.near[piece]))

    def next_pass(self) -> None:
        """Look again at what something changed for; end where that gains little."""
        evaluator, context = self.context.evaluator, self.context
        gained = self.flow_before - evaluator.flow
        slow = gained <= PASS_GAIN * abs(self.flow_before)
        self.flow_before = evaluator.flow
        self.passes += 1
        broken = bool(evaluator.loads.broken) and not context.instance.limited
        first = PENALTY_FIRST * self.usual
        free = context.penalty < first
        if broken and not context.penalty:
            context.penalty = PENALTY_FREE * self.usual
        elif broken and (slow if free else self.moved < MOVED_FEW * self.looked):
            context.penalty = first if free else context.penalty * PENALTY_GROWTH
            self.next.update(dict.fromkeys(self._crowded(evaluator)))
        self.over = (slow and not broken) or self.passes >= PASSES_MAX
        self.moved, self.looked = 0, max(1, len(self.next))
        order = {piece: place for place, piece in enumerate(context.instance.lightest_first())}
        # Those at brokers that run too much come first, with what concerns them: what they leave
        # may already be a plan.
        near = context.instance.near
        self.pressed = {other for piece in self._crowded(evaluator) for other in near[piece]}
        waiting = self.next
        if broken and self.pressed:
            # While limits are broken a pass is for those alone; the others wait until none is.
            waiting = dict.fromkeys(piece for piece in self.next if piece in self.pressed)
        self.queue = sorted(waiting, key=lambda piece: (piece in self.pressed, order[piece]))
        self.next = {piece: None for piece in self.next if piece not in waiting}

    @staticmethod
    def _crowded(evaluator: Evaluator) -> list[int]:
        """Return the pieces at brokers that run too much."""
        first = evaluator.loads.first_work
        full = [limit - first for limit in evaluator.loads.broken if limit >= first]
        return [piece for node in full for piece in evaluator.at[node]]

"""How a search of many brokers begins: each piece in turn goes to where it costs least.

Owns the queue of pieces and the penalty of broken limits meanwhile. Must not know what operators do
afterwards. Invariant: a change for the worse is never kept, and each pass looks only at pieces for
which something near has changed since they were looked at.

Chance would leave pieces out for long. Where brokers alone are limited, limits cost nothing at
first and more with each pass, so that pieces settle where they are cheapest and are pushed out of
what is full little by little. Where links are limited too that would take too long: what the start
breaks is relieved first, and from then on no limit is broken.
"""

from experiments.search.context import Changes, Context
from experiments.search.evaluator import Evaluator
from experiments.search.joint import MoveJointly
from experiments.search.relief import Relieve

PENALTY_FREE = 1e-4
"""Of what a piece causes on average, after a pass for nothing: equal places with room count."""
PENALTY_FIRST = 0.05
"""Of what a piece causes on average: the price of breaking a limit wholly, after free passes."""
PENALTY_GROWTH = 2.0
PENALTY_HARD = 1e6
"""The same where limits are to be kept from the beginning."""
PENALTY_SOFT = 400.0
"""The same once a plan keeps them; at 4 the descent breaks limits that nothing mends for long."""
PASS_GAIN = 2e-3
"""Of the flow: a pass that gained less was the last, if limits are kept."""
RELIEVED = 1.0
"""Of the steps, while limits are broken that are to be kept."""
MOVED_FEW = 0.05
"""Of the pieces of a pass: where no more move, breaking a limit becomes dearer."""
PASSES_MAX = 100


class Descent:
    """The operators of the beginning; `over` says that it has ended."""

    def __init__(self, context: Context, usual: float) -> None:
        self.context, self.usual = context, usual
        self.over = not context.instance.many
        self.queue = context.instance.lightest_first()
        self.next: dict[int, None] = {}
        self.passes = 0
        self.moved, self.looked = 0, 1  # pieces, in this pass
        self.proposed: list[int] = []
        self.flow_before = context.evaluator.flow
        self.jointly, self.relieve = MoveJointly(), Relieve()
        context.penalty = usual
        if not self.over:
            context.penalty = PENALTY_HARD * usual if context.instance.limited else 0.0

    def begin_pass(self) -> None:
        """Begin the next pass where one is over."""
        if not self.queue:
            self._next_pass()

    def propose(self) -> tuple[str, Changes]:
        """Make a change; return the name of its kind and what undoes it."""
        self.proposed = []
        instance, evaluator = self.context.instance, self.context.evaluator
        relieve = instance.limited and evaluator.loads.broken
        if relieve and (not self.queue or self.context.random.random() < RELIEVED):
            return self.relieve.name, self.relieve.propose(self.context)
        return "settle", self._settle(self.queue.pop()) if self.queue else []

    def _settle(self, piece: int) -> Changes:
        """Bring a piece to where it costs least, with the one that it alone feeds."""
        context, instance = self.context, self.context.instance
        hosts = context.evaluator.hosts
        fed = instance.fed[piece]
        if len(fed) == 1 and not instance.flows[fed[0][0]].destinations:
            ((number, other),) = fed
            goals = list(
                MoveJointly.cheapest(context, piece, other, number, anywhere=not instance.limited)
            )
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

    def _next_pass(self) -> None:
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
        self.queue = sorted(self.next, key=order.__getitem__)
        self.next = {}

    @staticmethod
    def _crowded(evaluator: Evaluator) -> list[int]:
        """Return the pieces at brokers that run too much."""
        first = evaluator.loads.first_work
        full = [limit - first for limit in evaluator.loads.broken if limit >= first]
        return [piece for node in full for piece in evaluator.at[node]]

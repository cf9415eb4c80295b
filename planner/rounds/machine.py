"""A broker's part in planning: messages and the time in, effects out.

Owns knowledge, the moments of planning, and turns. Must not know clocks, links or how anything
runs. Invariant: every turn that is agreed lessens (violation, flow) as all its members have it, so
there are finitely many between two changes from outside; a refused one is tried again only after
something was heard, or once whoever was before it is done.

The order of a life: `stand` (an epoch: what the network is and where everything runs), `shift` (it
is known otherwise or in other numbers), and turns in between until all are quiet.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from msgspec.structs import replace

from planner.rounds import messages as m
from planner.rounds.look import Look
from planner.rounds.post import Agreed, Effect, Post
from planner.rounds.settings import Settings
from planner.rounds.tables import Tables
from planner.rounds.turns import Claim, Promise, Turn
from planner.rounds.vicinity import Proposal, value_of
from planner.rounds.view import Ground, Summary, view_of


class Rounds:
    """One broker's machine; brokers are numbered as in the problem that a layout is of.

    `limits` are its capacity and egress in whole units, None without limit. `agreed` counts the
    turns that it led to their end, `refused` those that came to nothing. While brokers in view are
    `unclear`, as their last word does not go together with the rest, nothing is planned.
    """

    def __init__(
        self,
        me: int,
        settings: Settings,
        random: Random,
        limits: tuple[int | None, int | None] = (None, None),
    ) -> None:
        self.me = me
        self.settings = settings
        self.agreed = self.refused = self.moved = 0
        self._random = random
        self.limits = limits
        self._post = Post(me)
        self._drained = self._told = False
        self._turn_number = 0
        self._turn: Turn | None = None
        self.promise = Promise()
        self._plan_at: int | None = None
        self._widen_at: int | None = None
        self.version = 0
        self.tables = Tables()

    # --- from outside -----------------------------------------------------------------------

    def withdraw(self, now: int) -> list[Effect]:
        """Cancel the turn that is led here and refuse all that wait, as numbers become others."""
        # Its proposal has numbers of before; grants that come later are for a turn that is over.
        turn, self._turn = self._turn, None
        for broker in turn.proposal.tables if turn is not None else ():
            self._post.send(broker, m.Cancel(turn.number if turn is not None else 0))
        for claimant, number, _ in self.promise.queue:
            self._post.send(claimant, m.Refuse(number, stale=True))
        self.promise.queue.clear()
        return self._done(now)

    def stand(self, epoch: int, ground: Ground, now: int) -> list[Effect]:
        """Begin an epoch in the network `ground`; whatever was under way is void.

        A broker whose turns others know of must `withdraw` before.
        """
        self._post.begin(epoch)
        self.radius = self.settings.radius
        self.infeasible = False
        self._turn = None
        self.promise = Promise()
        self._rates: dict[int, int] = {}
        self._costs: dict[int, int] = {}
        self._known: dict[int, Summary] = {}
        self.unclear: dict[int, None] = {}
        self._followers: dict[int, None] = {}
        self._looked: object = None
        self._look: Look | None = None
        self._done_looking = False  # at what was seen last
        self._plan_at = self._widen_at = None
        return self.shift(ground, now, is_other=True)

    def shift(
        self, ground: Ground, now: int, *, is_other: bool, over: tuple[int, int] = (-1, 0)
    ) -> list[Effect]:
        """Take up other pieces and streams of the same epoch; only where no promise is held.

        `is_other`: this broker's own tables are others than before, and not their numbers alone.
        `over` is the turn (leader, number) that ends with it.
        """
        # The promise ends before this broker's version grows, and the next is given only after.
        held = self.promise.end(*over)
        if self._look is not None:  # its view is in numbers of before
            self._look = self._looked = None
        self.infeasible = self.infeasible and not is_other
        self.me = self._post.me = ground.me
        self._layout = ground.layout
        self._tree = self._post.tree = ground.tree
        self._known = dict(ground.summaries)
        self.unclear = dict.fromkeys(ground.unclear)
        if is_other:
            self._change(ground.tables, now)
        else:
            # Of the same version: others have been told, in numbers of their own.
            self.tables = ground.tables
            self._known[self.me] = self.summary()
            self._again(now)
        if held:
            self._free()
        return self._done(now)

    def measured(
        self, rates: Mapping[int, int], costs: Mapping[int, int], now: int
    ) -> list[Effect]:
        """Other rates of streams, and costs of pieces, in whole units; the rest stays.

        Before the first epoch nothing is known to change: it begins with the costs of its day.
        """
        if self._post.tree is None:
            return []
        self._costs.update(costs)
        self._rates.update(rates)
        if self.promise.held is None:
            self._measure(now)
        return self._done(now)

    def _measure(self, now: int) -> None:
        rates, costs, own = self._rates, self._costs, self.tables
        hosted = [replace(item, cost=costs.get(item.piece, item.cost)) for item in own.hosted]
        passing = [replace(item, rate=rates.get(item.stream, item.rate)) for item in own.passing]
        tables = Tables(tuple(hosted), tuple(passing), own.joined)
        if tables != own or self._told != self._drained:
            self.infeasible = False
            self._change(tables, now)

    def drain(self, now: int, *, drained: bool = True) -> list[Effect]:
        """From now on nothing more is taken up here, and what runs here is to go elsewhere."""
        self._drained = drained
        if self.promise.held is None and self._post.tree is not None:
            self._change(self.tables, now)  # else the turn under way tells of it
        return self._done(now)

    def receive(self, envelope: m.Envelope, now: int) -> list[Effect]:
        """An envelope from a neighbour."""
        if self._post.sort(envelope):
            self._read(envelope, now)
        return self._done(now)

    def wake(self, now: int) -> list[Effect]:
        """The time that `next_wake` named has come."""
        if self._plan_at is not None and now >= self._plan_at:
            self._plan_at = None
            self._plan(now)
        if self._widen_at is not None and now >= self._widen_at:
            self._widen_at = None
            self._widen(now)
        return self._done(now)

    def next_wake(self) -> int | None:
        """When to wake next; None: not before something comes."""
        times = [due for due in (self._plan_at, self._widen_at) if due is not None]
        return min(times, default=None)

    @property
    def quiet(self) -> bool:
        """Tell whether nothing is under way here."""
        return self.next_wake() is None and not self.busy

    @property
    def busy(self) -> bool:
        """Tell whether a turn of its own or another's holds this broker."""
        return self._turn is not None or self.promise.held is not None

    # --- what comes ---------------------------------------------------------------------------

    def _done(self, now: int) -> list[Effect]:
        while self._post.own:
            self._read(self._post.own.pop(0), now)
        out, self._post.out = self._post.out, []
        return out

    def _read(self, envelope: m.Envelope, now: int) -> None:
        origin, body = envelope.origin, envelope.body
        if isinstance(body, m.Tell):
            self._heard(body.summary, now)
            if body.hops > 0:
                self._post.tell(m.Tell(body.summary, body.hops - 1), origin)
        elif isinstance(body, m.Want):
            self._followers[origin] = None
            self._post.send(origin, m.Tell(self.summary(), 0))
        elif isinstance(body, m.Reserve):
            self._asked((origin, body.turn, body.version))
        elif isinstance(body, m.Grant):
            self._granted(origin, body.turn, now)
        elif isinstance(body, m.Refuse):
            self._refused(body, now)
        else:
            self._over(origin, body, now)

    def _heard(self, summary: Summary, now: int) -> None:
        self.unclear.pop(summary.broker, None)
        before = self._known.get(summary.broker)
        if before is None or before.version < summary.version:
            self._known[summary.broker] = summary
            self._again(now)

    def _again(self, now: int) -> None:
        """There may be something better now: look once the others have had their say."""
        self._widen_at = None
        soon = now + self.settings.settle_ms
        if self._plan_at is None:
            self._plan_at = soon + self._random.randrange(self.settings.spread_ms + 1)
        else:
            self._plan_at = max(self._plan_at, soon)

    def summary(self) -> Summary:
        """Return what others need to know of this broker."""
        capacity, egress = self.limits
        return Summary(
            self.me, self._post.epoch, self.version, capacity, egress, self.tables, self._drained
        )

    def _change(self, tables: Tables, now: int) -> None:
        """Other tables here: all who look this far are told."""
        self.tables = tables
        self.version += 1
        self._told = self._drained
        summary = self.summary()
        self._heard(summary, now)
        if self.settings.radius > 0:
            self._post.tell(m.Tell(summary, self.settings.radius - 1), self.me)
        hops = self._tree.hops(self.me)
        for follower in self._followers:
            if hops.get(follower, 0) > self.settings.radius:
                self._post.send(follower, m.Tell(summary, 0))

    # --- a leader's turn ----------------------------------------------------------------------

    def _plan(self, now: int) -> None:
        if self._turn is not None:
            self._turn.missed = True
            return
        if any(broker in self.unclear for broker in self._tree.within(self.me, self.radius)):
            return
        view = view_of(self._layout, self._tree, self.me, self.radius, self._known)
        if view is None:
            return  # somebody's word is on its way: it sets the time to look again
        seen = tuple((summary.broker, summary.version) for summary in view.summaries)
        if self._looked != seen:
            self._looked, self._look, self._done_looking = seen, None, False
        if self._done_looking:
            return
        # Where another sees all of this and more, that one looks for both.
        if self._look is None and not self._tree.overseen(
            self.me, self.radius, self.settings.radius
        ):
            self._look = Look(view, self.settings)
        if self._look is not None and not self._look.go_on():
            self._plan_at = now + self.settings.pause_ms
            return
        proposal = None if self._look is None else self._look.proposal
        # The look is let go before the turn: its lists take some MB.
        self._look, self._done_looking = None, True
        if proposal is not None:
            self._lead(proposal)
        elif value_of(self.summary(), self.tables, self._tree)[0]:
            self._widen_at = now + self.settings.widen_ms
        else:
            self.radius, self.infeasible = self.settings.radius, False

    def _lead(self, proposal: Proposal) -> None:
        self._turn_number += 1
        self._turn = Turn(self._turn_number, proposal, set(proposal.tables))
        for broker in proposal.tables:
            self._post.send(broker, m.Reserve(self._turn_number, proposal.versions[broker]))

    def _granted(self, member: int, number: int, now: int) -> None:
        turn = self._turn
        if turn is None or turn.number != number:
            return
        turn.waiting.discard(member)
        if turn.waiting:
            return
        self._turn = None
        self.agreed += 1
        self.moved += len(turn.proposal.moves)
        self._post.out.append(Agreed(turn.proposal.moves))
        for broker, tables in turn.proposal.tables.items():
            self._post.send(broker, m.Commit(number, tables, turn.proposal.moves))
        self._again(now)

    def _refused(self, refuse: m.Refuse, now: int) -> None:
        turn = self._turn
        if turn is None or turn.number != refuse.turn:
            return
        self._turn = None
        self._looked = None
        self.refused += 1
        for broker in turn.proposal.tables:
            self._post.send(broker, m.Cancel(turn.number))
        if not refuse.stale:
            later = now + self.settings.retry_ms
            self._plan_at = later + self._random.randrange(self.settings.retry_ms + 1)
        elif turn.missed:  # the word of what has changed came before this, and may be the last
            self._again(now)

    def _widen(self, now: int) -> None:
        """Nobody has helped: look farther, until there is nobody farther."""
        hops = self._tree.hops(self.me)
        if self.radius >= max(hops.values()):
            self.infeasible = True
            return
        self.radius += 1
        for broker, away in hops.items():
            if away == self.radius:
                self._post.send(broker, m.Want())
        self._looked = None
        self._again(now)

    # --- a member's side ----------------------------------------------------------------------

    def _asked(self, claim: Claim) -> None:
        leader, turn, version = claim
        if version != self.version:
            self._post.send(leader, m.Refuse(turn, stale=True))
            return
        promised = self.promise.ask(claim)
        if promised is not None:
            self._post.send(leader, m.Grant(turn) if promised else m.Refuse(turn, stale=False))

    def _over(self, leader: int, body: m.Commit | m.Cancel, now: int) -> None:
        if not self.promise.end(leader, body.turn):
            return
        if isinstance(body, m.Commit):
            self._change(body.tables, now)
        self._measure(now)
        self._free()

    def _free(self) -> None:
        """Promise the first that waits, if it may be; no promise is held any more."""
        promised, stale, behind = self.promise.next(self.version)
        if promised is not None:
            self._post.send(promised[0], m.Grant(promised[1]))
        for late, claims in ((True, stale), (False, behind)):
            for claimant, turn, _ in claims:
                self._post.send(claimant, m.Refuse(turn, stale=late))

"""A broker's part in planning: messages and the time in, effects out.

Owns knowledge, the moments of planning, and turns. Must not know clocks, links or how anything
runs. Invariant: every turn that is agreed lessens (violation, flow) as all its members have it, so
there are finitely many between two changes from outside; a refused one is tried again only after
something was heard, or once whoever was before it is done.

The order of a life: `stand` (an epoch: what the network is and where everything runs, which all
know alike); then turns until all are quiet. The home of a piece hears of each host that it gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from msgspec.structs import replace

from planner.rounds import messages as m
from planner.rounds.looking import Look
from planner.rounds.post import Post, Send
from planner.rounds.settings import Settings
from planner.rounds.tables import Standing, Tables
from planner.rounds.turns import Claim, Promise, Turn
from planner.rounds.vicinity import Proposal, value_of
from planner.rounds.view import Summary, view_of


class Rounds:
    """One broker's machine; brokers are numbered as in the problem that a layout is of.

    `limits` are its capacity and egress in whole units, None without limit. `agreed` counts the
    turns that it led to their end, `refused` those that came to nothing.
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
        self._promise = Promise()
        self._plan_at: int | None = None
        self._widen_at: int | None = None
        self.version = 0
        self.tables = Tables()

    # --- from outside -----------------------------------------------------------------------

    def stand(self, me: int, epoch: int, standing: Standing, now: int) -> list[Send]:
        """Begin an epoch in which all know alike where everything runs, this broker as `me`.

        What is under way is void.
        """
        self.me = me
        self._post.begin(me, epoch, standing.tree)
        self._layout, self._tree, self._homes = standing.layout, standing.tree, standing.homes
        self.radius = self.settings.radius
        self.infeasible = False
        self._turn = None
        self._promise = Promise()
        self._rates: dict[int, int] = {}
        self._costs: dict[int, int] = {}
        self._known: dict[int, Summary] = {}
        self._followers: dict[int, None] = {}
        self._looked: object = None
        self._look: Look | None = None
        self._done_looking = False  # at what was seen last
        self._plan_at = self._widen_at = None
        hosts = zip(standing.homes, standing.hosts, strict=True)
        self._hosts = {piece: (0, host) for piece, (home, host) in enumerate(hosts) if home == me}
        self._change(standing.tables()[me], now)
        return self._done(now)

    @property
    def hosts(self) -> dict[int, int]:
        """Return who runs each piece that is at home here, by the last that was heard of it."""
        return {piece: broker for piece, (_, broker) in self._hosts.items()}

    def measured(self, rates: Mapping[int, int], costs: Mapping[int, int], now: int) -> list[Send]:
        """Other rates of streams, and costs of pieces, in whole units; the rest stays.

        Before the first epoch nothing is known to change: it begins with the costs of its day.
        """
        if self._post.tree is None:
            return []
        self._costs.update(costs)
        self._rates.update(rates)
        if self._promise.held is None:
            self._measure(now)
        return self._done(now)

    def _measure(self, now: int) -> None:
        rates, costs, own = self._rates, self._costs, self.tables
        hosted = [replace(one, cost=costs.get(one.piece, one.cost)) for one in own.hosted]
        passing = [replace(one, rate=rates.get(one.stream, one.rate)) for one in own.passing]
        tables = Tables(tuple(hosted), tuple(passing), own.joined)
        if tables != own or self._told != self._drained:
            self.infeasible = False
            self._change(tables, now)

    def drain(self, now: int, *, drained: bool = True) -> list[Send]:
        """From now on nothing more is taken up here, and what runs here is to go elsewhere."""
        self._drained = drained
        if self._promise.held is None and self._post.tree is not None:
            self._change(self.tables, now)  # else the turn under way tells of it
        return self._done(now)

    def receive(self, envelope: m.Envelope, now: int) -> list[Send]:
        """An envelope from a neighbour."""
        if self._post.sort(envelope):
            self._read(envelope, now)
        return self._done(now)

    def wake(self, now: int) -> list[Send]:
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
        times = [at for at in (self._plan_at, self._widen_at) if at is not None]
        return min(times, default=None)

    @property
    def quiet(self) -> bool:
        """Tell whether nothing is under way here."""
        return self.next_wake() is None and not self.busy

    @property
    def busy(self) -> bool:
        """Tell whether a turn of its own or another's holds this broker."""
        return self._turn is not None or self._promise.held is not None

    # --- what comes ---------------------------------------------------------------------------

    def _done(self, now: int) -> list[Send]:
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
        elif isinstance(body, m.Commit | m.Cancel):
            self._over(origin, body, now)
        else:
            self._placed(origin, body)

    def _heard(self, summary: Summary, now: int) -> None:
        known = self._known.get(summary.broker)
        if known is None or known.version < summary.version:
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
        view = view_of(self._layout, self._tree, self.me, self.radius, self._known)
        if view is None:
            return  # somebody's word is on its way: it sets the time to look again
        seen = tuple((one.broker, one.version) for one in view.summaries)
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
        for broker, tables in turn.proposal.tables.items():
            moves = tuple(move for move in turn.proposal.moves if broker in move[1:])
            self._post.send(broker, m.Commit(number, tables, moves))
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
        promised = self._promise.ask(claim)
        if promised is not None:
            self._post.send(leader, m.Grant(turn) if promised else m.Refuse(turn, stale=False))

    def _over(self, leader: int, body: m.Commit | m.Cancel, now: int) -> None:
        if not self._promise.end(leader, body.turn):
            return
        if isinstance(body, m.Commit):
            self._change(body.tables, now)
            self._report(body)
        self._measure(now)
        promised, stale, behind = self._promise.next(self.version)
        if promised is not None:
            self._post.send(promised[0], m.Grant(promised[1]))
        for late, claims in ((True, stale), (False, behind)):
            for claimant, turn, _ in claims:
                self._post.send(claimant, m.Refuse(turn, stale=late))

    # --- who runs what ------------------------------------------------------------------------

    def _report(self, commit: m.Commit) -> None:
        """Report to the homes of pieces that they run here from now on."""
        arrived = {piece for piece, _, host in commit.moves if host == self.me}
        by_home: dict[int, list[tuple[int, int]]] = {}
        for item in commit.tables.hosted:
            if item.piece in arrived:
                by_home.setdefault(self._homes[item.piece], []).append((item.piece, item.term))
        for home, pieces in by_home.items():
            self._post.send(home, m.Placed(tuple(pieces)))

    def _placed(self, host: int, body: m.Placed) -> None:
        """Take the host under the highest term; of two reports the later may come first."""
        for piece, term in body.pieces:
            self._hosts[piece] = max(
                (term, host), self._hosts.get(piece, (-1, 0)), key=lambda claim: claim[0]
            )

"""What passes a broker on its way from an origin to hosts.

Owns which events go to whom at once, which wait for a partner, and what is claimed and promised of
an origin meanwhile. Must not know subscriptions. Invariant: what is kept back is neither claimed
nor passed by a promise; it is let go only when no partner can come any more, by the promises of all
who may send one; whatever else ends the waiting has it travel. So more may travel, and no event
that is needed is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from math import inf
from operator import itemgetter
from typing import cast

from broker.core.cells.cell import Cell
from broker.core.cells.hosting import Hosting
from broker.core.networked.networked import PROMISE_MS, Fresh, NetworkedBroker
from broker.core.recovery.durable import DurableBroker
from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Event
from broker.network.frames import frames, told
from broker.network.frames.frames import Passage, Row, advanced, forwarded
from broker.network.neighbours.kept_back import Withholding, WithholdingTools
from broker.network.neighbours.partner_certainty import CertaintyTools, PartnerCertainty
from broker.network.neighbours.sessions import Sessions
from broker.network.neighbours.ways import ArrivalTools, Claim, ClaimArrivals, Ways
from broker.network.placement.cell_view import is_cell
from broker.network.placement.hosts import CellHosts
from broker.network.replication.growth_hold import GrowthHold
from broker.network.replication.progress import (
    PROGRESS_SINCE,
    Advanced,
    Awaited,
    ProgressLedger,
    StoredReports,
)
from broker.network.routing.advertisement import messages as routing
from broker.network.routing.advertisement.messages import LOCAL

TICK_MS = 500  # how soon it is looked whether time alone lets something be promised
FEW = 8  # events of one frame
_END = 2**62


class ProgressRelay:
    """Progress among the neighbours of one broker, along its ways.

    `waiting` returns the cores in this process whose tasks may wait, `promised` what was promised
    of an origin.
    """

    def __init__(  # noqa: PLR0917  # what a broker lends it
        self,
        durable: DurableBroker,
        ways: Ways,
        sessions: Sessions,
        waiting: Callable[[], list[NetworkedBroker]],
        promised: Callable[[str], told.Watermarks],
        say: Callable[[str, frames.Sealed, int, int], None],
    ) -> None:
        self.ledger = ProgressLedger(durable.limits.progress_ms_max)
        self._durable = durable
        self._number = 0  # the record after which tasks were fed last
        self._me = durable.options.name
        self._along = ways
        self._sessions = sessions
        self._waiting = waiting
        self._promised = promised
        self._say = say

    def speaks(self, peer: str) -> bool:
        """Return if a neighbour is a broker that knows of progress that is owed."""
        if peer == LOCAL or is_cell(peer):
            return False
        return self._sessions.version(peer) >= PROGRESS_SINCE

    def claimed(
        self, origin: str, claim: Claim, rows: list[Row], *, promises: bool = True
    ) -> list[told.Forwarded]:
        """Return all that is claimed of an origin by now, with these events."""
        after, upto, promised = claim.take(promises=promises)
        if origin == self._me:
            life, complete = self._durable.network.own.life, upto
        else:
            came = self._along.came[origin]
            life, complete = came.life, came.complete
        complete = claim.complete(complete)
        held_after = complete if complete < upto else None
        return forwarded(origin, life, (after, upto), rows, promised, held_after)

    def say(self, toward: str, now: int) -> None:
        """Say in one frame all that is owed to a neighbour."""
        self.ledger.settle(toward, now)
        rows = [
            (origin, claim.numbered(part))
            for origin, claim in self._along.toward(toward)
            if claim.watermarks and claim.sayable()
            for part in self.claimed(origin, claim, [])
        ]
        if rows:
            own = any(origin == self._me for origin, _ in rows)
            number = self._durable.number if own else 0
            self._say(toward, advanced([row for _, row in rows]), number, 0)

    def ride(self, toward: str, now: int) -> None:
        """Say what is owed to a neighbour together with what goes there anyway."""
        if self.ledger.rides(toward, now):
            self.say(toward, now)

    def hurry(self, origin: str, stored: StoredReports) -> None:
        """Have hosts say at once what they have stored of an origin, which waits for that."""
        for toward, claim in self._along.claims(origin):
            if toward == LOCAL:
                stored.hurry(origin)
            elif self.speaks(toward):
                claim.hurry = True
                (part,) = self.claimed(origin, claim, [])
                number = self._durable.number if origin == self._me else 0
                self._say(toward, advanced([claim.numbered(part)]), number, 0)

    def reads(self, on: Callable[..., None]) -> Callable[..., None]:
        """Return a handler of what is asked of tasks here by who reads results by event time."""

        def handle(*asked: object) -> None:
            self._read()
            on(*asked)

        return handle

    def _read(self) -> None:
        """Have all come further that tasks here hear of."""
        ways = self._along
        reached: dict[str, int] = {}
        for origin in ways.via:
            if any(toward == LOCAL or is_cell(toward) for toward, _ in ways.claims(origin)):
                came = ways.came[origin].watermarks
                for name in ways.types[origin]:
                    time = came.get(name, WATERMARK_NONE)
                    if time is not None:  # else it has no source of them any more
                        reached[name] = min(time, reached.get(name, time))
        self.ledger.read(reached)

    def look(self, now: int) -> int:
        """Ask for what tasks here, or beyond a neighbour, wait for, and say what is due.

        Returns in how long time alone may have come as far here as a neighbour waits for.
        """
        ledger = self.ledger
        if self._durable.number != self._number and self._durable.network.upstream:
            self._number = self._durable.number
            ledger.feed(now)
        if ledger.looks(now):
            awaited: list[dict[str, int]] = []
            for network in self._waiting():
                awaited += network.awaited().values()
            ledger.expect(awaited)
        for asker in ledger.take_hurries() if ledger.hurries else ():
            peers = self._speaking()
            via, wanted = self._along.via, self._along.toward(asker)
            ways = dict.fromkeys([via[origin] for origin, _ in wanted if origin in via])
            for peer in ways:
                if peer != asker and peer in peers:
                    self._say(peer, Awaited(()), 0, -1)
        for peer, body in ledger.questions(
            self._speaking, self._along.changes, self._is_behind, now
        ):
            self._say(peer, body, 0, -1)
        for toward in ledger.due(self._come, now):
            self.say(toward, now)
        lacking_ms = ledger.lacking_ms(self._durable.network.told, TICK_MS)
        return _END if lacking_ms is None else lacking_ms

    def _speaking(self) -> list[str]:
        """Return the neighbours that know of progress that is owed."""
        return [peer for peer in self._sessions.standing if self.speaks(peer)]

    def _is_behind(self, peer: str, name: str, time: int) -> bool:
        """Return if an origin beyond a neighbour has not promised that of a type.

        What it promised holds until it says that it has no source any more, which may come long
        after it says that it sends other types.
        """
        ways = self._along
        for origin, via in ways.via.items():
            if via == peer and ways.claims(origin):
                sends = name in ways.types[origin]
                reached = ways.came[origin].watermarks.get(name, WATERMARK_NONE if sends else None)
                if reached is not None and reached < time:
                    return True
        return False

    def _come(self, toward: str, name: str) -> tuple[float, bool]:
        """Return how far those of a type have come that go to a neighbour, and if all are known."""
        least, whole = inf, True
        for origin, _ in self._along.toward(toward):
            if origin != self._me and origin not in self._along.via:
                continue  # asked of, and out of reach
            promised = self._promised(origin)
            if name in promised:
                reached = promised[name]
                least = least if reached is None else min(least, reached)
            elif origin != self._me and name in self._along.types[origin]:
                whole = False
        return least, whole


class Relaying(Hosting):
    """Relay what passes a broker on its way from an origin to hosts."""

    _hosts: CellHosts[Cell]

    def _begin_relaying(self) -> None:
        """Begin; to be called once."""
        self._tick_at: int | None = None
        self._tick_ms = TICK_MS
        self._told_before: told.Watermarks = dict(self.durable.network.told)
        self._hold: GrowthHold[Fresh, frames.Reoffer | frames.Fold] = GrowthHold(
            self.durable.limits.first_events_wait_ms_max, self.durable.network.promises.version
        )
        lent = (self.durable, self.ways, self.sessions, self._cores, self._promised)
        self._progress = ProgressRelay(*lent, self._say)
        self._owed = self._progress.ledger
        asked = self.router.operators, self._say, self._ask_quietly
        tools = CertaintyTools(
            self.me,
            self.ways,
            lambda: self.sessions.standing,
            self._inside,
            self.durable.network.sources.types,
            lambda name: self.router.matcher(name).joined(),
            *asked,
            lambda: self._withheld,  # it is made below
        )
        self.partners = PartnerCertainty(tools, correlates=self.correlates)
        parts = self.ways, self.router, self.counts, self.durable.limits
        further = self._progress, self.partners, self._promised, self._say_claim
        self._withheld = Withholding(WithholdingTools(*parts, *further))
        self._on_frame[frames.Doubted] = self.partners.doubted
        hurry = partial(self._progress.hurry, stored=self.stored_reports)
        lends = self.ways, self.counts, self._not_all_came, hurry, self._spread
        came = (partial(f, "received") for f in (self.traffic.count, self.traffic.count_types))
        arrivals = ClaimArrivals(ArrivalTools(*lends, *came), correlates=self.correlates)
        self._on_frame[frames.Passed] = lambda peer, one: arrivals.take(peer, [_of_a_life(one)])
        self._on_frame[Advanced] = arrivals.take_frames
        self._on_frame[Awaited] = self._awaited

    def _tick_soon(self, wait_ms: int) -> None:
        self._tick_at = min(self._now + wait_ms, self._tick_at or _END)

    # --- events ----------------------------------------------------------------------------

    def _spread_own(self, fresh: list[Fresh], *, lacking: bool) -> None:
        """Pass on what happened here, all in one.

        `lacking` tells if somebody may want some of this who could not ask for it yet.
        """
        rows = [row for one in fresh for row in enumerate(one.events, one.first)]
        watermarks: told.Watermarks = {n: ms for one in fresh for n, ms in one.watermarks.items()}
        claim = (fresh[0].first - 1, fresh[-1].last)
        if lacking:  # a claim with a gap before it, which all are to see at once
            claim = (fresh[-1].last, fresh[-1].last)
            watermarks = dict(self.durable.network.told)
        life = self.durable.network.own.life
        what = told.Forwarded(self.me, life, *claim, [], b"", watermarks)
        before, self._told_before = self._told_before, {}
        if self.correlates:
            self._told_before = dict(self.durable.network.told)
        self._spread(LOCAL, what, rows, before)
        if rows:  # time may stand still for long, too
            self._tick_soon(PROMISE_MS)
            self._tick_ms = TICK_MS

    def _not_all_came(self, origin: str) -> None:
        """Something of an origin was lost: all beyond are to see that, and hosts ask again."""
        self.partners.missed(origin)
        for toward, claim in self.ways.claims(origin):
            if toward == LOCAL:
                self._missed(origin)
            else:
                claim.serial += 1
                claim.broken = True

    def _spread(
        self, came_from: str, what: told.Forwarded, rows: list[Row], before: told.Watermarks
    ) -> None:
        """Pass on what hosts beyond each neighbour, or this one, need of an origin.

        `before` is what was promised before these events.
        """
        events = list(map(itemgetter(1), rows))
        place = dict(zip(map(id, events), map(itemgetter(0), rows), strict=True))
        wanted = self.router.releases.wanted(came_from, events) if events else {}
        waiting = self.router.releases.waiting()
        here: list[tuple[told.Forwarded, tuple[Event, ...]]] = []
        for toward, claim in self.ways.claims(what.origin):
            if toward == came_from:
                continue
            claim.extend(what.after, what.upto, what.watermarks)
            going = cast("Mapping[int, Event]", wanted.get(toward, {})).items()
            some = [(place[key], event) for key, event in going if key in place]
            for one in waiting.get(toward, ()):
                position = place[id(one.held.event)]
                if not self._withheld.keep(toward, claim, (what.origin, position, one), before):
                    one.held.sent |= self.router.bit(toward)
                    some.append((position, cast("Event", one.held.event)))
            if some or not (claim.may_be_owed() and self._progress.speaks(toward)):
                here += _decoded(self._say_claim(what.origin, toward, claim, some), some)
                self._progress.ride(toward, self._now)
            else:
                self._owed.owe(toward, self._now)
        for toward, found in wanted.items():
            if others := [event for key, event in found.items() if key not in place]:
                self._withheld.find_partners(toward, others)
        for part, taken in here:
            self._take(part, taken)
        if self._inside:
            self._owed.feed(self._now)
        if self._withheld.places or self.router.releases.keeps():
            self._withheld.let_go(self._now)

    def _say_claim(
        self, origin: str, toward: str, claim: Claim, rows: list[Row], *, anyhow: bool = False
    ) -> list[told.Forwarded]:
        """Say what is to be said of an origin; what is for this broker itself is returned."""
        if not rows and not anyhow and not (claim.watermarks and claim.sayable()):
            return []
        if toward == LOCAL:
            return self._progress.claimed(origin, claim, rows)
        # The times of few events cost as much as one of these, and are rarely awaited.
        few = 0 < len(rows) < FEW and self._progress.speaks(toward)
        later = few and not claim.begins and not self._owed.is_awaited(toward)
        parts = self._progress.claimed(origin, claim, rows, promises=not later)
        if later and claim.watermarks:
            self._owed.owe(toward, self._now)
        behind = self.durable.number if origin == self.me else 0
        for part in parts:
            if self._progress.speaks(toward):
                body: frames.Sealed = advanced([claim.numbered(part)])
            else:
                claim.serial += 1
                body = frames.Passed(part, claim.serial)
            self._say(toward, body, behind, len(part.positions))
        return []

    def _awaited(self, peer: str, frame: Awaited) -> None:
        self._owed.hear(peer, frame, self._now)
        self._withheld.let_go(self._now)

    # --- what waits ------------------------------------------------------------------------

    def _routed(self, sends: Sequence[routing.Send]) -> None:
        self.partners.operators_changed()
        super()._routed(sends)
        for send in sends:
            if isinstance(send.message, routing.Events):
                self._withheld.find_partners(send.to, send.message.events)

    def _routed_here(self, peer: str, one: frames.Routed) -> None:
        self.partners.wants(peer, one.message)
        super()._routed_here(peer, one)
        self.partners.look_again(self._now)

    def _here(self, peer: str, one: frames.Here) -> None:
        if self.ways.via.get(one.origin, peer) == peer:
            self.partners.here(one.origin)
        super()._here(peer, one)
        self.partners.doubt()
        self.partners.look_again(self._now)

    def _offered(self, peer: str, one: frames.Offered) -> None:
        self.partners.passes(peer, one, self._now)
        super()._offered(peer, one)

    def _cores(self) -> list[NetworkedBroker]:
        return [self.durable.network, *[c.durable.network for c in self._hosts.cells.values()]]

    def _promised(self, origin: str) -> told.Watermarks:
        if origin != self.me:
            return self.ways.came[origin].watermarks
        # While something is held here, what was promised behind it is said to nobody.
        return self._told_before if self.correlates else self.durable.network.told

    # --- what ends -------------------------------------------------------------------------

    def _leave(self, peer: str) -> None:
        self._withheld.leave(peer)
        self._owed.leave(peer)
        self.partners.left(peer)
        super()._leave(peer)

    def _gone(self, origin: str, peer: str) -> None:
        self._withheld.lose(self.ways.claims(origin))
        self.partners.gone(origin)
        super()._gone(origin, peer)
        self.partners.doubt()


def _decoded(
    parts: Sequence[told.Forwarded], rows: Sequence[Row]
) -> list[tuple[told.Forwarded, tuple[Event, ...]]]:
    """Return the parts that `rows` were cut into, each with its events as they are."""
    if not parts:  # it is for others
        return []
    events = map(itemgetter(1), sorted(rows, key=itemgetter(0)))
    return [(part, tuple(islice(events, len(part.positions)))) for part in parts]


def _of_a_life(one: frames.Passed) -> Passage:
    """Return the claim of a frame that names the life of its origin, as all do. Raises ValueError.

    Passed on as `Claimed`, one without would be taken for the life before.
    """
    if not one.what.life:
        raise ValueError("a claim of an origin names none of its lives")
    return Passage(one.what, one.serial)

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
from typing import Any, NamedTuple, cast

from msgspec import Struct

from broker.core.effects import Effect
from broker.core.networked.local_origin import PROMISE_MS, Fresh
from broker.core.networked.networked import NetworkedBroker
from broker.core.recovery.durable import DurableBroker
from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Event
from broker.network.frames import frames, told
from broker.network.frames.frames import LEADS_SINCE, Passage, Row, advanced, forwarded
from broker.network.neighbours.kept_back import Withholding, WithholdingTools
from broker.network.neighbours.leads import LeadTools, LeadWords
from broker.network.neighbours.partner_certainty import CertaintyTools, PartnerCertainty
from broker.network.neighbours.sessions import FrameSender, Sessions
from broker.network.neighbours.ways import ArrivalTools, Claim, ClaimArrivals, Ways
from broker.network.placement.cell_view import is_cell
from broker.network.replication.progress import (
    PROGRESS_SINCE,
    Advanced,
    Awaited,
    ProgressLedger,
    StoredReports,
)
from broker.network.routing.advertisement import messages as routing
from broker.network.routing.advertisement.messages import LOCAL
from broker.network.routing.growing import GrowingRouter

TICK_MS = 500  # how soon it is looked whether time alone lets something be promised
TICK_MS_MAX = 8_000
LOOK_MS = 1_000  # between looks at how often sources send
FEW = 8  # events of one frame
_END = 2**62


class RelayTools(NamedTuple):
    """The parts of a broker that its relay works with.

    `take` takes what hosts here need, `missed` has it offered again, `waiting` returns the cores in
    this process whose tasks may wait, `absent` whom they wait for in vain; `routed` takes what the
    router says.
    """

    durable: DurableBroker
    ways: Ways
    sessions: Sessions
    router: GrowingRouter
    counts: dict[str, int]
    sender: FrameSender[Effect]
    stored: StoredReports
    ask_quietly: Callable[[str], None]
    take: Callable[[told.Forwarded, tuple[Event, ...]], None]
    missed: Callable[[str], None]
    waiting: Callable[[], list[NetworkedBroker]]
    absent: Callable[[], Sequence[str]]
    routed: Callable[[Sequence[routing.Send]], None]


class ProgressRelay:
    """Progress among the neighbours of one broker; `promised` is what an origin has."""

    def __init__(self, tools: RelayTools, promised: Callable[[str], told.Watermarks]) -> None:
        self._durable, self._along, self._sessions, *_ = tools
        self._say, self._waiting, self._promised = tools.sender.say, tools.waiting, promised
        self.ledger = ProgressLedger(self._durable.limits.progress_ms_max)
        self._number = 0  # the record after which tasks were fed last
        self._me = self._durable.options.name

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
        lacking_ms = ledger.lacking_ms(self._durable.network.origin.told, TICK_MS)
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


class Tick(Struct):
    """When it is looked whether time alone lets something be promised: `due_at`.

    Each time twice as late as before, while nothing else happens.
    """

    due_at: int | None = None
    wait_ms: int = TICK_MS

    def by(self, time: int) -> None:
        """Look at that time at the latest."""
        self.due_at = min(time, self.due_at or _END)

    def is_due(self, now: int) -> bool:
        """Tell whether it is time, and if so when it is the next time."""
        if self.due_at is None or self.due_at > now:
            return False
        self.due_at = now + self.wait_ms
        self.wait_ms = min(2 * self.wait_ms, TICK_MS_MAX)
        return True


class EventRelay:
    """Relay what passes a broker on its way from an origin to hosts; `now` is its owner's."""

    def __init__(self, tools: RelayTools, *, correlates: bool) -> None:
        self.now = tools.durable.now
        self.tick = Tick()
        self._durable, self._ways, self._sessions, self._router, self._counts, *_ = tools
        self._tools, self._correlates = tools, correlates
        self._rates_at = 0  # when it is looked how often sources send
        self._me, network = self._durable.options.name, self._durable.network
        self._told_before: told.Watermarks = dict(network.origin.told)
        self.progress = ProgressRelay(tools, self._promised)
        self._owed, self._say = self.progress.ledger, tools.sender.say
        certain = CertaintyTools(
            me=self._me,
            ways=self._ways,
            standing=lambda: self._sessions.standing,
            inside=tools.sender.inside,
            types=network.sources.types,
            joined=lambda name: self._router.matcher(name).joined(),
            operators=self._router.operators,
            say=self._say,
            ask_quietly=tools.ask_quietly,
            withheld=lambda: self._withheld,  # it is made below
            asked_silent=self._asked_silent,
        )
        self.partners = PartnerCertainty(certain, correlates=correlates)
        self.leads = self._lead_words()
        withholding = WithholdingTools(
            ways=self._ways,
            router=self._router,
            counts=self._counts,
            limits=self._durable.limits,
            progress=self.progress,
            partners=self.partners,
            leads=self.leads,
            promised=self._promised,
            say=self._say_claim,
        )
        self._withheld: Withholding = Withholding(withholding)

    def _asked_silent(self, peer: str) -> None:
        self.leads.asked(peer)

    def _lead_words(self) -> LeadWords:
        """Return what tells neighbours of leads, where events wait for partners at all."""
        network, tools, sessions = self._durable.network, self._tools, self._sessions
        if self._correlates:
            self._router.tells = lambda peer: (
                peer not in tools.sender.inside and sessions.version(peer) >= LEADS_SINCE
            )

        def say(peer: str, led: frames.Led, events: int) -> None:
            self._counts["leads_told"] += events
            self._say(peer, led, self._durable.number, events)

        lent = LeadTools(
            me=self._me,
            ways=self._ways,
            router=self._router,
            partners=self.partners,
            types=network.sources.types,
            promised=self._promised,
            absent=tools.absent,
            newest=lambda: network.newest,
            stands=lambda peer: peer in sessions,
            released=self.routed,
            withheld=lambda: self._withheld,
            say=say,
            pause_ms=self._durable.limits.progress_ms_max,
        )
        return LeadWords(lent)

    def frames(self) -> dict[type[Any], Callable[..., None]]:
        """Return what takes in the frames of neighbours."""
        hurry = partial(self.progress.hurry, stored=self._tools.stored)
        traffic = self._tools.sender.traffic
        lent = ArrivalTools(
            ways=self._ways,
            counts=self._counts,
            missed=self._not_all_came,
            hurry=hurry,
            spread=self._spread,
            received=partial(traffic.count, "received"),
            received_types=partial(traffic.count_types, "received"),
        )
        arrivals = ClaimArrivals(lent, correlates=self._correlates)
        return {
            frames.Doubted: self.partners.doubted,
            frames.Led: lambda peer, led: self.leads.hear(peer, led, self.now),
            frames.Passed: lambda peer, one: arrivals.take(peer, [_of_a_life(one)]),
            Advanced: arrivals.take_frames,
            Awaited: self._awaited,
        }

    # --- events ----------------------------------------------------------------------------

    def spread_own(self, fresh: list[Fresh], *, lacking: bool) -> None:
        """Pass on what happened here, all in one.

        `lacking` tells if somebody may want some of this who could not ask for it yet.
        """
        rows = [row for each in fresh for row in enumerate(each.events, each.first)]
        watermarks = {name: ms for each in fresh for name, ms in each.watermarks.items()}
        claim = (fresh[0].first - 1, fresh[-1].last)
        if lacking:  # a claim with a gap before it, which all are to see at once
            claim = (fresh[-1].last, fresh[-1].last)
            watermarks = dict(self._durable.network.origin.told)
        life = self._durable.network.own.life
        what = told.Forwarded(self._me, life, *claim, [], b"", watermarks)
        before = self._told_before
        self._told_before = dict(self._durable.network.origin.told) if self._correlates else {}
        self._spread(LOCAL, what, rows, before)
        if rows:  # time may stand still for long, too
            self.tick.by(self.now + PROMISE_MS)
            self.tick.wait_ms = TICK_MS

    def _not_all_came(self, origin: str) -> None:
        """Something of an origin was lost: all beyond are to see that, and hosts ask again."""
        self.partners.missed(origin)
        for toward, claim in self._ways.claims(origin):
            if toward == LOCAL:
                self._tools.missed(origin)
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
        wanted = self._router.releases.wanted(came_from, events) if events else {}
        if self._correlates:
            if came_from == LOCAL:
                self._router.rates.count(events)
            self.leads.passed(events)
            if self._router.releases.to_tell:
                self.leads.sent(self._router.releases.told())
        waiting = self._router.releases.waiting()
        own: list[tuple[told.Forwarded, tuple[Event, ...]]] = []
        for toward, claim in self._ways.claims(what.origin):
            if toward == came_from:
                continue
            claim.extend(what.after, what.upto, what.watermarks)
            going = cast("Mapping[int, Event]", wanted.get(toward, {})).items()
            leaving = [(place[key], event) for key, event in going if key in place]
            for wait in waiting.get(toward, ()):
                position = place[id(wait.held.event)]
                if not self._withheld.keep(toward, claim, (what.origin, position, wait), before):
                    wait.held.sent |= self._router.releases.bits[toward]
                    leaving.append((position, cast("Event", wait.held.event)))
            if leaving or not (claim.may_be_owed() and self.progress.speaks(toward)):
                own += _decoded(self._say_claim(what.origin, toward, claim, leaving), leaving)
                self.progress.ride(toward, self.now)
            else:
                self._owed.owe(toward, self.now)
        for toward, events_to in wanted.items():
            if others := [event for key, event in events_to.items() if key not in place]:
                self._withheld.find_partners(toward, others)
        for part, taken in own:
            self._tools.take(part, taken)
        if self._tools.sender.inside:
            self._owed.feed(self.now)
        if self._withheld.places or self._router.releases.keeps():
            self._withheld.let_go(self.now)

    def _say_claim(
        self, origin: str, toward: str, claim: Claim, rows: list[Row], *, anyhow: bool = False
    ) -> list[told.Forwarded]:
        """Say what is to be said of an origin; what is for this broker itself is returned."""
        if not rows and not anyhow and not (claim.watermarks and claim.sayable()):
            return []
        if toward == LOCAL:
            return self.progress.claimed(origin, claim, rows)
        # The times of few events cost as much as one of these, and are rarely awaited.
        few = 0 < len(rows) < FEW and self.progress.speaks(toward)
        later = few and not claim.begins and not self._owed.is_awaited(toward)
        parts = self.progress.claimed(origin, claim, rows, promises=not later)
        if later and claim.watermarks:
            self._owed.owe(toward, self.now)
        behind = self._durable.number if origin == self._me else 0
        for part in parts:
            if self.progress.speaks(toward):
                body: frames.Sealed = advanced([claim.numbered(part)])
            else:
                claim.serial += 1
                body = frames.Passed(part, claim.serial)
            self._say(toward, body, behind, len(part.positions))
        return []

    def look(self, now: int) -> int:
        """Say what is due; return in how many ms something may be."""
        if self._correlates and now >= self._rates_at:  # that nothing comes is to be seen, too
            self._rates_at = now + LOOK_MS
            self._tools.routed(self._router.look_at_rates(now))
        due_ms = self.leads.look(now) if self.leads.telling else _END
        return min(due_ms, self.progress.look(now))

    def _awaited(self, peer: str, frame: Awaited) -> None:
        self._owed.hear(peer, frame, self.now)
        self._withheld.let_go(self.now)

    # --- what waits ------------------------------------------------------------------------

    def routed(self, sends: Sequence[routing.Send]) -> None:
        """Find partners among events that the router lets go."""
        self.leads.sent(sends)
        for send in sends:
            if isinstance(send.message, routing.Events):
                self._withheld.find_partners(send.to, send.message.events)

    def _promised(self, origin: str) -> told.Watermarks:
        if origin != self._me:
            return self._ways.came[origin].watermarks
        # While something is held here, what was promised behind it is said to nobody.
        return self._told_before if self._correlates else self._durable.network.origin.told

    # --- what ends -------------------------------------------------------------------------

    def leave(self, peer: str) -> None:
        """Forget all that a neighbour said."""
        self._withheld.leave(peer)
        self._owed.leave(peer)
        self.leads.leave(peer)
        self.partners.left(peer)

    def gone(self, origin: str) -> None:
        """There is no way to an origin any more."""
        self._withheld.lose(self._ways.claims(origin))
        self.partners.gone(origin)


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

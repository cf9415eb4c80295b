"""A broker as an origin: what it says of sources here, and its answers to hosts.

Owns when events, promises and answers leave. Must not know tasks, or how others are reached.
Invariant: whatever others rely on leaves behind the record that holds it; what a promise allowed
before leaves only once others know that less is promised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from broker.core.cells.cell_origins import places
from broker.core.exchange.host import Host, LinkParts
from broker.core.exchange.showing import SourceDisplay
from broker.core.network.event_relay import TICK_MS, EventRelay
from broker.core.network.folding import FoldOrigin
from broker.core.networked.local_origin import Fresh
from broker.network.frames import frames, told
from broker.network.operators.heard import judge
from broker.network.origin.offers import offers, offers_nothing
from broker.network.placement.cell_view import is_cell
from broker.network.replication.growth_hold import GrowthHold
from broker.network.replication.incarnation import Incarnation
from broker.network.replication.progress import StoredUpto

Question = frames.Reoffer | frames.Fold


class OriginTools(NamedTuple):
    """The parts of a broker that know who needs what; `hear` takes a frame of a neighbour."""

    hosting: Host
    incarnation: Incarnation
    relay: EventRelay
    hear: Callable[[str, Question], None]


class OriginExchange:
    """Say what happens here, and what hosts have missed.

    `shows` is what is said of sources, `folds` what is folded for hosts, `held` what waits.
    """

    def __init__(self, parts: LinkParts, tools: OriginTools) -> None:
        self._parts, self._tools, durable = parts, tools, parts.durable
        self._me, network = durable.options.name, durable.network
        ends = network, parts.router, parts.ways, parts.routed
        self.shows = SourceDisplay(*ends, correlates=tools.hosting.correlates)
        tell = tools.hosting.tell_network
        self.folds = FoldOrigin(durable, parts.sender, parts.counts, tell, self._doubts)
        waits = durable.limits.first_events_wait_ms_max, network.promises.version
        self.held: GrowthHold[Fresh, Question] = GrowthHold(*waits)

    def handlers(self) -> dict[type[Any], Callable[[str, Any], None]]:
        """Return what it does with the frames of neighbours, by their type."""
        return {
            frames.Reoffer: self._reoffer,
            frames.Fold: self._fold,
            StoredUpto: self._stored_upto,
            frames.Stored: lambda peer, one: self._stored_upto(peer, one.upto),
        }

    # --- what is said of sources -----------------------------------------------------------

    def advertise(self) -> None:
        """Say what sources here have come, gone or changed."""
        network = self._parts.durable.network
        changed, network.sources.changed = network.sources.changed, {}
        for source in changed:
            self.shows.show(source)
        self.let_leave()
        types = network.sources.types()
        bounds = network.promises.said_of(types) if self._tools.hosting.correlates else None
        own, ways = frames.Here(self._me, types, bounds), self._parts.ways
        if own != ways.own:
            ways.own = own
            self._parts.sender.say_all("", own)
            self._tools.relay.partners.doubt()

    def let_leave(self) -> None:
        """Say less of sources of which all is where it is needed."""
        if self.shows.hurries:
            self.shows.hurries = False
            self._tools.relay.progress.hurry(self._me, self._tools.hosting.stored_reports)
        self.shows.let_leave()

    def promise_less(self) -> None:
        """Tell others what times may be like now, and nothing else until they know."""
        hosting, network = self._tools.hosting, self._parts.durable.network
        self.held.version = network.promises.version
        if hosting.correlates and network.own.hosts:  # it leaves behind what is said here
            self.held.begin(self._parts.probes.begin(), self._parts.clock())
        self.advertise()
        hosting.look_at_needs()

    # --- what happens here -----------------------------------------------------------------

    def spread(self) -> None:
        """Say what has happened here, unless it has to wait."""
        fresh = self._parts.durable.network.origin.take_fresh()
        if not self.held.holds(fresh):
            self._spread(fresh)

    def _spread(self, fresh: list[Fresh]) -> None:
        if self._parts.durable.network.sources.changed:
            self.advertise()  # ahead of what they send
        self._tools.relay.spread_own(fresh, lacking=self.shows.lacks(fresh))
        self.folds.spread(fresh)

    def release(self, answered: int) -> None:
        """Say what waited for the probes up to this one, and answer behind it who asked."""
        released = self.held.release(answered, self._parts.clock())
        if released is not None:
            fresh, questions = released
            if fresh:
                self._spread(fresh)
            self.answer(questions)

    def answer(self, questions: Sequence[tuple[str, Any, Question]]) -> None:
        """Answer those who asked meanwhile, where the session is still the same."""
        sessions = self._parts.sessions
        for peer, session, question in questions:
            if peer in sessions and sessions.seal(peer) == session:
                self._tools.hear(peer, question)

    # --- what hosts say --------------------------------------------------------------------

    def _comes_from(self, host: str, peer: str) -> bool:
        """Tell whether a neighbour can know what a host says; a cell's home may speak for it."""
        if is_cell(host) or (host != self._me and self._parts.ways.via.get(host, peer) == peer):
            return True
        self._parts.counts["frames_astray"] += 1
        return False

    def _doubts(self, peer: str, question: Question) -> bool:
        """Tell if a question waits until it is known what others have seen, or heard."""
        seal, position = self._parts.sessions.seal(peer), self._parts.durable.network.own.position
        doubts = self._tools.incarnation.doubts(peer, seal, question, position)
        return doubts or self.held.defers(peer, seal, question)

    def _fold(self, peer: str, question: frames.Fold) -> None:
        if self._comes_from(question.host, peer):
            if question.origin != self._me:
                self._parts.sender.pass_on(peer, question.origin, question)
            elif self.folds.ask(peer, question):
                self._look_soon()

    def _look_soon(self) -> None:
        self._tools.relay.tick.by(self._parts.clock() + TICK_MS)

    def _reoffer(self, peer: str, question: frames.Reoffer) -> None:
        if not self._comes_from(question.host, peer):
            return
        ways = self._parts.ways
        (ways.open if question.types else ways.close)(question.origin, peer, question.host)
        self._tools.relay.partners.asked(peer, question)
        if question.origin == self._me:
            self.shows.asked(question)
            self._offer(peer, question)
        else:
            self._parts.sender.pass_on(peer, question.origin, question)

    def _offer(self, peer: str, one: frames.Reoffer) -> None:
        """Answer a host: what it has not got yet, as far as it is still here."""
        durable, hosting = self._parts.durable, self._tools.hosting
        network, own = durable.network, durable.network.own
        if not told.declarable(one.types):
            self._parts.counts["frames_malformed"] += 1
            return
        if self._doubts(peer, one):
            return
        interest = own.hosts.get(one.host)
        position = stored = own.place(one.host, one.life, one.position)
        if is_cell(one.host):
            position, stored = places(own.hosts, one.host, position)
        if (interest.types if interest is not None else {}) != one.types:
            hosting.tell_network(told.HostInterested(one.host, one.types, stored))
        elif interest is not None and position is not None and not is_cell(one.host):
            hosting.tell_network(told.HostStored(one.host, position))
        if not one.types or one.host not in own.hosts:
            return
        left_off = network.origin.left_off(one.types)
        asked = position, one.types, judge(one.keys), left_off
        taken = one.positions_taken(own.life)
        parts = offers(self._me, own, network.origin.told, *asked, taken)
        for what, last, more in offers_nothing(self._me, own) if one.quiet else parts:
            body = frames.Offered(one.host, one.serial, what, last, more, network.newest)
            self._parts.sender.say(peer, body, durable.number, len(what.positions))
            self._tools.relay.partners.answered(peer, body, self._parts.clock())
        if not one.quiet:
            self._look_soon()

    def _stored_upto(self, peer: str, stored: StoredUpto) -> None:
        if not self._comes_from(stored.host, peer):
            return
        hosting, own = self._tools.hosting, self._parts.durable.network.own
        for origin, life, position in stored.rows:
            if origin == self._me and life == own.life:
                hosting.tell_network(told.HostStored(stored.host, position))
        if self.shows.leaving:
            self.let_leave()
        hosting.stored_reports.pass_on(peer, stored)

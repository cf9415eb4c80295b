"""What a broker needs of others for its own subscriptions, and takes of them.

Owns the questions to origins, what comes of them into the core, and the positions that origins are
told. Must not know what others need. Invariant: the core is told of an origin's events only in
frames that follow each other without a gap, and an origin is told a position only behind the record
that holds it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from broker.core import messages as core_messages
from broker.core.exchange.linking import Linking
from broker.core.messages import DecodedEvents
from broker.core.recovery.durable import DurableBroker
from broker.network.frames import frames, told
from broker.network.host.needs import Needs
from broker.network.host.upstream import Upstream
from broker.network.neighbours.ways import Ways
from broker.network.operators.heard import keys_for
from broker.network.operators.times import Times
from broker.network.replication.absence_watch import AbsenceWatch
from broker.network.replication.progress import StoredReports
from broker.network.replication.time_promises import KnownPromises
from broker.network.routing.advertisement.messages import LOCAL

ASK_AGAIN_MS = 10_000  # a question that is not answered for so long is asked again


class Hosting(Linking):
    """Take what subscriptions need. `correlates`: whether events may be kept back for partners."""

    def __init__(self, durable: DurableBroker, epoch: int, times: Times | None) -> None:
        super().__init__(durable.options.name, epoch, durable.limits.partners_max)
        self.durable = durable
        self.correlates = durable.options.correlate
        self._now = durable.now
        joins_ms = durable.limits.kept_back_ms_max if self.correlates else None
        promised = KnownPromises(durable.network.promises, self.ways.promises)
        durable.network.installer.promised = promised.of
        self.needs = Needs(times or _times(durable), epoch << 20, joins_ms, promised)
        lent = (self.ways.via, self.sessions.version, self._unstored, self._say, frames.Stored)
        self.stored_reports = StoredReports(self.me, *lent)
        self.absence = AbsenceWatch(durable.network.absent, durable.network.upstream, self._now)
        self._on_frame[frames.Offered] = self._offered

    def _tell(self, message: core_messages.Message) -> None:
        """Have the core handle it."""
        self._sender.out += self.durable.handle(message, self._now)

    def _tell_network(self, what: told.Told, events: DecodedEvents = None) -> None:
        self._tell(core_messages.NetworkTold(what, events))

    # --- what is needed --------------------------------------------------------------------

    def _look_at_needs(self) -> None:
        """Ask for what is needed, where that is another than before."""
        network = self.durable.network
        came, gone = self.needs.changed(network.tasks(), self._tell_network)
        for operator in came:
            self._routed(self.router.operator_added(LOCAL, operator))
        for name in gone:
            self._routed(self.router.operator_removed(LOCAL, name))
        self._ask_for_needs(bool(came or gone))

    def _ask_for_needs(self, changed: bool, *, always: bool = False) -> None:
        """Ask origins, where others are needed; new subscriptions wait, `always`: all do."""
        network = self.durable.network
        new = [key for key in network.activation.inactive() if key not in self.needs.waits]
        for key in new:
            self.needs.wait(key, _senders(network.wanted_by(key), self.ways, network.upstream))
        if changed or new:
            wanted = network.wanted()
            for origin, types in self.ways.types.items():
                if origin in network.upstream or not wanted.keys().isdisjoint(types):
                    self._ask(origin)
            number = self.probes.begin(wanted)  # behind all that was asked
            self.needs.probe = number if new or always else self.needs.probe
        self._activate()

    def _found(self, origin: str) -> None:
        if self.needs.is_outdated():
            self._look_at_needs()
        self._ask(origin)

    def _lost(self, origin: str) -> None:
        self.needs.asked.pop(origin, None)
        self.absence.lose(origin, self._now, self._back_within.get(origin, 0))

    def _forget(self, broker: str) -> None:
        network = self.durable.network
        actors = network.delivery.actors.known, network.copies.brokers()
        if any(broker in some for some in (network.own.hosts, network.upstream, *actors)):
            self._tell_network(told.BrokerForgotten(broker))
        self.stored_reports.hurry(broker)
        self.needs.forget(broker)
        self.absence.forget(broker)
        self._activate()

    # --- asking ----------------------------------------------------------------------------

    def _ask(self, origin: str) -> None:
        """Have an origin offer all that is needed of it and not here yet."""
        network = self.durable.network
        wanted, sent = network.wanted(), self.ways.types[origin]
        known = network.upstream.get(origin)
        before = () if known is None else known.types
        types = {name: wanted[name] for name in dict.fromkeys([*sent, *before]) if name in wanted}
        if types:
            new = tuple(name for name in types if name not in before)
            if new:
                self._tell_network(told.OriginNamed(origin, new))
                known = network.upstream.get(origin)
            if known is None:
                return  # more brokers than are allowed
            self.ways.open(origin, LOCAL, self.me)
            serial = self.needs.ask(origin, self._now)
        elif not network.is_host:
            return  # nobody can take it for one who needs something
        else:
            if known is not None:
                self._tell_network(told.OriginNamed(origin, ()))
                self.stored_reports.hurry(origin)
            self.ways.close(origin, LOCAL, self.me)
            self.needs.forget(origin)
            serial = 0
        self._say(self.ways.via[origin], self._question(origin, serial, types), self.durable.number)

    def _question(
        self, origin: str, serial: int, types: dict[str, told.Attributes]
    ) -> frames.Sealed:
        """Return what an origin is asked: to offer all that is needed of types, or of none."""
        known = self.durable.network.upstream.get(origin)
        life, position, taken = known.place() if known is not None and types else (0, None, ())
        own = [operator for operator, _ in self.router.operators(LOCAL)]
        absent, newest = self._absent(), self.durable.network.newest
        asked = (life, position, types, keys_for(own, types), absent, newest)
        return frames.Reoffer(self.me, origin, serial, *asked, taken=taken)

    def _ask_quietly(self, origin: str) -> None:
        """Let all on the way to an origin know whom is waited for, and how far that has come."""
        network = self.durable.network
        known, wanted = network.upstream.get(origin), network.wanted()
        if known is not None and origin in self.ways.via and origin not in self.needs.asked:
            types = {name: wanted[name] for name in known.types if name in wanted}
            asked = (known.life, known.position, types, (), self._absent(), network.newest, True)
            body = frames.Reoffer(self.me, origin, self.needs.quietly(), *asked)
            self._say(self.ways.via[origin], body, self.durable.number)

    def _absent(self) -> tuple[str, ...]:
        """The origins that are waited for in vain of which partners may come."""
        types, origins = self.needs.joined(), self.durable.network.upstream
        silent = [name for name in origins if name not in self.ways.via or name in self.needs.asked]
        return tuple([name for name in silent if not types.isdisjoint(origins[name].types)])

    def _activate(self) -> None:
        if self.needs.waits and self.probes.answered >= self.needs.probe:
            ready = self.needs.ready(self.durable.network.activation.inactive())
            if ready:
                self._tell_network(told.Activated(tuple(ready), apart=True))

    # --- taking ----------------------------------------------------------------------------

    def _take(self, what: told.Forwarded, events: DecodedEvents = None) -> None:
        """Something of an origin for the tasks here; `events` as in `NetworkTold`."""
        known = self.durable.network.upstream.get(what.origin)
        if known is None or self._is_open(what.origin):
            return
        fits = known.position is not None and known.life == what.life
        if not fits or what.after > known.ahead:
            self._missed(what.origin)
            return
        self._tell_network(what if self.correlates else replace(what, held_after=None), events)

    def _missed(self, origin: str) -> None:
        """Something of an origin was lost on its way here: have it offered again."""
        if origin in self.durable.network.upstream and not self._is_open(origin):
            self.counts["gaps"] += 1
            if origin in self.ways.via:
                self._ask(origin)

    def _is_open(self, origin: str) -> bool:
        """Tell whether a question to an origin is not answered yet.

        Until it is, what passes may have been claimed where this broker's operators, or its way,
        were not known yet. It is all in the answer, or comes behind it.
        """
        return origin in self.needs.asked

    def _offered(self, peer: str, one: frames.Offered) -> None:
        if one.host != self.me:
            self._pass_on(peer, one.host, one, len(one.what.positions))
            return
        if self.needs.is_quiet(one.serial):
            return
        asked = self.needs.asked.get(one.what.origin)
        if asked is None or asked.serial != one.serial:
            self.counts["answers_stale"] += 1
            return
        self._tell_network(one.what)
        if one.more:
            self._ask(one.what.origin)
        elif one.last:
            self.needs.answered(one.what.origin, one.serial)
            self.stored_reports.hurry(one.what.origin)
            self._activate()
            if self.needs.joined() and not self.needs.asked:
                for origin in self.durable.network.upstream:
                    self._ask_quietly(origin)

    def _unstored(self) -> list[tuple[str, int, int]]:
        """(origin, life, position) of those that do not know how far this broker has come."""
        rows: list[tuple[str, int, int]] = []
        stored, via = self.stored_reports.positions, self.ways.via
        for origin, heard in self.durable.network.upstream.items():
            position = heard.position
            if position is not None and stored.get(origin) != position and origin in via:
                rows.append((origin, heard.life, position))
        return rows

    def _ask_again(self) -> None:
        """Ask those who have not answered for long."""
        for origin in self.needs.overdue(self._now, ASK_AGAIN_MS):
            self.counts["asked_again"] += 1
            if origin in self.ways.via:
                self._ask(origin)
            else:
                self.needs.asked.pop(origin)


def _senders(types: set[str], ways: Ways, upstream: Mapping[str, Upstream]) -> list[str]:
    """The origins that may send one of these types, reachable or not."""
    found = [origin for origin, sent in ways.types.items() if types.intersection(sent)]
    found += [origin for origin, heard in upstream.items() if types.intersection(heard.types)]
    return list(dict.fromkeys(found))


def _times(durable: DurableBroker) -> Times:
    return Times.of(durable.limits, durable.options.drift_ppm)

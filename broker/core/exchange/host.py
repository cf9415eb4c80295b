"""A broker as a host: what its tasks need of others, and what it takes of them.

Owns the questions to origins, what comes of them into the core, and the positions that origins are
told. Must not know what others need. Invariant: the core is told of an origin's events only in
frames that follow each other without a gap, and an origin is told a position only behind the record
that holds it.

Brokers and cells have this part alike; what is asked and stored of each differs by its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from broker.core import messages as core_messages
from broker.core.effects import Effect
from broker.core.messages import DecodedEvents
from broker.core.networked.networked import NetworkedBroker
from broker.core.recovery.durable import DurableBroker
from broker.network.effects import Note
from broker.network.frames import frames, told
from broker.network.host.needs import Needs
from broker.network.host.upstream import Upstream
from broker.network.neighbours.sessions import FrameSender, Sessions
from broker.network.neighbours.ways import Ways
from broker.network.operators.heard import keys_for
from broker.network.operators.times import Times
from broker.network.replication.absence_watch import AbsenceWatch
from broker.network.replication.progress import StoredReports
from broker.network.replication.time_promises import KnownPromises
from broker.network.routing.advertisement.messages import LOCAL, Send
from broker.network.routing.growing import GrowingRouter
from broker.network.routing.probes import Probes

ASK_AGAIN_MS = 10_000  # a question that is not answered for so long is asked again

Stored = tuple[str, int, int]  # an origin, its life and the position up to which it may forget


class HostInputs(Protocol):
    """The inputs of tasks: what is asked besides operators, and up to where origins may forget.

    `splits`: they fold their events in place of sending them. `begun`: all tasks are there.
    """

    splits: bool
    begun: bool

    def changed(self) -> bool:
        """Tell whether other windows are split than before."""

    def may_ask(self, origin: str, types: tuple[str, ...]) -> bool:
        """Tell whether an origin may be asked for these types by now."""

    def question(
        self, host: str, origin: str, serial: int, types: dict[str, told.Attributes]
    ) -> frames.Fold | None:
        """Return what an origin is asked in place of its events, if anything is."""

    def unstored(self, via: Mapping[str, str], stored: Mapping[str, int]) -> list[Stored]:
        """Return what is stored of the origins in `via`, where it is not what was reported."""


class BrokerInputs:
    """The inputs of a broker's own tasks: what its core has is on its disk."""

    splits = False
    begun = True

    def __init__(self, network: NetworkedBroker) -> None:
        self._network = network

    def changed(self) -> bool:
        """Nothing is split."""
        return False

    def may_ask(self, _origin: str, _types: tuple[str, ...]) -> bool:
        """It may always ask."""
        return True

    def question(
        self, host: str, origin: str, serial: int, types: dict[str, told.Attributes]
    ) -> frames.Fold | None:
        """It asks for events alone."""

    def unstored(self, via: Mapping[str, str], stored: Mapping[str, int]) -> list[Stored]:
        """Return the positions of those that do not know how far this broker has come."""
        rows: list[Stored] = []
        for origin, heard in self._network.upstream.items():
            position = heard.position
            if position is not None and stored.get(origin) != position and origin in via:
                rows.append((origin, heard.life, position))
        return rows


class LinkParts(NamedTuple):
    """The parts of a broker with links that it lends to others.

    `routed` sends what the router wants sent, `tell` has its core handle a message.
    """

    durable: DurableBroker
    ways: Ways
    sessions: Sessions
    router: GrowingRouter
    probes: Probes
    counts: dict[str, int]
    sender: FrameSender[Effect]
    routed: Callable[[Sequence[Send]], None]
    tell: Callable[[core_messages.Message], None]
    clock: Callable[[], int]


class Host:
    """Take what subscriptions need. `correlates`: whether events may be kept back for partners."""

    def __init__(
        self, parts: LinkParts, inputs: HostInputs, first_serial: int, times: Times | None
    ) -> None:
        durable, ways = parts.durable, parts.ways
        self.durable, self.router, self.inputs = durable, parts.router, inputs
        self._ways, self._parts, self._say = ways, parts, parts.sender.say
        self.me = durable.options.name
        self.correlates = durable.options.correlate
        joins_ms = durable.limits.kept_back_ms_max if self.correlates else None
        promised = KnownPromises(durable.network.promises, ways.promises)
        durable.network.installer.promised = promised.of
        self.needs = Needs(times or _times(durable), first_serial, joins_ms, promised)
        lent = ways.via, parts.sessions.version, inputs.unstored, self._say, frames.Stored
        self.stored_reports = StoredReports(self.me, *lent)
        network = durable.network
        self.absence = AbsenceWatch(network.absent, network.upstream, parts.clock())

    def tell_network(self, what: told.Told, events: DecodedEvents = None) -> None:
        """Have the core handle what happened in the network; `events` as in `NetworkTold`."""
        self._parts.tell(core_messages.NetworkTold(what, events))

    # --- what is needed --------------------------------------------------------------------

    def look_at_needs(self) -> None:
        """Ask for what is needed, where that is another than before."""
        if not self.inputs.splits:
            self._ask_for_needs(changed=self._operators_changed())
        elif self.inputs.begun:
            self._ask_for_needs(changed=self.inputs.changed(), always=True)

    def _operators_changed(self) -> bool:
        """Route the operators of all tasks here; tell whether they are others than before."""
        came, gone = self.needs.changed(self.durable.network.tasks(), self.tell_network)
        for operator in came:
            self._parts.routed(self.router.operator_added(LOCAL, operator))
        for name in gone:
            self._parts.routed(self.router.operator_removed(LOCAL, name))
        return bool(came or gone)

    def _ask_for_needs(self, *, changed: bool, always: bool = False) -> None:
        """Ask origins, where others are needed; new subscriptions wait, `always`: all do."""
        network = self.durable.network
        new = [key for key in network.activation.inactive() if key not in self.needs.waits]
        for key in new:
            self.needs.wait(key, _senders(network.wanted_by(key), self._ways, network.upstream))
        if changed or new:
            wanted = network.wanted()
            for origin, types in self._ways.types.items():
                if origin in network.upstream or not wanted.keys().isdisjoint(types):
                    self.ask(origin)
            number = self._parts.probes.begin(wanted)  # behind all that was asked
            self.needs.probe = number if new or always else self.needs.probe
        self.activate()

    def found(self, origin: str) -> None:
        """There is a way to the origin, or it has other types than before."""
        if self.needs.is_outdated():
            self.look_at_needs()
        self.ask(origin)

    def lost(self, origin: str, back_within_ms: int) -> None:
        """There is no way to the origin any more; it may have promised to be back by then."""
        self.needs.asked.pop(origin, None)
        self.absence.lose(origin, self._parts.clock(), back_within_ms)

    def forget(self, broker: str) -> None:
        """Nobody is to wait for the broker any more."""
        network = self.durable.network
        actors = network.delivery.actors.known, network.copies.brokers()
        if any(broker in names for names in (network.own.hosts, network.upstream, *actors)):
            self.tell_network(told.BrokerForgotten(broker))
        self.stored_reports.hurry(broker)
        self.needs.forget(broker)
        self.absence.forget(broker)
        self.activate()

    # --- asking ----------------------------------------------------------------------------

    def ask(self, origin: str) -> None:
        """Have an origin offer all that is needed of it and not here yet."""
        network = self.durable.network
        wanted, sent = network.wanted(), self._ways.types[origin]
        if not self.inputs.may_ask(origin, tuple([name for name in sent if name in wanted])):
            return
        upstream = network.upstream.get(origin)
        before = () if upstream is None else upstream.types
        types = {name: wanted[name] for name in dict.fromkeys([*sent, *before]) if name in wanted}
        if types:
            new = tuple(name for name in types if name not in before)
            if new:
                self.tell_network(told.OriginNamed(origin, new))
                upstream = network.upstream.get(origin)
            if upstream is None:
                return  # more brokers than are allowed
            self._ways.open(origin, LOCAL, self.me)
            serial = self.needs.ask(origin, self._parts.clock())
        elif not network.is_host:
            return  # nobody can take it for one who needs something
        else:
            if upstream is not None:
                self.tell_network(told.OriginNamed(origin, ()))
                self.stored_reports.hurry(origin)
            self._ways.close(origin, LOCAL, self.me)
            self.needs.forget(origin)
            serial = 0
        question = self._question(origin, serial, types)
        self._say(self._ways.via[origin], question, self.durable.number)

    def _question(
        self, origin: str, serial: int, types: dict[str, told.Attributes]
    ) -> frames.Sealed:
        """Return what an origin is asked: to offer all that is needed of types, or of none."""
        fold = self.inputs.question(self.me, origin, serial, types)
        if fold is not None:
            return fold
        upstream = self.durable.network.upstream.get(origin)
        place = None if upstream is None or not types else upstream.place()
        life, position, taken = place or (0, None, ())
        own = [operator for operator, _ in self.router.operators(LOCAL)]
        absent, newest = self.absent(), self.durable.network.newest
        asked = (life, position, types, keys_for(own, types), absent, newest)
        return frames.Reoffer(self.me, origin, serial, *asked, taken=taken)

    def ask_quietly(self, origin: str) -> None:
        """Let all on the way to an origin know whom is waited for, and how far that has come."""
        network = self.durable.network
        upstream, wanted = network.upstream.get(origin), network.wanted()
        if upstream is not None and origin in self._ways.via and origin not in self.needs.asked:
            types = {name: wanted[name] for name in upstream.types if name in wanted}
            asked = (upstream.life, upstream.position, types, (), self.absent(), network.newest)
            body = frames.Reoffer(self.me, origin, self.needs.quietly(), *asked, quiet=True)
            self._say(self._ways.via[origin], body, self.durable.number)

    def absent(self) -> tuple[str, ...]:
        """The origins that are waited for in vain of which partners may come."""
        types, origins = self.needs.joined(), self.durable.network.upstream
        via, asked = self._ways.via, self.needs.asked
        silent = [name for name in origins if name not in via or name in asked]
        return tuple([name for name in silent if not types.isdisjoint(origins[name].types)])

    def activate(self) -> None:
        """Activate the subscriptions for which all have answered."""
        if self.needs.waits and self._parts.probes.answered >= self.needs.probe:
            ready = self.needs.ready(self.durable.network.activation.inactive())
            if ready:
                self.tell_network(told.Activated(tuple(ready), apart=True))

    # --- taking ----------------------------------------------------------------------------

    def take(self, what: told.Forwarded, events: DecodedEvents = None) -> None:
        """Something of an origin for the tasks here; `events` as in `NetworkTold`."""
        upstream = self.durable.network.upstream.get(what.origin)
        if upstream is None or self._is_open(what.origin):
            return
        fits = upstream.position is not None and upstream.life == what.life
        if not fits or what.after > upstream.ahead:
            self.missed(what.origin)
            return
        self.tell_network(what if self.correlates else replace(what, held_after=None), events)

    def missed(self, origin: str) -> None:
        """Something of an origin was lost on its way here: have it offered again."""
        if origin in self.durable.network.upstream and not self._is_open(origin):
            self._parts.counts["gaps"] += 1
            if origin in self._ways.via:
                self.ask(origin)

    def _is_open(self, origin: str) -> bool:
        """Tell whether a question to an origin is not answered yet.

        Until it is, what passes may have been claimed where this broker's operators, or its way,
        were not known yet. It is all in the answer, or comes behind it.
        """
        return origin in self.needs.asked

    def offered(self, peer: str, one: frames.Offered) -> None:
        """An answer to a host, which may be this one."""
        if one.host != self.me:
            self._parts.sender.pass_on(peer, one.host, one, len(one.what.positions))
            return
        if self.needs.is_quiet(one.serial):
            return
        asked = self.needs.asked.get(one.what.origin)
        if asked is None or asked.serial != one.serial:
            self._parts.counts["answers_stale"] += 1
            return
        self.tell_network(one.what)
        if one.more:
            self.ask(one.what.origin)
        elif one.last:
            self.needs.answered(one.what.origin, one.serial)
            self.stored_reports.hurry(one.what.origin)
            self.activate()
            if self.needs.joined() and not self.needs.asked:
                for origin in self.durable.network.upstream:
                    self.ask_quietly(origin)

    def wake(self) -> None:
        """Time has passed: tell origins what is stored, ask again, and notice who is away."""
        now, durable = self._parts.clock(), self.durable
        self.stored_reports.wake(now, durable.number)
        self.ask_again()
        for news in self.absence.handle(now, durable.network, self._ways.via, self.needs):
            self.tell_network(news)
        self._parts.sender.out += [Note(*line) for line in self.absence.take_lines()]
        self.activate()

    def asks_again_at(self) -> list[int]:
        """Return when those are due to be asked again who do not answer."""
        return [asked.at + ASK_AGAIN_MS for asked in self.needs.asked.values()]

    def ask_again(self) -> None:
        """Ask those who have not answered for long."""
        for origin in self.needs.overdue(self._parts.clock(), ASK_AGAIN_MS):
            self._parts.counts["asked_again"] += 1
            if origin in self._ways.via:
                self.ask(origin)
            else:
                self.needs.asked.pop(origin)


def _senders(types: set[str], ways: Ways, upstream: Mapping[str, Upstream]) -> list[str]:
    """The origins that may send one of these types, reachable or not."""
    origins = [origin for origin, sent in ways.types.items() if types.intersection(sent)]
    origins += [origin for origin, heard in upstream.items() if types.intersection(heard.types)]
    return list(dict.fromkeys(origins))


def _times(durable: DurableBroker) -> Times:
    return Times.of(durable.limits, durable.options.drift_ppm)

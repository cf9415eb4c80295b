"""A broker among brokers: the durable broker, the topology, the router and what they say.

Owns the parts of a broker among others, and the order in which they are told: as a host (`host`),
as an origin (`origin`), as a home, and between others (`event_relay`). Must not know sockets, files
or clocks. Invariant: whatever others rely on (an event, a promise, a position) leaves only behind
the record that holds it, by `after`; a host's position is passed only by a frame that carries all
that the host needs up to there.

See docs/network.md for the protocol. In short: `Here` leads to origins; a host that needs one sends
`Reoffer` there behind its operators, and so opens the way; the origin answers with `Offered`, and
from then on all that is needed comes as `Passed`, each with what is complete by it. Whatever breaks
(a link, a process, the tree) ends a session of two neighbours, and all is said anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast, get_args

from msgspec.structs import replace

from broker.core import messages as core_messages
from broker.core.cells.cell import Cell
from broker.core.cells.cell_contents import CellMaker, contents
from broker.core.cells.cell_origins import CellTerms
from broker.core.cells.cell_views import network_status, views
from broker.core.cells.inside import CellNeighbours
from broker.core.effects import Effect
from broker.core.exchange.announcing import Announcing
from broker.core.exchange.host import BrokerInputs
from broker.core.exchange.linking import Linking, drain, exchanges, name_taken, use
from broker.core.exchange.listening import ActorNews
from broker.core.network.event_relay import TICK_MS, EventRelay, RelayTools
from broker.core.network.origin import OriginExchange, OriginTools
from broker.core.networked.cell_parts import PARTS_MAX
from broker.core.networked.networked import NetworkedBroker
from broker.core.recovery.durable import CoreFaultError, DurableBroker
from broker.core.standby.stand_ins import StandIns
from broker.engine.runtime.budget import Slices, in_one_go
from broker.network.effects import Note
from broker.network.frames import frames, told
from broker.network.frames.messages import (
    CellPlaced,
    CpuUsed,
    DrainRequested,
    ForgetRequested,
    FramesReceived,
    FromNetwork,
    LinkDown,
    LinkRefused,
    LinkUp,
    NameRefused,
)
from broker.network.functions import exchange as functions
from broker.network.host.upstream import recalled
from broker.network.operators.times import Times
from broker.network.origin.own import incarnated, incarnation_of, noted, run_of
from broker.network.overlay import told as topologies
from broker.network.overlay.calls import CallArrived, CallRelay, CallSent, RemoteCall
from broker.network.placement.cell_messages import Settle
from broker.network.placement.cell_view import CellView
from broker.network.placement.homes import CellHomes, HomeTools
from broker.network.placement.hosts import CellHosts, HostTools
from broker.network.placement.mail import CellMail
from broker.network.placement.parcels import Parcel, PartTaken
from broker.network.replication.cancellations import (
    SubscriptionsCancelled,
)
from broker.network.replication.incarnation import Recall, Recalled
from broker.network.routing.advertisement.messages import Send
from broker.network.routing.entry import Joining

Message = core_messages.Message | FromNetwork


class NetworkBroker(Linking):
    """Run a broker among brokers. `epoch` ascends with each process of this broker.

    `joining` tells when a new process has found its neighbours; `identity`: see `Incarnation`.
    """

    def __init__(
        self,
        durable: DurableBroker,
        epoch: int,
        times: Times | None = None,
        joining: Joining | None = None,
        identity: int = 0,
    ) -> None:
        super().__init__(durable, epoch, BrokerInputs(durable.network), times)
        hosting, self.correlates = self.hosting, self.hosting.correlates
        tell = self._tell_network = hosting.tell_network
        self.incarnation = incarnation_of(identity, durable.network.own, durable.limits)
        self.topology.identify(run_of(epoch, identity), self.incarnation.disk)
        self._frontiers, self.say = durable.network.frontiers, self._say
        self._ended = self._frontiers.ended
        self._announcing = Announcing(durable.limits, self.incarnation)
        self._joining = joining or Joining()
        lends = durable, self._sender, self.counts, self._tell, self._handle
        self._cancelling, self._functions = exchanges(*lends)
        self.calls = CallRelay(self)
        self._mail = CellMail(self.me, epoch, self._sender, durable)
        self._actors = ActorNews(durable, self._sender, self.counts, self._tell)
        knows = durable, self.ways, self.sessions, self.router, self.counts, self._sender
        asks = hosting.stored_reports, hosting.ask_quietly, hosting.take, hosting.missed
        lent = RelayTools(*knows, *asks, self._cores, hosting.absent, self._routed)
        relay = self._relay = EventRelay(lent, correlates=self.correlates)
        self._progress, self.partners, self.leads = relay.progress, relay.partners, relay.leads
        self._owed, self._tick = self._progress.ledger, relay.tick
        around = hosting, self.incarnation, relay, self._understood
        self._origin = OriginExchange(self.parts, OriginTools(*around))
        self._on = self._message_table()
        self._on_frame |= self._frame_table()
        self._homes, self._hosts = self._cell_parts()
        self.hosted: Mapping[str, Cell] = self._hosts.cells  # terms that run here, by name
        self._terms = CellTerms(durable.network, self.topology, self.ways, self._mail, tell)
        self._terms.look(self._now)
        ways = self._sender, self.sessions, tell, hosting.look_at_needs, self._homes.look
        self.stand_ins = StandIns(durable, epoch, self._mail, *ways, self._homes.leave_host)
        self.stand_ins.join(self._on, self._on_frame)
        self._mail.on_said[Settle] = self._progress.reads(self._mail.on_said[Settle])
        durable.network.copies.fresh.clear()
        durable.network.origin.spreads = True
        durable.network.sources.changed = dict.fromkeys(durable.network.sources.by_name)
        self._tick.by(self._now + TICK_MS)
        self._origin.advertise()
        self.hosting.look_at_needs()
        self._homes.look()
        if identity:
            self._tell_network(told.Incarnated(0, 0, {}))

    def _cell_parts(self) -> tuple[CellHomes, CellHosts[Cell]]:
        """Return this broker as a home, and as a host of cells."""
        durable, counts = self.durable, self.counts
        note, clock = lambda *line: self._sender.out.append(Note(*line)), lambda: self._now
        core = self.me, durable.network.book, durable.catalogue, self._mail, self.ways.via, counts
        touched = lambda: None if self.deciding is None else self.deciding.touched()  # noqa: E731
        told_to = self._tell_network, partial(contents, durable), note, touched
        lent = self._sender, self.sessions, self.router, self._routed, self._leave
        inner = CellNeighbours(durable, *lent, self._frames_received)
        room = self.ways.via, counts, durable.limits.cells_max, clock
        gone, further = lambda: self.topology.forgotten, lambda at: self._owed.hurry(at, self._now)
        host = HostTools(self.me, self._mail, inner, *room, gone, further, note)
        return CellHomes(HomeTools(*core, clock, *told_to)), CellHosts(host, CellMaker(durable))

    def _message_table(self) -> dict[type[Any], Callable[[Any], Slices[None] | None]]:
        return {
            LinkUp: self._link_up,
            LinkDown: lambda down: self._of_topology(
                self.topology.handle(topologies.LinkDown(down.peer), self._now)
            ),
            LinkRefused: self._link_refused,
            NameRefused: lambda no: self._sender.out.extend(
                name_taken(self, (no.peer,), no.reason)
            ),
            FramesReceived: self._frames_received,
            ForgetRequested: self._forget_requested,
            CellPlaced: lambda one: self._homes.place(one.cell, one.broker),
            CallSent: lambda one: self.calls.send(one.call),
            DrainRequested: lambda one: drain(self.deciding, drained=one.drained),
            CpuUsed: lambda used: use(self.deciding, used),
            core_messages.Woken: self._woken,
            core_messages.Settling: self._progress.reads(self._settling),
        }

    def _frame_table(self) -> dict[type[Any], Callable[[str, Any], None]]:
        return {
            **self._relay.frames(),
            **self._origin.handlers(),
            frames.Offered: self._offered,
            Parcel: self._mail.parcel,
            PartTaken: self._mail.part_taken,
            frames.Listening: self._actors.listening,
            frames.Copied: self._actors.copied,
            frames.CopiesTaken: self._actors.copies_taken,
            frames.Folded: lambda peer, one: self._pass_on(
                peer, one.host, one, len(one.what.positions)
            ),
            Recall: self._recall,
            Recalled: self._recall,
            RemoteCall: self.calls.hear,
            SubscriptionsCancelled: self._cancelling.hear,
            **dict.fromkeys(get_args(functions.Said), self._functions.hear),
        }

    # --- the door --------------------------------------------------------------------------

    def begun(self) -> list[Effect]:
        """Return what is to be done at the beginning, behind what `recover` returned."""
        return self._taken()

    def work(self, message: Message, now: int) -> Slices[list[Effect]]:
        """Handle a message in slices; what is to be done because of it. Raises CoreFaultError."""
        self._now = self._relay.now = max(now, self._now)
        try:
            yield from self._handle(message)
            while self._go_on_probing():
                pass
            self._tick.by(self._now + self._relay.look(self._now))
        except CoreFaultError as error:
            raise CoreFaultError(self._taken() + error.effects) from error
        return self._taken()

    def _handle(self, message: Message, *, waited: bool = False) -> Slices[None]:
        admits, sources = isinstance(message, _ADMITTED), self.durable.network.sources
        if admits and self.incarnation.holds(message):
            return
        waits = admits and not waited
        for each in self._announcing.pass_on(message, sources, self._now) if waits else [message]:
            if (on := self._on.get(type(each))) is not None:
                yield from on(each) or ()
                continue
            if isinstance(each, core_messages.SpecificationSubmitted):
                split = self.durable.options.split_windows
                each = replace(each, cells=PARTS_MAX, split=split)  # noqa: PLW2901  # written down so
            yield from self._told(cast("core_messages.Message", each))
            if isinstance(each, _REQUESTS):
                self.hosting.look_at_needs()
                self._homes.look()
                self._cancelling.spread(self.sessions.standing)
            elif isinstance(each, core_messages.ActorsListening):
                self._actors.changed()
            elif isinstance(each, core_messages.Stopped):
                self._say_all("", frames.Gone(self.me, each.back_within_ms))
        if self._frontiers.ended != self._ended:  # no more is needed of what they needed
            self._ended = self._frontiers.ended
            self.hosting.look_at_needs()
        if sources.changed:
            self._origin.advertise()
        if self.deciding is not None:
            if isinstance(message, _REQUESTS):
                self.deciding.touched()
            for placed in self.deciding.decided():
                self._homes.place(placed.cell, placed.broker)
        if self.incarnation.phase != "settled":
            self._settle_life()

    def _settle_life(self) -> None:
        """Ask others how far they have seen this broker, and go on when that is known."""
        part, hops, via = self.incarnation, self.topology.tree.hops, self.ways.via
        for recall in part.recalls(self.me, [name for name in via if name in hops], self._now):
            self._say(via[recall.to], recall)
        others = [name for name in self.topology.known if name != self.me]
        if (settled := part.settle([n for n in others if n in hops], others, self._now)) is None:
            return
        self._sender.out += noted(settled, self.me, self.counts)
        self._tell_network(incarnated(settled))
        self._of_topology(self.topology.name_disk(part.disk, self._now))
        self._origin.answer(part.questions())
        for message in part.messages():
            in_one_go(self._handle(message))

    def _recall(self, peer: str, frame: Recall | Recalled) -> None:
        """A broker asks what others have seen of it, or has the answer; or it passes here."""
        if frame.to != self.me:
            self._pass_on(peer, frame.to, frame)
        elif isinstance(frame, Recalled):
            self.incarnation.recalled(frame)
        else:
            self._say(peer, recalled(self.me, frame.asker, self._cores()), self.durable.number)

    def _stands(self, peer: str) -> None:
        self.stand_ins.stands(peer)
        super()._stands(peer)
        self._actors.stands(peer)
        keeps = peer not in self._inside and self.sessions.version(peer) > 1
        self._cancelling.begin(peer, keeps=keeps)
        self._functions.begin(peer, takes=keeps)

    def _go_on_probing(self) -> bool:
        """Ask and tell who has heard of what, and take what waited for that; True: more is due."""
        if self.hosted or self._mail.own:
            self._hosts.run()
        announcing, probes, now, inside = self._announcing, self.probes, self._now, False
        unanswered = self.durable.network.sources.unanswered
        waits = unanswered or announcing.batches or self._origin.held.due is not None
        if probes.is_idle and not waits:
            return False
        announcing.look(unanswered, now)
        announcing.ask(probes.begin)
        for word in self.durable.network.wants.news(probes.take_wants()):
            self._tell_network(word)
        if probes.busy:
            peers, before = self.sessions.neighbours(), probes.answered
            # A cell whose home is away cannot ask an origin for a new type: nobody waits for it.
            lost = [name for name in self._inside if self._homes.is_away(self._mail.home_of(name))]
            whole = self.topology.whole and self._joining.over(self.topology.links, now)
            for peer, body in probes.due(peers.without(lost), now, whole=whole):
                inside |= peer in self._inside
                self._say(peer, body, self.durable.number)
            if probes.answered > before:
                self.hosting.activate()
        self._origin.release(probes.answered)
        if (message := announcing.take(probes.answered, now)) is not None:
            in_one_go(self._handle(message, waited=True))
        return inside or message is not None

    def next_wake(self) -> int | None:
        """When `Woken` is due, if no message comes before."""
        wakes = [self.durable.core.next_wake(), self._tick.due_at, self.topology.wake_at]
        wakes += [self.probes.wake_at, self._origin.held.due, self.incarnation.due_ms]
        wakes += [self.hosting.absence.wake_at, self.hosting.stored_reports.due()]
        wakes += [self.sessions.outlet.wake_at, self._owed.next_wake(), self.partners.asks_at]
        wakes += [self._terms.asks_at, self._hosts.say_again_at]
        if (until := self._joining.until) is not None and until > self._now:
            wakes.append(until)
        if self.stand_ins.home.is_fencing or self.stand_ins.grants.homes:
            wakes.append(self.stand_ins.next_wake())
        if self.hosting.needs.asked:
            wakes += self.hosting.asks_again_at()
        if self._announcing.batches:
            wakes.append(self._announcing.due)
        if self.deciding is not None:
            wakes.append(self.deciding.next_wake())
        if self._homes.wishes or self._hosts.cells:
            wakes += [*self._homes.next_wake(), *self._hosts.next_wake()]
        known = [wake for wake in wakes if wake is not None]
        return max(min(known), self._now + 1) if known else None

    def _taken(self) -> list[Effect]:
        if self.hosted or self._mail.own:
            self._hosts.run()
        self._sender.out += self.stand_ins.look(self._now)
        if self.hosted or self._mail.own:
            self._hosts.run()
        out, self._sender.out = self._sender.out, []
        return self.sessions.outlet.pass_on(out, self._now)

    def _tell(self, message: core_messages.Message) -> None:
        in_one_go(self._told(message))

    def _told(self, message: core_messages.Message) -> Slices[None]:
        """Have the core handle it, and spread what others may have to hear of."""
        before, network = len(self._sender.out), self.durable.network
        self._sender.out.extend((yield from self.durable.work(message, self._now)))
        self.stand_ins.told(message, self._sender.out[before:], self._now)
        if self.durable.given.fresh:
            self._functions.spread(self.sessions)
        if network.promises.version != self._origin.held.version:
            self._origin.promise_less()
        if network.copies.fresh:
            self._actors.send_copies()
        if network.origin.fresh:
            self._origin.spread()

    def _forget_requested(self, message: ForgetRequested) -> None:
        forgotten = topologies.ForgetRequested(message.broker)
        self._of_topology(self.topology.handle(forgotten, self._now))
        self._forget(message.broker)

    @property
    def now(self) -> int:
        """The time of the last message."""
        return self._now

    def note(self, what: Note | CallArrived) -> None:
        """Have a line written into the log, or a call answered."""
        self._sender.out.append(what)

    def cells(self) -> tuple[CellView, ...]:
        """The cells of submissions of this broker, and those that run here."""
        return views(self.durable.network, self._hosts.cells, self._homes.departures.goes_to)

    def status(self) -> dict[str, Any]:
        """The tree, the ways to origins, and who waits for whom, as plain data."""
        network, cells = self.durable.network, (self.cells(), self._hosts.cells)
        return network_status(network, self.topology, self.ways, self.hosting.needs, *cells) | {
            "incarnation": self.incarnation.status(),
            "stand_ins": self.stand_ins.status(),
            "counts": self.counts | self._announcing.counts(),
        }

    def _gone(self, origin: str, peer: str) -> None:
        self._origin.folds.gone(origin)
        self._terms.gone(origin, self._now)
        self._relay.gone(origin)
        super()._gone(origin, peer)
        self.partners.doubt()

    def _leave(self, peer: str) -> None:
        self._relay.leave(peer)
        super()._leave(peer)

    def _routed(self, sends: Sequence[Send]) -> None:
        self.partners.operators_changed()
        super()._routed(sends)
        self._relay.routed(sends)

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
        self.hosting.offered(peer, one)

    def _cores(self) -> list[NetworkedBroker]:
        return [self.durable.network, *[c.durable.network for c in self._hosts.cells.values()]]

    def _found(self, origin: str) -> None:
        super()._found(origin)
        self._actors.found(origin)
        self._homes.found(origin)
        self._hosts.found(origin)

    def _lost(self, origin: str) -> None:
        super()._lost(origin)
        self._homes.lost(origin)
        self._mail.lost_way(origin)

    def _of_topology(self, effects: Sequence[topologies.Effect]) -> None:
        super()._of_topology(effects)
        if effects:
            self._actors.look_at(self.topology, self._now)

    def _forget(self, broker: str) -> None:
        super()._forget(broker)
        if self.durable.network.book.needs(broker):
            self._tell_network(told.BrokerForgotten(broker))
        self._homes.leave_host(broker, "it was forgotten")
        self._hosts.forget(broker)
        self.partners.forget(broker)
        self._terms.forget(broker, self._now)
        self.stand_ins.home.forget(broker)
        self._origin.shows.forget(broker)

    def _settling(self, message: core_messages.Settling) -> None:
        self._homes.settle()
        if self._frontiers.is_due(self._now):
            self._tell(message)

    def _woken(self, message: core_messages.Woken) -> Slices[None]:
        now, due = self._now, self.durable.next_wake()
        if promise := self._tick.is_due(now):
            self._origin.folds.note_unconcerned()
        network = self.durable.network
        if (due is not None and due <= now) or (promise and network.origin.due_to_promise(now)):
            yield from self._told(message)
        for peer in [peer for peer in self._refused if promise]:
            del self._refused[peer]
            if peer in self.sessions.peers:
                self._begin(peer)
        self._of_topology(self.topology.handle(topologies.Woken(), now))
        self.hosting.wake()
        self._hosts.wake()
        self._homes.wake()
        self._terms.wake(now)
        self.partners.ask_for_questions(now)
        self._origin.let_leave()
        if self.deciding is not None:
            self.deciding.wake()


_REQUESTS = (core_messages.SpecificationSubmitted, core_messages.CancelRequested)
_ADMITTED = (
    core_messages.EventsReceived,
    core_messages.SourceAdvertised,
    core_messages.SourceWithdrawn,
)

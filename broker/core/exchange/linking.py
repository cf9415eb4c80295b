"""The links of a broker to its neighbours in the tree, and what is said anew on each.

Owns the topology, the sessions, the router's place among them and which way origins are. Must not
know positions or subscriptions: the broker's part as a host does. Invariant: a neighbour's word
counts from the session in which it was said until that ends; then all that rested on it is taken
back before anything else is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from broker.core.effects import Effect
from broker.core.exchange.host import Host, HostInputs, LinkParts
from broker.core.messages import CancelRequested, FunctionsChanged, Message, NetworkTold
from broker.core.recovery.durable import DurableBroker
from broker.engine.runtime.budget import Slices, in_one_go
from broker.network.effects import Note, SendFrame
from broker.network.frames import frames
from broker.network.frames.frames import FrameError
from broker.network.frames.messages import CellPlaced, CpuUsed, FramesReceived, LinkRefused, LinkUp
from broker.network.functions.exchange import FunctionExchange
from broker.network.neighbours.sessions import FrameSender, Sessions
from broker.network.neighbours.ways import Ways
from broker.network.operators.conditions import compile_condition
from broker.network.operators.heard import heard
from broker.network.operators.times import Times
from broker.network.overlay import told as topologies
from broker.network.overlay.topology import Topology
from broker.network.placement.cell_view import is_cell
from broker.network.replication.cancellations import CancellationExchange, Generation
from broker.network.replication.incarnation import Incarnation
from broker.network.routing.advertisement import messages as routing
from broker.network.routing.advertisement.messages import Send
from broker.network.routing.growing import GrowingRouter
from broker.network.routing.matching.strategies import HOLD_AND_PROBE
from broker.network.routing.probes import Echo, Probe, Probes

NAME_LEFT = (
    "another broker of this name was announced before; give each a name and a disk of its own, or "
    "end the other and start this one again"
)
DISK_CLAIMED = (
    'the broker "{by}" was announced before, on a copy of the same disk; give this one an empty '
    "data directory, or end that one and have it forgotten (headwater forget {by})"
)
NAMED_MAX = 20  # brokers in one line of the log


class NameBearer(Protocol):
    """A broker whose name another may have."""

    me: str
    counts: dict[str, int]
    incarnation: Incarnation


class Deciding(Protocol):
    """Whoever decides where tasks run; see `broker.core.network.planning`."""

    def heard(self, peer: str, data: bytes) -> None:
        """Take a neighbour's word."""

    def stands(self, peer: str) -> None:
        """Take in that a session stands with a neighbour."""

    def gone(self, broker: str) -> None:
        """Take in that there is no way to a broker."""

    def tree_changed(self) -> None:
        """Take in that the tree is another."""

    def touched(self) -> None:
        """Take in that cells came, went or moved."""

    def drain(self, *, drained: bool) -> None:
        """Be rid of all tasks, or take tasks up again."""

    def used(self, used_ms: int, granted_ms_per_s: int) -> None:
        """Take how much CPU was used, and how much may be."""

    def wake(self) -> None:
        """Take in that time has passed."""

    def next_wake(self) -> int | None:
        """Return when to wake next."""

    def decided(self) -> list[CellPlaced]:
        """Return what was decided since this was asked last."""


def name_taken(broker: NameBearer, linked_to: Sequence[str], why: str) -> list[Note]:
    """Count, and tell once, that another has the name; with a reason `why`, it was there before."""
    refused_by = () if why == NAME_LEFT else linked_to
    if why and not broker.incarnation.displace(why, refused_by):
        return []
    broker.counts["name_taken"] += 1
    words: dict[str, str | int] = {
        "broker": broker.me,
        "linked_to": ", ".join(linked_to[:NAMED_MAX]),
        "reason": why,
    }
    return [Note("error", "name_taken", words)]


def taken(broker: NameBearer, effect: topologies.NameTaken | topologies.DiskClaimed) -> list[Note]:
    """Take in that another has the name, or a copy of the disk; or that the disk is free again."""
    if isinstance(effect, topologies.NameTaken):
        return name_taken(broker, effect.neighbours, NAME_LEFT if effect.earlier else "")
    words: dict[str, str | int] = {"broker": broker.me}
    if not effect.by:
        broker.incarnation.readmit()
        return [Note("info", "identity_free", words)]
    why = DISK_CLAIMED.format(by=effect.by)
    broker.incarnation.displace(why, ())
    broker.counts["identity_taken"] += 1
    return [Note("error", "identity_taken", words | {"by": effect.by, "reason": why})]


def cancelled_again(
    counts: dict[str, int], out: list[Effect], revived: Generation
) -> CancelRequested:
    """Count, and tell, that a disk had a cancelled subscription; return how it is cancelled."""
    counts["cancelled_again"] += 1
    subscriber, name = revived.subscriber, revived.name
    words: dict[str, str | int] = {"subscriber": subscriber, "subscription": name}
    out.append(Note("warning", "cancelled_again", words))
    return CancelRequested(subscriber, "", name, proven=True)


def exchanges(
    durable: DurableBroker,
    sender: FrameSender[Effect],
    counts: dict[str, int],
    tell: Callable[[Message], None],
    handle: Callable[[Message], Slices[None]],
) -> tuple[CancellationExchange, FunctionExchange]:
    """Return what brings to neighbours what they keep, behind the record that it rests on."""
    network = durable.network

    def behind(peer: str, body: Any) -> None:
        sender.say(peer, body, durable.number)

    cancelling = CancellationExchange(
        network.cancellations,
        network.catalogue.subscriptions,
        behind,
        lambda cancelled: tell(NetworkTold(cancelled)),
        lambda revived: in_one_go(handle(cancelled_again(counts, sender.out, revived))),
    )
    return cancelling, FunctionExchange(
        durable.given, behind, lambda files: tell(FunctionsChanged(files))
    )


def hear_plan(deciding: Deciding | None, peer: str, plan: frames.Planned) -> None:
    """Tell whoever decides what a neighbour says of that, if there is one."""
    if deciding is not None:
        deciding.heard(peer, plan.data)


def drain(deciding: Deciding | None, *, drained: bool) -> None:
    """Tell whoever decides, if there is one."""
    if deciding is not None:
        deciding.drain(drained=drained)


def use(deciding: Deciding | None, used: CpuUsed) -> None:
    """Report the CPU used to whoever decides, if there is one."""
    if deciding is not None:
        deciding.used(used.used_ms, used.granted_ms_per_s)


class Linking:
    """Keep a broker's links. `NetworkBroker` adds what is said of origins and to hosts."""

    deciding: Deciding | None = None  # nobody: tasks run where they were submitted
    incarnation: Incarnation

    def __init__(
        self, durable: DurableBroker, epoch: int, inputs: HostInputs, times: Times | None
    ) -> None:
        self.me = me = durable.options.name
        partners_max = durable.limits.partners_max
        self.durable, self._now = durable, durable.now
        self.topology = Topology(me, epoch)
        self.sessions = Sessions(epoch << 20)
        self.ways = Ways(me)
        self.probes = Probes(me, epoch << 20)
        self.router = GrowingRouter((), HOLD_AND_PROBE, compile_condition, held_max=partners_max)
        self.counts = dict.fromkeys(COUNTED, 0)
        self._sender = FrameSender[Effect](self.sessions, self.ways, linked=not is_cell(me))
        self.traffic, self._inside = self._sender.traffic, self._sender.inside
        self._say, self._say_all = self._sender.say, self._sender.say_all
        self._pass_on, self._hello = self._sender.pass_on, self._sender.hello
        self._back_within: dict[str, int] = {}  # by origin that leaves: its promise, in ms
        self._refused: dict[str, None] = {}  # neighbours for whom a frame was lost
        self._on_frame: dict[type[Any], Callable[..., None]] = {
            frames.Routed: self._routed_here,
            frames.Here: self._here,
            frames.Gone: self._gone_from,
            frames.Planned: lambda peer, plan: hear_plan(self.deciding, peer, plan),
            Probe: self.probes.heard,
            Echo: self.probes.echoed,
        }
        self.parts = LinkParts(
            durable=durable,
            ways=self.ways,
            sessions=self.sessions,
            router=self.router,
            probes=self.probes,
            counts=self.counts,
            sender=self._sender,
            routed=self._routed,
            tell=self._tell,
            clock=lambda: self._now,
        )
        self.hosting = Host(self.parts, inputs, epoch << 20, times)

    # --- for those who add to it: whether there is a way to an origin, and what it sends ---

    def _tell(self, message: Message) -> None:
        """Have the core handle a message, and do what comes of it."""
        raise NotImplementedError

    def _found(self, origin: str) -> None:
        self.hosting.found(origin)

    def _lost(self, origin: str) -> None:
        self.hosting.lost(origin, self._back_within.get(origin, 0))

    def _stands(self, peer: str) -> None:
        """A session stands with a neighbour since now."""

    def _forget(self, broker: str) -> None:
        self.hosting.forget(broker)

    # --- what neighbours say ---------------------------------------------------------------

    def _routed(self, sends: Sequence[Send]) -> None:
        for send in sends:
            if not isinstance(send.message, routing.Carried):
                self._say(send.to, frames.Routed(send.message))

    def _routed_here(self, peer: str, one: frames.Routed) -> None:
        message = one.message
        if isinstance(message, routing.Want):
            operator = heard(message.operator)
            self.counts["operators_unread"] += operator is not message.operator
            message = routing.Want(operator, covered=message.covered)
        self._routed(self.router.receive(peer, message))

    def _link_up(self, message: LinkUp) -> None:
        told_up = topologies.LinkUp(message.peer, message.fresh, message.cost)
        self._of_topology(self.topology.handle(told_up, self._now))
        if self.sessions.speak(message.peer, message.version) and message.fresh:
            self._begin(message.peer)

    def _link_refused(self, message: LinkRefused) -> None:
        self.counts["frames_refused"] += 1
        self._refused[message.peer] = None

    def _of_topology(self, effects: Sequence[topologies.Effect]) -> None:
        for effect in effects:
            match effect:
                case topologies.Tell(to, data):
                    self._sender.out.append(SendFrame(to, frames.encoded(frames.States(data))))
                case topologies.TreeChanged(neighbours, tree, _):
                    self._tree_changed(neighbours, tree)
                case topologies.KnownChanged(_, forgotten):
                    for broker in forgotten:
                        self._forget(broker)
                case topologies.Objected():
                    self.counts["objected"] += 1
                case topologies.NameTaken() | topologies.DiskClaimed():
                    self._sender.out += taken(self, effect)

    def _tree_changed(self, neighbours: Sequence[str], tree: str) -> None:
        self.counts["trees"] += 1
        self.sessions.tree = tree
        for peer in self.sessions.peers:
            self._leave(peer)
            self.sessions.end(peer)
        everyone = [*neighbours, *self._inside]
        self._routed(self.router.neighbours_changed(everyone))
        for peer in everyone:
            self._hello(peer, self.sessions.begin(peer))
        if self.deciding is not None:
            self.deciding.tree_changed()

    def _begin(self, peer: str) -> None:
        self.counts["sessions_begun"] += 1
        hello = self.sessions.begin(peer)
        self._leave(peer)
        self._hello(peer, hello)

    def _leave(self, peer: str) -> None:
        """Forget all that a neighbour said; it is to be said anew."""
        self.probes.left(peer)
        for origin in self.ways.behind(peer):
            self._gone(origin, peer)
        self.ways.leave(peer)
        self._routed(self.router.neighbour_reset(peer))

    def _heard_hello(self, peer: str, hello: frames.Hello) -> None:
        before = peer in self.sessions
        answer, stands = self.sessions.heard(peer, hello)
        if before and peer not in self.sessions:
            self.counts["sessions_begun"] += 1
            self._leave(peer)
        if answer is not None:
            self._hello(peer, answer)
        if stands:
            self._routed(self.router.neighbour_reset(peer))
            self._say(peer, self.ways.own)
            for origin, via in self.ways.via.items():
                if via != peer:
                    self._say(peer, frames.Here(origin, *self.ways.said(origin)))
            self._stands(peer)
            if self.deciding is not None:
                self.deciding.stands(peer)

    def _frames_received(self, message: FramesReceived) -> None:
        peer = message.peer
        for data in message.frames:
            try:
                received = frames.decoded(data)
            except FrameError:
                self.counts["frames_malformed"] += 1
                continue
            for frame, *further in self.sessions.runs(peer, received):
                if isinstance(frame, frames.States):
                    states = topologies.StatesReceived(peer, frame.data)
                    self._of_topology(self.topology.handle(states, self._now))
                elif isinstance(frame, frames.Hello):
                    self._heard_hello(peer, frame)
                elif frame is not None:
                    self._understood(peer, frame, *further)
                else:
                    self.counts["frames_stale"] += 1

    def _understood(self, peer: str, *bodies: Any) -> None:
        """Frames that go on as one; what says what cannot be is passed over."""
        try:
            for wholes in self._sender.heard(peer, bodies):
                self._on_frame[type(bodies[0])](peer, *wholes)
        except (msgspec.MsgspecError, ArithmeticError, ValueError, LookupError, TypeError):
            self.counts["frames_malformed"] += 1

    def _here(self, peer: str, one: frames.Here) -> None:
        if one.origin == self.me or self.ways.via.get(one.origin, peer) != peer:
            self.counts["frames_astray"] += 1
            return
        self.ways.here(one.origin, peer, one.types, one.bounds)
        self._say_all(peer, one)
        if not is_cell(one.origin):
            self._found(one.origin)

    def _gone_from(self, peer: str, one: frames.Gone) -> None:
        if self.ways.via.get(one.origin) == peer:
            self._back_within[one.origin] = max(0, one.back_within_ms)
            self._gone(one.origin, peer)

    def _gone(self, origin: str, peer: str) -> None:
        self.ways.gone(origin)
        self._lost(origin)
        self._say_all(peer, frames.Gone(origin, self._back_within.pop(origin, 0)))
        if self.deciding is not None:
            self.deciding.gone(origin)


COUNTED = (
    "actors_not_told",
    "answers_stale",
    "asked_again",
    "cancelled_again",
    "cells_begun",
    "cells_ended",
    "cells_failed",
    "cells_moved",
    "cells_parted",
    "cells_not_placed",
    "cells_overflowed",
    "cells_refused",
    "frames_astray",
    "frames_malformed",
    "frames_refused",
    "frames_stale",
    "folds_refused",
    "gaps",
    "identity_taken",
    "kept_back",
    "kept_back_let_go",
    "kept_back_sent",
    "leads_told",
    "lives_begun",
    "name_taken",
    "objected",
    "operators_unread",
    "rewound",
    "sessions_begun",
    "trees",
)

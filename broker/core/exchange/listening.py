"""Results to the brokers where their actors listen, and what clients are told of other brokers.

Owns what brokers tell each other of actors, and the way of a copy. Must not know MQTT. Invariant: a
copy is sent to each broker that listens until that has said that it has it; where the actor has
gone meanwhile, that broker brings it to where it is now. It may come twice where a process ends in
between, as every result may that is published.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from broker.core import topics
from broker.core.effects import Effect, Publication, Publish
from broker.core.messages import ActorsListening, Message, NetworkTold
from broker.core.recovery.durable import DurableBroker
from broker.network.actors.copies import Copy
from broker.network.frames import frames, told
from broker.network.neighbours.sessions import FrameSender
from broker.network.overlay.topology import Topology

NAMES_CHARS_MAX = 128 * 1024  # of all actors here: at four bytes each half of what a link takes


_encode = msgspec.json.Encoder().encode


class Others:
    """Keep what clients were told of each broker last: `ready` while reachable, else `lost`."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def news(self, topology: Topology, now: int) -> list[Publication]:
        """Return what is to be said now, of each whose state is another than was told."""
        states = dict.fromkeys(topology.unreachable, "lost")
        states |= {name: "ready" for name in topology.tree.hops if name != topology.me}
        brokers = set(topology.known)
        for name, state in self._told.items():  # of one heard of again nothing is settled yet
            if name in brokers:
                states.setdefault(name, state)
        states = {name: states[name] for name in sorted(states) if name in brokers}
        before, self._told = self._told, states
        news = [
            Publication(topics.status(name), _encode({"state": state, "at": now}), retain=True)
            for name, state in states.items()
            if before.get(name) != state
        ]
        gone = sorted(before.keys() - states.keys())
        return news + [Publication(topics.status(name), b"", retain=True) for name in gone]


class ActorNews:
    """Keep who listens where, and copies under way; `tell` has the core handle a message."""

    def __init__(
        self,
        durable: DurableBroker,
        sender: FrameSender[Effect],
        counts: dict[str, int],
        tell: Callable[[Message], None],
    ) -> None:
        self.me = durable.options.name
        self.durable = durable
        self._sender = sender
        self._counts = counts
        self._tell = tell
        self._copied: dict[tuple[str, int], int] = {}  # by home and life: the last number
        self._others = Others()

    def _tell_network(self, what: told.Told) -> None:
        self._tell(NetworkTold(what))

    # --- who listens -----------------------------------------------------------------------

    def changed(self) -> None:
        """Tell that other actors listen here than before."""
        self._sender.say_all("", self._listening_at(self.me))

    def _listening_at(self, broker: str) -> frames.Listening:
        delivery = self.durable.network.delivery
        hops, actors = delivery.actors.of(broker)
        if broker == self.me:
            told = _in_one_frame(actors)
            self._counts["actors_not_told"] += len(actors) - len(told)
            actors = told
        return frames.Listening(broker, hops, actors, delivery.version_of(broker))

    def stands(self, peer: str) -> None:
        """Tell a neighbour all, as a session stands."""
        self._sender.say(peer, self._listening_at(self.me))
        for broker, via in self._sender.via.items():
            if via != peer:
                self._sender.say(peer, self._listening_at(broker))

    def listening(self, peer: str, one: frames.Listening) -> None:
        """Take up who listens at a broker."""
        if one.broker == self.me or self._sender.via.get(one.broker, peer) != peer:
            return
        hops = one.hops + 1
        new = frames.Listening(one.broker, hops if one.actors else 0, one.actors, one.version)
        if new != self._listening_at(one.broker):
            said = ActorsListening(one.broker, hops, one.actors, anew=True, version=one.version)
            self._tell(said)
        self._sender.say_all(peer, frames.Listening(one.broker, hops, one.actors, one.version))

    def look_at(self, topology: Topology, now: int) -> None:
        """Tell clients of brokers that come and go; a tree that is another cuts actors off."""
        news = self._others.news(topology, now)
        if news:
            self._sender.out.append(Publish(tuple(news)))
        actors = self.durable.network.delivery.actors
        cut_off = tuple([one for one in topology.unreachable if one in actors.known])
        if cut_off != actors.out_of_reach:
            self._tell_network(told.OutOfReach(cut_off))

    # --- copies ----------------------------------------------------------------------------

    def found(self, origin: str) -> None:
        """Send what is kept for a broker to which there is a way."""
        for one in self.durable.network.copies.kept_for(origin):
            self._copy(one)
        for (home, life), last in self._copied.items():
            if home == origin:  # a copy may have come before the way back was known all along it
                taken = frames.CopiesTaken(home, self.me, life, last)
                self._sender.say(self._sender.via[home], taken, self.durable.number)

    def send_copies(self) -> None:
        """Send the copies that are new."""
        copies = self.durable.network.copies
        fresh, copies.fresh = copies.fresh, []
        for one in fresh:
            self._copy(one)

    def _copy(self, one: Copy) -> None:
        via = self._sender.via.get(one.broker)
        if via is not None:
            copies = self.durable.network.copies
            place = (copies.life, copies.floor(one.broker), one.serial, one.actor)
            body = frames.Copied(self.me, one.broker, *place, one.payload, one.version, one.asks)
            self._sender.say(via, body, self.durable.number, 0)

    def copied(self, peer: str, one: frames.Copied) -> None:
        """Take a copy, or pass it on."""
        if one.to != self.me:
            self._sender.pass_on(peer, one.to, one, events=0)
            return
        last = max(self._copied.get((one.home, one.life), 0), one.floor - 1)
        after = 0
        if one.serial == last + 1:
            last += 1
            after = self._publish_copy(one)
        self._copied[one.home, one.life] = last  # behind a gap all comes again with the next way
        self._sender.say(peer, frames.CopiesTaken(one.home, self.me, one.life, last), after)

    def _publish_copy(self, one: frames.Copied) -> int:
        """Give it to the actor, or to where that has gone; the record that has to be durable."""
        delivery = self.durable.network.delivery
        if delivery.roaming.published(one.actor, one.payload):
            return 0
        if delivery.listens(one.actor, one.version, alone=one.asks == ()):
            delivery.roaming.first(one.actor, one.payload)
            self._sender.out.append(Publish((Publication(topics.actor(one.actor), one.payload),)))
            return 0
        self._tell_network(told.CopyUnheard(one.actor, one.payload, one.asks))
        return self.durable.number

    def copies_taken(self, peer: str, one: frames.CopiesTaken) -> None:
        """Keep no longer what a broker has, or pass that on."""
        if one.home == self.me:
            self._tell_network(told.CopiesTaken(one.broker, one.life, one.serial))
            return
        self._sender.pass_on(peer, one.home, one)


def _in_one_frame(actors: tuple[str, ...]) -> tuple[str, ...]:
    """Of these as many as a link takes at once, the least names; of the others nobody hears."""
    if sum(map(len, actors)) <= NAMES_CHARS_MAX:
        return actors
    found: list[str] = []
    room = NAMES_CHARS_MAX
    for name in sorted(actors):
        room -= len(name)
        if room < 0:
            break
        found.append(name)
    return tuple(found)

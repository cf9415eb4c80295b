"""Results to the brokers where their actors listen.

Owns what brokers tell each other of actors, and the way of a copy. Must not know MQTT. Invariant: a
copy is sent to each broker that listens until that has said that it has it; it may come twice where
a process or a link fails in between, as every result may that is published.
"""

from __future__ import annotations

from broker.core import topics
from broker.core.effects import Publication, Publish
from broker.core.messages import ActorsListening
from broker.core.network import frames, told
from broker.core.network.copies import Copy
from broker.core.network.hosting import Hosting


class ListeningBroker(Hosting):
    """See the module."""

    def _listen(self) -> None:
        """Begin; to be called once."""
        self._copied: dict[tuple[str, int], int] = {}  # by home and life: the last number
        self._on_frame |= {
            frames.Listening: self._listening,
            frames.Copied: self._copied_here,
            frames.CopiesTaken: self._copies_taken,
        }

    # --- who listens -----------------------------------------------------------------------

    def _actors_changed(self) -> None:
        """Other actors listen here than before."""
        _, actors = self.durable.network.actors_at(self.me)
        self._say_all("", frames.Listening(self.me, 0, actors))

    def _stands(self, peer: str) -> None:
        network = self.durable.network
        _, actors = network.actors_at(self.me)
        self._say(peer, frames.Listening(self.me, 0, actors))
        for broker, via in self.ways.via.items():
            if via != peer:
                self._say(peer, frames.Listening(broker, *network.actors_at(broker)))

    def _listening(self, peer: str, one: frames.Listening) -> None:
        if one.broker == self.me or self.ways.via.get(one.broker, peer) != peer:
            return
        hops = one.hops + 1
        known = self.durable.network.actors_at(one.broker)
        if known != (hops if one.actors else 0, one.actors):
            self._tell(ActorsListening(one.broker, hops, one.actors, anew=True))
        self._say_all(peer, frames.Listening(one.broker, hops, one.actors))

    # --- copies ----------------------------------------------------------------------------

    def _found(self, origin: str) -> None:
        super()._found(origin)
        for one in self.durable.network.copies.kept_for(origin):
            self._copy(one)

    def _send_copies(self) -> None:
        copies = self.durable.network.copies
        fresh, copies.fresh = copies.fresh, []
        for one in fresh:
            self._copy(one)

    def _copy(self, one: Copy) -> None:
        via = self.ways.via.get(one.broker)
        if via is not None:
            copies = self.durable.network.copies
            place = (copies.life, copies.floor(one.broker), one.serial)
            body = frames.Copied(self.me, one.broker, *place, one.actor, one.payload)
            self._say(via, body, self.durable.number, 0)

    def _copied_here(self, peer: str, one: frames.Copied) -> None:
        if one.to != self.me:
            via = self.ways.via.get(one.to)
            if via is not None and via != peer:
                self._say(via, one, events=0)
            return
        last = max(self._copied.get((one.home, one.life), 0), one.floor - 1)
        if one.serial == last + 1:
            last += 1
            publication = Publication(topics.actor(one.actor), one.payload)
            self._out.append(Publish((publication,)))
        self._copied[one.home, one.life] = last  # behind a gap all comes again with the next way
        self._say(peer, frames.CopiesTaken(one.home, self.me, one.life, last))

    def _copies_taken(self, peer: str, one: frames.CopiesTaken) -> None:
        if one.home == self.me:
            self._tell_network(told.CopiesTaken(one.broker, one.life, one.serial))
            return
        via = self.ways.via.get(one.home)
        if via is not None and via != peer:
            self._say(via, one)

"""Results for actors, wherever in the network they listen.

Owns the copies for other brokers, and what waits for actors that are on their way. Must not know
frames. Invariant: a result is copied once to each broker where its actor listens; where none of
them still had the actor, it goes on to where that is now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from broker.core import messages, topics
from broker.core.broker import BrokerOptions
from broker.core.effects import Emission, Outgoing, Publication
from broker.core.networked.activating import ActivatingBroker
from broker.engine.limits import Limits
from broker.network.actors.copies import Copies
from broker.network.actors.roaming import Roaming
from broker.network.frames import told
from broker.network.frames.frames import PART_BYTES
from broker.network.placement.cell_view import is_cell

COPY_BYTES_MAX = PART_BYTES  # of one result; a longer one is in the home's log alone


class GivingBroker(ActivatingBroker):
    """Give results to actors, wherever in the network they listen."""

    def __init__(self, options: BrokerOptions | None = None, limits: Limits | None = None) -> None:
        super().__init__(options, limits)
        self.copies = Copies(self.limits.copies_max)
        self.roaming = Roaming(self.limits.copies_max)
        self._versions: dict[str, int] = {}  # by broker
        self._since: dict[str, int] = {}  # actors here, with the version in which they came

    # --- results ---------------------------------------------------------------------------

    def _fed(self, out: Outgoing, before: int) -> None:
        super()._fed(out, before)
        if len(out.results) > before and (self._actors.known or self.roaming.gone):
            self._copy(out.results[before:])

    def _copy(self, results: Sequence[Emission]) -> None:
        """Results of this home, which publishes them here in any case."""
        for one in results:
            there = self._actors.brokers_of(one.actor)
            if there:
                self._send_to(there, one.actor, one.payload)
            else:
                self.roaming.hold(one.actor, one.payload, self.now)

    def _bring(self, actor: str, payload: bytes, out: Outgoing) -> None:
        """A result that nobody heard where it came to: to where its actor listens now."""
        there = self._actors.brokers_of(actor)
        if self.options.name in there and self.roaming.first(actor, payload):
            out.publications.append(Publication(topics.actor(actor), payload))
        self._send_to(there, actor, payload)
        if not there and not self.roaming.hold(actor, payload, self.now):
            self.ledger.note("copies_unheard")

    def _send_to(self, there: Sequence[str], actor: str, payload: bytes) -> None:
        """Copies to these brokers but this one; one of them sees to what nobody heard."""
        others = sorted([broker for broker in there if broker != self.options.name])
        to = tuple([(broker, self.version_of(broker)) for broker in others])
        for number, one in enumerate(to):
            sees_to_it = number == 0 and len(others) == len(there)
            self._add(one, actor, payload, to[1:] if sees_to_it else None)

    def _add(self, to: tuple[str, int], actor: str, payload: bytes, asks: told.Asks) -> None:
        if len(payload) > COPY_BYTES_MAX:  # what cannot travel must not be in the way of others
            self.ledger.note("copies_too_long")
            self._notes.once("warning", "copy_too_long", actor, actor=actor, broker=to[0])
            return
        if self.copies.add(to, actor, payload, asks, self.now):
            self.ledger.note("copies_overflow")

    def _nearest(self, actor: str) -> str:
        """Return the nearest, else one that just left: it may come back. A cell's home chooses."""
        if is_cell(self.options.name):
            return actor
        if self._actors.nearest(actor) is None:
            left = self.roaming.left_below(actor, self.now)
            if left is not None:
                return left
        return super()._nearest(actor)

    # --- actors ----------------------------------------------------------------------------

    def _actors_listening(self, message: messages.ActorsListening, out: Outgoing) -> None:
        _, before = self._actors.of(message.broker)
        super()._actors_listening(message, out)
        _, after = self._actors.of(message.broker)
        kept = dict.fromkeys(after)
        self._count(message, before, after)
        gone = [one for one in before if one not in kept and not self._actors.brokers_of(one)]
        self.roaming.left(gone, self.now)
        for held in self.roaming.came(after, self.now):
            self._bring(held.actor, held.payload, out)

    def _count(
        self, message: messages.ActorsListening, before: Sequence[str], after: Sequence[str]
    ) -> None:
        """The version of who listens at a broker; at this one it counts the changes."""
        me = self.options.name
        if message.broker != me:
            self._versions[message.broker] = message.version
            return
        version = self._versions[me] = self.version_of(me) + 1
        known = dict.fromkeys(before)
        self._since = {name: self._since[name] if name in known else version for name in after}

    def version_of(self, broker: str) -> int:
        """Count the changes of who listens at a broker, as far as they are known."""
        return self._versions.get(broker, 0)

    def listens(self, actor: str, version: int, *, alone: bool) -> bool:
        """Tell whether an actor listens here; if not `alone`, since that version at the latest."""
        since = self._since.get(actor)
        return since is not None and (alone or since <= version)

    def _copies_taken(self, one: told.CopiesTaken, _out: Outgoing) -> None:
        self.copies.taken(one.broker, one.life, one.serial)

    def _copy_unheard(self, one: told.CopyUnheard, out: Outgoing) -> None:
        self._unheard(one.actor, one.payload, one.asks, out)

    def _unheard(self, actor: str, payload: bytes, asks: told.Asks, out: Outgoing) -> None:
        if asks:
            self._add(asks[0], actor, payload, asks[1:])
        elif asks is not None:
            self._bring(actor, payload, out)

    def _out_of_reach(self, one: told.OutOfReach, _out: Outgoing) -> None:
        self._actors.cut_off(one.brokers)

    def _actors_forgotten(self, broker: str, out: Outgoing) -> None:
        """Nobody listens at this broker any more; what it has not taken goes elsewhere."""
        self._actors_listening(messages.ActorsListening(broker, 0, (), anew=True), out)
        for copy in self.copies.forget(broker):
            self._unheard(copy.actor, copy.payload, copy.asks, out)

    def actors(self) -> dict[str, list[str]]:
        """The actors that are known, by the broker at which they listen."""
        return {broker: actors for broker, _, actors in self._actors.state()}

    def actors_at(self, broker: str) -> tuple[int, tuple[str, ...]]:
        """(hops, actors) of a broker as last told."""
        return self._actors.of(broker)

    @property
    def out_of_reach(self) -> tuple[str, ...]:
        """Brokers at which actors listen, and to which there is no way."""
        return self._actors.out_of_reach

    # --- the state -------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the whole state as plain data, results under way included."""
        said = {
            "copies": self.copies.state(),
            "roaming": self.roaming.state(),
            "out_of_reach": list(self.out_of_reach),
            "versions": self._versions,
            "since": self._since,
        }
        return {**super().state(), "giving": said}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a state, results under way included."""
        super().restore(state)
        said = state.get("giving")
        if said is not None:
            self.copies.restore(said["copies"])
            self.roaming.restore(said["roaming"])
            self._actors.cut_off(said["out_of_reach"])
            self._versions, self._since = dict(said["versions"]), dict(said["since"])
        elif "network" in state:  # written before copies went on to where actors are
            self.copies.restore(state["network"]["copies"])
            self._since = dict.fromkeys(self._actors.of(self.options.name)[1], 0)

"""Results for actors, wherever in the network they listen: its part of the core of a broker.

Owns the copies for other brokers, and what waits for actors that are on their way. Must not know
frames. Invariant: a result is copied once to each broker where its actor listens; where none of
them still had the actor, it goes on to where that is now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from broker.core import topics
from broker.core.effects import Emission, Notes, Outgoing, Publication
from broker.core.messages import ActorsListening
from broker.engine.ingest.actors import Actors
from broker.engine.ledger import Ledger
from broker.network.actors.copies import Copies
from broker.network.actors.roaming import Roaming
from broker.network.frames.frames import PART_BYTES
from broker.network.frames.told import Asks, CopyUnheard
from broker.network.placement.cell_view import is_cell

COPY_BYTES_MAX = PART_BYTES  # of one result; a longer one is in the home's log alone


class ActorDelivery:
    """Give results to `actors`, which says where each listens."""

    def __init__(  # noqa: PLR0917  # what a part of the core is lent
        self,
        me: str,
        copies_max: int,
        actors: Actors,
        ledger: Ledger,
        notes: Notes,
        clock: Callable[[], int],
    ) -> None:
        self.actors = actors
        self.copies = Copies(copies_max)
        self.roaming = Roaming(copies_max)
        self._me, self._ledger, self._notes, self._now = me, ledger, notes, clock
        self._versions: dict[str, int] = {}  # by broker
        self._since: dict[str, int] = {}  # actors here, with the version in which they came

    # --- results ---------------------------------------------------------------------------

    def copy(self, results: Sequence[Emission]) -> None:
        """Have results of this home, which publishes them here in any case, go where actors are."""
        for result in results:
            brokers = self.actors.brokers_of(result.actor)
            if brokers:
                self._send_to(brokers, result.actor, result.payload)
            else:
                self.roaming.hold(result.actor, result.payload, self._now())

    def unheard(self, copy: CopyUnheard, out: Outgoing) -> None:
        """A copy reached nobody: who sees to it brings it to where its actor is."""
        if copy.asks:
            self._add(copy.asks[0], copy.actor, copy.payload, copy.asks[1:])
        elif copy.asks is not None:
            self._bring(copy.actor, copy.payload, out)

    def _bring(self, actor: str, payload: bytes, out: Outgoing) -> None:
        """A result that nobody heard where it came to: to where its actor listens now."""
        brokers = self.actors.brokers_of(actor)
        if self._me in brokers and self.roaming.first(actor, payload):
            out.publications.append(Publication(topics.actor(actor), payload))
        self._send_to(brokers, actor, payload)
        if not brokers and not self.roaming.hold(actor, payload, self._now()):
            self._ledger.note("copies_unheard")

    def _send_to(self, brokers: Sequence[str], actor: str, payload: bytes) -> None:
        """Copies to these brokers but this one; one of them sees to what nobody heard."""
        others = sorted([broker for broker in brokers if broker != self._me])
        to = tuple([(broker, self.version_of(broker)) for broker in others])
        for number, place in enumerate(to):
            sees_to_it = number == 0 and len(others) == len(brokers)
            self._add(place, actor, payload, to[1:] if sees_to_it else None)

    def _add(self, to: tuple[str, int], actor: str, payload: bytes, asks: Asks) -> None:
        if len(payload) > COPY_BYTES_MAX:  # what cannot travel must not be in the way of others
            self._ledger.note("copies_too_long")
            self._notes.once("warning", "copy_too_long", actor, actor=actor, broker=to[0])
            return
        if self.copies.add(to, actor, payload, asks, self._now()):
            self._ledger.note("copies_overflow")

    def stand_for(self, actor: str) -> str | None:
        """Return who is `nearest` though nobody listens: one that just left, as it may come back.

        A cell leaves the choice to its home.
        """
        if is_cell(self._me):
            return actor
        if self.actors.nearest(actor) is None:
            return self.roaming.left_below(actor, self._now())
        return None

    # --- actors ----------------------------------------------------------------------------

    def listening(self, message: ActorsListening, before: Sequence[str], out: Outgoing) -> None:
        """Others listen at a broker than `before`."""
        broker, (_, after) = message.broker, self.actors.of(message.broker)
        if broker != self._me:
            self._versions[broker] = message.version
        else:  # a broker counts the changes at itself
            version = self._versions[broker] = self.version_of(broker) + 1
            since, already = self._since, dict.fromkeys(before)
            self._since = {name: since[name] if name in already else version for name in after}
        kept = dict.fromkeys(after)
        gone = [name for name in before if name not in kept and not self.actors.brokers_of(name)]
        self.roaming.left(gone, self._now())
        for held in self.roaming.came(after, self._now()):
            self._bring(held.actor, held.payload, out)

    def version_of(self, broker: str) -> int:
        """Count the changes of who listens at a broker, as far as they are known."""
        return self._versions.get(broker, 0)

    def listens(self, actor: str, version: int, *, alone: bool) -> bool:
        """Tell whether an actor listens here; if not `alone`, since that version at the latest."""
        since = self._since.get(actor)
        return since is not None and (alone or since <= version)

    def forget(self, broker: str, out: Outgoing) -> None:
        """Nobody listens at this broker any more; what it has not taken goes elsewhere."""
        for copy in self.copies.forget(broker):
            self.unheard(CopyUnheard(copy.actor, copy.payload, copy.asks), out)

    # --- the state -------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return what is to outlast the process, results under way included."""
        return {
            "copies": self.copies.state(),
            "roaming": self.roaming.state(),
            "out_of_reach": list(self.actors.out_of_reach),
            "versions": self._versions,
            "since": self._since,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take it up from the state of a core, which has the actors by now."""
        own = state.get("giving")
        if own is not None:
            self.copies.restore(own["copies"])
            self.roaming.restore(own["roaming"])
            self.actors.cut_off(own["out_of_reach"])
            self._versions, self._since = dict(own["versions"]), dict(own["since"])
        elif "network" in state:  # written before copies went on to where actors are
            self.copies.restore(state["network"]["copies"])
            self._since = dict.fromkeys(self.actors.of(self._me)[1], 0)

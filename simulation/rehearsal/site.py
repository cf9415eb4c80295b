"""A broker of a rehearsal: its processes, one after the other, and what is counted of them.

Owns the counts and the times at which results were there. Must not know faults. Invariant: a
process that ends leaves its disk as it is, and comes back when that was said.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.effects import Effect, Emission, Publish
from broker.core.messages import ActorsListening, Message
from broker.core.topics import ACTORS
from broker.network.effects import SendFrame
from broker.network.placement.cell_view import is_cell
from simulation.crashes.process import Machine
from simulation.network.place import Place
from simulation.network.planned import planning_of
from simulation.world import World


class ActorMessage(Struct, frozen=True):
    """A result that came to an actor, at the broker where it listens: its topic tells to which."""

    topic: str
    at_ms: int
    payload: bytes


class DetectedResult(Struct, frozen=True):
    """A result in its home's outbox, and when it was there."""

    broker: str
    at_ms: int
    row: Emission


class RehearsalSite(Place):
    """A host with its broker; `actors` listen here, and `stand_in` is that of the broker's home."""

    def __init__(
        self,
        world: World,
        machine: Machine,
        actors: tuple[str, ...],
        stand_in: str = "",
        coordinator: CoordinatorSettings | None = None,
    ) -> None:
        super().__init__(world, machine)
        self.actors = actors
        self.stand_in = stand_in
        self.coordinator = coordinator
        self.found: list[DetectedResult] = []
        self.arrived: list[ActorMessage] = []
        self.published: Counter[str] = Counter()  # what concerns nobody in particular, by topic
        self.retained_most = 0
        self.held_most = 0
        self._down_ms = 0

    def start(self) -> None:
        """Start the broker, and have its actors listen."""
        super().start()
        if self.stand_in and self.process is not None:
            home, outbox = self.process.network.stand_ins.home, self.machine.outbox
            self.process.set_fence(home.set_up(self.stand_in, 0, str(self.connection)))
            home.recall(outbox.rows, 0, outbox.end)
        if self.coordinator is not None and self.process is not None:
            planning_of(self, self.process.network, self.coordinator)
        if self.actors:
            self.hear(ActorsListening(self.name, 0, self.actors, anew=True))

    def end_for(self, lasts_ms: int) -> None:
        """End the process now, for so long; where there is none, it comes back no sooner."""
        if self.process is not None:
            self._down_ms = lasts_ms
            self.end()

    def _end(self) -> None:
        self.ends += 1
        self._look()
        self.process = None
        self.connection += 1
        for client in self.clients:
            client.lost()
        for link in self.links.values():
            link.down()
        self.answers.clear()
        self.world.after(self._down_ms, self.start)

    # --- around a process ------------------------------------------------------------------

    def told(self, number: int, message: Message | None, now: int) -> None:  # noqa: ARG002
        """Record the most that the broker has retained."""
        if self.process is not None and hasattr(self.process, "network"):
            kept = len(self.process.core.network.own)
            self.retained_most = max(self.retained_most, kept)

    def leaves(self, effect: Effect) -> None:
        """Record what the broker publishes; all else leaves it as at any place."""
        if isinstance(effect, Publish):
            for publication in effect.publications:
                if publication.topic.startswith(f"{ACTORS}/"):
                    self.arrived.append(
                        ActorMessage(publication.topic, self.world.now, publication.payload)
                    )
                else:
                    self.published[publication.topic.partition("/")[0]] += 1
        else:
            super().leaves(effect)

    def delivered(self, rows: list[Emission]) -> None:
        """Record results of this broker."""
        self.found += [DetectedResult(self.name, self.world.now, row) for row in rows]

    def _send(self, frame: SendFrame) -> None:
        self.step()
        self.links[frame.link].send(self.name, frame)

    # --- what is counted -------------------------------------------------------------------

    def look(self) -> tuple[int, int]:
        """(events that tasks hold, events that are kept for others) now."""
        self._look()
        if self.process is None:
            return 0, 0
        return self.process.core.held(), len(self.process.core.network.own)

    def _look(self) -> None:
        if self.process is not None:
            self.held_most = max(self.held_most, self.process.core.held())


def reached(site: RehearsalSite) -> int:
    """Return to how many brokers there is a way."""
    if site.process is None:
        return 0
    return sum(not is_cell(name) for name in site.process.network.ways.via)


def is_calm(site: RehearsalSite) -> bool:
    """Tell whether all cells are active, and it is sure what waits for partners."""
    if site.process is None:
        return False
    network = site.process.network
    cells, partners = network.durable.network.book.cells, network.partners
    return all(cell.active for cell in cells.values()) and all(
        partners.is_sure(peer)
        for peer in network.sessions.standing
        if not is_cell(peer) and partners.joined(peer).types
    )

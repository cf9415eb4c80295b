"""The loss of one home, and the person who has a stand-in take it over.

Owns what happens to the home and when. Must not know what is drawn besides. Invariant: a broker is
asked to take over until one has done so, and its disk has that.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from broker.core.effects import Emission
from broker.core.standby.inheritance import Inheritance
from broker.network.delivery.feed import NEIGHBOUR
from broker.network.frames.messages import (
    ForgetRequested,
    ResultsDelivered,
    ResultsRead,
    TakeOverRequested,
)
from simulation.crashes.outbox import SimulatedOutbox
from simulation.crashes.process import Machine
from simulation.disk import Disk
from simulation.network.place import Place
from simulation.world import World

# The disk is gone for good; the broker comes back with an empty disk, or as it was; it is cut off
# for long while it goes on; it can be reached, and is taken over all the same.
LOSSES = ("destroyed", "emptied", "returned", "cut", "handed")
ASKS_AGAIN_MS = 1_000  # a person who was refused
NOTICED_MS = (500, 30_000)  # how long it takes until a person has the stand-in take over
CUT_MS = 45_000
BACK_MS = 20_000
READS = 0.4  # of the times at which there is something to read


class StandInPlace(Place):
    """A place whose broker has a neighbour stand in for it, until it is lost.

    `lease_ms` 0: it is taken over by a person's word. `has_reader`: somebody reads the log, and
    acknowledges what it has read a while later.
    """

    is_gone = False
    lease_ms = 0
    has_reader = False

    def __init__(self, world: World, machine: Machine) -> None:
        super().__init__(world, machine)
        self.read = self.acked = self.disks = 0
        self.released_at: list[tuple[int, Emission]] = []  # the results, when they might leave
        self.taken_at: int | None = None  # when it took the lost home over

    def start(self) -> None:
        """Begin a process, unless the machine is gone."""
        if self.is_gone:
            return
        super().start()
        if self.process is not None:
            self.process.on_release = self._release
            home, outbox = self.process.network.stand_ins.home, self.machine.outbox
            self.process.set_fence(home.set_up(NEIGHBOUR, self.lease_ms, self.epoch))
            first = self.acked if self.has_reader else outbox.end
            home.recall(outbox.rows[first:], first, outbox.end)
            self._tell_read()
            if not self._is_heir():
                self.taken_at = None  # its disk does not have it

    def _is_heir(self) -> bool:
        process = self.process
        heirs = {} if process is None else process.core.network.successions.heirs()
        return any(self.name in names for names in heirs.values())

    @property
    def epoch(self) -> str:
        """Return the name of the log that there is."""
        return f"{self.name} {self.disks}"

    def _release(self, rows: Sequence[Emission]) -> None:
        """Note when results might leave."""
        self.released_at += [(self.world.now, row) for row in rows]

    def told(self, *_: Any, **__: Any) -> None:
        """Note when this broker took the lost home over."""
        if self.taken_at is None and self._is_heir():
            self.taken_at = self.world.now

    def delivered(self, rows: list[Emission]) -> None:
        """Tell the process that results are in the outbox, and have them read."""
        super().delivered(rows)
        self.hear(ResultsDelivered(rows[-1].offset + 1))
        if self.has_reader and self.world.random.random() < READS:
            self.acked, self.read = self.read, self.machine.outbox.end
            self._tell_read()

    def _tell_read(self) -> None:
        self.hear(ResultsRead(self.acked if self.has_reader else None))


class HomeLoss:
    """The loss of `place`, one of `places`; `known` are results that were given out for sure."""

    def __init__(self, world: World, places: list[Place], place: StandInPlace, kind: str) -> None:
        self.place = place
        self.kind = kind
        self.is_over = False  # taken over, and back where it comes back
        self.adopted = 0
        self.withheld = 0
        self.known: set[str] = set()
        self.outbox = SimulatedOutbox()  # what the home had given out when its disk went away
        self.epoch = ""  # of the log that was lost
        self.read = 0  # of that log
        self.inherited: Inheritance | None = None
        self.heir: StandInPlace | None = None
        self._world = world
        self._places = places

    def begin(self) -> None:
        """Lose the home now."""
        place, random = self.place, self._world.random
        self.epoch = place.epoch
        if place.process is not None:
            self.withheld = len(place.process.network.stand_ins.feed)
        wait_ms = random.randint(*NOTICED_MS)
        if self.kind == "cut":
            wait_ms = CUT_MS // 2
            cut_ms = max(CUT_MS, 3 * place.lease_ms)  # it lapses, though its stand-in restarts
            for link in place.links.values():
                link.cut(cut_ms, lost=random.random() < 0.5)
        elif self.kind != "handed":
            place.is_gone = True
            place.end()
        self._world.after(wait_ms, self._take_over)

    def _take_over(self) -> None:
        """Have the broker with the latest copy take over; again until it has done so."""
        name = self.place.name
        heirs = [place for place in self._places if self._has_taken(place)]
        if heirs:
            self._taken_over(heirs[0])
            return
        if self.place.lease_ms:  # nobody has to ask
            self._world.after(ASKS_AGAIN_MS, self._take_over)
            return
        copies = [
            ((copy.run, copy.number), place.name, place)
            for place in self._places
            if place.process is not None and place is not self.place
            if (copy := place.process.core.network.standing_in.homes.get(name)) is not None
        ]
        if copies:
            *_, place = max(copies)
            self._note_known(place)
            place.hear(TakeOverRequested(name, is_forced=self.kind == "handed"))
        self._world.after(ASKS_AGAIN_MS, self._take_over)

    def _has_taken(self, place: Place) -> bool:
        """Tell if a place has taken the home over, and its disk has that."""
        process = place.process
        if process is None or process.journal.waiting:
            return False
        return place.name in process.core.network.successions.heirs().get(self.place.name, ())

    def _note_known(self, place: Place) -> None:
        """Note which results the stand-in knows to have been given out."""
        assert place.process is not None
        copy = place.process.core.network.standing_in.homes[self.place.name]
        undelivered = {
            json.loads(row.result[3])["id"]
            for row in copy.given.rows
            if row.offset >= copy.given.delivered
        }
        ids = {name.rpartition("\0")[2] for cell in copy.book.cells.values() for name in cell.ids}
        self.known = ids - undelivered
        self.adopted = len(copy.rows)

    def _taken_over(self, heir: Place) -> None:
        self.is_over = True
        assert isinstance(heir, StandInPlace)
        assert heir.process is not None
        kept = heir.process.core.network.adoption.inherited.kept
        self.heir = heir
        self.inherited = next((each for each in kept if each.epoch == self.epoch), None)
        self.read = self.place.read
        place, random = self.place, self._world.random
        if self.kind in {"destroyed", "emptied"}:
            self.outbox = place.machine.outbox
        if self.kind == "emptied":
            self.place.read = self.place.acked = 0
            self.place.disks += 1
            place.machine = replace(place.machine, disk=Disk(random), outbox=SimulatedOutbox())
        if self.kind in {"emptied", "returned"}:
            place.is_gone = False
            self._world.after(random.randint(1, BACK_MS), place.start)
        elif self.kind == "destroyed":
            self._places.remove(place)
            self._forget(heir)

    def _forget(self, place: Place) -> None:
        """Have all forget a home that will not come back; again until all have heard."""
        name = self.place.name
        processes = [other.process for other in self._places]
        if any(
            process is None or name not in process.network.topology.forgotten
            for process in processes
        ):
            place.hear(ForgetRequested(name))
            self._world.after(ASKS_AGAIN_MS, partial(self._forget, place))


def leaves(places: list[Place]) -> list[Place]:
    """Return the places without which all others are still linked."""
    return [place for place in places if _are_linked_without(place, places)]


def _are_linked_without(left: Place, places: list[Place]) -> bool:
    others = {place.name: place for place in places if place is not left}
    first = next(iter(others))
    reached, ahead = {first}, [first]
    while ahead:
        for name in others[ahead.pop()].links:
            if name in others and name not in reached:
                reached.add(name)
                ahead.append(name)
    return len(reached) == len(others)

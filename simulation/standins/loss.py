"""The loss of one home, and the person who has a stand-in take it over.

Owns what happens to the home and when. Must not know what is drawn besides. Invariant: a broker is
asked to take over until one has done so, and its disk has that.
"""

from __future__ import annotations

import json
from functools import partial

from msgspec.structs import replace

from broker.core.effects import Emission
from broker.core.network.messages import ForgetRequested, ResultsDelivered, TakeOverRequested
from broker.network.delivery.feed import NEIGHBOUR
from simulation.crashes.outbox import SimulatedOutbox
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


class StandInPlace(Place):
    """A place whose broker has a neighbour stand in for it, until it is lost."""

    is_gone = False

    def start(self) -> None:
        """Begin a process, unless the machine is gone."""
        if self.is_gone:
            return
        super().start()
        if self.process is not None:
            self.process.network.stand_ins.feed.setting = NEIGHBOUR

    def delivered(self, rows: list[Emission]) -> None:
        """Tell the process that results are in the outbox."""
        super().delivered(rows)
        self.hear(ResultsDelivered(rows[-1].offset + 1))


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
        self._world = world
        self._places = places

    def begin(self) -> None:
        """Lose the home now."""
        place, random = self.place, self._world.random
        if place.process is not None:
            self.withheld = len(place.process.network.stand_ins.feed)
        wait_ms = random.randint(*NOTICED_MS)
        if self.kind == "cut":
            wait_ms = CUT_MS // 2
            for link in place.links.values():
                link.cut(CUT_MS, lost=random.random() < 0.5)
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
        return self.place.name in process.core.network.successions.heirs()

    def _note_known(self, place: Place) -> None:
        """Note which results the stand-in knows to have been given out."""
        assert place.process is not None
        copy = place.process.core.network.standing_in.homes[self.place.name]
        undelivered = {json.loads(row.result[3])["id"] for row in copy.given.rows}
        ids = {name.rpartition("\0")[2] for cell in copy.book.cells.values() for name in cell.ids}
        self.known = ids - undelivered
        self.adopted = len(copy.rows)

    def _taken_over(self, heir: Place) -> None:
        self.is_over = True
        place, random = self.place, self._world.random
        if self.kind in {"destroyed", "emptied"}:
            self.outbox = place.machine.outbox
        if self.kind == "emptied":
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

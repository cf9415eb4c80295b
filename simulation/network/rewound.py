"""Runs in which the disk of one broker goes back in time.

Owns the copy, the moment of its return, and what may be missing afterwards. Must not know how a
broker finds out. Invariant: as `scenario`; nothing is missing but what was acknowledged between the
copy and its return, at the broker whose disk that was; and where something is, it was reported.

By the seed a disk is *restored* from a copy, or *emptied*: a namesake with a new card takes the
place. The broker whose disk goes back is an origin, perhaps also a home and a host; subscriptions
are such that each result depends on its own events alone. Behind the copy of a home's disk a
client cancels there: the subscription stands on the copy, and must not come back with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from simulation import checkers, texts
from simulation.account import CheckFailedError
from simulation.crashes.clients import NET_MS, AskingClient, Packet, PublishingSensor, Wish
from simulation.crashes.outbox import SimulatedOutbox
from simulation.disk import Disk
from simulation.network.place import Place
from simulation.network.scenario import CALM_MS, Run, RunFailedError, Shape
from simulation.network.scenario import Outcome as OfRun
from simulation.world import World

SUBSCRIPTIONS = ("After", "Either", "Hot", "Rise")
PLACED = ("Damp", "Valley")  # need a source's position, which an empty disk does not have
HEARD_MS = 1_000  # in which each neighbour has heard what left a broker
TRAVEL_MS = 10_000  # in which what was acknowledged is stored wherever it is needed


class Rewound(Struct, frozen=True):
    """The outcome of a run: how the disk went back, what that lost, and what was reported of it."""

    of_run: OfRun
    kind: str
    missing: int
    reported: int
    cancelled: bool  # what stayed cancelled was looked at


def run(seed: int, shape: Shape | None = None) -> Rewound:
    """Run and check one. Raises RunFailedError."""
    try:
        done = RewoundRun(seed, shape or Shape(events=200))
        return Rewound(done.run(), done.kind, done.missing, done.reported, done.cancelled)
    except Exception as error:
        text = f"seed {seed} (repeat it: python -m simulation --kind rewound --seed {seed}): "
        raise RunFailedError(f"{text}{error}") from error


class WitnessedSensor(PublishingSensor):
    """A source that knows when each event was acknowledged."""

    def __init__(self, place: Place, name: str, type_name: str, window: int) -> None:
        super().__init__(place, name, type_name, window)  # type: ignore[arg-type]
        self.acknowledged_ms: dict[str, int] = {}

    def between(self, from_ms: int, to_ms: int) -> set[str]:
        """Name the events that were acknowledged first in that time."""
        return {name for name, ms in self.acknowledged_ms.items() if from_ms <= ms <= to_ms}

    def _taken(self, packet: Packet) -> None:
        super()._taken(packet)
        for event in packet.events:
            self.acknowledged_ms.setdefault(event["id"], self._world.now)


class RewoundPlace(Place):
    """A place whose processes have an identity, and whose results are remembered."""

    identifies = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.outboxes: list[SimulatedOutbox] = []  # those that went away with their disks
        self.reported = 0
        self.positions: dict[str, int] = {}  # of events that were admitted here
        self._stored: dict[str, int] = {}

    def start(self) -> None:
        """Begin a process, and remember at which positions it admits events."""
        super().start()
        if self.process is None:
            return
        own = self.process.core.network.own
        take = own.take

        def taken(events: Sequence[Any]) -> int:
            first = take(events)
            self.positions |= {event.id: position for position, event in enumerate(events, first)}
            return first

        own.take = taken  # type: ignore[method-assign]

    def stored(self) -> dict[str, int]:
        """Return how far the events of each other broker are stored here, or were at the end."""
        if self.process is not None:
            upstream = self.process.core.network.upstream
            self._stored = {name: heard.position or 0 for name, heard in upstream.items()}
        return self._stored

    def _end(self) -> None:
        self.reported += self.gaps()
        self.stored()
        super()._end()

    def gaps(self) -> int:
        """Count the gaps that the process which is there has reported."""
        return 0 if self.process is None else len(self.process.network.incarnation.gaps)


class Return:
    """The return of one disk to what it was: a copy of it, or nothing at all."""

    def __init__(self, world: World, place: Place, kind: str) -> None:
        self.place = place
        self.kind = kind
        self.was_seen = False  # whether another broker had stored more than the copy tells of
        self.is_alone = True  # nothing else fails: what was stored elsewhere is there still
        self.here: list[WitnessedSensor] = []  # sources at the broker whose disk it is
        self.elsewhere: list[WitnessedSensor] = []
        self._world = world
        self._from_ms = self._to_ms = self._position = 0
        self._copied: tuple[Any, SimulatedOutbox] = ({}, SimulatedOutbox())
        self._stored: dict[str, int] = {}  # when it was copied
        self._lost: dict[str, int] = {}  # when it was put back

    def copy(self) -> None:
        """Copy the disk as it is at this moment, its process running."""
        machine, process = self.place.machine, self.place.process
        self._copied = deepcopy((machine.disk._files, machine.outbox))  # noqa: SLF001
        self._from_ms = self._world.now
        assert isinstance(self.place, RewoundPlace)
        self._stored = self.place.stored()
        if self.kind == "restored" and process is not None:
            self._position = process.core.network.own.position

    def put_back(self, places: Sequence[Place]) -> None:
        """End the process, and have the next one begin on the copy."""
        place = self.place
        assert isinstance(place, RewoundPlace)
        place.outboxes.append(place.machine.outbox)
        self._lost = place.stored()
        self.was_seen = self._seen(places) > self._position
        disk, outbox = Disk(self._world.random), SimulatedOutbox()
        if self.kind == "restored":
            disk._files, outbox = self._copied  # noqa: SLF001
        place.end()
        place.machine = replace(place.machine, disk=disk, outbox=outbox)
        self._to_ms = self._world.now

    def _seen(self, places: Sequence[Place]) -> int:
        """Find the last position of the broker that is stored at another."""
        processes = [place.process for place in places if place is not self.place]
        upstreams = [process.core.network.upstream for process in processes if process is not None]
        name = self.place.name
        return max([0, *[origins[name].position or 0 for origins in upstreams if name in origins]])

    def doubted(self, places: Sequence[Place]) -> set[str]:
        """Name the events that may be gone: acknowledged between the copy and its return.

        A home whose disk goes back, one of whose places these are, has lost those of other origins,
        too, that it stored in between: they are kept nowhere else.
        """
        from_ms = self._to_ms - TRAVEL_MS if self.kind == "emptied" else self._from_ms
        to_ms = self._to_ms + 2 * NET_MS
        doubted: set[str] = set()
        for sensor in self.here:
            doubted |= sensor.between(from_ms, to_ms)
        for place in places:
            assert isinstance(place, RewoundPlace)
            stored, lost = self._stored.get(place.name, 0), self._lost.get(place.name, 0)
            doubted |= {
                name for name, position in place.positions.items() if stored < position <= lost
            }
        return doubted


class Cancelling:
    """A client that cancels, behind the copy of a disk, what stands on the copy."""

    NAME = "Hot"
    CLIENT = "canceller"

    def __init__(self, world: World, place: Place) -> None:
        self.place = place
        self.asker = self._asker([Wish("submit", self._text(), {self.NAME: 1})])
        self._world = world
        self._answered_ms: int | None = None
        self._back_ms: int | None = None

    def _text(self) -> str:
        return texts.text_of((self.NAME,), self.CLIENT)

    def _asker(self, wishes: list[Wish]) -> AskingClient:
        return AskingClient(self.place, self.CLIENT, wishes)  # type: ignore[arg-type]

    def cancel(self) -> None:
        """Cancel now."""
        asker = self._asker([Wish("cancel", self.NAME, {self.NAME: None})])
        asker.satisfied = self._answered
        asker.reached()

    def _answered(self) -> None:
        self._answered_ms = self._world.now

    def put_back(self) -> None:
        """Take in that the disk is put back now."""
        self._back_ms = self._world.now

    def check(self) -> bool:
        """Check that it stays cancelled if a neighbour can have heard; return whether one can."""
        process, back_ms = self.place.process, self._back_ms
        assert process is not None
        if back_ms is None or self._answered_ms is None or back_ms - self._answered_ms < HEARD_MS:
            return False
        if any(standing.subscriber == self.CLIENT for standing in process.core.core.subscriptions):
            raise CheckFailedError("a subscription that was cancelled stands again")
        for row in self.place.machine.outbox.rows:
            if row.subscriber == self.CLIENT and json.loads(row.payload)["end"] > back_ms:
                raise CheckFailedError(f"a cancelled subscription has a result: {row.payload!r}")
        return True


class RewoundRun(Run):
    """One run; see the module."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self.kind = ("restored", "restored", "emptied")[seed % 3]
        self.missing = self.reported = 0
        self.cancelled = False
        self._cancelling: Cancelling | None = None
        self._homes: dict[str, None] = {}  # clients whose home is the broker whose disk goes back
        super().__init__(seed, shape)
        self.back = Return(self.world, self.world.random.choice(self.places), self.kind)

    def _place(self, name: str) -> Place:
        return RewoundPlace(self.world, super()._place(name).machine)

    def _plan_askers(self) -> None:
        super()._plan_askers()
        if self.kind == "restored":  # an emptied disk has no subscription to revive
            self._cancelling = Cancelling(self.world, self.back.place)
            self._askers.append(self._cancelling.asker)

    def _names(self) -> tuple[str, ...]:
        names = SUBSCRIPTIONS if self.kind == "emptied" else SUBSCRIPTIONS + PLACED
        return tuple(self.draw.sample(names, self.draw.randint(2, 3)))

    def _home(self) -> Place:
        """An emptied disk has no subscription any more: such are elsewhere."""
        places = self.places
        if self.kind == "emptied":
            places = [place for place in places if place is not self.back.place]
        home = self.world.random.choice(places)
        if home is self.back.place:
            self._homes[f"client-{len(self._askers)}"] = None
        return home

    def _sensor(self, place: Place, name: str, type_name: str, window: int) -> PublishingSensor:
        sensor = WitnessedSensor(place, name, type_name, window)
        (self.back.here if place is self.back.place else self.back.elsewhere).append(sensor)
        return sensor

    def _plan_faults(self, end_ms: int) -> None:
        random, first_ms = self.world.random, self.world.now + CALM_MS
        copied_ms = random.randint(first_ms, (first_ms + end_ms) // 2)
        back_ms = random.randint(copied_ms + 1_000, end_ms)
        self.world.at(copied_ms, self.back.copy)
        if self._cancelling is not None:
            self.world.at(copied_ms + 1, self._cancelling.cancel)
            self.world.at(back_ms, self._cancelling.put_back)
        self.world.at(back_ms, partial(self.back.put_back, self.places))
        if self.kind == "restored" and random.random() < 0.5:
            self.back.is_alone = False
            super()._plan_faults(end_ms)

    def _judge(
        self,
        places: Sequence[Place],
        specifications: Mapping[str, str],
        arrived: Sequence[dict[str, Any]],
        **_: bool,
    ) -> int:
        rows = [row for place in places for row in place.machine.outbox.rows]
        checkers.check_no_result_twice((0, row) for row in rows)
        for place in places:
            assert isinstance(place, RewoundPlace)
            rows += [row for outbox in place.outboxes for row in outbox.rows]
            check_kept(place)
            self.reported += place.reported + place.gaps()
        each = {
            (row.subscriber, row.subscription, json.loads(row.payload)["id"]): (0, row)
            for row in rows
        }
        late = {event["id"] for place in places for event in place.late}
        for client, text in specifications.items():
            doubted = late | self.back.doubted(places if client in self._homes else ())
            specification = texts.checked(text).demand()
            excused = partial(self._excused, doubted)
            checkers.check_replay(specification, each.values(), arrived, excused)
        if self._cancelling is not None and self.back.is_alone:
            self.cancelled = self._cancelling.check()
        if self.back.is_alone and self.back.was_seen and not self.reported:
            raise CheckFailedError("a disk went back behind what others had seen, in silence")
        return len(rows)

    def _excused(self, doubted: set[str], result: Mapping[str, Any]) -> bool:
        ids = {name for bound in result["events"].values() for name in bound}
        excused = not ids.isdisjoint(doubted)
        self.missing += excused
        return excused


def check_kept(place: Place) -> None:
    """In the end nothing is kept for others, nobody waits for anybody, and all admit."""
    process = place.process
    assert process is not None
    network = process.core.network
    if len(network.own):
        raise CheckFailedError(f"{place.name} still keeps {len(network.own)} events for others")
    if asked := process.network.hosting.needs.asked:
        raise CheckFailedError(f"{place.name} still waits for {asked}")
    if not process.network.incarnation.is_settled:
        raise CheckFailedError(f"{place.name} admits nothing")

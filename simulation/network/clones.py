"""Runs in which a broker's disk is copied, and the copy begins beside its original.

Owns the copy, where it begins and under which name, and the end of one of the two. Must not know
how brokers tell copies apart. Invariant: as `scenario`; of the two that hear of each other exactly
one admits events, and where nothing else fails that is the original. When the one that admits is
gone for good the other goes on, and all that either has acknowledged counts once.

By the seed the copy begins under *another* name or the *same*; at times it is cut off for a while,
admits what comes to it, and is found out only then. Clients' homes are elsewhere, but for one,
whose subscription both have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from broker.network.frames.messages import ForgetRequested
from simulation import checkers, texts
from simulation.account import CheckFailedError
from simulation.crashes.clients import PublishingSensor
from simulation.crashes.process import Machine
from simulation.disk import Disk
from simulation.network.links import Link
from simulation.network.place import Place
from simulation.network.rewound import SUBSCRIPTIONS, RewoundPlace, check_kept
from simulation.network.scenario import CALM_MS, Run, RunFailedError, Shape
from simulation.network.scenario import Outcome as OfRun
from simulation.world import World

APART_MS_MAX = 20_000
MENDED_MS = 40_000  # in which every link is back, and brokers have heard of each other
STORED_MS = 20_000  # in which what was acknowledged is stored wherever it is needed
FOR_GOOD_MS = 10**9
SPOKEN = "Temp"  # at the copy
WHERE = {"location": "hall/0", "position": [46, 7]}
STORED_EACH = 30  # times that is waited for


class Cloned(Struct, frozen=True):
    """The outcome of a run: the copy's name, who admitted in the end, and what else there was."""

    of_run: OfRun
    kind: str
    original_stayed: bool
    apart: int  # events that the copy acknowledged before it was found out
    excused: int  # results that may be missing, as an event of theirs was late


def run(seed: int, shape: Shape | None = None) -> Cloned:
    """Run and check one. Raises RunFailedError."""
    try:
        done = CloneRun(seed, shape or Shape(events=200))
        return Cloned(done.run(), done.kind, done.original_stayed, done.apart, done.excused)
    except Exception as error:
        text = f"seed {seed} (repeat it: python -m simulation --kind cloned --seed {seed}): "
        raise RunFailedError(f"{text}{error}") from error


class Clone:
    """A copy of one broker's disk: the place where it begins, and a source that speaks there."""

    def __init__(self, run: Run, original: Place, neighbour: Place, name: str) -> None:
        self.original = original
        self.is_new = SPOKEN not in _senders(original)  # a type that nobody asks the original for
        random, machine = run.world.random, original.machine
        disk, outbox = Disk(random), deepcopy(machine.outbox)
        disk._files = deepcopy(machine.disk._files)  # noqa: SLF001
        options = replace(machine.options, name=name)
        copied = replace(machine, disk=disk, outbox=outbox, options=options)
        self.place = dated(run.world, copied)
        self.link = Link(run.world, self.place, neighbour, random.choice((5, 30, 300)))
        self.place.links[neighbour.name] = neighbour.links[name] = self.link
        if random.random() < 0.5:
            self.link.cut(random.randint(1, APART_MS_MAX), lost=True)
        self.sensor = PublishingSensor(self.place, "s-too", SPOKEN, 20)  # type: ignore[arg-type]
        self.sensor.advertise(WHERE)
        self.sensor.begun = True

    def speak(self, world: World, end_ms: int) -> list[dict[str, Any]]:
        """Have the source speak until then; return all that it will say."""
        events: list[dict[str, Any]] = []
        time_ms = world.now
        while (time_ms := time_ms + world.random.randint(300, 3_000)) < end_ms:
            event = {"id": f"s-too-{len(events)}", "val": 9.0, "timestamp": time_ms}
            world.at(time_ms, partial(self.sensor.publish, [event]))
            events.append({"type": SPOKEN, "source": self.sensor.name, **WHERE, **event})
        return events

    def admitting(self) -> list[Place]:
        """Return those of the two that admit events."""
        return [
            place
            for place in (self.original, self.place)
            if place.process is not None and place.process.network.incarnation.is_settled
        ]


class CloneRun(Run):
    """One run; see the module."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self.kind = ("another", "another", "same")[seed % 3]
        self.original_stayed = True
        self.apart = self.excused = 0
        self._is_alone = True  # nothing else fails
        self._gone: Place | None = None  # for good
        self._unheard: set[str] = set()  # first events of a type, taken where nobody was reached
        super().__init__(seed, shape)
        self._original = self.world.random.choice(_spare(self.places))
        others = [place for place in self.places if place is not self._original]
        # A namesake of its own neighbour would be refused by that, and never heard of.
        strangers = [place for place in others if place.name not in self._original.links]
        if self.kind == "same" and not strangers:
            self.kind = "another"
        self._neighbour = self.world.random.choice(strangers if self.kind == "same" else others)
        self._clone: Clone | None = None

    def _place(self, name: str) -> Place:
        return dated(self.world, super()._place(name).machine)

    def _names(self) -> tuple[str, ...]:
        return tuple(self.draw.sample(SUBSCRIPTIONS, self.draw.randint(2, 3)))

    def _home(self) -> Place:
        """The original is the home of one subscription alone, which is not judged."""
        if not self._askers and self.seed % 2:
            return self._original
        return self.world.random.choice(
            [each for each in self.places if each is not self._original]
        )

    def _plan_faults(self, end_ms: int) -> None:
        random, first_ms = self.world.random, self.world.now + CALM_MS
        copied_ms = random.randint(first_ms, (first_ms + end_ms) // 2)
        self.world.at(copied_ms, partial(self._copy, end_ms))
        if random.random() < 0.5:
            self._is_alone = False
            super()._plan_faults(end_ms)

    def _copy(self, end_ms: int) -> None:
        """Copy the disk as it is at this moment, and begin a process on the copy."""
        name = self._original.name if self.kind == "same" else f"{self._original.name}-too"
        clone = self._clone = Clone(self, self._original, self._neighbour, name)
        self.links.append(clone.link)
        self.places.append(clone.place)
        self.arrived += clone.speak(self.world, end_ms)
        clone.place.start()

    # --- the end of one of them ------------------------------------------------------------

    def _settle(self) -> None:
        clone, world = self._clone, self.world
        assert clone is not None
        for place in self.places:
            place.mortal = False
        for link in self.links:
            link.delay_ms = min(link.delay_ms, 30)
        world.run(world.now + MENDED_MS)
        admitting = clone.admitting()
        if len(admitting) != 1:
            raise CheckFailedError(f"{len(admitting)} admit events of two on copies of one disk")
        self.original_stayed = admitting == [self._original]
        if self._is_alone and not self.original_stayed:
            raise CheckFailedError("the copy, announced later, took the place of its original")
        apart = {event["id"] for event in clone.sensor.acknowledged}
        self.apart = len(apart) if self.original_stayed else 0
        self._unheard = apart if clone.is_new else set()
        self._sensors.append(clone.sensor)
        self._end(admitting[0])
        other = clone.place if self.original_stayed else self._original
        if self.kind == "same":
            other.end()  # it has left the name until it begins again
        else:
            further = next(place for place in self.places if place is not other)
            further.hear(ForgetRequested(admitting[0].name))
        super()._settle()

    def _end(self, place: Place) -> None:
        """End a place for good when others have stored all that it has acknowledged."""
        world = self.world
        sensors = [sensor for sensor in self._sensors if sensor in place.clients]
        for _ in range(STORED_EACH):
            world.run(world.now + STORED_MS)
            assert place.process is not None
            if all(each.idle for each in sensors) and not len(place.process.core.network.own):
                break
        else:
            raise CheckFailedError(f"{place.name} admits, and not all of it is stored elsewhere")
        if self._is_alone and (why := place.process.network.incarnation.why):
            raise CheckFailedError(f"the original was troubled: {why}")
        self._gone = place
        self.places.remove(place)
        place.away_ms = FOR_GOOD_MS
        place.end()

    # --- the checks ------------------------------------------------------------------------

    def _judge(
        self,
        places: Sequence[Place],
        specifications: Mapping[str, str],
        arrived: Sequence[dict[str, Any]],
        **_: bool,
    ) -> int:
        assert self._gone is not None
        assert self._clone is not None
        rows = []
        for place in (*places, self._gone):
            own = [(0, row) for row in place.machine.outbox.rows]
            checkers.check_no_result_twice(own)
            if place not in (self._original, self._clone.place):
                rows += own
        for place in places:
            check_kept(place)
        late = {event["id"] for place in (*places, self._gone) for event in place.late}
        at_original = [each.name for each in self._askers if each in self._original.clients]
        for client, text in specifications.items():
            if client not in at_original:
                specification = texts.checked(text).demand()
                excused = _Excused(late | self._unheard)
                checkers.check_replay(specification, rows, arrived, excused)
                self.excused += excused.count
        return len(rows)


class _Excused:
    """Tells of results that may be missing, and counts them."""

    def __init__(self, doubted: set[str]) -> None:
        self.count = 0
        self._doubted = doubted

    def __call__(self, result: Mapping[str, Any]) -> bool:
        ids = {name for bound in result["events"].values() for name in bound}
        excused = not ids.isdisjoint(self._doubted)
        self.count += excused
        return excused


def dated(world: World, machine: Machine) -> RewoundPlace:
    """Make a place whose processes are numbered by the time of their beginning."""
    place = RewoundPlace(world, machine)
    place.dated = True
    return place


def _senders(place: Place) -> Mapping[str, int]:
    return {} if place.process is None else place.process.core.network.sources.senders


def _spare(places: Sequence[Place]) -> list[Place]:
    """Find those without whom all others are linked still."""
    count = len(places) - 1
    return [place for place in places if len(_reached(places[place is places[0]], place)) == count]


def _reached(start: Place, without: Place) -> set[str]:
    """Name the places to which links lead from one, past another."""
    reached, waiting = {start.name}, [start]
    while waiting:
        for link in waiting.pop().links.values():
            for name, place in link.ends.items():
                if name not in reached and place is not without:
                    reached.add(name)
                    waiting.append(place)  # type: ignore[arg-type]
    return reached

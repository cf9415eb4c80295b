"""Runs in which the tasks of submissions are at other brokers than their homes, and move.

Owns the moves, the faults that concern hosts, and what must hold of cells in the end. Must not know
how a cell works. Invariant: as `scenario`; what is sent and asked for is drawn as there, so that
one engine is the measure here, too.

Cells go to other brokers at any time, before the first reading and in the midst of a move; besides
the faults of `scenario`, a host, or a home, is away for so long that it is given up, or is cut off
for so long while it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from random import Random
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from broker.network.frames.messages import CellPlaced
from broker.network.placement.book import CellBook
from broker.network.placement.cell_view import is_cell
from simulation import texts
from simulation.account import CheckFailedError
from simulation.network import checks
from simulation.network.place import Place
from simulation.network.scenario import CALM_MS, Run, RunFailedError, Shape
from simulation.world import World

AWAY_MS = (8_000, 25_000)  # some are back before they are given up
MOVES = (4, 25)

Absence: TypeAlias = Callable[[Sequence[Place], Random], None]


class Outcome(Struct, frozen=True):
    """Report what a run came to. `digest` is that of all that left, in order."""

    seed: int
    brokers: int
    events: int
    results: int
    faults: int
    ends: int
    moves: int  # that were asked for
    terms: int  # that cells had in all
    frames: int
    digest: str


def run(seed: int, shape: Shape | None = None) -> Outcome:
    """Run and check one. Raises RunFailedError."""
    try:
        done = CellRun(seed, shape or Shape())
        done.run()
        return done.came_to()
    except Exception as error:
        text = f"seed {seed} (repeat it: python -m simulation --kind cells --seed {seed}): "
        raise RunFailedError(f"{text}{error}") from error


class CellRun(Run):
    """One run; see the module."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self.moves = 0
        self.results = 0
        super().__init__(seed, shape)

    def came_to(self) -> Outcome:
        """Report what it came to."""
        log = sha256()
        for place in self.places:
            log.update(place.log)
        loads = [link.load(name) for link in self.links for name in link.ends]
        cells = [cell for place in self.places for cell in _book(place).cells.values()]
        return Outcome(
            seed=self.seed,
            brokers=len(self.places),
            events=len(self.arrived),
            results=len(checks.results_of(self.places)),
            faults=self.faults,
            ends=sum(place.ends for place in self.places),
            moves=self.moves,
            terms=sum(cell.terms for cell in cells),
            frames=sum(one.frames for one in loads),
            digest=log.hexdigest(),
        )

    # --- what there is ---------------------------------------------------------------------

    def _texts(self, names: tuple[str, ...]) -> list[tuple[str, ...]]:
        """In every other run some are of one text, which is parted."""
        several = 3 if self.seed % 2 else 1
        return [names[:several], *super()._texts(names[several:])]

    def _place(self, name: str) -> Place:
        return with_cells(super()._place(name), self.world)

    def _all_linked(self) -> bool:
        return all_linked(self.places)

    # --- what happens ----------------------------------------------------------------------

    def _plan_readings(self) -> int:
        """Have all be sent, and cells go to and fro meanwhile."""
        random = self.world.random
        for _ in self.places:
            self._move()
        end_ms = super()._plan_readings()
        for _ in range(random.randint(*MOVES)):
            self.world.at(random.randint(self.world.now, end_ms), self._move)
        return end_ms

    def _plan_faults(self, end_ms: int) -> None:
        super()._plan_faults(end_ms)
        for time_ms, fault in drawn_absences(self.world, end_ms):
            self.world.at(time_ms, partial(self._befall, fault))

    def _move(self) -> None:
        self.moves += moved(self.places, self.world.random)

    def _befall(self, fault: Absence) -> None:
        self.faults += 1
        fault(self.places, self.world.random)

    # --- the end ---------------------------------------------------------------------------

    def _settle(self) -> None:
        for place in self.places:
            place.away_ms = 0
        super()._settle()
        for place in self.places:
            check_cells(place, self.places)


def with_cells(place: Place, world: World) -> Place:
    """Return a machine whose submissions run as cells."""
    options = replace(place.machine.options, cells=True)
    return Place(world, replace(place.machine, options=options))


def all_linked(places: Sequence[Place]) -> bool:
    """Tell whether each broker has a way to each other one, cells left aside."""
    return all(
        place.process is not None
        and sum(not is_cell(name) for name in place.process.network.ways.via) == len(places) - 1
        for place in places
    )


def moved(places: Sequence[Place], random: Random) -> bool:
    """Have some cell run at some broker; False where no home has any."""
    homes = [place for place in places if place.process is not None and _book(place).cells]
    if homes:
        home = random.choice(homes)
        cell = random.choice(list(_book(home).cells))
        home.hear(CellPlaced(cell, random.choice(places).name))
    return bool(homes)


def drawn_absences(world: World, end_ms: int) -> list[tuple[int, Absence]]:
    """Draw when brokers are away, or cut off, for long."""
    random = world.random
    return [
        (random.randint(world.now + CALM_MS, end_ms), random.choice((_kill, _cut_off)))
        for _ in range(random.randint(0, 4))
    ]


def _kill(places: Sequence[Place], random: Random) -> None:
    """End a process in the midst of what it does, for long."""
    place = random.choice(places)
    place.away_ms = random.randint(*AWAY_MS)
    place.end_after(random.randint(1, 25))


def _cut_off(places: Sequence[Place], random: Random) -> None:
    """Cut all links of a broker for long, while it goes on."""
    place = random.choice(places)
    for link in place.links.values():
        link.cut(random.randint(*AWAY_MS), lost=random.random() < 0.5)


def _book(place: Place) -> CellBook:
    assert place.process is not None
    return place.process.core.network.book


def _lasts(name: str) -> bool:
    """Tell whether it has events that last: what is found of these depends on what came before."""
    definitions, detect = texts.SUBSCRIPTIONS.get(name, ((), ""))
    parts = [detect, *[texts.DEFINITIONS[one] for one in definitions]]
    return any(texts.LASTING in part for part in parts)


def check_cells(home: Place, places: list[Place]) -> None:
    """In the end each cell runs at one broker, where its home says, and nothing else is kept."""
    running = {
        name: place.name
        for place in places
        if place.process is not None
        for name in place.process.network.hosted
    }
    kept = _book(home)
    for cell in kept.cells.values():
        if not cell.active or cell.coming is not None:
            raise CheckFailedError(f"{cell.name} is not at rest: {cell.serving}, {cell.coming}")
        here = [name for name in running if name.startswith(f"{cell.name}#")]
        name = f"{cell.name}#{cell.serving.number}"
        if here != [name] or running[name] != cell.serving.broker:
            raise CheckFailedError(f"{name} is to run at {cell.serving.broker}, but {running}")
        if cell.ids and not any(_lasts(name) for _, name in cell.keys):
            raise CheckFailedError(f"{len(cell.ids)} results of {cell.name} are still remembered")
    process = home.process
    assert process is not None
    for name in process.core.network.own.hosts:
        if is_cell(name) and name not in running:
            raise CheckFailedError(f"{home.name} still keeps something for {name}")
    hosted = process.network.hosted.items()
    notes = {name: cell.durable.ledger.notes for name, cell in hosted}
    late = {name: n["late_from_afar"] for name, n in notes.items() if n.get("late_from_afar")}
    if late:
        raise CheckFailedError(f"events came behind a watermark: {late}")
    if len(process.core.network.tasks()):
        raise CheckFailedError(f"tasks run at {home.name} itself")

"""Runs in which the brokers themselves decide where the tasks of submissions run.

Owns the coordinators, and the draining of brokers. Must not know how a plan is found. Invariant: as
`cells`: one engine is the measure, whatever is decided; and when all is calm nothing moves any
more.
"""

from __future__ import annotations

from random import Random

from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.laying import rounds_settings
from broker.core.network.network_broker import NetworkBroker
from broker.core.network.planning import Planning
from broker.network.frames.messages import DrainRequested
from planner.rounds.machine import Rounds
from planner.rounds.units import scaled
from simulation.account import CheckFailedError
from simulation.crashes.process import Machine
from simulation.network.cells import CellRun, Outcome
from simulation.network.place import Place
from simulation.network.scenario import RunFailedError, Shape
from simulation.world import World

CALM_S = 60
DRAINED_MS = (5_000, 40_000)
# Readings here are few: what is little elsewhere is much here.
SETTINGS = CoordinatorSettings(measure_ms=6_000, rate_least=4)


class PlannedPlace(Place):
    """A machine whose broker decides with others where tasks run."""

    def __init__(self, world: World, machine: Machine, settings: CoordinatorSettings) -> None:
        super().__init__(world, machine)
        self.settings = settings
        self.planning: Planning | None = None

    def start(self) -> None:
        """Start a process, and planning with it."""
        super().start()
        if self.process is not None:
            self.planning = planning_of(self, self.process.network, self.settings)


def planning_of(place: Place, network: NetworkBroker, settings: CoordinatorSettings) -> Planning:
    """Have the broker of a process decide with others from now on where tasks run."""
    limits = (scaled(settings.capacity) if settings.capacity else None, None)
    draw = Random(f"{place.name} {place.connection}")
    rounds = Rounds(0, rounds_settings(settings), draw, limits)
    network.deciding = planning = Planning(network, place.connection, settings, rounds)
    return planning


def run(seed: int, shape: Shape | None = None) -> Outcome:
    """Run and check one. Raises RunFailedError."""
    try:
        done = PlannedRun(seed, shape or Shape())
        done.run()
        return done.came_to()
    except Exception as error:
        text = f"seed {seed} (repeat it: python -m simulation --kind planned --seed {seed}): "
        raise RunFailedError(f"{text}{error}") from error


class PlannedRun(CellRun):
    """One run; see the module. `places` are PlannedPlaces."""

    def _place(self, name: str) -> Place:
        return PlannedPlace(self.world, super()._place(name).machine, SETTINGS)

    def _move(self) -> None:
        """Have a broker be rid of all tasks for a while."""
        random = self.world.random
        place = random.choice(self.places)
        place.hear(DrainRequested(drained=True))
        over_ms = random.randint(*DRAINED_MS)
        self.world.after(over_ms, lambda: place.hear(DrainRequested(drained=False)))

    def _settle(self) -> None:
        super()._settle()
        for planning in self._plannings():
            if planning.failed:
                raise CheckFailedError(f"planning has failed: {planning.failed}")
        self.moves = sum(planning.coordinator.counts["placed"] for planning in self._plannings())
        self.world.run(self.world.now + CALM_S * 1_000)
        moves = sum(planning.coordinator.counts["placed"] for planning in self._plannings())
        if moves != self.moves:
            raise CheckFailedError(f"{moves - self.moves} tasks moved while nothing happened")
        epochs = {planning.coordinator.epoch for planning in self._plannings()}
        if len(epochs) != 1:
            raise CheckFailedError(f"{len(epochs)} different networks are planned in the end")

    def _plannings(self) -> list[Planning]:
        return [
            place.planning
            for place in self.places
            if isinstance(place, PlannedPlace) and place.planning is not None
        ]

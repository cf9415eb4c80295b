"""Runs in which sources are at two brokers at once, and leave one of them.

Owns what is said twice, and when one of two brokers hears no more of a source. Must not know how
events travel. Invariant: as `scenario`; one engine that gets each event once is the measure.

Some sources say what they say at two brokers, so that the same event enters at both, now and then
or always. In these runs they leave the second one in the midst of it; in every other run the tasks
are in cells that move.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

from msgspec import Struct

from simulation.crashes.clients import PublishingSensor, Said
from simulation.network.cells import CellRun
from simulation.network.place import Place
from simulation.network.scenario import CALM_MS, Run, RunFailedError, Shape
from simulation.network.scenario import Outcome as OfRun


class Outcome(Struct, frozen=True):
    """Report what a run came to: sources that were at two brokers, and those that left one."""

    of_run: OfRun
    twins: int
    left: int


def run(seed: int, shape: Shape | None = None) -> Outcome:
    """Run and check one. Raises RunFailedError."""
    try:
        done = (LeavingRun if seed % 2 else LeavingCellRun)(seed, shape or Shape())
        return done.outcome()
    except Exception as error:
        text = f"seed {seed} (repeat it: python -m simulation --kind twins --seed {seed}): "
        raise RunFailedError(f"{text}{error}") from error


class Twin(PublishingSensor):
    """A source that says something of what it says at another broker, too."""

    other: PublishingSensor | None = None
    share = 0.0
    left = 0
    _spoke = False

    def publish(self, events: list[Said]) -> None:
        """Publish events, and some of them at the second broker, too."""
        super().publish(events)
        if self.other is None:
            return
        # A source that says nothing at first is waited for no longer than for a while.
        if not self._spoke or self._draw.random() < self.share:
            self._spoke = True
            self.other.publish(events)

    def withdraw(self) -> None:
        """Withdraw the source, at the second broker, too."""
        super().withdraw()
        if self.other is not None:
            self.other.withdraw()

    def roam(self, other: PublishingSensor, share: float, draw: Random) -> None:
        """From now on so much of it is said there, too."""
        self.other, self.share, self._draw = other, share, draw

    def leave(self) -> None:
        """From now on nothing of it is said there."""
        if self.other is not None:
            self.other.withdraw()
            self.other, self.left = None, 1


class TwinRun(Run):
    """A run with such sources."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self.twins: list[PublishingSensor] = []  # at their second brokers
        self._at: dict[str, Place] = {}
        super().__init__(seed, shape)

    def _twins(self) -> int:
        """Draw how many of the sources are at two brokers."""
        return self.world.random.randint(1, 3)

    def _sensor(self, place: Place, name: str, type_name: str, window: int) -> PublishingSensor:
        self._at[name] = place
        return Twin(place, name, type_name, window)  # type: ignore[arg-type]

    def _plan_sensors(self) -> None:
        super()._plan_sensors()
        random = self.world.random
        for sensor in random.sample(self._sensors, self._twins()):
            assert isinstance(sensor, Twin)
            elsewhere = [one for one in self.places if one is not self._at[sensor.name]]
            place, kind = random.choice(elsewhere), sensor.type_name
            other = PublishingSensor(place, sensor.name, kind, 20)  # type: ignore[arg-type]
            other.advertise(self._where_else(self._places[sensor.name]))
            other.begun = True
            sensor.roam(other, random.choice((0.1, 0.5, 1.0)), random)
            self.twins.append(other)

    def _where_else(self, place: dict[str, Any]) -> dict[str, Any]:
        """Return what a source says at its second broker of where it is."""
        return place

    def _settle(self) -> None:
        for place in self.places:
            place.mortal = False
        for _ in range(30):
            if all(one.idle for one in self.twins):
                break
            self.world.run(self.world.now + 10_000)
        super()._settle()


class LeavingRun(TwinRun):
    """The same where most of them leave their second broker."""

    def outcome(self) -> Outcome:
        """Run it; what it came to."""
        of_run = self.run()
        left = sum(one.left for one in self._sensors if isinstance(one, Twin))
        return Outcome(of_run, len(self.twins), left)

    def _plan_faults(self, end_ms: int) -> None:
        """They leave in any case, whatever else happens."""
        super()._plan_faults(end_ms)
        random = self.world.random
        for sensor in self._sensors:
            if isinstance(sensor, Twin) and sensor.other is not None and random.random() < 0.8:
                at = random.randint(self.world.now + CALM_MS, end_ms)
                self.world.at(at, partial(sensor.leave))


class LeavingCellRun(LeavingRun, CellRun):
    """The same where tasks are in cells."""

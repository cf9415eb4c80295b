"""Runs in which events wait on their way for partners.

Owns what is asked for, and who sits where: subscriptions that join events at one side, sources at
the other. Must not know how events wait. Invariant: as `scenario`; one engine is the measure.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from simulation.network.place import Place
from simulation.network.scenario import (
    BEGIN_MS,
    CALM_MS,
    FAULTS,
    READY_S_MAX,
    Run,
    RunFailedError,
    Shape,
)
from simulation.network.scenario import Outcome as OfRun
from simulation.texts import TYPES

JOINING = ("Damp", "Valley", "Rise", "Latest", "Spent", "After", "Gaps", "Showers", "Soaked")
OTHERS = ("Hot", "Warmth", "Falling", "Storms", "Drying")
OFTEN = 0.4
CERTAIN = 0.8
SPAN_MS = 240_000  # of all readings, about
APART_MS = 40_000
UNCERTAIN_EACH = 3  # seeds: times of readings are less certain from time to time
UNCERTAIN_MS = (20, 150, 700, 3_000)
PROGRESS_MS = (60_000, 100)  # by turns: what is let go too early shows where time is said often
IDLE_RARE_MS = 120_000  # no source is passed over between two readings
HOMES = 2  # brokers at which subscriptions are, of those at one end of the tree


class Outcome(Struct, frozen=True):
    """Report what a run came to: events that met a link and waited, found a partner, or did not.

    `probes` is how many that lead were told for others to be let go.
    """

    of_run: OfRun
    waited: int
    found: int
    let_go: int
    probes: int


def run(seed: int, shape: Shape | None = None) -> Outcome:
    """Run and check one. Raises RunFailedError."""
    return _run("correlated", seed, shape or Shape())


def run_with_leads(seed: int, shape: Shape | None = None) -> Outcome:
    """Run and check one in which few events of one type come. Raises RunFailedError."""
    return _run("leads", seed, replace(shape or Shape(), rare=(TYPES[seed // 2 % len(TYPES)],)))


def _run(kind: str, seed: int, shape: Shape) -> Outcome:
    try:
        return CorrelatedRun(seed, shape).outcome()
    except Exception as error:
        text = f"seed {seed} (repeat it: python -m simulation --kind {kind} --seed {seed}): "
        raise RunFailedError(f"{text}{error}") from error


class CorrelatedRun(Run):
    """One run; see the module."""

    correlate = True

    def outcome(self) -> Outcome:
        """Run it; what it came to."""
        of_run = self.run()
        found = [
            sum(place.counted(name) for place in self.places)
            for name in ("kept_back", "kept_back_sent", "kept_back_let_go", "leads_told")
        ]
        return Outcome(of_run, *found)

    def _place(self, name: str) -> Place:
        place = super()._place(name)
        options = replace(place.machine.options, correlate=self.correlate)
        if self.shape.rare:
            options = replace(options, idle_timeout_ms=IDLE_RARE_MS)
        progress_ms = PROGRESS_MS[self.seed % len(PROGRESS_MS)]
        limits = replace(place.machine.limits, progress_ms_max=progress_ms)
        return Place(self.world, replace(place.machine, options=options, limits=limits))

    def _plan_faults(self, end_ms: int) -> None:
        """As there, or fewer and longer apart: that events wait takes some time of calm.

        Those on the way end most often: what they know of partners is lost.
        """
        random = self.world.random
        if self.shape.faults is not None or random.random() < OFTEN:
            super()._plan_faults(end_ms)
            return
        kinds = random.sample(FAULTS, random.randint(1, 3))
        at = self.world.now
        while (at := at + random.randint(CALM_MS, APART_MS)) < end_ms:
            if random.random() < OFTEN:
                self.world.at(at, partial(self._fault, random.choice(kinds)))
            else:
                self.faults += 1
                self.world.at(at, random.choice(self.places[: HOMES + 2]).end)

    def _names(self) -> tuple[str, ...]:
        draw = self.draw
        names = draw.sample(JOINING, draw.randint(1, 3))
        return (*names, *draw.sample(OTHERS, draw.choice((0, 0, 1))))

    def _reading(self, name: str, time_ms: int, *, lasting: bool) -> dict[str, Any]:
        reading = super()._reading(name, time_ms, lasting=lasting)
        if self.seed % UNCERTAIN_EACH != 1 or self.draw.random() < CERTAIN:
            return reading
        # The later a reading, the greater may be what it breaks of what was promised before.
        so_far = 1 + int(len(UNCERTAIN_MS) * (time_ms - BEGIN_MS - READY_S_MAX * 1_000) / SPAN_MS)
        most_ms = UNCERTAIN_MS[min(so_far, len(UNCERTAIN_MS)) - 1]
        return reading | {"uncertainty": self.draw.randint(1, most_ms)}

    def _home(self) -> Place:
        return self.world.random.choice(self.places[:HOMES])

    def _before(self, at: int) -> int:
        """All sources' brokers are behind one of them."""
        return self.world.random.randrange(HOMES, at) if at > HOMES else at - 1

    def _source_place(self) -> Place:
        random = self.world.random
        elsewhere = random.random() < (0, 0, 0.1, 0.3)[self.seed % 4]
        behind = self.places[HOMES:] or self.places  # of one broker none is behind another
        return random.choice(self.places if elsewhere else behind)

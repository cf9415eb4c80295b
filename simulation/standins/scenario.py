"""One run in which a home is lost and taken over, drawn from a seed, and checked.

Owns what is drawn besides the run of `simulation.network.scenario`. Must not know how a home is
taken over. Invariant: a failure names the seed that repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from broker.network.delivery.lease import DRIFT_PPM
from broker.network.frames.messages import CellPlaced
from broker.network.placement.cell_view import is_cell
from simulation import texts
from simulation.account import CheckFailedError
from simulation.network.place import Place
from simulation.network.scenario import CALM_MS, Run, RunFailedError, Shape
from simulation.standins.judgement import (
    check_installed,
    check_never_two,
    check_read,
    check_results,
)
from simulation.standins.loss import LOSSES, HomeLoss, StandInPlace, leaves

EVENTS = 200  # of a run, which has the loss besides
MOVES = (4, 25)
HOME_SHARE = 0.6  # of the subscriptions, at the home that is lost
TAKEN_S_MAX = 300
READERS_EACH = 5  # seeds, of which one has no reader of the log
LEASES_MS = (10_000, 20_000, 40_000)


class StandInOutcome(Struct, frozen=True):
    """The figures of a run. `again` are results that came twice, as they may.

    `withheld` are promises that waited for a stand-in when the home was lost.
    """

    seed: int
    loss: str
    results: int
    adopted: int
    faults: int
    ends: int
    again: int
    withheld: int
    unread: int  # results that a reader had of the copy alone
    lease_ms: int


def run(seed: int, shape: Shape | None = None) -> StandInOutcome:
    """Run and check a seed, with a person who takes over. Raises RunFailedError."""
    return _outcome("standin", seed, shape)


def run_leased(seed: int, shape: Shape | None = None) -> StandInOutcome:
    """Run and check a seed in which stand-ins take over by themselves. Raises RunFailedError."""
    return _outcome("lease", seed, shape)


def _outcome(kind: str, seed: int, shape: Shape | None) -> StandInOutcome:
    try:
        done = StandInRun(seed, shape or Shape(events=EVENTS), is_leased=kind == "lease")
        done.run()
    except Exception as error:
        text = f"seed {seed} (repeat it: python -m simulation --kind {kind} --seed {seed}): "
        raise RunFailedError(f"{text}{error}") from error
    loss = done.loss
    ends = sum(place.ends for place in done.places)
    what = (loss.kind, done.results, loss.adopted, done.faults, ends, done.again, loss.withheld)
    return StandInOutcome(seed, *what, done.unread, done.lease_ms)


class StandInRun(Run):
    """A run of many brokers in which one home is lost.

    `is_leased`: its stand-in takes over by itself, and clocks run at different rates.
    """

    def __init__(self, seed: int, shape: Shape, *, is_leased: bool = False) -> None:
        self._is_leased = is_leased
        super().__init__(seed, shape)
        self.lease_ms = 0
        self.results = self.again = self.unread = 0
        place = self.world.random.choice(leaves(self.places))
        assert isinstance(place, StandInPlace)
        place.has_reader = seed % READERS_EACH != 0
        kind = LOSSES[seed % len(LOSSES)]
        if is_leased:
            self.lease_ms = place.lease_ms = self.world.random.choice(LEASES_MS)
            kind = "cut" if kind == "handed" else kind  # nobody says so
        self.loss = HomeLoss(self.world, self.places, place, kind)

    def _place(self, name: str) -> Place:
        machine = super()._place(name).machine
        drift_ppm = self.world.random.randint(-DRIFT_PPM, DRIFT_PPM) if self._is_leased else 0
        options = _with_cells(machine.options)
        return StandInPlace(self.world, replace(machine, options=options, drift_ppm=drift_ppm))

    def _all_linked(self) -> bool:
        count = len(self.places) - 1
        return all(
            place.process is not None
            and sum(not is_cell(name) for name in place.process.network.ways.via) == count
            for place in self.places
        )

    def _home(self) -> Place:
        random = self.world.random
        is_first = self._is_leased and not self._askers  # who has nothing is not taken over
        return (
            self.loss.place
            if is_first or random.random() < HOME_SHARE
            else random.choice(self.places)
        )

    def _source_place(self) -> Place:
        """Return a place whose disk stays: what was acknowledged at the lost one may be gone."""
        kept = self.loss.kind not in {"destroyed", "emptied"}
        places = [place for place in self.places if kept or place is not self.loss.place]
        return self.world.random.choice(places)

    def _plan_faults(self, end_ms: int) -> None:
        random, first_ms = self.world.random, self.world.now + CALM_MS
        if random.random() < 0.7:
            super()._plan_faults(end_ms)
        for _ in range(random.randint(*MOVES)):
            self.world.at(random.randint(self.world.now, end_ms), self._move)
        self.world.at(random.randint(first_ms, max(first_ms, end_ms)), self.loss.begin)

    def _move(self) -> None:
        """Have some cell run at some broker; its home may not be there."""
        random = self.world.random
        processes = [place.process for place in self.places]
        homes = [(n, process.core.network.book) for n, process in enumerate(processes) if process]
        homes = [home for home in homes if home[1].cells]
        if homes:
            number, book = random.choice(homes)
            cell = random.choice(list(book.cells))
            self.places[number].hear(CellPlaced(cell, random.choice(self.places).name))

    def _settle(self) -> None:
        for _ in range(TAKEN_S_MAX):
            if self.loss.is_over:
                break
            self.world.run(self.world.now + 1_000)
        else:
            raise CheckFailedError("the home could not be taken over")
        self.world.run(self.world.now + 30_000)
        super()._settle()
        check_installed(self.places, self._specifications)

    def _judge(
        self,
        places: Sequence[Place],
        specifications: Mapping[str, str],
        arrived: Sequence[dict[str, Any]],
        **_: bool,
    ) -> int:
        if self._is_leased:
            demands = [texts.checked(text).demand() for text in specifications.values()]
            check_never_two(self.loss, [key for demand in demands for key in demand.subscriptions])
        figures = check_results(self.loss, places, specifications, arrived)
        self.results, self.again = figures
        self.unread = check_read(self.loss, places, specifications, arrived)
        return self.results


def _with_cells(options: Any) -> Any:
    return replace(options, cells=True)

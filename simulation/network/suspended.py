"""Runs in which a task that moves from broker to broker is suspended, and begins anew.

Owns the text that is too much work, the wishes of its subscriber, and what must hold of its
standing. Must not know frames. Invariant: in the end its home and the broker where it runs agree
whether it is suspended; the home alone has told its subscriber, and a wish that it begin anew that
was granted reaches the task, whatever ended or was cut off in between. All others find what one
engine finds.
"""

from __future__ import annotations

from msgspec.structs import replace

from broker.core import topics
from broker.core.catalogue import Installed
from broker.core.messages import ResumeRequested
from broker.core.network.cell_view import is_cell
from simulation.account import CheckFailedError
from simulation.crashes.clients import Asker, Wish
from simulation.network.cells import CellRun
from simulation.network.cells import Outcome as Outcome  # noqa: PLC0414  # what runs come to
from simulation.network.place import Place
from simulation.network.scenario import READY_S_MAX, RunFailedError, Shape

CANDIDATES_MAX = 40_000  # no step of the other texts needs as much
LONG_CHAINS = ("Valley",)  # which make as much work at times
WISHES = (1, 6)
CLIENT, NAME = "wild", "Wild"
TOLD = topics.suspended(CLIENT, NAME)
TEXT = """event Temp(val: float)
subscription Wild from wild to nobody
detect Temp as a and Temp as b and Temp as c and Temp as d where a.val + d.val > 1000
"""


def run(seed: int, shape: Shape | None = None) -> Outcome:
    """Run and check one. Raises RunFailedError."""
    try:
        done = SuspendedRun(seed, shape or Shape())
        done.run()
        return done.came_to()
    except Exception as error:
        text = f"seed {seed} (repeat it: python -m simulation --kind suspended --seed {seed}): "
        raise RunFailedError(f"{text}{error}") from error


class SuspendedRun(CellRun):
    """One run; see the module."""

    def _place(self, name: str) -> Place:
        place = super()._place(name)
        limits = replace(place.machine.limits, step_candidates_max=CANDIDATES_MAX)
        return Place(self.world, replace(place.machine, limits=limits))

    def _names(self) -> tuple[str, ...]:
        return tuple([name for name in super()._names() if name not in LONG_CHAINS]) or ("Hot",)

    def _plan_askers(self) -> None:
        super()._plan_askers()
        self.home = self._home()
        wish = Wish("submit", TEXT, {NAME: 1})
        self._askers.append(Asker(self.home, CLIENT, [wish]))  # type: ignore[arg-type]

    def _plan_readings(self) -> int:
        end_ms = super()._plan_readings()
        random = self.world.random
        for _ in range(random.randint(*WISHES)):
            self.world.at(random.randint(self.world.now, end_ms), self._resume)
        return end_ms

    def _resume(self) -> None:
        self.home.hear(ResumeRequested(CLIENT, "", NAME, proven=True))  # type: ignore[arg-type]

    def _settle(self) -> None:
        super()._settle()
        at_home = self._standing(self.home)
        if at_home.suspended or not at_home.resumed:
            others = [
                place.name
                for place in self.places
                if TOLD in place.suspended and place != self.home
            ]
            if others:
                raise CheckFailedError(f"its subscriber was told at {others}, no homes of it")
            if not (TOLD in self.home.suspended or self.home.ends):
                raise CheckFailedError("nobody told its subscriber")
        self._check_agreed()
        self._resume()
        self.world.run(self.world.now + READY_S_MAX * 1_000)
        self._check_agreed()
        if self._standing(self.home).suspended:
            raise CheckFailedError("it did not begin anew")

    def _check_agreed(self) -> None:
        own = self._standing(self.home)
        for place in self.places:
            assert place.process is not None
            cells = place.process.network._cells  # noqa: SLF001  # what no other is to ask
            for name, cell in cells.items():
                assert is_cell(name)
                sub = cell.durable.catalogue.subscriptions.get((CLIENT, NAME))
                if sub is None:
                    continue
                held = cell.durable.network._matcher.suspensions.why  # noqa: SLF001
                runs = not (sub.suspended or sub.task in held)
                if (sub.suspended, sub.resumed) != (own.suspended, own.resumed) or runs is bool(
                    own.suspended
                ):
                    raise CheckFailedError(f"{name} stands as {sub}, for its home as {own}")

    def _standing(self, place: Place) -> Installed:
        assert place.process is not None
        return place.process.core.catalogue.subscriptions[CLIENT, NAME]

"""Runs in which a task that moves from broker to broker is suspended, and begins anew.

Owns the text that is too much work, the wishes of its subscriber, and what must hold in the end.
Must not know frames. Invariant: in the end its home and the broker where it runs agree whether it
is suspended; the home alone has told its subscriber, and a wish that it begin anew that was granted
reaches the task, whatever ended or was cut off in between. All others find what one engine finds.
"""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from broker.core import topics
from broker.core.messages import ResumeRequested
from simulation import texts
from simulation.account import CheckFailedError
from simulation.crashes.clients import AskingClient, Wish
from simulation.network.cells import CellRun, Outcome
from simulation.network.scenario import BEGIN_MS, READY_S_MAX, RunFailedError, Shape

CANDIDATES_MAX = 40_000  # no step of the other texts needs as much
LONG_CHAINS = ("Valley", "Spent")  # which make as much work at times, as when a task catches up
WISHES = (1, 6)
UNTIL_MS = 150_000  # readings have come by then
CLIENT, NAME = "wild", "Wild"
TOLD = topics.suspended(CLIENT, NAME)
TEXT = """event Temp(val: float)
subscription Wild from wild to nobody
detect Temp as a and Temp as b and Temp as c and Temp as d where a.val + d.val > 1000
"""


def run(seed: int, shape: Shape | None = None) -> Outcome:
    """Run and check one. Raises RunFailedError."""
    usual = [name for name in texts.SUBSCRIPTIONS if name not in LONG_CHAINS]
    draw = Random(f"{seed} names")
    names = tuple(draw.sample(usual, draw.randint(1, 4)))
    try:
        cells = CellRun(seed, replace(shape or Shape(), names=names))
        wild = Wild(cells, draw)
        cells.run()
        wild.check()
        return cells.came_to()
    except Exception as error:
        text = f"seed {seed} (repeat it: python -m simulation --kind suspended --seed {seed}): "
        raise RunFailedError(f"{text}{error}") from error


class Wild:
    """The subscription that is too much work, in a run of others."""

    def __init__(self, cells: CellRun, draw: Random) -> None:
        self._world, self._places = cells.world, cells.places
        self._home = draw.choice(self._places)
        for place in self._places:
            limits = replace(place.machine.limits, step_candidates_max=CANDIDATES_MAX)
            place.machine = replace(place.machine, limits=limits)
        wish = Wish("submit", TEXT, {NAME: 1})
        AskingClient(self._home, CLIENT, [wish])  # type: ignore[arg-type]
        for _ in range(draw.randint(*WISHES)):
            time_ms = BEGIN_MS + draw.randint(READY_S_MAX * 1_000, UNTIL_MS)
            self._world.at(time_ms, self._resume)

    def _resume(self) -> None:
        self._home.hear(ResumeRequested(CLIENT, "", NAME, proven=True))  # type: ignore[arg-type]

    def check(self) -> None:
        """Compare both ends as they are, and behind a new beginning. Raises CheckFailedError."""
        suspended, resumed = self._standing()
        told_at = [place.name for place in self._places if TOLD in place.suspended]
        if any(name != self._home.name for name in told_at):
            raise CheckFailedError(f"its subscriber was told at {told_at}, not at its home alone")
        if (suspended or resumed) and not (told_at or self._home.ends):
            raise CheckFailedError("nobody told its subscriber")
        self._check_agreed(suspended)
        if suspended:
            self._resume()
            self._world.run(self._world.now + READY_S_MAX * 1_000)
            if self._standing() != ("", resumed + 1):
                raise CheckFailedError("it did not begin anew")
            self._check_agreed("")

    def _check_agreed(self, suspended: str) -> None:
        for place in self._places:
            assert place.process is not None
            for name, status in place.process.network.status()["run_here"].items():
                standing = status["suspended"].get(NAME)
                if standing is not None and standing != suspended:
                    words = f"{standing!r}, for its home as {suspended!r}"
                    raise CheckFailedError(f"{name} stands as {words}")

    def _standing(self) -> tuple[str, int]:
        assert self._home.process is not None
        own = self._home.process.core.catalogue.subscriptions[CLIENT, NAME]
        return own.suspended, own.resumed

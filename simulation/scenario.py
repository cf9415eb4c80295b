"""One broker for some virtual minutes, drawn from a seed, and checked.

Owns what is drawn and when a run is good. Must not know how a check is done. Invariant: `run`
with the same seed does the same, byte for byte; a failure names the seed that repeats it.

Some subscriptions are there from the beginning and stay: their results must be those of a replay.
Others come and go meanwhile, and some requests are faulty: they must not disturb anything. Sensors
send late, out of order, twice, contradicting themselves, malformed and of types that nobody knows;
they move, leave, come back, and begin anew.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from random import Random
from typing import Any

from msgspec import Struct

from broker.core.broker import BrokerOptions
from broker.core.messages import Started, Stopped
from simulation import checkers, texts
from simulation.account import ArrivalAccount
from simulation.clients import Door, Habits, ReadingSensor
from simulation.site import SimulatedBroker
from simulation.visitors import STAYS, Visitors
from simulation.world import World

BEGIN_MS = 1_700_000_000_000
SETTLED_S_MAX = 7_200  # a run that is not at rest by then never will be


class ScenarioFailedError(AssertionError):
    """A run that is not good; the text begins with the command that repeats it."""


class ScenarioOutcome(Struct, frozen=True):
    """The outcome of a run. `digest` is that of all effects, in order.

    `compared` results were held to a replay, `visited` to the bounds for those who come and go;
    of `judged` events the lateness was known beforehand.
    """

    seed: int
    events: int
    late: int
    results: int
    compared: int
    visited: int
    judged: int
    actions: int
    digest: str


def run(seed: int) -> ScenarioOutcome:
    """Run and check one scenario. Raises ScenarioFailedError."""
    try:
        return Scenario(seed).run()
    except Exception as error:
        text = f"seed {seed} (repeat it: python -m simulation.scenario {seed}): {error}"
        raise ScenarioFailedError(text) from error


class Scenario:
    """One run; `broker.log` holds its effects afterwards."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        random = Random(seed)
        self.world = World(random, BEGIN_MS)
        self._lateness_ms = random.choice((0, 500, 2_000))
        idle_timeout_ms = random.choice((5_000, 30_000))
        options = BrokerOptions(
            name=f"site-{seed}", lateness_ms=self._lateness_ms, idle_timeout_ms=idle_timeout_ms
        )
        self.broker = SimulatedBroker(self.world, options)
        self.account = ArrivalAccount(self._lateness_ms, idle_timeout_ms)
        self.visitors = Visitors(self.world, self.broker, self.account)
        self.stays = ""
        self._door = Door(self.world, self.broker, self.account, random.choice((0, 0, 20, 700)))
        self._sensors: list[ReadingSensor] = []

    def run(self) -> ScenarioOutcome:
        """All of it, with the checks."""
        self.broker.tell(Started())
        draw = self.world.random
        end_ms = BEGIN_MS + draw.choice((15_000, 15_000, 45_000))
        names = draw.sample(list(texts.SUBSCRIPTIONS), draw.randint(1, 4))
        self.stays = texts.text_of(names, STAYS)
        self.visitors.submit(STAYS, self.stays, good=True)
        self._plan_sensors(end_ms)
        self.visitors.plan_visits(BEGIN_MS, end_ms, self.stays)
        self.world.run(end_ms)
        self._settle()
        compared, visited = self._check()
        self.broker.tell(Stopped())
        return ScenarioOutcome(
            seed=self.seed,
            events=len(self.account.taken),
            late=self.account.dropped["late"],
            results=len(self.broker.results),
            compared=compared,
            visited=visited,
            judged=self.account.judged,
            actions=self.world.happened,
            digest=sha256(self.broker.log).hexdigest(),
        )

    # --- what happens --------------------------------------------------------------------

    def _plan_sensors(self, end_ms: int) -> None:
        draw = self.world.random
        for number in range(draw.randint(3, 7)):
            type_name = draw.choice(texts.TYPES)
            sensor = ReadingSensor(self._door, f"s{number}", type_name)
            self._sensors.append(sensor)
            if draw.random() < 0.8:
                sensor.advertise(self._place(number))
            begin_ms = BEGIN_MS + draw.choice((0, 0, 10_000))
            sensor.send_from(begin_ms, end_ms, self._habits(lasting=type_name == texts.LASTING))
            self._plan_absence(sensor, number, end_ms)
        if draw.random() < 0.3:
            stranger = ReadingSensor(self._door, "stranger", "Unheard", declared=False)
            stranger.send_from(BEGIN_MS, end_ms, self._habits(lasting=True))

    def _plan_absence(self, sensor: ReadingSensor, number: int, end_ms: int) -> None:
        """It may move, be withdrawn (and send on all the same), come back, or begin anew."""
        draw = self.world.random
        time_ms = draw.randint(BEGIN_MS, end_ms)
        acts: tuple[Callable[[], None] | None, ...] = (
            None,
            lambda: sensor.advertise(self._place(number)),
            sensor.withdraw,
            lambda: sensor.begin_anew(self._place(number)),
        )
        act = draw.choice(acts)
        if act is not None:
            self.world.at(time_ms, act)
        if act is sensor.withdraw or (act is not None and draw.random() < 0.3):
            back_ms = time_ms + draw.randint(1, 10_000)
            self.world.at(back_ms, lambda: sensor.begin_anew(self._place(number)))

    def _place(self, number: int) -> dict[str, Any]:
        draw = self.world.random
        position = [46 + draw.randint(-2, 2) / 100, 7 + draw.randint(-2, 2) / 100]
        return {"location": f"hall/{number % 3}", "position": position}

    def _habits(self, *, lasting: bool) -> Habits:
        """Most of what comes is in time; of what is not, there is some."""
        draw = self.world.random
        return Habits(
            period_ms=draw.choice((700, 1_500, 5_000)),
            delay_ms=draw.choice((0, self._lateness_ms, 2 * self._lateness_ms)),
            repeat=draw.choice((0.0, 0.2)),
            contradict=draw.choice((0.0, 0.3)),
            bad=draw.choice((0.0, 0.05, 0.2)),
            stray=draw.choice((0.0, 0.05)),
            stray_ms=self._lateness_ms + draw.randint(1, 20_000),
            batch_max=draw.choice((1, 1, 4)),
            lasts_ms=4_000 if lasting else draw.choice((0, 0, 1_000)),
            own_place=draw.choice((0.0, 0.1)),
        )

    def _settle(self) -> None:
        """Let all that is under way arrive, some sources leave, and time decide the rest."""
        self.world.run(self.world.now + 25_000)
        for sensor in self._sensors:
            if self.world.random.random() < 0.3:
                sensor.withdraw()
        limit_ms = self.world.now + SETTLED_S_MAX * 1_000
        self.world.run(limit_ms)
        if self.broker.core.next_wake() is not None:
            raise AssertionError(f"not at rest after {SETTLED_S_MAX} s")

    # --- what must hold ------------------------------------------------------------------

    def _check(self) -> tuple[int, int]:
        checkers.check_conservation(self.broker, self.account)
        checkers.check_told(self.broker, self.account)
        checkers.check_acknowledged(self.broker, self.account)
        checkers.check_no_result_twice(self.broker.results)
        specification = texts.checked(self.stays).demand()
        events = self.account.taken.values()
        compared = checkers.check_replay(specification, self.broker.results, events)
        visited = 0
        for visit in self.visitors.visits:
            if visit.name in texts.ALONE:
                visited += checkers.check_visit(visit, self.broker.results, self.account)
        return compared, visited


if __name__ == "__main__":
    import sys

    for argument in sys.argv[1:]:
        sys.stdout.write(f"{run(int(argument))}\n")

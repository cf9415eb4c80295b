"""One broker for some virtual minutes, drawn from a seed, and checked.

Owns what is drawn and when a run is good. Must not know how a check is done. Invariant: `run`
with the same seed does the same, byte for byte; a failure names the seed that repeats it.

Some subscriptions are there from the beginning and stay: their results must be those of a replay.
Others come and go meanwhile, and some requests are faulty: they must not disturb anything.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from random import Random

from msgspec import Struct

from broker.core.broker import BrokerOptions
from broker.core.messages import (
    CancelRequested,
    SourceWithdrawn,
    SpecificationSubmitted,
    Started,
    Stopped,
)
from simulation import checkers, texts
from simulation.clients import Account, Habits, Sensor
from simulation.site import SimulatedBroker
from simulation.world import World

BEGIN_MS = 1_700_000_000_000
SETTLED_S_MAX = 7_200  # a run that is not at rest by then never will be
FAULTY = (
    "subscription",
    "detect",
    texts.DECLARATIONS + "subscription X from a to b detect Nothing",
)


class ScenarioFailedError(AssertionError):
    """A run that is not good; the text begins with the seed that repeats it."""


class Outcome(Struct, frozen=True):
    """What a run came to. `digest` is that of all effects, in order."""

    seed: int
    events: int
    late: int
    results: int
    compared: int
    actions: int
    digest: str


def run(seed: int) -> Outcome:
    """Run and check one scenario. Raises ScenarioFailedError."""
    try:
        return Scenario(seed).run()
    except Exception as error:
        text = f"seed {seed} (repeat it with simulation.scenario.run({seed})): {error}"
        raise ScenarioFailedError(text) from error


class Scenario:
    """One run; `broker.log` holds its effects afterwards."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        random = Random(seed)
        self.world = World(random, BEGIN_MS)
        self._lateness_ms = random.choice((0, 500, 2_000))
        self._options = BrokerOptions(
            name=f"site-{seed}",
            lateness_ms=self._lateness_ms,
            idle_timeout_ms=random.choice((5_000, 30_000)),
        )
        self.broker = SimulatedBroker(self.world, self._options)
        self.account = Account()
        self._sources: list[str] = []
        self._requests = 0
        self._stays = ""

    def run(self) -> Outcome:
        """All of it, with the checks."""
        self.broker.tell(Started())
        end_ms = BEGIN_MS + self.world.random.choice((15_000, 15_000, 45_000))
        self._submit_what_stays()
        self._plan_sensors(end_ms)
        self._plan_others(end_ms)
        self.world.run(end_ms)
        self._settle()
        compared = self._check()
        self.broker.tell(Stopped())
        return Outcome(
            seed=self.seed,
            events=len(self.account.taken),
            late=self.account.late,
            results=len(self.broker.results),
            compared=compared,
            actions=self.world.happened,
            digest=sha256(self.broker.log).hexdigest(),
        )

    # --- what happens --------------------------------------------------------------------

    def _submit_what_stays(self) -> None:
        draw = self.world.random
        names = draw.sample(list(texts.SUBSCRIPTIONS), draw.randint(1, 4))
        self._stays = texts.text_of(names, "anna")
        self._submit("anna", self._stays, good=True)

    def _submit(self, client: str, text: str, *, good: bool) -> None:
        self._requests += 1
        request = f"request {self._requests}"
        self.broker.tell(
            SpecificationSubmitted(
                client, request, text, request, self.account.token(), checked=texts.checked(text)
            )
        )
        reply = self.broker.replies[request]
        if reply["ok"] is not good:
            raise AssertionError(f"{client} was told {reply} of {text}")

    def _plan_sensors(self, end_ms: int) -> None:
        draw = self.world.random
        for number in range(draw.randint(3, 7)):
            name, type_name = f"s{number}", draw.choice(texts.TYPES)
            sensor = Sensor(self.world, self.broker, self.account, name, type_name)
            self._sources.append(name)
            if draw.random() < 0.8:
                position = [46 + draw.randint(-2, 2) / 100, 7 + draw.randint(-2, 2) / 100]
                sensor.advertise({"location": f"hall/{number}", "position": position})
            begin_ms = BEGIN_MS + draw.choice((0, 0, 10_000))
            sensor.send_from(begin_ms, end_ms, self._habits())

    def _habits(self) -> Habits:
        """Most of what comes is in time; of what is not, there is some."""
        draw = self.world.random
        return Habits(
            period_ms=draw.choice((700, 1_500, 5_000)),
            delay_ms=draw.choice((0, self._lateness_ms, 2 * self._lateness_ms)),
            repeat=draw.choice((0.0, 0.2)),
            bad=draw.choice((0.0, 0.05)),
            stray=draw.choice((0.0, 0.05)),
            stray_ms=self._lateness_ms + draw.randint(1, 20_000),
            batch_max=draw.choice((1, 1, 4)),
        )

    def _plan_others(self, end_ms: int) -> None:
        """Clients who come and go, and who make mistakes."""
        draw = self.world.random
        for number in range(draw.randint(0, 3)):
            client = f"client-{number}"
            name = draw.choice(list(texts.SUBSCRIPTIONS))
            begin_ms = draw.randint(BEGIN_MS, end_ms)
            self.world.at(begin_ms, self._submitting(client, name, 1))
            if draw.random() < 0.5:
                self.world.at(begin_ms + 5_000, self._submitting(client, name, 2))
            if draw.random() < 0.7:
                self.world.at(begin_ms + 10_000, self._cancelling(client, name))
        faulty = draw.choice(FAULTY)
        self.world.at(
            draw.randint(BEGIN_MS, end_ms), lambda: self._submit("fool", faulty, good=False)
        )
        self.world.at(
            draw.randint(BEGIN_MS, end_ms), lambda: self._submit("bob", self._stays, good=True)
        )

    def _submitting(self, client: str, name: str, seq: int) -> Callable[[], None]:
        return lambda: self._submit(client, texts.text_of([name], client, seq), good=True)

    def _cancelling(self, client: str, name: str) -> Callable[[], None]:
        def cancel() -> None:
            self._requests += 1
            request = f"request {self._requests}"
            token = self.account.token()
            self.broker.tell(CancelRequested(client, request, name, request, token))

        return cancel

    def _settle(self) -> None:
        """Let all that is under way arrive, some sources leave, and time decide the rest."""
        self.world.run(self.world.now + 10_000)
        for source in self._sources:
            if self.world.random.random() < 0.3:
                self.broker.tell(SourceWithdrawn(source, self.account.token()))
        limit_ms = self.world.now + SETTLED_S_MAX * 1_000
        self.world.run(limit_ms)
        if self.broker.core.next_wake() is not None:
            raise AssertionError(f"not at rest after {SETTLED_S_MAX} s")

    # --- what must hold ------------------------------------------------------------------

    def _check(self) -> int:
        checkers.check_conservation(self.broker, self.account)
        checkers.check_acknowledged(self.broker, self.account)
        checkers.check_no_result_twice(self.broker.results)
        specification = texts.checked(self._stays).demand()
        events = self.account.taken.values()
        return checkers.check_replay(specification, self.broker.results, events)

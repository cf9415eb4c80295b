"""One run with crashes, drawn from a seed, and checked.

Owns what is drawn and when a run is good. Must not know how a check is done. Invariant: `run` with
the same seed does the same, byte for byte; a failure names the seed that repeats it.

Processes end at any step, by themselves or with the machine; the disk is slow, full for a while,
fails to write and to sync. Sensors lose their connection, come again, say again what was not
acknowledged, and sometimes what was. Clients install, replace and cancel meanwhile.
"""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from random import Random
from typing import Any

from msgspec import Struct

from broker.core.broker import BrokerOptions
from broker.engine.limits import Limits
from simulation import texts
from simulation.crashes import further
from simulation.crashes.checks import check_all
from simulation.crashes.clients import AskingClient, PublishingSensor, Wish
from simulation.crashes.outbox import SimulatedOutbox
from simulation.crashes.process import SLICES, Machine
from simulation.crashes.site import CrashingSite
from simulation.disk import Disk
from simulation.world import World

BEGIN_MS = 1_700_000_000_000
SETTLED_S_MAX = 7_200  # a run that is not at rest by then never will be
STAYS = "anna"


class CrashRunFailedError(AssertionError):
    """A run that is not good; the text begins with the command that repeats it."""


class CrashOutcome(Struct, frozen=True):
    """Report what a run came to.

    `digest` is that of all that left, in order; `ends` counts processes.
    """

    seed: int
    events: int
    results: int
    records: int
    ends: int
    crashes: int
    digest: str


def run(seed: int) -> CrashOutcome:
    """Run and check one. Raises CrashRunFailedError."""
    try:
        return CrashRun(seed).run()
    except Exception as error:
        text = f"seed {seed} (repeat it: python -m simulation --seed {seed}): {error}"
        raise CrashRunFailedError(text) from error


class CrashRun:
    """One run; `site` holds what became of it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        random = Random(seed)
        self.world = World(random, BEGIN_MS)
        self._lateness_ms = random.choice((0, 500, 2_000))
        machine = Machine(
            disk=Disk(random),
            outbox=SimulatedOutbox(),
            options=BrokerOptions(
                name=f"site-{seed}",
                lateness_ms=self._lateness_ms,
                idle_timeout_ms=random.choice((5_000, 30_000)),
            ),
            limits=Limits(),
            sync_ms=random.choice((0, 20, 400)),
            commit_ms=random.choice((0, 50, 800)),
            snapshot_records=random.choice((2, 10, 60)),
            segment_bytes=random.choice((300, 2_000, 50_000)),
            slice_max=SLICES[seed % len(SLICES)],
        )
        self.site = CrashingSite(self.world, machine, random.choice((100, 400, 1_500)))
        self.stays = ""
        self._vague_ms = random.choice((0, 0, 0, 0, 0, 40))
        self._sensors: list[PublishingSensor] = []
        self._askers: list[AskingClient] = []

    def run(self) -> CrashOutcome:
        """All of it, with the checks."""
        draw = self.world.random
        end_ms = BEGIN_MS + draw.choice((8_000, 12_000, 25_000))
        names = draw.sample(list(texts.SUBSCRIPTIONS), draw.randint(1, 4))
        self.stays = texts.text_of(names, STAYS)
        self._plan_askers(names)
        self._plan_sensors(end_ms)
        self._plan_faults(end_ms)
        self.site.start()
        self.world.run(end_ms)
        self._settle()
        specification = texts.checked(self.stays).demand()
        results, events = check_all(self.site, self._sensors, self._askers, specification)
        return CrashOutcome(
            seed=self.seed,
            events=events,
            results=results,
            records=len(self.site.history),
            ends=self.site.ends,
            crashes=self.site.machine.disk.crashes,
            digest=sha256(self.site.log).hexdigest(),
        )

    # --- what happens ----------------------------------------------------------------------

    def _plan_askers(self, names: list[str]) -> None:
        holds: dict[str, int | None] = dict.fromkeys(names, 1)
        anna = AskingClient(self.site, STAYS, [Wish("submit", self.stays, holds)])
        anna.satisfied = self._begin_sensors
        self._askers.append(anna)
        draw = self.world.random
        for number in range(draw.randint(0, 3)):
            name, client = draw.choice((*texts.SUBSCRIPTIONS, *further.NAMES)), f"client-{number}"
            wishes: list[Wish] = []
            for seq in range(1, draw.randint(2, 5)):
                text = (
                    further.text_of(name, client, seq)
                    if name in further.NAMES
                    else texts.text_of([name], client, seq)
                )
                wishes.append(Wish("submit", text, {name: seq}))
                if draw.random() < 0.6:
                    wishes.append(Wish("cancel", name, {name: None}))
            self._askers.append(AskingClient(self.site, client, wishes))

    def _begin_sensors(self) -> None:
        """Begin the sensors; what is detected of all events has to be there before the first."""
        for sensor in self._sensors:
            sensor.begun = True
            sensor.reached()

    def _plan_sensors(self, end_ms: int) -> None:
        draw = self.world.random
        for number in range(draw.randint(2, 6)):
            type_name = draw.choice(texts.TYPES)
            sensor = PublishingSensor(self.site, f"s{number}", type_name, draw.choice((1, 4, 20)))
            self._sensors.append(sensor)
            if draw.random() < 0.7:
                sensor.advertise(self._place(number))
            self._plan_readings(sensor, type_name, end_ms)
            if draw.random() < 0.4:
                away_ms, forget = draw.randint(1, 8_000), draw.random() < 0.3
                self._at(end_ms, lambda s=sensor, a=away_ms, f=forget: s.vanish(a, forget=f))
            if draw.random() < 0.2:
                self._at(end_ms, sensor.withdraw)
            if draw.random() < 0.3:
                self._at(end_ms, lambda s=sensor, n=number: s.advertise(self._place(n)))

    def _plan_readings(self, sensor: PublishingSensor, type_name: str, end_ms: int) -> None:
        draw = self.world.random
        period_ms = draw.choice((500, 1_000, 3_000))
        spread_ms = draw.choice((0, self._lateness_ms, 3 * self._lateness_ms))
        lasts_ms = 4_000 if type_name == texts.LASTING else draw.choice((0, 0, 1_000))
        repeat = draw.choice((0.0, 0.1, 0.3))
        batch_max = draw.choice((1, 1, 4))
        time_ms, count = BEGIN_MS + draw.randrange(period_ms), 0
        while time_ms < end_ms:
            events = []
            for _ in range(draw.randint(1, batch_max)):
                count += 1
                taken_ms = time_ms - draw.randint(0, spread_ms)
                events.append(self._reading(f"{sensor.name}-{count}", taken_ms, lasts_ms))
            self.world.at(time_ms, partial(sensor.publish, events))
            if draw.random() < repeat:
                self.world.at(time_ms + draw.randint(0, 2_000), sensor.again)
            time_ms += draw.randint(period_ms // 2, 2 * period_ms)

    def _reading(self, name: str, time_ms: int, lasts_ms: int) -> dict[str, Any]:
        draw = self.world.random
        reading: dict[str, Any] = {"id": name, "val": float(draw.randint(0, 9))}
        if self._vague_ms and draw.random() < 0.1:  # more would take a run minutes to weigh
            reading["uncertainty"] = self._vague_ms
        lasted_ms = draw.randint(0, lasts_ms) // 500 * 500
        if lasted_ms:
            return reading | {"start": time_ms - lasted_ms, "end": time_ms}
        return reading | {"timestamp": time_ms}

    def _place(self, number: int) -> dict[str, Any]:
        draw = self.world.random
        position = [46 + draw.randint(-2, 2) / 100, 7 + draw.randint(-2, 2) / 100]
        return {"location": f"hall/{number % 3}", "position": position}

    def _plan_faults(self, end_ms: int) -> None:
        draw, disk = self.world.random, self.site.machine.disk
        if draw.random() < 0.4:
            self._at(end_ms, lambda: self._fill(draw.randint(0, 2_000), draw.randint(100, 6_000)))
        for _ in range(draw.randint(0, 3)):
            times = draw.randint(1, 4)
            self._at(end_ms, lambda t=times: disk.fail(t))
        for asker in self._askers[1:]:
            if draw.random() < 0.5:
                away_ms = draw.randint(1, 5_000)
                self._at(end_ms, lambda a=asker, ms=away_ms: a.vanish(ms))

    def _fill(self, room_bytes: int, for_ms: int) -> None:
        disk = self.site.machine.disk
        disk.size_bytes_max = disk.size_bytes + room_bytes

        def relieve() -> None:
            disk.size_bytes_max = None

        self.world.after(for_ms, relieve)

    def _at(self, end_ms: int, action: Any) -> None:
        self.world.at(self.world.random.randint(BEGIN_MS, end_ms), action)

    # --- the end ---------------------------------------------------------------------------

    def _settle(self) -> None:
        """Let all be taken, end once more, and time decide the rest."""
        world, site = self.world, self.site
        world.run(world.now + 10_000)
        site.mortal = False
        for _ in range(60):
            world.run(world.now + 10_000)
            if self._idle():
                break
        else:
            raise AssertionError("there are still messages that were not taken")
        site.end()
        world.run(world.now + SETTLED_S_MAX * 1_000)
        if site.process is None or site.process.core.next_wake() is not None or not self._idle():
            raise AssertionError(f"not at rest after {SETTLED_S_MAX} s")

    def _idle(self) -> bool:
        process = self.site.process
        waits = any(not sensor.idle for sensor in self._sensors)
        waits = waits or any(not asker.idle for asker in self._askers)
        return process is not None and process.idle and not waits

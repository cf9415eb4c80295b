"""One run of many brokers, drawn from a seed, and checked.

Owns what is drawn and when a run is good. Must not know how a check is done. Invariant: `run` with
the same seed does the same, byte for byte; a failure names the seed that repeats it.

Sources advertise at brokers all over the network and clients install subscriptions at others; when
these are active, readings and faults begin: links are cut for long or short, stalled one way, slow
or full, the network parts, processes end with or without their machine. Sensors say again what was
not acknowledged, and sometimes what was.
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
from simulation.crashes.clients import AskingClient, PublishingSensor, Wish
from simulation.crashes.outbox import SimulatedOutbox
from simulation.crashes.process import SLICES, Machine
from simulation.disk import Disk
from simulation.network import checks
from simulation.network.links import Link
from simulation.network.place import Place
from simulation.world import World

BEGIN_MS = 1_700_000_000_000
READY_S_MAX = 20  # sooner than a source that was advertised and is silent is passed over
LISTENS_EACH = 3  # seeds: copies of results are a third of all frames
CALM_MS = 4_000  # after the first readings, without faults
IDLE_MS = 30_000
SETTLED_MS = 600_000
RARER = 16  # times as rarely as others
FAULTS = ("cut", "lose", "stall", "part", "end", "slow", "refuse")


class RunFailedError(AssertionError):
    """A run that is not good; the text begins with the command that repeats it."""


class Outcome(Struct, frozen=True):
    """Report what a run came to. `digest` is that of all that left, in order."""

    seed: int
    brokers: int
    events: int
    results: int
    faults: int
    ends: int
    frames: int
    travelled: int  # events over links, each link counted
    digest: str


class Shape(Struct, frozen=True):
    """Set what a run is like, if the seed is not to decide it."""

    brokers: int | None = None
    faults: int | None = None
    events: int = 500
    names: tuple[str, ...] | None = None  # of the subscriptions
    scattered: int = 0  # another draw of who sits where
    rare: tuple[str, ...] = ()  # types of which so few come that others wait for them


def run(seed: int, shape: Shape | None = None) -> Outcome:
    """Run and check one. Raises RunFailedError."""
    try:
        return Run(seed, shape or Shape()).run()
    except Exception as error:
        text = f"seed {seed} (repeat it: python -m simulation --kind network --seed {seed}): "
        raise RunFailedError(f"{text}{error}") from error


class Run:
    """One run; `places` hold what became of it."""

    _judge = staticmethod(checks.check_all)
    exactly = False  # whether every result must be there, those of events that last, too

    def __init__(self, seed: int, shape: Shape) -> None:
        self.seed = seed
        self.shape = shape
        self.draw = Random(seed)  # what is sent, the same in each network
        self.world = World(Random(f"{seed} {shape.brokers} {shape.scattered}"), BEGIN_MS)
        random = self.world.random
        count = shape.brokers or random.choice((6, 6, 7, 8))
        self._lateness_ms = self.draw.choice((0, 500, 2_000))
        self.places = [self._place(f"b{number}") for number in range(count)]
        self.links: list[Link] = []
        self.faults = 0
        self._link_all(random.choice((0, 0, 1, 2)))
        self._sensors: list[PublishingSensor] = []
        self._askers: list[AskingClient] = []
        self._places: dict[str, dict[str, Any]] = {}  # where each source says that it is
        self._specifications: dict[str, str] = {}
        self.arrived: list[dict[str, Any]] = []

    def run(self) -> Outcome:
        """All of it, with the checks."""
        self._plan_askers()
        self._plan_sensors()
        if self.seed % LISTENS_EACH == 0:
            self.world.random.choice(self.places).listens = True
        for place in self.places:
            place.start()
        self._get_ready()
        end_ms = self._plan_readings()
        if self.shape.faults != 0:
            self._plan_faults(end_ms)
        self.world.run(end_ms)
        self._settle()
        results = self._judge(self.places, self._specifications, self.arrived, exactly=self.exactly)
        loads = [link.load(name) for link in self.links for name in link.ends]
        log = sha256()
        for place in self.places:
            log.update(place.log)
        return Outcome(
            seed=self.seed,
            brokers=len(self.places),
            events=len(self.arrived),
            results=results,
            faults=self.faults,
            ends=sum(place.ends for place in self.places),
            frames=sum(one.frames for one in loads),
            travelled=sum(one.events for one in loads),
            digest=log.hexdigest(),
        )

    # --- what there is ---------------------------------------------------------------------

    def _place(self, name: str) -> Place:
        random = self.world.random
        machine = Machine(
            disk=Disk(random),
            outbox=SimulatedOutbox(),
            options=BrokerOptions(
                name=name, lateness_ms=self._lateness_ms, idle_timeout_ms=IDLE_MS, networked=True
            ),
            limits=Limits(),
            sync_ms=random.choice((0, 100, 2_000)),
            commit_ms=random.choice((0, 50, 400)),
            snapshot_records=random.choice((10, 60, 400)),
            segment_bytes=random.choice((2_000, 50_000)),
            slice_max=SLICES[self.seed % len(SLICES)],
        )
        return Place(self.world, machine)

    def _link_all(self, more: int) -> None:
        """A tree drawn anew each time, and some links besides."""
        random, places = self.world.random, self.places
        pairs = [(self._before(at), at) for at in range(1, len(places))]
        for _ in range(more if len(places) > 2 else 0):
            one, other = sorted(random.sample(range(len(places)), 2))
            if (one, other) not in pairs:
                pairs.append((one, other))
        for one, other in pairs:
            a, b = places[one], places[other]
            link = Link(self.world, a, b, random.choice((5, 30, 300)))
            a.links[b.name] = b.links[a.name] = link
            self.links.append(link)

    def _before(self, at: int) -> int:
        """To which of those before it a broker is linked."""
        return self.world.random.randrange(at)

    def _plan_askers(self) -> None:
        names = self.shape.names
        for number, some in enumerate(self._texts(self._names() if names is None else names)):
            client = f"client-{number}"
            text = self._text(some, client)
            self._specifications[client] = text
            place = self._home()
            wish = Wish("submit", text, dict.fromkeys(some, 1))
            self._askers.append(AskingClient(place, client, [wish]))  # type: ignore[arg-type]

    def _text(self, names: tuple[str, ...], client: str) -> str:
        """The text of these subscriptions."""
        return texts.text_of(names, client)

    def _texts(self, names: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Which subscriptions are of one text."""
        return [(name,) for name in names]

    def _names(self) -> tuple[str, ...]:
        """The subscriptions."""
        known = list(texts.SUBSCRIPTIONS)
        return tuple(self.draw.sample(known, self.draw.randint(2, 5)))

    def _home(self) -> Place:
        """Draw where the next subscription is."""
        return self.world.random.choice(self.places)

    def _source_place(self) -> Place:
        """Draw where the next source is."""
        return self.world.random.choice(self.places)

    def _plan_sensors(self) -> None:
        for number in range(self.draw.randint(6, 10)):
            type_name = texts.TYPES[number % len(texts.TYPES)]
            place = self._source_place()
            sensor = self._sensor(place, f"s{number}", type_name, self.draw.choice((4, 20)))
            self._places[sensor.name] = self._where(number)
            sensor.advertise(self._places[sensor.name])
            sensor.begun = True
            self._sensors.append(sensor)

    def _sensor(self, place: Place, name: str, type_name: str, window: int) -> PublishingSensor:
        """A source."""
        return PublishingSensor(place, name, type_name, window)  # type: ignore[arg-type]

    def _where(self, number: int) -> dict[str, Any]:
        draw = self.draw
        position = [46 + draw.randint(-2, 2) / 100, 7 + draw.randint(-2, 2) / 100]
        return {"location": f"hall/{number % 3}", "position": position}

    def _get_ready(self) -> None:
        """Wait until all that was asked for is active everywhere."""
        for _ in range(READY_S_MAX):
            self.world.run(self.world.now + 1_000)
            idle = all(one.idle for one in self._askers) and all(one.idle for one in self._sensors)
            if idle and self.world.now >= BEGIN_MS + 10_000 and self._all_linked():
                return
        raise AssertionError(f"not all is active after {READY_S_MAX} s")

    def _all_linked(self) -> bool:
        """Tell whether every broker knows the way to every other."""
        count = len(self.places) - 1
        return all(
            place.process is not None and len(place.process.network.ways.via) == count
            for place in self.places
        )

    # --- what happens ----------------------------------------------------------------------

    def _plan_readings(self) -> int:
        """Have all be sent; when the last is."""
        draw, begin_ms = self.draw, BEGIN_MS + READY_S_MAX * 1_000
        self.world.run(begin_ms)
        end_ms = begin_ms
        for sensor in self._sensors:
            time_ms = begin_ms + draw.randrange(1_000)
            spread_ms = draw.choice((0, self._lateness_ms))
            lasting = sensor.type_name == texts.LASTING
            count, times = 0, RARER if sensor.type_name in self.shape.rare else 1
            each = max(1, self.shape.events // len(self._sensors) // times)
            while count < each:
                events = []
                for _ in range(draw.choice((1, 1, 4))):
                    count += 1
                    taken_ms = time_ms - draw.randint(0, spread_ms)
                    reading = self._reading(f"{sensor.name}-{count}", taken_ms, lasting=lasting)
                    events.append(reading)
                self.world.at(time_ms, partial(sensor.publish, events))
                place = {"type": sensor.type_name, "source": sensor.name}
                self.arrived += [{**place, **self._places[sensor.name], **one} for one in events]
                if draw.random() < 0.1:
                    self.world.at(time_ms + draw.randint(0, 2_000), sensor.again)
                time_ms += draw.randint(1_000, 6_000) * times
            if draw.random() < 0.2:  # later than all that it says again
                self.world.at(time_ms + 3_000, sensor.withdraw)
            end_ms = max(end_ms, time_ms)
        return end_ms

    def _reading(self, name: str, time_ms: int, *, lasting: bool) -> dict[str, Any]:
        draw = self.draw
        reading: dict[str, Any] = {"id": name, "val": float(draw.randint(0, 9))}
        lasted_ms = draw.randint(0, 8) * 500 if lasting else 0
        if lasted_ms:
            return reading | {"start": time_ms - lasted_ms, "end": time_ms}
        return reading | {"timestamp": time_ms}

    # --- faults ----------------------------------------------------------------------------

    def _plan_faults(self, end_ms: int) -> None:
        random = self.world.random
        kinds = random.sample(FAULTS, random.randint(2, 5))
        for _ in range(self.shape.faults or random.randint(15, 50)):
            at = random.randint(self.world.now + CALM_MS, end_ms)
            self.world.at(at, partial(self._fault, random.choice(kinds)))

    def _fault(self, kind: str) -> None:
        random = self.world.random
        self.faults += 1
        link = random.choice(self.links) if self.links else None
        if kind == "end" or link is None:
            place = random.choice(self.places)
            if random.random() < 0.3:
                place.end()
            else:  # in the midst of what it does
                place.end_after(random.randint(1, 25))
        elif kind == "stall":
            link.stall(random.choice(list(link.ends)), random.randint(100, 4_000))
        elif kind == "slow":
            link.delay_ms = random.choice((5, 300, 1_500))
        elif kind == "refuse":
            link.refuse(random.choice(list(link.ends)), random.randint(1, 3))
        elif kind == "part":
            for one in random.sample(self.links, random.randint(1, len(self.links))):
                one.cut(random.randint(2_000, 8_000), lost=random.random() < 0.5)
        else:
            for_ms = random.choice((random.randint(1, 1_500), random.randint(1_500, 8_000)))
            link.cut(for_ms, lost=kind == "lose")

    # --- the end ---------------------------------------------------------------------------

    def _settle(self) -> None:
        """Let all be taken, and time decide the rest."""
        world = self.world
        for place in self.places:
            place.mortal = False
        for link in self.links:
            link.delay_ms = min(link.delay_ms, 30)
        for _ in range(30):
            world.run(world.now + 10_000)
            if all(one.idle for one in self._sensors):
                break
        else:
            raise AssertionError("there are still messages that were not taken")
        world.run(world.now + SETTLED_MS)
        for _ in range(1_000):
            if all(place.process is not None and place.process.idle for place in self.places):
                return
            world.run(world.now + 17)
        raise AssertionError("not at rest")

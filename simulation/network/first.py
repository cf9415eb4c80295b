"""Runs in which all that is sent comes first: of a type, at a broker, behind *active*.

Owns when sources begin, and the check that what they said counts. Must not know how brokers hear of
a type. Invariant: an event that was acknowledged counts once at each subscription whose client had
heard *active* before it was sent, whatever fails behind that; but for where something was away when
it became active, and when the event came: then its broker had not heard what is wanted.

Brokers begin one after the other; clients ask at any time; sources that say nothing of themselves
send their first events at any broker, many of them at the moment when a client hears *active*; at
that moment brokers end, or are cut off for longer than anybody waits for them.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import partial

from msgspec import Struct

from broker.network.routing.entry import WAIT_MS
from simulation.account import CheckFailedError
from simulation.crashes.clients import AskingClient, Packet, PublishingSensor, Wish
from simulation.network.place import RESTART_MS_MAX, Place
from simulation.network.scenario import BEGIN_MS, SETTLED_MS, Outcome, Run, RunFailedError, Shape

TYPES = 8
LATENESS_MS = 60_000  # no event is late at a host that hears of its origin later than of others
BEGUN_MS = 4_000  # until which brokers begin
UNTIL_MS = 40_000  # until which clients ask and sources begin
MENDED_MS = 12_000  # after what failed is back: all links are dialled and the tree is told
ASKED_MS = 3_000  # before it is active
CALM_EACH = 4  # seeds
CALM_MS = BEGUN_MS + MENDED_MS + ASKED_MS
DELAYS_MS = (20, 150, 300)


class Sent(Struct):
    """An event that was sent: where, when, and when that was acknowledged."""

    place: str
    type_name: str
    sent_ms: int
    taken_ms: int | None = None


class FirstSensor(PublishingSensor):
    """A source that notes when what it said was acknowledged."""

    def __init__(self, place: Place, name: str, type_name: str, log: dict[str, Sent]) -> None:
        super().__init__(place, name, type_name, 4)  # type: ignore[arg-type]
        self.log = log
        self.begun = True

    def say(self, name: str) -> None:
        """Send one reading."""
        now = self._world.now
        self.log[name] = Sent(self._site.name, self.type_name, now)  # type: ignore[attr-defined]
        self.reached()
        self.publish([{"id": name, "val": 1, "timestamp": now}])

    def _taken(self, packet: Packet) -> None:
        super()._taken(packet)
        for event in packet.events:
            self.log[event["id"]].taken_ms = self._world.now


def run(seed: int) -> Outcome:
    """Run and check one. Raises RunFailedError."""
    try:
        return FirstRun(seed, Shape()).run()
    except Exception as error:
        text = f"seed {seed} (repeat it: python -m simulation --kind first --seed {seed}): "
        raise RunFailedError(f"{text}{error}") from error


class FirstRun(Run):
    """One run."""

    def __init__(self, seed: int, shape: Shape) -> None:
        super().__init__(seed, shape)
        self.said: dict[str, Sent] = {}
        self.active: dict[str, tuple[str, str, int]] = {}  # type, home, when
        self.failed: list[tuple[int, int]] = []  # from when until when something was away
        self.late: list[Place] = []

    def run(self) -> Outcome:
        """All of it, with the checks."""
        world, random = self.world, self.world.random
        for link in self.links:
            link.delay_ms = random.choice(DELAYS_MS)
        for place in self.places:
            world.at(BEGIN_MS + random.randint(0, BEGUN_MS), place.start)
        is_calm = self.seed % CALM_EACH == 1  # until a client hears *active*
        asked_ms = CALM_MS if is_calm else 0
        for number in range(random.randint(1, 2) if is_calm else random.randint(2, 6)):
            world.at(BEGIN_MS + random.randint(asked_ms, UNTIL_MS), partial(self._ask, number))
        for number in range(random.randint(4, 12)):
            world.at(BEGIN_MS + random.randint(0, UNTIL_MS), partial(self._begin, number))
        if self.seed % 2 and not is_calm:
            for _ in range(random.randint(1, 8)):
                time_ms = BEGIN_MS + random.randint(BEGUN_MS, UNTIL_MS)
                world.at(time_ms, partial(self._fail, random.choice(("cut", "lose", "end"))))
        world.run(BEGIN_MS + UNTIL_MS + SETTLED_MS)
        results = self._check()
        return Outcome(
            seed=self.seed,
            brokers=len(self.places),
            events=len(self.said),
            results=results,
            faults=self.faults,
            ends=sum(place.ends for place in self.places),
            frames=sum(link.load(name).frames for link in self.links for name in link.ends),
            travelled=sum(link.load(name).events for link in self.links for name in link.ends),
            digest="",
        )

    def _ask(self, number: int) -> None:
        """Have a client ask for a type."""
        random = self.world.random
        place, type_name = random.choice(self.places), f"First{random.randrange(TYPES)}"
        name, client = f"Heard{number}", f"client-{number}"
        text = (
            f"event {type_name}(val: int)\n"
            f"subscription {name} from {client} to alerts\ndetect {type_name}(val > 0)\n"
        )
        asker = AskingClient(place, client, [Wish("submit", text, {name: 1})])  # type: ignore[arg-type]

        def satisfied() -> None:
            self.active[name] = type_name, place.name, self.world.now
            if random.random() < 0.7:
                origin = random.choice(self.places)
                if self.seed % 2 and random.random() < 0.7:
                    self._strike(random.choice((origin, place)))
                self._begin(100 + number, type_name, origin)

        asker.satisfied = satisfied
        asker.reached()

    def _begin(self, number: int, type_name: str = "", place: Place | None = None) -> None:
        """Have a source say its first words."""
        random = self.world.random
        place = place or random.choice(self.places)
        type_name = type_name or f"First{random.randrange(TYPES)}"
        sensor = FirstSensor(place, f"s{number}", type_name, self.said)
        for count in range(random.randint(1, 3)):
            sensor.say(f"{sensor.name}-{count}")

    def _fail(self, kind: str) -> None:
        random, now = self.world.random, self.world.now
        self.faults += 1
        if kind == "end":
            random.choice(self.places).end()
            self.failed.append((now, now + RESTART_MS_MAX))
        else:
            for_ms = random.randint(1, 8_000)
            random.choice(self.links).cut(for_ms, lost=kind == "lose")
            self.failed.append((now, now + for_ms))

    def _strike(self, place: Place) -> None:
        """End a broker's process, and cut it off for longer than its next one waits for others."""
        random, now = self.world.random, self.world.now
        self.faults += 1
        for_ms = random.choice((1_000, 20_000))
        if random.random() < 0.7:
            place.end()
            for_ms += RESTART_MS_MAX
        for link in place.links.values() if for_ms > WAIT_MS or random.random() < 0.5 else ():
            link.cut(for_ms, lost=random.random() < 0.5)
        self.failed.append((now, now + for_ms))

    # --- checks ----------------------------------------------------------------------------

    def _check(self) -> int:
        counts: Counter[tuple[str, str]] = Counter()
        for place in self.places:
            for row in place.machine.outbox.rows:
                bound = json.loads(row.payload)["events"].values()
                counts.update((row.subscription, name) for names in bound for name in names)
        if counts and max(counts.values()) > 1:
            raise CheckFailedError("a result came twice")
        for key, event in self.said.items():
            if event.taken_ms is None:
                raise CheckFailedError(f"{key} at {event.place} was never acknowledged")
            for name, (type_name, home, active_ms) in self.active.items():
                if type_name != event.type_name or event.sent_ms < active_ms:
                    continue
                if (name, key) not in counts and not self._excused(event, active_ms):
                    raise CheckFailedError(
                        f"{key}, sent at {event.place} {event.sent_ms - BEGIN_MS} ms after the"
                        f" beginning and taken at {event.taken_ms - BEGIN_MS}, is missing for"
                        f" {name} at {home}, active at {active_ms - BEGIN_MS}"
                    )
        return sum(counts.values())

    def _excused(self, event: Sent, active_ms: int) -> bool:
        """Tell whether something was away, or began, when it was asked for, and while it waited."""
        assert event.taken_ms is not None
        spans = [(active_ms - ASKED_MS, active_ms - 1), (event.sent_ms, event.taken_ms)]
        return all(
            any(
                since <= last and first <= until + MENDED_MS
                for since, until in [*self.failed, (BEGIN_MS, BEGIN_MS + BEGUN_MS)]
            )
            for first, last in spans
        )

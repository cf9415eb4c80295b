"""Simulated sensors: readings with delays, repeats, and what is wrong with them.

Owns what a sensor sends and when it arrives. Must not know the core's judgement of it. Invariant:
a sensor draws all that it does from the world's generator, in a fixed order.

`taken` is the independent account of what a broker let in: of each payload that arrived, the events
that are good, less those that the same step told to be late; the first of each id and end counts.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

from broker.core.effects import Effect, Publish
from broker.core.messages import EventsReceived, Payload, SourceAdvertised
from simulation.site import SimulatedBroker
from simulation.world import World

BAD = (
    b"{",
    b"\xff\xfe",
    b'{"val": NaN}',
    b'{"val": "warm"}',
    b"[]]",
    b'"warm"',
    b'{"timestamp": "soon"}',
    b'{"timestamp": 0, "val": 1, "uncertainty": -1}',
    b"[" * 100,
)


class Habits(Struct, frozen=True):
    """How a sensor behaves; probabilities lie in 0..1, times are in ms.

    A reading arrives `delay_ms` or less after it was taken; `stray` of them are `stray_ms` older.
    """

    period_ms: int
    delay_ms: int
    repeat: float = 0.0
    bad: float = 0.0
    stray: float = 0.0
    stray_ms: int = 0
    batch_max: int = 1


class Account:
    """What arrived at a broker, by the clients' own judgement."""

    def __init__(self) -> None:
        self.taken: dict[tuple[str, int], dict[str, Any]] = {}
        self.tokens: list[str] = []
        self.sent = 0
        self.bad = 0
        self.late = 0

    def token(self) -> str:
        """A token that nobody else has."""
        self.tokens.append(f"token {len(self.tokens)}")
        return self.tokens[-1]

    def note(self, events: list[dict[str, Any]], effects: list[Effect]) -> None:
        """Events arrived, and the broker did this."""
        late = _late_of(effects)
        self.late += len(late)
        for event in events:
            key = (event["id"], event["timestamp"])
            if key not in late:
                self.taken.setdefault(key, event)


def _late_of(effects: list[Effect]) -> set[tuple[str, int]]:
    said = [
        json.loads(one.payload)
        for effect in effects
        if isinstance(effect, Publish)
        for one in effect.publications
        if one.topic.startswith("late/")
    ]
    return {(event["id"], event["timestamp"]) for event in said}


class Sensor:
    """One source, of readings of one type."""

    def __init__(
        self, world: World, broker: SimulatedBroker, account: Account, name: str, type_name: str
    ) -> None:
        self._world = world
        self._broker = broker
        self._account = account
        self._name = name
        self._type_name = type_name
        self._place: dict[str, Any] = {}
        self._count = 0

    def advertise(self, place: dict[str, Any]) -> None:
        """Say where it is; its readings need not say it then."""
        self._place = place
        said = {"source": self._name, "types": [self._type_name], **place}
        token = self._account.token()
        self._broker.tell(SourceAdvertised(self._name, json.dumps(said).encode(), token))

    def send_from(self, begin_ms: int, end_ms: int, habits: Habits) -> None:
        """Plan all that it sends in this time."""
        draw = self._world.random
        time_ms = begin_ms + draw.randrange(habits.period_ms)
        while time_ms < end_ms:
            events = [self._reading(time_ms + offset, habits) for offset in self._offsets(habits)]
            self._plan(events, time_ms, habits)
            if draw.random() < habits.bad:
                self._plan_bad(time_ms + draw.randint(0, habits.delay_ms))
            time_ms += draw.randint(habits.period_ms // 2, 2 * habits.period_ms)

    def _offsets(self, habits: Habits) -> list[int]:
        """When the readings of one batch were taken, before the last one."""
        draw = self._world.random
        count = draw.randint(1, habits.batch_max)
        return sorted(-draw.randint(0, habits.period_ms // 2) for _ in range(count))

    def _reading(self, time_ms: int, habits: Habits) -> dict[str, Any]:
        draw = self._world.random
        self._count += 1
        if draw.random() < habits.stray:
            time_ms -= habits.stray_ms
        value = float(draw.randint(0, 9))
        return {"id": f"{self._name}-{self._count}", "timestamp": time_ms, "val": value}

    def _plan(self, events: list[dict[str, Any]], time_ms: int, habits: Habits) -> None:
        draw = self._world.random
        self._arrive_at(time_ms + draw.randint(0, habits.delay_ms), events)
        while draw.random() < habits.repeat:
            self._arrive_at(time_ms + draw.randint(0, 3 * habits.delay_ms), events)

    def _arrive_at(self, time_ms: int, events: list[dict[str, Any]]) -> None:
        self._world.at(time_ms, lambda: self._arrive(events))

    def _arrive(self, events: list[dict[str, Any]]) -> None:
        data = json.dumps(events[0] if len(events) == 1 else events).encode()
        self._account.sent += len(events)
        effects = self._tell(data)
        whole = [
            {"type": self._type_name, "source": self._name, **self._place, **event}
            for event in events
        ]
        self._account.note(whole, effects)

    def _plan_bad(self, time_ms: int) -> None:
        data = self._world.random.choice(BAD)

        def arrive() -> None:
            self._account.bad += 1
            self._tell(data)

        self._world.at(time_ms, arrive)

    def _tell(self, data: bytes) -> list[Effect]:
        payload = Payload(self._type_name, self._name, data, self._account.token())
        return self._broker.tell(EventsReceived((payload,)))

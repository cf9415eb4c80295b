"""Simulated sensors: readings with delays, repeats, moves, absences, and what is wrong with them.

Owns what a sensor sends and when it arrives. Must not know the core's judgement of it. Invariant:
a sensor draws all that it does from the world's generator, in a fixed order.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

from broker.core.messages import EventsReceived, Payload, SourceAdvertised, SourceWithdrawn
from simulation.account import Arrival, ArrivalAccount
from simulation.malformed import BAD
from simulation.site import SimulatedBroker
from simulation.world import World

RESENT_MAX = 5  # readings that a sensor sends again when it begins anew


class Habits(Struct, frozen=True):
    """Habits of a sensor; probabilities lie in 0..1, times are in ms.

    A reading arrives `delay_ms` or less after it was taken; `stray` of them are `stray_ms` older.
    `repeat` come again, `contradict` of these say something else. `bad` payloads come besides, or
    spoil a batch. A reading lasts `lasts_ms` or less. `own_place` of them say where they are.
    """

    period_ms: int
    delay_ms: int
    repeat: float = 0.0
    contradict: float = 0.0
    bad: float = 0.0
    stray: float = 0.0
    stray_ms: int = 0
    batch_max: int = 1
    lasts_ms: int = 0
    own_place: float = 0.0


class Door:
    """The way of payloads to a broker: alone, or those of some ms together, as from a face.

    It knows what each source's advertisement supplies when a payload comes.
    """

    def __init__(
        self, world: World, broker: SimulatedBroker, account: ArrivalAccount, together_ms: int = 0
    ) -> None:
        self.world = world
        self.account = account
        self._broker = broker
        self._together_ms = together_ms
        self._waiting: list[Arrival] = []
        self._places: dict[str, dict[str, Any]] = {}

    def arrive(self, arrival: Arrival) -> None:
        """A payload is there."""
        if not self._waiting and self._together_ms:
            self.world.after(self._together_ms, self._hand_on)
        self._waiting.append(arrival)
        if not self._together_ms:
            self._hand_on()

    def advertise(self, source: str, type_name: str, place: dict[str, Any]) -> None:
        """Say what a source is; its readings need not say it then."""
        self._hand_on()
        self._places[source] = place
        advertisement = {"source": source, "types": [type_name], **place}
        self.account.next_step()
        token = self.account.token()
        self._broker.tell(SourceAdvertised(source, json.dumps(advertisement).encode(), token))

    def withdraw(self, source: str) -> None:
        """Say that a source sends no more."""
        self._hand_on()
        self._places.pop(source, None)
        self.account.next_step()
        self.account.withdrawn(source)
        self._broker.tell(SourceWithdrawn(source, self.account.token()))

    def _hand_on(self) -> None:
        arrivals, self._waiting = self._waiting, []
        if not arrivals:
            return
        payloads = []
        for arrival in arrivals:
            payloads.append(
                Payload(arrival.type_name, arrival.source, arrival.data, self.account.token())
            )
            supplied = {"type": arrival.type_name, "source": arrival.source}
            place = self._places.get(arrival.source, {})
            arrival.events = [{**supplied, **place, **event} for event in arrival.events]
        self.account.next_step()
        effects = self._broker.tell(EventsReceived(tuple(payloads)))
        self.account.note(arrivals, effects, self.world.now)


class ReadingSensor:
    """One source, of readings of one type; `declared` tells whether any specification knows it."""

    def __init__(self, door: Door, name: str, type_name: str, *, declared: bool = True) -> None:
        self.name = name
        self._door = door
        self._world = door.world
        self._type_name = type_name
        self._declared = declared
        self._sent: list[dict[str, Any]] = []
        self._count = 0

    def advertise(self, place: dict[str, Any]) -> None:
        """Say where it is now."""
        self._door.advertise(self.name, self._type_name, place)

    def withdraw(self) -> None:
        """Say that it leaves."""
        self._door.withdraw(self.name)

    def begin_anew(self, place: dict[str, Any]) -> None:
        """Come back as after a loss of power: advertise, and send again what was sent last."""
        self.advertise(place)
        if self._sent:
            self._arrive(self._sent[-RESENT_MAX:])

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
        reading: dict[str, Any] = {"id": f"{self.name}-{self._count}"}
        lasts_ms = draw.randint(0, habits.lasts_ms) // 500 * 500
        if lasts_ms:
            reading |= {"start": time_ms - lasts_ms, "end": time_ms}
        else:
            reading["timestamp"] = time_ms
        reading["val"] = float(draw.randint(0, 9))
        if draw.random() < habits.own_place:
            reading["location"] = f"roof/{draw.randint(0, 2)}"
        return reading

    def _plan(self, events: list[dict[str, Any]], time_ms: int, habits: Habits) -> None:
        draw = self._world.random
        spoilt = draw.random() < habits.bad
        self._arrive_at(time_ms + draw.randint(0, habits.delay_ms), events, spoilt=spoilt)
        while draw.random() < habits.repeat:
            again = events
            if draw.random() < habits.contradict:
                again = [{**event, "val": event["val"] + 0.5} for event in events]
            self._arrive_at(time_ms + draw.randint(0, 3 * habits.delay_ms), again)

    def _arrive_at(
        self, time_ms: int, events: list[dict[str, Any]], *, spoilt: bool = False
    ) -> None:
        bad = self._world.random.choice(_ITEMS) if spoilt else None
        self._world.at(time_ms, lambda: self._arrive(events, bad))

    def _arrive(self, events: list[dict[str, Any]], bad: tuple[bytes, str] | None = None) -> None:
        """Alone or as a batch; a bad item in a batch leaves the others what they are."""
        self._sent += events
        items = [json.dumps(event).encode() for event in events]
        arrival = Arrival(self._type_name, self.name, b"")
        if self._declared:
            arrival.events = list(events)
        else:
            arrival.dropped["undeclared_type"] = len(events)
        if bad is not None:
            items.insert(len(items) // 2, bad[0])
            reason = self._reason(*bad)
            arrival.dropped[reason] = arrival.dropped.get(reason, 0) + 1
        arrival.data = items[0] if len(items) == 1 else b"[" + b",".join(items) + b"]"
        self._door.arrive(arrival)

    def _plan_bad(self, time_ms: int) -> None:
        data, reason = self._world.random.choice(BAD)
        dropped = {self._reason(data, reason): 1}
        arrival = Arrival(self._type_name, self.name, data, dropped=dropped)
        self._world.at(time_ms, lambda: self._door.arrive(arrival))

    def _reason(self, data: bytes, reason: str) -> str:
        """Of a type that nobody knows, only what is wrong with the text itself can be told."""
        readable = self._declared or reason in _OF_TEXTS or b"NaN" in data
        return reason if readable else "undeclared_type"


_OF_TEXTS = frozenset(("not_json", "not_an_event", "too_deep"))
_ITEMS = tuple((data, reason) for data, reason in BAD if data[:1] == b"{" and data[-1:] == b"}")

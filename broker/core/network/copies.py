"""Results for actors that listen at other brokers, until these have them.

Owns the copies and their numbers. Must not know frames or topics. Invariant: a copy is kept until
its broker has taken it or the limit lets the oldest go; numbers ascend for each broker, within one
`life`, which a home that lost its disk begins anew.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec import Struct

from broker.core.effects import Emission


class Copy(Struct, frozen=True):
    """One result for the actors at one broker."""

    broker: str
    serial: int
    actor: str
    payload: bytes


class Copies:
    """See the module; `fresh` are those that nobody has asked for yet."""

    def __init__(self, copies_max: int) -> None:
        self.life = 0
        self.fresh: list[Copy] = []
        self._max = copies_max
        self._serial: dict[str, int] = {}
        self._kept: dict[str, deque[Copy]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))

    def add(self, broker: str, result: Emission, now: int) -> bool:
        """Keep a copy for a broker; whether the oldest had to go for it."""
        self.life = self.life or now
        serial = self._serial[broker] = self._serial.get(broker, 0) + 1
        one = Copy(broker, serial, result.actor, result.payload)
        kept = self._kept.setdefault(broker, deque())
        kept.append(one)
        self.fresh.append(one)
        if len(kept) <= self._max:
            return False
        kept.popleft()
        return True

    def floor(self, broker: str) -> int:
        """The number of the oldest that is kept for a broker."""
        kept = self._kept.get(broker)
        return kept[0].serial if kept else self._serial.get(broker, 0) + 1

    def kept_for(self, broker: str) -> list[Copy]:
        """What a broker has not taken yet, in order."""
        return list(self._kept.get(broker, ()))

    def taken(self, broker: str, life: int, serial: int) -> None:
        """A broker has all up to this number."""
        kept = self._kept.get(broker)
        while kept and life == self.life and kept[0].serial <= serial:
            kept.popleft()

    def forget(self, broker: str) -> None:
        """Nothing is kept for this broker any more."""
        if broker in self._kept:
            self._kept[broker] = deque()  # its numbers go on, should it come back

    def state(self) -> list[Any]:
        """Plain data."""
        kept = [
            [name, self._serial[name], [[one.serial, one.actor, one.payload] for one in some]]
            for name, some in self._kept.items()
        ]
        return [self.life, kept]

    def restore(self, state: list[Any]) -> None:
        """Take up such a state, in the place of all that is here."""
        self.life, rows = state
        for name, serial, some in rows:
            self._serial[name] = serial
            self._kept[name] = deque([Copy(name, *row) for row in some])

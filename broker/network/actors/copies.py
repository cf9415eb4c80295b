"""Results for actors that listen at other brokers, until these have them.

Owns the copies and their numbers. Must not know frames or topics. Invariant: a copy is kept until
its broker has taken it or the limit lets the oldest go; numbers ascend for each broker, within one
`life`, which a home that lost its disk begins anew.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec import Struct

from broker.network.frames.told import Asks


class Copy(Struct, frozen=True):
    """One result for the actors at one broker, of which `version` was known.

    `asks`: where nobody hears it there, it goes to these brokers, one after the other, until one of
    them has published it, and then to where the actor is by now. None: somebody else sees to that.
    """

    broker: str  # where it goes
    serial: int  # by which it is taken
    actor: str  # one name, perhaps of several clients
    payload: bytes  # as it is published
    version: int = 0
    asks: Asks = ()


class Copies:
    """Keep results for actors that listen at other brokers, until these have them.

    `fresh` are those that no broker has asked for yet.
    """

    def __init__(self, copies_max: int) -> None:
        self.life = 0  # 0: nothing was ever copied
        self.fresh: list[Copy] = []
        self._max = copies_max  # for each broker
        self._serial: dict[str, int] = {}  # by broker: the last number
        self._kept: dict[str, deque[Copy]] = {}  # by broker, in order

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))

    def add(self, to: tuple[str, int], actor: str, payload: bytes, asks: Asks, now: int) -> bool:
        """Keep a copy for a broker (its name, version); whether the oldest had to go for it."""
        broker, version = to
        self.life = self.life or now  # the time of the first copy: another disk has another
        serial = self._serial[broker] = self._serial.get(broker, 0) + 1
        one = Copy(broker, serial, actor, payload, version, asks)
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

    def brokers(self) -> list[str]:
        """Those for whom something is kept."""
        return [name for name, kept in self._kept.items() if kept]

    def kept_for(self, broker: str) -> list[Copy]:
        """Return what a broker has not taken yet, in order."""
        return list(self._kept.get(broker, ()))

    def taken(self, broker: str, life: int, serial: int) -> None:
        """A broker has all up to this number."""
        kept = self._kept.get(broker)
        while kept and life == self.life and kept[0].serial <= serial:
            kept.popleft()

    def forget(self, broker: str) -> list[Copy]:
        """Nothing is kept for this broker any more; what was."""
        found = self.kept_for(broker)
        if broker in self._kept:
            self._kept[broker] = deque()  # its numbers go on, should it come back
        return found

    def state(self) -> list[Any]:
        """Plain data."""
        kept = [
            [name, self._serial[name], [_row(one) for one in some]]
            for name, some in self._kept.items()
        ]
        return [self.life, kept]

    def restore(self, state: list[Any]) -> None:
        """Take up such a state, in the place of all that is here."""
        self.life, rows = state
        for name, serial, some in rows:
            self._serial[name] = serial
            self._kept[name] = deque([_read(name, *row) for row in some])


def _row(one: Copy) -> list[Any]:
    asks = None if one.asks is None else [list(ask) for ask in one.asks]
    return [one.serial, one.actor, one.payload, one.version, asks]


def _read(broker: str, *row: Any) -> Copy:
    serial, actor, payload, version, asks = row if len(row) > 3 else (*row, 0, ())
    known = None if asks is None else tuple([(name, number) for name, number in asks])
    return Copy(broker, serial, actor, payload, version, known)

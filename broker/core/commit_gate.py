"""The one gate between what a broker promises and the disk on which that rests.

Owns the lines in which effects wait. Must not know who writes records, stores results or carries
frames. Invariant: nothing that promises something leaves before the record behind which it stands
is durable, and what leaves does so in the order of its line.

There is a line for each link and class of frames, so that none waits for what another link needs,
and one for all else: acknowledgements, results, changes of the catalogue, replies, commit marks. A
reply that has its turn while a change is not stored yet goes on into a line of its own, as a client
may ask at once for what it was told of; whatever stands behind it does not wait.

    held ──commit(after)──▶ released
    held ──commit(after)──▶ answering (a Reply behind an Enlist) ──listed()──▶ released

The real process (`broker.driver.promises`) and the simulated one (`simulation.crashes.process`)
carry out what this gate releases, so what the simulation finds holds of both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, TypeAlias

from msgspec import Struct

from broker.core.effects import Acknowledge, Emit, Enlist, Reply, SendFrame


class CommitMark(Struct, frozen=True):
    """Leaves in its turn: all that was promised before it has left; `token` is its owner's."""

    after: int
    token: Any


Held: TypeAlias = Acknowledge | Emit | Enlist | Reply | CommitMark | SendFrame


class CommitGate:
    """Each method returns what leaves by it, in order; `durable` is the last durable record."""

    def __init__(self, durable: int = 0) -> None:
        self.durable = durable
        self._promises: deque[Held] = deque()
        self._frames: dict[tuple[str, bool], deque[Held]] = {}
        self._answers: deque[Reply | None] = deque()  # None: a change that is not stored yet

    def __len__(self) -> int:
        """Count what waits, frames excepted."""
        return len(self._promises) + len(self._answers) - self._answers.count(None)

    @property
    def frames_waiting(self) -> int:
        """Count the frames that wait."""
        return sum(map(len, self._frames.values()))

    def put(self, effect: Held) -> list[Held]:
        """Take an effect in, behind all of its line."""
        if isinstance(effect, SendFrame):
            line = self._frames.setdefault((effect.link, effect.control), deque())
        else:
            line = self._promises
        if line or effect.after > self.durable:
            line.append(effect)
            return []
        return self._released((effect,))

    def commit(self, number: int) -> list[Held]:
        """Let go of what rests on records up to this one, which are durable."""
        self.durable = number
        ready: list[Held] = []
        for line in (self._promises, *self._frames.values()):
            while line and line[0].after <= number:
                ready.append(line.popleft())
        return self._released(ready)

    def listed(self) -> list[Held]:
        """Let go of the replies that waited for the first change of the catalogue under way.

        It is stored now, or never will be.
        """
        self._answers.popleft()
        ready: list[Held] = []
        while self._answers and (reply := self._answers[0]) is not None:
            ready.append(reply)
            self._answers.popleft()
        return ready

    def _released(self, ready: Iterable[Held]) -> list[Held]:
        released: list[Held] = []
        for effect in ready:
            if isinstance(effect, Enlist):
                self._answers.append(None)
            elif self._answers and isinstance(effect, Reply):
                self._answers.append(effect)
                continue
            released.append(effect)
        return released

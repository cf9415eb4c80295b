"""The one gate between what a broker promises and the disk on which that rests.

Owns the lines in which effects wait. Must not know who writes records, stores results or carries
frames. Invariant: nothing that promises something leaves before the record behind which it stands
is durable, and what leaves does so in the order of its line.

There is a line for each link and class of frames, so that none waits for what another link needs,
and one for all else: acknowledgements, results, changes of the catalogue, replies, commit marks. A
reply that has its turn while a change is not stored yet goes on into a line of its own, as a client
may ask at once for what it was told of; whatever stands behind it does not wait.

    held ──commit(after)──▶ released
    held ──commit(after)──▶ fenced (an Emit of a home with a stand-in) ──ReleaseResults──▶ released
    held ──commit(after)──▶ answering (a Reply behind an Enlist) ──listed()──▶ released

The real process (`broker.driver.promises`) and the simulated one (`simulation.crashes.process`)
carry out what this gate releases, so what the simulation finds holds of both.

A home with a stand-in has a `fence`: results from this offset on wait beside all else until the
stand-in has them. Commit marks wait with them, so that who asks for all results gets all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, TypeAlias

from msgspec import Struct

from broker.core.effects import (
    Acknowledge,
    DisownResults,
    Emit,
    Enlist,
    ReleaseResults,
    Reply,
    disowned,
)
from broker.network.effects import SendFrame

RESULT_BYTES = 250  # of a result beside its payload, about


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
        self.fence: int | None = None  # None: no result waits for a stand-in
        self._fenced: deque[Held] = deque()
        self.fenced_bytes = 0  # of the results among these

    def __len__(self) -> int:
        """Count what waits, frames excepted."""
        answers = len(self._answers) - self._answers.count(None)
        return len(self._promises) + answers + len(self._fenced)

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

    def move_fence(self, to: ReleaseResults | DisownResults) -> list[Held]:
        """Let results go that a stand-in has, or disown what it took over."""
        if isinstance(to, DisownResults):
            # Those that still wait for their record as well: they are at the fence next.
            for line in (self._promises, self._fenced) if self.fence is not None else ():
                for place, held in enumerate(line):
                    if isinstance(held, Emit):
                        line[place] = Emit(disowned(held.results, to), held.after)
            self.fenced_bytes = sum(map(_size_bytes, self._fenced))
            return []
        self.fence = to.upto
        ready: list[Held] = []
        while self._fenced and not self._is_fenced(self._fenced[0]):
            ready.append(self._fenced.popleft())
            self.fenced_bytes -= _size_bytes(ready[-1])
        return ready

    def _is_fenced(self, effect: Held) -> bool:
        if self.fence is None or not isinstance(effect, Emit) or not effect.results:
            return False
        return effect.results[-1].offset >= self.fence

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
            elif (
                self.fence is not None
                and isinstance(effect, Emit | CommitMark)
                and (self._fenced or self._is_fenced(effect))
            ):
                self._fenced.append(effect)
                self.fenced_bytes += _size_bytes(effect)
                continue
            released.append(effect)
        return released


def _size_bytes(effect: Held) -> int:
    if not isinstance(effect, Emit):
        return 0
    return sum([RESULT_BYTES + len(result.payload) for result in effect.results])

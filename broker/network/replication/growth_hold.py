"""What an origin does not say yet, as others have still to hear that it promises less.

Owns what is held, and until when. Must not know promises, frames or probes' ways. Invariant: what
is held leaves in the order in which it came, once the last probe that was begun behind a greater
bound is answered, or the wait is over; questions of hosts are answered behind it.

Rejected: to have the event itself wait before it is admitted, as first events of a type do. It is
known to break a promise only once it is decoded, and its source would wait for its acknowledgement
although it is on the disk. What others rely on is what the origin *says*; so that alone waits.

    open --a promise has grown--> held --the probe is answered, or the wait is over--> open
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Said = TypeVar("Said")
Question = TypeVar("Question")


class GrowthHold(Generic[Said, Question]):
    """Hold what an origin would say; `version` is that of the promises that were told last.

    `unanswered` counts how often the wait was over before the answers came.
    """

    def __init__(self, wait_ms_max: int, version: int = 0) -> None:
        self.version = version
        self.unanswered = 0
        self._wait_ms_max = wait_ms_max
        self._number = 0
        self.due: int | None = None  # when the wait is over at the latest; None: nothing waits
        self._said: list[Said] = []
        self._questions: list[tuple[str, Hashable, Question]] = []

    def begin(self, number: int, now: int) -> None:
        """Hold what comes until the probe of this number is answered."""
        self._number = number  # a later probe is behind all that earlier ones are behind
        if self.due is None:
            self.due = now + self._wait_ms_max

    def holds(self, said: list[Said]) -> bool:
        """Keep what is to be said, if it has to wait."""
        if self.due is None:
            return False
        self._said += said
        return True

    def defers(self, peer: str, session: Hashable, question: Question) -> bool:
        """Keep a host's question, which came in a session with a neighbour; likewise."""
        if self.due is None:
            return False
        self._questions.append((peer, session, question))
        return True

    def release(
        self, answered: int, now: int
    ) -> tuple[list[Said], list[tuple[str, Hashable, Question]]] | None:
        """Return what is to be said, and what is to be answered behind it; None: not yet."""
        if self.due is None:
            return None
        if answered < self._number:
            if now < self.due:
                return None
            self.unanswered += 1
        self.due = None
        # Whoever says it may begin another wait with that: nothing must be left here meanwhile.
        sayable, self._said = self._said, []
        questions, self._questions = self._questions, []
        return sayable, questions

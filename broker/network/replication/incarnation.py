"""The beginning of one process of a broker: how far others have seen it, and when it may admit.

Owns the questions to other brokers, what waits for their answers, and the settlement. Must not know
links, events or how a question finds its way. Invariant: nothing is admitted, and no host is
answered, before it is settled which life the process counts in; and nothing while a namesake is
there that was announced before it.

A disk may have gone back in time: a directory restored from a copy, a memory card cloned or put
back. Nothing on it tells; but what its positions meant is known wherever they were stored.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

from broker.network.replication.descent import Descent

Place = tuple[int, int]  # life, position
Phase = Literal["asking", "settled", "displaced"]
WAITING_MAX = 10_000  # messages; what comes beyond is dropped without an acknowledgement


class Recall(Struct, array_like=True, frozen=True, tag="recall"):
    """A broker that begins asks another what that has seen of it."""

    asker: str
    to: str


class Recalled(Struct, array_like=True, frozen=True, tag="recalled"):
    """The answer: places of the asker that are stored here, and what it promised by type."""

    sender: str
    to: str
    places: list[Place]
    watermarks: dict[str, int]


class Question(Protocol):
    """A host asks for all behind its place."""

    @property
    def host(self) -> str:
        """Return who asks."""

    @property
    def life(self) -> int:
        """Return the life in which it stands."""

    @property
    def position(self) -> int | None:
        """Return where; None: nowhere yet."""


class Gap(Struct, frozen=True):
    """Positions that some broker has seen and this disk does not tell of, both included."""

    life: int
    first: int
    last: int
    seen_by: str


class Settlement(Struct, frozen=True):
    """The way in which a process goes on: its life, and what that shares with the one before."""

    life: int
    is_new: bool
    shared: int
    watermarks: dict[str, int]
    gap: Gap | None  # the largest
    unheard: tuple[str, ...]  # brokers that have not answered


class Incarnation:
    """Begins one process. `identity` is random and never 0, unless nobody is to be asked.

    `position` is the last that the disk tells of, `hosts` are brokers that it names, and `wait_ms`
    is how long they are asked from the beginning on.
    """

    def __init__(
        self, identity: int, descent: Descent, position: int, hosts: Iterable[str], wait_ms: int
    ) -> None:
        self.phase: Phase = "asking" if identity else "settled"
        self.why = ""  # it is displaced, in words
        self.gaps: dict[str, Gap] = {}  # by who has seen them
        self.refused = 0  # messages that were dropped
        self._identity = identity
        self._descent = descent
        self._position = position
        self._hosts = tuple(hosts)
        self._wait_ms = wait_ms
        self.due_ms: int | None = None  # when `settle` is due, if no broker answers before
        self._refused_by: tuple[str, ...] = ()
        self._asked: dict[str, bool] = {}  # brokers, and whether they have answered
        self._watermarks: dict[str, int] = {}
        self._messages: list[Any] = []
        self._questions: list[tuple[str, Hashable, Question]] = []

    @property
    def is_settled(self) -> bool:
        """True where it may admit."""
        return self.phase == "settled"

    @property
    def disk(self) -> int:
        """The first life of the disk, which all copies of it share; 0: it has none yet."""
        return self._descent.first

    # --- what waits ------------------------------------------------------------------------

    def holds(self, message: Any) -> bool:
        """Keep a message that would be admitted until it is settled; False where it is."""
        if self.is_settled:
            return False
        if len(self._messages) < WAITING_MAX:
            self._messages.append(message)
        else:
            self.refused += 1
        return True

    def doubts(self, peer: str, session: Hashable, question: Question, reached: int) -> bool:
        """Keep a host's question, which came in a session with a neighbour; likewise."""
        self.saw(question.host, question.life, question.position, reached)
        if self.is_settled:
            return False
        self._questions.append((peer, session, question))
        return True

    def messages(self) -> list[Any]:
        """Hand back the messages that waited."""
        waiting, self._messages = self._messages, []
        return waiting

    def questions(self) -> list[tuple[str, Hashable, Any]]:
        """Hand back the questions that waited, each with its neighbour and session."""
        waiting, self._questions = self._questions, []
        return waiting

    # --- what others have seen -------------------------------------------------------------

    def recalls(self, me: str, reachable: Collection[str], now: int) -> list[Recall]:
        """Ask those who can be reached and were not asked before."""
        if any(name in reachable for name in self._refused_by):
            self.readmit()  # a link stands: the other is gone
        if self.due_ms is None and self.phase == "asking":
            self.due_ms = now + self._wait_ms
        # Who was lost on the way may have lost the question, too.
        self._asked = {name: done for name, done in self._asked.items() if name in reachable}
        fresh = sorted(name for name in reachable if name not in self._asked)
        self._asked |= dict.fromkeys(fresh, False)
        return [Recall(me, name) for name in fresh]

    def recalled(self, answer: Recalled) -> None:
        """A broker has answered."""
        for life, position in answer.places:
            self.saw(answer.sender, life, position)
        for name, reached in answer.watermarks.items():
            self._watermarks[name] = max(reached, self._watermarks.get(name, reached))
        if answer.sender in self._asked:
            self._asked[answer.sender] = True

    def saw(self, host: str, life: int, position: int | None, reached: int = 0) -> bool:
        """A host stands at a place of this broker, which has come to `reached`.

        Whether it has seen more of the very life in which this process has gone on: then that was
        a mistake, and what comes next is to be asked and settled anew.
        """
        if position is None or not life or not self._identity:
            return False
        # Of a life that this disk knows nothing of, all that was seen is gone.
        shared = self._descent.shared(life, position)
        is_present = life == self._descent.life
        end = max(reached, self._position) if is_present else shared or 0
        if position <= end:
            return False
        # A host that is asked about twice has gone on meanwhile: what it saw last is all.
        before = self.gaps.get(host)
        if before is None or before.last < position:
            self.gaps[host] = Gap(life, end + 1, position, host)
        is_late = self.is_settled and is_present
        if is_late:
            self.phase, self.due_ms = "asking", 0
        return is_late

    # --- the settlement -----------------------------------------------------------------------

    def settle(
        self, reachable: Collection[str], known: Collection[str], now: int
    ) -> Settlement | None:
        """Return the way to go on, once all `known` have answered, or the wait is over.

        Who is known and not reachable may be so before long; after the wait no doubt rests on it.
        """
        expected = dict.fromkeys([*sorted(reachable), *self._hosts])
        unheard = tuple([name for name in expected if not self._asked.get(name)])
        is_heard = bool(expected) and all(self._asked.get(name) for name in [*expected, *known])
        is_over = self.due_ms is not None and now >= self.due_ms
        if self.phase != "asking" or not (is_over or is_heard):
            return None
        self.phase, self.due_ms = "settled", None
        life = self._descent.life
        gap = max(self.gaps.values(), key=lambda one: one.last, default=None)
        # Two disks of one life may each have been heard by other hosts: in doubt they part.
        is_new = not life or not expected or bool(unheard) or gap is not None
        # A copy of the disk may have gone on in the very life that this process began.
        while is_new and self._descent.shared(self._identity, 0) is not None:
            self._identity += 1
        chosen = self._identity if is_new else life
        return Settlement(chosen, is_new, self._position, self._watermarks, gap, unheard)

    # --- namesakes and copies --------------------------------------------------------------

    def displace(self, why: str, refused_by: Collection[str]) -> bool:
        """Another of this name or disk was announced before; return True where that is news.

        Neighbours that refuse a link may take it later; with none, it is for good.
        """
        is_news, self.why = not self.why, why
        self.phase, self.due_ms = "displaced", None
        self._refused_by = tuple(refused_by)
        return is_news

    def readmit(self) -> None:
        """Ask all anew, as the other is gone."""
        if self.phase == "displaced":
            self.phase, self.why, self.due_ms = "asking", "", None
            self._asked.clear()

    # --- what is to be seen ----------------------------------------------------------------

    def reason(self) -> str:
        """Say why nothing is admitted; empty where it is."""
        if self.phase == "displaced":
            return self.why
        if self.phase == "asking":
            return "it asks other brokers how far they have seen it"
        return ""

    def status(self) -> Mapping[str, Any]:
        """The life, the phase, and what others have seen of lives that this disk has lost."""
        gaps = [
            {"seen_by": gap.seen_by, "life": f"{gap.life:x}", "from": gap.first, "to": gap.last}
            for gap in self.gaps.values()
        ]
        return {
            "life": f"{self._descent.life:x}",
            "identity": f"{self.disk:x}",
            "phase": self.phase,
            "reason": self.reason(),
            "rewound": gaps,
            "refused": self.refused,
        }

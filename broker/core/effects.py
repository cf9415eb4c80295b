"""What a broker's core wants done, and the one gate between what it promises and the disk.

Owns the types that `Broker.handle` returns, what gathers them while a message is handled, and the
lines in which they wait. Must not know who carries them out, writes records, stores results or
carries frames. Invariant: they are carried out in the order given, at most one of each kind for a
message, and nothing that leaves the broker leaves in another way; nothing that promises something
leaves before the record behind which it stands is durable, and what leaves does so in the order of
its line.

Whatever promises something to the outside is an effect of its own: `Acknowledge` (to a sensor: your
event is taken), `Emit` (to a subscriber: this was detected), `Reply` (to a client: this is
installed). A core without a journal has them carried out at once. One with a journal
(`broker.core.recovery.durable`) begins with `Append`, and these three, and `SendFrame` among
brokers, tell `after` which record of the journal they have to wait for: whoever carries effects out
holds them back, in order, until that record is on disk. So does `Enlist`, which keeps the catalogue
on disk in step. `Publish` and `Note` promise nothing and need not wait.

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
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from broker.network.effects import Level, Note, SendFrame
from broker.network.overlay.calls import CallArrived

Outcome = Literal["taken", "refused", "no_such_topic"]


class Append(Struct, frozen=True):
    """Append a record to the journal; numbers are consecutive, and nothing else gets them."""

    number: int
    data: bytes


class Acknowledge(Struct, frozen=True):
    """Answer the publishers who wait: what they sent is taken, or refused for good.

    `after` is the number of the record to wait for, here and below; 0: nothing to wait for.
    `reasons` are one for each token, "" for those who asked for none; empty: nobody asked.
    """

    tokens: tuple[Any, ...]
    outcome: Outcome = "taken"
    after: int = 0
    reasons: tuple[str, ...] = ()


class Publication(Struct, frozen=True):
    """One message: its topic below the prefix; an empty `payload` with `retain` takes it away."""

    topic: str
    payload: bytes
    retain: bool = False
    qos: int = 1


class Publish(Struct, frozen=True):
    """Publish what concerns nobody in particular, in order."""

    publications: tuple[Publication, ...]


class Emission(Struct, frozen=True):
    """One result, encoded as JSON, and whose it is.

    `id` and `end_ms`, when what was detected ended, stand in the payload, too. `offset` is its
    place in the outbox: ascending by one from 0, and the same if what the journal holds is handled
    again. Below 0: there is no outbox.

    `is_silent`: for the readers of the outbox alone, as another broker has published it. Without a
    payload it is void: it keeps its place in the order, and nobody gets it.
    """

    id: str
    end_ms: int
    subscriber: str
    subscription: str
    actor: str
    payload: bytes
    offset: int = -1
    is_silent: bool = False


class Emit(Struct, frozen=True):
    """Give results to their subscribers and actors, in order."""

    results: tuple[Emission, ...]
    after: int = 0


class Reply(Struct, frozen=True):
    """Answer a request; `payload` is JSON. After one that is not `final` another follows."""

    reply_to: Any
    client: str
    request: str
    payload: bytes
    final: bool = True
    after: int = 0


class Entry(Struct, frozen=True):
    """A subscription as the catalogue on disk has it; `text` is what it came with, as a whole.

    `client` submitted it, `proven` if by a password or certificate; `since` is when, in ms.
    """

    subscriber: str
    subscription: str
    seq: int
    actor: str
    client: str
    proven: bool
    since: int
    text: str

    @property
    def key(self) -> tuple[str, str]:
        """(subscriber, subscription), which is unique."""
        return (self.subscriber, self.subscription)


class Enlist(Struct, frozen=True):
    """Have the catalogue on disk hold these, in the place of any of their name, and not those.

    To be done in one transaction; replies that come behind it wait for that.
    """

    coming: tuple[Entry, ...]
    leaving: tuple[tuple[str, str], ...]
    after: int = 0


class ReleaseResults(Struct, frozen=True):
    """Let results before the offset `upto` go, which waited for a stand-in to have them."""

    upto: int


class DisownResults(Struct, frozen=True):
    """Give out no results of these subscriptions that wait for a stand-in: it took them over.

    Those before the offset `upto` are for the log alone, as the stand-in has them in its log, too.
    The others are void: it has no word of them, and finds them again.
    """

    keys: tuple[tuple[str, str], ...]
    upto: int


Effect: TypeAlias = (
    Append
    | Acknowledge
    | Publish
    | Emit
    | Reply
    | Enlist
    | SendFrame
    | ReleaseResults
    | DisownResults
    | CallArrived
    | Note
)


def disowned(results: tuple[Emission, ...], by: DisownResults) -> tuple[Emission, ...]:
    """Return results, with those of subscriptions that were taken over as silent or void."""
    keys = dict.fromkeys(by.keys)
    return tuple(
        [
            each
            if (each.subscriber, each.subscription) not in keys
            else replace(each, is_silent=True)
            if each.offset < by.upto
            else replace(each, payload=b"")
            for each in results
        ]
    )


class Outgoing:
    """Gather by kind what leaves a broker on behalf of one message; nothing leaves twice."""

    __slots__ = ("_reasons", "_tokens", "publications", "replies", "results")

    def __init__(self) -> None:
        self.publications: list[Publication] = []
        self.results: list[Emission] = []
        self.replies: list[Reply] = []
        self._tokens: dict[Outcome, list[Any]] = {}
        self._reasons: dict[Outcome, list[str]] = {}

    def acknowledge(self, token: Any, outcome: Outcome = "taken", reason: str = "") -> None:
        """Answer a publisher, if one waits; `reason` is for one who asked for it."""
        if token is not None:
            self._tokens.setdefault(outcome, []).append(token)
            self._reasons.setdefault(outcome, []).append(reason)

    def effects(self) -> list[Effect]:
        """All of it: late, rejected and retained messages, results, replies, acknowledgements."""
        found: list[Effect] = []
        if self.publications:
            found.append(Publish(tuple(self.publications)))
        if self.results:
            found.append(Emit(tuple(self.results)))
        if self.replies:
            found += self.replies
        for outcome, tokens in self._tokens.items():
            reasons = tuple(self._reasons[outcome])
            found.append(Acknowledge(tuple(tokens), outcome, 0, reasons if any(reasons) else ()))
        return found


CAUSES_MAX = 200  # of one event; a log with more complaints is read by nobody; counters go on
FIELD_CHARS_MAX = 300  # a line is read by people


class Notes:
    """Log lines until they are taken: one for each distinct cause, however often it comes.

    Of each event so many causes are told; further ones are only counted (`untold`).
    """

    def __init__(self) -> None:
        self.untold = 0
        self._told: dict[str, set[str]] = {}
        self._lines: list[Note] = []

    @property
    def waiting(self) -> bool:
        """Tell whether there is any line to take."""
        return bool(self._lines)

    def tell(self, level: Level, event: str, /, **fields: str | int) -> None:
        """A line, always: for what happens rarely and on request."""
        cut = {
            name: value[:FIELD_CHARS_MAX] if isinstance(value, str) else value
            for name, value in fields.items()
        }
        self._lines.append(Note(level, event, cut))

    def once(self, level: Level, event: str, cause: str, /, **fields: str | int) -> None:
        """A line the first time that the cause comes; the counters tell how often it came."""
        told = self._told.setdefault(event, set())
        if cause in told:
            return
        if len(told) >= CAUSES_MAX:
            self.untold += 1
            return
        told.add(cause)
        self.tell(level, event, **fields)

    def take(self) -> list[Note]:
        """The lines since the last call."""
        lines, self._lines = self._lines, []
        return lines


# --- the gate ---------------------------------------------------------------------------------

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

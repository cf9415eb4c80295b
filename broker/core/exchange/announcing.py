"""First events of a type: what they wait for is that all others have said whether they want it.

Owns what waits. Must not know what others need, or how they are asked. Invariant: what comes of one
source leaves in the order in which it came; nothing that waits is acknowledged.

A host asks an origin for the types that are sent there. Of one that is new it hears by the first
event, or by an advertisement just before, and would ask too late for that one. So the type is told
at once, and a probe asks behind that whether all have heard; the event is taken when they have
answered. Where further types come meanwhile, these wait together for the next probe: nothing waits
for more than two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import cast

from msgspec import Struct, field

from broker.core.messages import (
    EventsReceived,
    Message,
    NetworkTold,
    Payload,
    SourceAdvertised,
    SourceWithdrawn,
)
from broker.engine.limits import Limits
from broker.network.frames.messages import FromNetwork
from broker.network.frames.told import SourceShown, TypesAnswered
from broker.network.replication.incarnation import Incarnation
from broker.network.replication.local_sources import LocalSources


class _Batch(Struct):
    """Types that are asked for by one probe, and what waits for the answers."""

    since: int
    number: int | None = None  # of the probe, once it is asked
    over: bool = False
    types: dict[str, None] = field(default_factory=dict)
    sources: dict[str, None] = field(default_factory=dict)
    words: deque[Payload | SourceAdvertised | SourceWithdrawn] = field(default_factory=deque)


class Announcing:
    """Hold first events of a type back until all others have said whether they want it.

    Nothing is taken while the process is not settled (`incarnation`).
    """

    def __init__(self, limits: Limits, incarnation: Incarnation) -> None:
        self._overflowed = 0  # types that were taken before all had answered: too much waited,
        self._unanswered = 0  # or it took too long
        self._words_max = limits.first_events_max
        self._wait_ms_max = limits.first_events_wait_ms_max
        self._incarnation = incarnation
        self.batches: deque[_Batch] = deque()  # that of the probe under way, and the next

    @property
    def waiting(self) -> int:
        """Count the words of sources that wait."""
        return sum(len(batch.words) for batch in self.batches)

    def counts(self) -> dict[str, int]:
        """Return what was counted, by name: types whose events were taken all the same."""
        return {
            "first_events_overflow": self._overflowed,
            "first_events_unanswered": self._unanswered,
        }

    @property
    def due(self) -> int | None:
        """Tell when what waits is taken at the latest."""
        if not self.batches or not self._incarnation.is_settled:
            return None
        return self.batches[0].since + self._wait_ms_max

    # --- what comes ------------------------------------------------------------------------

    def pass_on(
        self, message: Message | FromNetwork, sources: LocalSources, now: int
    ) -> list[Message | FromNetwork]:
        """Keep what has to wait; return what is to be handled now."""
        # Of several that waited for a settlement the first may have been an advertisement.
        if sources.unanswered:
            self.look(sources.unanswered, now)
        if isinstance(message, EventsReceived):
            return [*self._sift(message, sources, now)]
        if isinstance(message, SourceAdvertised | SourceWithdrawn):
            batch = self._batch_of(message.source)
            if batch is not None:
                batch.words.append(message)
                return []
        return [message]

    def _sift(self, message: EventsReceived, sources: LocalSources, now: int) -> list[Message]:
        payloads, senders = message.payloads, sources.senders
        if not self.batches and all(each.type_name in senders for each in payloads):
            return [message]
        passed: list[Payload] = []
        shown: list[Message] = []
        for each in payloads:
            batch = self._batch_of(each.source, each.type_name)
            if each.type_name not in senders and not self._concerns_type(each.type_name):
                batch = self._open(now)
                batch.types[each.type_name] = None
                shown.append(NetworkTold(SourceShown(each.source, each.type_name)))
            if batch is None:
                passed.append(each)
            else:
                batch.sources[each.source] = None
                batch.words.append(each)
        return [*shown, EventsReceived(tuple(passed))] if passed else shown

    def look(self, types: Iterable[str], now: int) -> None:
        """Take up types that others are told of and have not answered yet."""
        for name in types:
            if not self._concerns_type(name):
                self._open(now).types[name] = None

    def _batch_of(self, source: str, type_name: str | None = None) -> _Batch | None:
        """The last one that has something of the source or the type."""
        for batch in reversed(self.batches):
            if source in batch.sources or type_name in batch.types:
                return batch
        return None

    def _concerns_type(self, type_name: str) -> bool:
        return any(type_name in batch.types and not batch.over for batch in self.batches)

    def _open(self, now: int) -> _Batch:
        """The one whose probe is not asked yet."""
        if not self.batches or self.batches[-1].number is not None:
            self.batches.append(_Batch(now))
        return self.batches[-1]

    # --- what leaves -----------------------------------------------------------------------

    def ask(self, begin: Callable[[], int]) -> None:
        """Begin a probe where one is to begin; `begin` returns its number."""
        if self.batches and self.batches[0].number is None:
            self.batches[0].number = begin()

    def take(self, answered: int, now: int) -> Message | None:
        """Return what is to be handled next of what waited, as probes up to `answered` are."""
        if not self.batches or self.batches[0].number is None:
            return None
        if not self._incarnation.is_settled:
            return None  # it would be held behind what came after it
        batch = self.batches[0]
        if not batch.over:
            if batch.number is not None and answered < batch.number:
                if self.waiting >= self._words_max:
                    self._overflowed += len(batch.types)
                elif now >= batch.since + self._wait_ms_max:
                    self._unanswered += len(batch.types)
                else:
                    return None
            batch.over = True
            return NetworkTold(TypesAnswered(tuple(batch.types)))
        if not batch.words:
            self.batches.popleft()
            return self.take(answered, now)
        payloads: list[Payload] = []
        while batch.words:
            word = batch.words[0]
            if not isinstance(word, Payload):
                break
            payloads.append(word)
            batch.words.popleft()
        if payloads:
            return EventsReceived(tuple(payloads))
        return cast("Message", batch.words.popleft())

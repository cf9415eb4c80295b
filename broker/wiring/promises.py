"""What the broker promises waits here until it may be said.

Owns the line of effects that wait for the journal, and then for the outbox. Must not know what they
mean, how a record is written or a result stored. Invariant: nothing that is promised is carried out
before the records that it rests on are durable, and no result before it is stored; all are carried
out in the order in which they came.

    Acknowledge, Reply    once the journal has the record of their message
    Enlist                then into the catalogue; replies behind it wait for that, too
    Emit                  likewise into the outbox, all that became durable together in one
                          transaction; and from there to subscribers
    Publish, Note         at once

What waits is bounded: above a maximum intake is held until half of it is left.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

from broker.core.effects import Acknowledge, Append, Emission, Emit, Enlist, Reply
from broker.journal import Journal
from broker.wiring.gate import Gate
from broker.wiring.runner import Outside

WAITING_BYTES_MAX = 16 * 2**20  # some seconds of what a small machine takes in

logger = logging.getLogger(__name__)

Promised: TypeAlias = Acknowledge | Reply | Emit | Enlist
Done: TypeAlias = Callable[[BaseException | None], None]


class Outbox(Protocol):
    """Where results and subscriptions are stored."""

    def append(self, results: Sequence[Emission], done: Done) -> None:
        """Store results behind all before them; `done` once they are durable, in order."""

    def enlist(self, effect: Enlist, done: Done) -> None:
        """Store which subscriptions there are; `done` once that is durable, in order."""

    def full(self) -> bool:
        """Whether more waits to be stored than should."""


class Promises:
    """See `broker.wiring.runner.Outside`; `begin` comes before anything is appended."""

    def __init__(
        self,
        inner: Outside,
        outbox: Outbox,
        gate: Gate,
        waiting_bytes_max: int = WAITING_BYTES_MAX,
    ) -> None:
        self.publish = inner.publish
        self.note = inner.note
        self.fail = inner.fail
        self.hold = inner.hold
        self.faults = 0
        # What a core with a journal wants besides what any core does.
        self.kept: dict[type[Any], Callable[[Any], None]] = {
            Append: self.append,
            Enlist: self.enlist,
        }
        self._inner = inner
        self._outbox = outbox
        self._gate = gate
        self.waiting_bytes_max = waiting_bytes_max
        self._waiting: deque[tuple[int, Promised | asyncio.Future[None]]] = deque()
        self._listing = 0  # changes of the catalogue that are not durable
        self._journal: Journal

    def begin(self, journal: Journal) -> None:
        """Wait for this journal, which calls `durable` and `trouble`."""
        self._journal = journal

    def __len__(self) -> int:
        return len(self._waiting)

    # --- what the core wants ------------------------------------------------------------------

    def append(self, effect: Append) -> None:
        """A record for the journal."""
        self._journal.append(effect.number, effect.data)
        if self._journal.waiting_bytes > self.waiting_bytes_max:
            self._gate.shut("journal behind")

    def acknowledge(self, effect: Acknowledge) -> None:
        """When the journal has it."""
        self._promise(effect.after, effect)

    def reply(self, effect: Reply) -> None:
        """When the journal has it."""
        self._promise(effect.after, effect)

    def emit(self, effect: Emit) -> None:
        """When the journal has it, and then the outbox."""
        self._promise(effect.after, effect)

    def enlist(self, effect: Enlist) -> None:
        """When the journal has it, into the catalogue."""
        self._promise(effect.after, effect)

    def settled(self, number: int) -> "asyncio.Future[None]":
        """Done once all that was promised so far, up to this record, is durable and stored."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._promise(number, future)
        return future

    # --- what the journal tells ---------------------------------------------------------------

    def durable(self, number: int) -> None:
        """All records up to the number are durable."""
        waiting = self._waiting
        ready = []
        while waiting and waiting[0][0] <= number:
            ready.append(waiting.popleft()[1])
        self._go_on(ready)
        if self._journal.waiting_bytes <= self.waiting_bytes_max // 2:
            self._gate.open("journal behind")

    def trouble(self, why: str) -> None:
        """The journal cannot be written, or can again."""
        self._gate.put("journal", why)

    # --- carrying out -------------------------------------------------------------------------

    def _promise(self, after: int, promised: "Promised | asyncio.Future[None]") -> None:
        if after <= self._journal.durable and not self._waiting:
            self._go_on([promised])
        else:
            self._waiting.append((after, promised))

    def _go_on(self, ready: "list[Promised | asyncio.Future[None]]") -> None:
        results: list[Emission] = []
        for one in ready:
            if isinstance(one, Emit):
                results += one.results
            elif isinstance(one, Acknowledge):
                self._guarded(self._inner.acknowledge, one)
            elif isinstance(one, Reply) and not self._listing:
                self._guarded(self._inner.reply, one)
            else:
                self._store(results)
                results = []
                self._behind(one)
        self._store(results)

    def _behind(self, one: "Reply | Enlist | asyncio.Future[None]") -> None:
        """What has its turn when all that was stored before is durable."""
        if isinstance(one, Enlist):
            self._listing += 1
            self._outbox.enlist(one, self._listed)
        elif isinstance(one, Reply):
            self._outbox.append((), lambda _: self._guarded(self._inner.reply, one))
        else:
            self._outbox.append((), partial(_settle, one))

    def _listed(self, error: BaseException | None) -> None:
        self._listing -= 1
        if error is not None:  # not the disk: the journal has it, the next start tries again
            self.faults += 1
            logger.error("the catalogue cannot be brought up to date", exc_info=error)

    def _store(self, results: list[Emission]) -> None:
        if results:
            self._outbox.append(results, partial(self._stored, results))
            if self._outbox.full():
                self._gate.shut("outbox behind")

    def _stored(self, results: list[Emission], error: BaseException | None) -> None:
        if error is None:
            self._guarded(self._inner.emit, Emit(tuple(results)))
            return
        # Not the disk: that is tried again. What cannot be stored at all must not be passed over.
        self.faults += 1
        logger.error("results cannot be stored", exc_info=error)
        self._gate.shut("outbox", f"results cannot be stored: {error}")

    def room(self) -> None:
        """The outbox takes more again."""
        self._gate.open("outbox behind")

    def _guarded(self, carry: Callable[[Any], None], effect: Any) -> None:
        """One effect that fails stops no other."""
        try:
            carry(effect)
        except Exception:
            self.faults += 1
            logger.exception("an effect failed: %s", type(effect).__name__)


def _settle(future: "asyncio.Future[None]", error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)

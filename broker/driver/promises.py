"""What the broker promises is carried out when the commit gate lets it go.

Owns what becomes of it behind the gate: results go into the outbox, and from there to subscribers;
and the reasons for which intake is held meanwhile. Must not know what waits for what
(`broker.core.effects`), how a record is written, or tables. Invariant: no result is given out
before it is stored; all are carried out in the order in which the gate lets them go.

    Acknowledge, Reply,   are carried out
    SendFrame
    Enlist                goes into the catalogue; the gate hears when it is stored
    Emit                  likewise into the outbox, all that became durable together in one
                          transaction; and from there to subscribers
    ReleaseResults,       move the fence at which results wait for a stand-in
    DisownResults
    CommitMark            is reached when all before it is stored
    Publish, Note         never waited

What waits is bounded: above a maximum intake is held until half of it is left.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from itertools import starmap
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from broker import logs
from broker.core.effects import (
    Acknowledge,
    Append,
    CommitGate,
    CommitMark,
    DisownResults,
    Emission,
    Emit,
    Enlist,
    Held,
    ReleaseResults,
    Reply,
)
from broker.core.effects import Entry as Listed
from broker.driver.runner import Outside
from broker.journal import Journal
from broker.network.effects import SendFrame
from broker.store import CatalogueEntry, Outbox, Row, Store, StoredCatalogue

if TYPE_CHECKING:
    from broker.driver.snapshots import Snapshots


class IntakeGate:
    """Hold intake exactly while there is a reason; `hold` and `release` are called in turns.

    What is told of a reason is told when it begins, when it becomes another, and when it ends.
    """

    def __init__(self, hold: Callable[[], None], release: Callable[[], None]) -> None:
        self._hold = hold
        self._release = release
        self._shut: dict[str, str] = {}

    def shut(self, name: str, why: str = "") -> None:
        """Hold intake for a reason of this name; without a sentence, as happens under load."""
        before = self._shut.get(name)
        first = not self._shut
        self._shut[name] = why
        if why and why != before:
            logs.tell("error", "held", by=name, reason=why)
        if first:
            self._hold()

    def open(self, name: str) -> None:
        """The reason is gone, if it was there."""
        why = self._shut.pop(name, None)
        if why:
            logs.tell("info", "held_no_more", by=name)
        if why is not None and not self._shut:
            self._release()

    def put(self, name: str, why: str) -> None:
        """Shut with a sentence, open with an empty text."""
        if why:
            self.shut(name, why)
        else:
            self.open(name)

    @property
    def is_shut(self) -> bool:
        """Tell whether there is any reason."""
        return bool(self._shut)

    def reasons(self) -> list[str]:
        """The sentences, in the order in which they came."""
        return [why for why in self._shut.values() if why]


_columns = attrgetter("offset", "id", "subscription", "subscriber", "actor", "end_ms", "payload")


class StoredOutbox:
    """Make rows of results and subscriptions, and store them in the order given."""

    def __init__(self, store: Store, outbox: Outbox, now_ms: Callable[[], int]) -> None:
        self.full = store.full
        self._outbox = outbox
        self._catalogue = StoredCatalogue(store)
        self._now_ms = now_ms

    def append(
        self, results: Sequence[Emission], done: Callable[[BaseException | None], None]
    ) -> None:
        """One piece of work for all of them."""
        rows = list(starmap(Row, map(_columns, results)))
        self._outbox.append(rows, self._now_ms(), done)

    def enlist(self, effect: Enlist, done: Callable[[BaseException | None], None]) -> None:
        """One piece of work, too."""
        coming = [_row(entry) for entry in effect.coming]
        self._catalogue.change(coming, effect.leaving, done)


async def listed(store: Store) -> list[Listed]:
    """Return what the catalogue lists, in order. Raises StoreError."""
    entries = await StoredCatalogue(store).all()
    return [
        Listed(
            entry.subscriber,
            entry.subscription,
            entry.seq,
            entry.actor,
            entry.client,
            entry.proven,
            entry.installed_ms,
            entry.text,
        )
        for entry in entries
    ]


def _row(one: Listed) -> CatalogueEntry:
    return CatalogueEntry(
        one.subscriber,
        one.subscription,
        one.seq,
        one.actor,
        one.client,
        one.proven,
        one.since,
        one.text,
    )


WAITING_BYTES_MAX = 16 * 2**20  # some seconds of what a small machine takes in

logger = logging.getLogger(__name__)

Done: TypeAlias = Callable[[BaseException | None], None]


class Promises:
    """Keep promises, as `broker.driver.runner.Outside` asks for; `begin` comes first."""

    def __init__(
        self,
        inner: Outside,
        outbox: StoredOutbox,
        gate: IntakeGate,
        waiting_bytes_max: int = WAITING_BYTES_MAX,
    ) -> None:
        self.publish = inner.publish
        self.note = inner.note
        self.fail = inner.fail
        self.hold = inner.hold
        self.acknowledge = self.reply = self.emit = self.enlist = self._promise
        self.faults = 0
        self.commits = CommitGate()
        # What a core with a journal wants besides what any core does.
        self.kept: dict[type[Any], Callable[[Any], None]] = {
            Append: self.append,
            Enlist: self.enlist,
            SendFrame: self._promise,
            ReleaseResults: self._move_fence,
            DisownResults: self._move_fence,
        }
        self.send: Callable[[SendFrame], None]  # of a broker with links
        # What is carried out at once when the gate lets it go.
        self._carriers: dict[type[Any], Callable[[Any], None]] = {
            Acknowledge: inner.acknowledge,
            Reply: inner.reply,
            SendFrame: self._send,
        }
        self.delivered: Callable[[int], None] | None = None  # of a broker with links, too
        self.on_durable: Callable[[int], None] | None = None  # told after promises are kept
        self.snapshots: Snapshots | None = None  # which look when the journal has grown so far
        self.stand_in: Callable[[], str] = str  # the name of the one that results wait for
        self._inner = inner
        self._outbox = outbox
        self._gate = gate
        self._is_behind = False  # intake is held for the journal
        self.waiting_bytes_max = waiting_bytes_max
        self._journal: Journal

    def begin(self, journal: Journal) -> None:
        """Wait for this journal, which calls `durable` and `trouble`."""
        self._journal = journal
        self.commits.durable = journal.durable

    def __len__(self) -> int:
        return len(self.commits)

    # --- what the core wants ------------------------------------------------------------------

    def append(self, effect: Append) -> None:
        """A record for the journal."""
        self._journal.append(effect.number, effect.data)
        snapshots = self.snapshots
        if snapshots is not None and self._journal.appended_bytes >= snapshots.full_bytes:
            snapshots.look()
        if self._journal.waiting_bytes > self.waiting_bytes_max:
            self._is_behind = True
            self._gate.shut("journal behind")

    def settled(self, number: int) -> "asyncio.Future[None]":
        """Done once all that was promised so far, up to this record, is durable and stored."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._promise(CommitMark(number, future))
        return future

    # --- what the journal tells ---------------------------------------------------------------

    def durable(self, number: int) -> None:
        """All records up to the number are durable."""
        self._go_on(self.commits.commit(number))
        if self._is_behind and self._journal.waiting_bytes <= self.waiting_bytes_max // 2:
            self._is_behind = False
            self._gate.open("journal behind")
        if self.on_durable is not None:
            self.on_durable(number)
        snapshots = self.snapshots
        if snapshots is not None and self._journal.appended_bytes >= snapshots.next_look_bytes:
            snapshots.look()

    def trouble(self, why: str) -> None:
        """The journal cannot be written, or can again."""
        self._gate.put("journal", why)

    # --- carrying out -------------------------------------------------------------------------

    def _promise(self, promised: Held) -> None:
        released = self.commits.put(promised)
        if released or self.commits.fenced_bytes:
            self._go_on(released)

    def _move_fence(self, to: ReleaseResults | DisownResults) -> None:
        self._go_on(self.commits.move_fence(to))
        if self.commits.fenced_bytes <= self.waiting_bytes_max // 2:
            self._gate.open("stand-in behind")

    def _go_on(self, released: Sequence[Held]) -> None:
        if self.commits.fenced_bytes > self.waiting_bytes_max:
            why = f"results wait for the answer of the stand-in `{self.stand_in()}`"
            self._gate.shut("stand-in behind", why)
        results: list[Emission] = []
        for effect in released:
            if isinstance(effect, Emit):
                results += effect.results
                continue
            if carry := self._carriers.get(type(effect)):
                self._guarded(carry, effect)
                continue
            if results:
                self._store(results)
                results = []
            self._behind(effect)
        if results:
            self._store(results)

    def _send(self, frame: SendFrame) -> None:
        self.send(frame)

    def _behind(self, one: Held) -> None:
        """Store what has its turn when all before it is durable."""
        if isinstance(one, Enlist):
            self._outbox.enlist(one, self._listed)
        elif isinstance(one, CommitMark):
            self._outbox.append((), partial(_settle, one.token))

    def _listed(self, error: BaseException | None) -> None:
        if error is not None:  # not the disk: the journal has it, the next start tries again
            self.faults += 1
            logger.error("the catalogue cannot be brought up to date", exc_info=error)
        self._go_on(self.commits.listed())

    def _store(self, results: list[Emission]) -> None:
        self._outbox.append(results, partial(self._stored, results))
        if self._outbox.full():
            self._gate.shut("outbox behind")

    def _stored(self, results: list[Emission], error: BaseException | None) -> None:
        if error is None:
            self._guarded(self._inner.emit, Emit(tuple(results)))
            if self.delivered is not None:
                self.delivered(results[-1].offset + 1)
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

"""The outbox: results under ascending offsets, kept until their consumers have them.

Owns what the loop knows of the log, and the way to it. Must not know the core, HTTP or statements.
Invariant: what it tells as there is durable; `end` moves only after the commit.

How a driver uses it:

    store = Store.open(url, parts=[RESULTS, …])
    outbox = await Outbox.open(store)
    … recover the core with outbox.end: results before it are here already …
    outbox.append(rows, now_ms, done)    # for each Emit, in order, once its record is durable

`done` is called in the loop's thread when the rows are durable: then, and not before, they may be
published. While `store.full()` the driver takes no more events in, and begins again when
`store.on_room` is called. What is appended twice is stored once: rows before `end` are passed over.
`outbox.keep_from` tells the offset from which the driver itself still needs everything,
`outbox.inherited` whose results before an offset are those of a lost home, and
`outbox.promised` up to when all results are there, of the subscriptions named, or of all.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from broker.store.errors import StoreError
from broker.store.results import ROW_BYTES, Consumer, Retention, Row, Settled, Standing, Taken
from broker.store.store import Done

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from broker.store.store import Store

# Retention is looked at after so many rows, so many bytes, or so much time, whichever is first.
LOOK_ROWS: Final = 1000
LOOK_BYTES: Final = 16 * 2**20
LOOK_MS: Final = 60_000

logger = logging.getLogger("headwater.store")

_payload = attrgetter("payload")


class Outbox:
    """The log of one open store. All methods belong to the loop's thread; see `open`."""

    def __init__(self, store: Store, log: Standing, retention: Retention) -> None:
        from broker.store import keeping
        from broker.store import log as statements

        self.epoch = log.epoch
        self.earliest = log.earliest
        self.end = log.end
        self.keep_from: Callable[[], int | None] = lambda: None
        self.promised: Callable[[frozenset[str], bool], Awaitable[Settled | None]] = _nothing
        self.on_read: Callable[[int | None], None] | None = None  # see `least_read`
        self.inherited: Callable[[int], Sequence[dict[str, object]]] = lambda _end: ()
        self.repeats = 0
        self.taken = log.taken
        self.unread = log.unread
        self._store = store
        self._retention = retention
        self._log = statements
        self._keeping = keeping
        self._moved = asyncio.Event()
        self._looked_ms = 0
        self._looked_end = log.end
        self._unlooked_bytes = 0
        self._looking = False
        self._noting: asyncio.Future[None] | None = None  # held, as nobody else does

    @classmethod
    async def open(
        cls,
        store: Store,
        retention: Retention | None = None,
        now_ms: Callable[[], int] | None = None,
    ) -> Outbox:
        """The outbox of a store that was opened with the part RESULTS. Raises StoreError.

        With a clock, results also grow old while none are added.
        """
        from broker.store import log as statements

        outbox = cls(store, await store.read(statements.standing), retention or Retention())
        if now_ms is not None:
            outbox.look_from_time_to_time(now_ms)
        return outbox

    def renew(self) -> None:
        """Begin another epoch: the disk went back, and readers hold offsets beyond its end."""
        epoch = self.epoch = secrets.token_hex(8)
        self._store.submit(lambda connection: self._log.renew(connection, epoch))

    def append(self, rows: Sequence[Row], now_ms: int, done: Done | None = None) -> None:
        """Put rows behind the end, in order; `done` is told when they are durable.

        Offsets ascend within the rows and from call to call. `done` gets a StoreError where an
        offset that is there already holds another result: then nothing of these rows is stored.
        Without rows, `done` is told once all that was appended before is durable.
        """
        end = rows[-1].offset + 1 if rows else 0
        repeats = 0

        def work(connection: Connection) -> None:
            nonlocal repeats
            repeats = self._log.append(connection, rows, now_ms)

        def stored(error: BaseException | None) -> None:
            if error is None:
                self.repeats += repeats
                self._move(end)
            if done is not None:
                done(error)

        size = sum(map(len, map(_payload, rows))) + ROW_BYTES * len(rows)
        self._store.submit(work, stored, size)
        self._unlooked_bytes += size
        due = end - self._looked_end >= LOOK_ROWS or self._unlooked_bytes >= LOOK_BYTES
        if due or now_ms - self._looked_ms >= LOOK_MS:
            self.retain(now_ms)

    def look_from_time_to_time(self, now_ms: Callable[[], int]) -> None:
        """Remove what need not be kept now, and every minute until the store is closed."""
        if self._store.closed:
            return
        self.retain(now_ms())
        loop = asyncio.get_running_loop()
        loop.call_later(LOOK_MS / 1000, self.look_from_time_to_time, now_ms)

    def retain(self, now_ms: int) -> None:
        """Remove what need not be kept; `append` sees to it as well, from time to time."""
        self._looked_ms, self._looked_end, self._unlooked_bytes = now_ms, self.end, 0
        if self._looking or self._store.closed:
            return
        self._looking = True
        keep_from = self.keep_from()  # as of now: the writing thread comes later
        outcome: Taken | None = None

        def work(connection: Connection) -> None:
            nonlocal outcome
            outcome = self._keeping.retain(connection, self._retention, now_ms, keep_from)

        def done(error: BaseException | None) -> None:
            self._looking = False
            if error is not None or outcome is None:
                logger.error("retention failed", exc_info=error)
                return
            self._take(outcome)
            if outcome.more:
                self.retain(now_ms)

        self._store.submit(work, done)

    def _take(self, outcome: Taken) -> None:
        self.earliest = outcome.earliest
        self.taken += outcome.rows
        self.unread += outcome.unread
        for consumer in outcome.lapsed:
            logger.warning(
                "consumer %s missed results: offsets %d to %d are gone, %d results in all",
                consumer.name,
                consumer.gap_begin,
                consumer.gap_end - 1,
                consumer.missed,
            )
        if outcome.lapsed and self.on_read is not None:
            self._noting = asyncio.ensure_future(self._note_moved())

    def _move(self, end: int) -> None:
        if end > self.end:
            self.end = end
            self._moved.set()
            self._moved = asyncio.Event()

    def counts(self) -> dict[str, int]:
        """Count what became of results: since ever, but for repeats, which are since the start."""
        return {"taken": self.taken, "unread": self.unread, "repeated": self.repeats}

    async def beyond(self, after: int) -> None:
        """Wait until the log ends elsewhere than at `after`; whoever waits sets a bound."""
        while self.end == after:
            await self._moved.wait()

    async def settled(self, names: frozenset[str], *, fresh: bool = True) -> Settled | None:
        """Up to when all results of these subscriptions are there, as of now; or of all.

        What it tells is true of the log from its `end` of then on. Not `fresh`, it is what was told
        last, and nobody waits for a disk. None: that cannot be told.
        """
        return await self.promised(names, fresh)

    async def read(self, begin: int, end: int, bytes_max: int | None = None) -> list[Row]:
        """The rows of begin <= offset < end, for ever the same.

        Raises GoneError, NotYetError, and TooLargeError where the payloads are more than
        `bytes_max`.
        """
        return await self._store.read(lambda one: self._log.read(one, begin, end, bytes_max))

    async def ts_at(self, offset: int) -> int | None:
        """The latest end of all results up to and with this offset, in ms.

        Raises GoneError, NotYetError.
        """
        return await self._store.read(lambda one: self._log.ts_at(one, offset))

    async def first_offset_after(self, ts_ms: int) -> int:
        """The first offset whose result ends after this time; the end where there is none yet."""
        return await self._store.read(lambda one: self._log.first_offset_after(one, ts_ms))

    async def earliest_end(self, offset: int, after_ms: int) -> int | None:
        """Of the results from this offset on that end after this time, the earliest end, in ms.

        None where there is none. Raises GoneError, NotYetError.
        """
        return await self._store.read(lambda one: self._log.earliest_end(one, offset, after_ms))

    async def acknowledge(self, consumer: str, offset: int, now_ms: int) -> Consumer:
        """A consumer has everything before this offset; durable on return.

        Raises NotYetError, ConsumersFullError.
        """
        acked: Consumer = await self._store.change(
            lambda one: self._keeping.acknowledge(one, consumer, offset, now_ms)
        )
        await self._note_read()
        return acked

    async def consumers(self) -> list[Consumer]:
        """Return who reads, and how far each has come; by name."""
        return await self._store.read(self._keeping.consumers)

    async def forget(self, consumer: str) -> bool:
        """Keep nothing for this consumer any more; whether there was one of that name."""
        is_known: bool = await self._store.change(lambda one: self._keeping.forget(one, consumer))
        await self._note_read()
        return is_known

    async def least_read(self) -> int | None:
        """Return the offset before which every consumer has everything; None: there is none."""
        return min([consumer.offset for consumer in await self.consumers()], default=None)

    async def _note_moved(self) -> None:
        """Tell how far readers are that retention has moved; else the next acknowledgement does."""
        with suppress(StoreError):
            await self._note_read()

    async def _note_read(self) -> None:
        if self.on_read is not None:
            self.on_read(await self.least_read())


async def _nothing(_names: frozenset[str], _fresh: bool) -> Settled | None:
    """Whoever drives it has not said that it can tell."""
    return None

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
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from broker.store.results import ROW_BYTES, Row, Standing
from broker.store.writer import Done

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from broker.store.store import Store

WAIT_S_MAX: Final = 60.0  # proxies take longer silence for a dead connection


class Outbox:
    """The log of one open store. All methods belong to the loop's thread; see `open`."""

    def __init__(self, store: Store, log: Standing) -> None:
        from broker.store import log as statements

        self.epoch = log.epoch
        self.earliest = log.earliest
        self.end = log.end
        self.repeats = 0
        self._store = store
        self._statements = statements
        self._moved = asyncio.Event()

    @classmethod
    async def open(cls, store: Store) -> Outbox:
        """The outbox of a store that was opened with the part RESULTS. Raises StoreError."""
        from broker.store import log as statements

        return cls(store, await store.read(statements.standing))

    def append(self, rows: Sequence[Row], now_ms: int, done: Done | None = None) -> None:
        """Put rows behind the end, in order; `done` is told when they are durable.

        Offsets ascend within the rows and from call to call. `done` gets a StoreError where an
        offset that is there already holds another result: then nothing of these rows is stored.
        """
        if not rows:
            raise ValueError("no rows to append")
        end = rows[-1].offset + 1
        repeats = 0

        def work(connection: Connection) -> None:
            nonlocal repeats
            repeats = self._statements.append(connection, rows, now_ms)

        def stored(error: BaseException | None) -> None:
            if error is None:
                self.repeats += repeats
                self._move(end)
            if done is not None:
                done(error)

        size = sum(len(row.payload) for row in rows) + ROW_BYTES * len(rows)
        self._store.submit(work, stored, size)

    def _move(self, end: int) -> None:
        if end > self.end:
            self.end = end
            self._moved.set()
            self._moved = asyncio.Event()

    async def beyond(self, after: int, wait_s: float) -> None:
        """Wait until the log ends elsewhere than at `after`, for at most so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(wait_s, WAIT_S_MAX)):
                while self.end == after:
                    await self._moved.wait()

    async def read(self, begin: int, end: int) -> list[Row]:
        """The rows of begin <= offset < end, for ever the same. Raises GoneError, NotYetError."""
        return await self._store.read(lambda one: self._statements.read(one, begin, end))

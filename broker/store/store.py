"""A database behind one thread that writes and one that reads.

Owns opening, closing and the way between the event loop and the two threads. Must not know what is
stored. Invariant: the loop never waits for a disk, and whoever submitted work is told in the loop's
thread, in the order of submission, once the work is durable.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from broker.store.connecting import engine_of, held, parse
from broker.store.errors import StoreError, name_of, of_the_database
from broker.store.parts import Part, bring_up
from broker.store.writer import Done, Item, Reports, StoreWriter, Work

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection, Engine

T = TypeVar("T")

# What may wait for the disk before `full()` asks those who submit to hold back. A disk that syncs
# in 20 ms takes some hundred kilobytes at a time.
WAITING_BYTES_MAX: Final = 16 * 2**20
WAITING_ITEMS_MAX: Final = 50_000

logger = logging.getLogger("headwater.store")


class Store:
    """An open database. All methods belong to the loop's thread.

    `trouble` is a sentence while the database fails to take what waits, and else empty;
    `on_trouble` is called with it whenever it changes, and `on_room` when `full` has ended.
    """

    def __init__(
        self,
        url: URL,
        loop: asyncio.AbstractEventLoop,
        check: Callable[[], None],
        holding: contextlib.ExitStack,
    ) -> None:
        self.name = name_of(url)
        self.trouble = ""
        self.on_trouble: Callable[[str], None] | None = None
        self.on_room: Callable[[], None] | None = None
        self.waiting_items = 0
        self.waiting_bytes = 0
        self._loop = loop
        self._holding = holding
        self._closed = False
        self._ended: asyncio.Future[None] = loop.create_future()
        self._was_full = False
        self._reading: Connection | None = None
        self._readers: Engine = engine_of(url, writes=False)
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="headwater-store-read")
        self._writer = StoreWriter(
            engine_of(url, writes=True),
            self.name,
            check,
            Reports(
                lambda outcomes: self._later(self._reported, outcomes),
                lambda sentence: self._later(self._troubled, sentence),
                lambda: self._later(self._ended.set_result, None),
            ),
        )
        self._writer.start()

    @classmethod
    def open(
        cls,
        url: str,
        loop: asyncio.AbstractEventLoop | None = None,
        parts: Sequence[Part] = (),
    ) -> Store:
        """Make or migrate the tables of `parts` and begin to take work; blocks meanwhile.

        Raises StoreError with a sentence where the database cannot be written as it is.
        """
        loop = loop or asyncio.get_running_loop()
        parsed = parse(url)
        with contextlib.ExitStack() as holding:
            check = holding.enter_context(held(parsed))
            _prepare(parsed, parts)
            return cls(parsed, loop, check, holding.pop_all())

    @property
    def closed(self) -> bool:
        """Tell whether it takes nothing more."""
        return self._closed

    def submit(self, work: Work, done: Done | None = None, size_bytes: int = 0) -> None:
        """Have `work` carried out in the next transaction, and `done` told once it is durable.

        `done` gets nothing, or the error with which this piece of work failed; then it has changed
        nothing, and others of its transaction are as they would have been without it. `work` runs
        in another thread, must do nothing but change the database, must leave the transaction
        open, and may run more than once: a transaction that the database refuses is tried again.
        `size_bytes` is what it holds in memory, for `full`. Raises StoreError once the store is
        closed.
        """
        if self._closed:
            raise StoreError(f"{self.name} is closed")
        self.waiting_items += 1
        self.waiting_bytes += size_bytes
        self._writer.put(Item(work, done, size_bytes))

    def full(self) -> bool:
        """Tell whether more waits than should: take no more in until `on_room` is called.

        What is submitted nevertheless is taken, as it follows from what was promised already.
        """
        full = self.waiting_bytes > WAITING_BYTES_MAX or self.waiting_items > WAITING_ITEMS_MAX
        self._was_full = self._was_full or full
        return full

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on all of one moment; it runs in another thread and changes nothing.

        Sees what was reported as done before. Raises StoreError where the database fails.
        """
        if self._closed:
            raise StoreError(f"{self.name} is closed")
        return await self._loop.run_in_executor(self._reader, self._read, work)

    async def change(self, work: Callable[[Connection], T]) -> T:
        """The same as `submit`, for whoever waits: what `work` returned, once that is durable.

        Raises what `work` raised, and StoreError once the store is closed.
        """
        future: asyncio.Future[T] = self._loop.create_future()
        outcome: list[T] = []

        def kept(connection: Connection) -> None:
            outcome[:] = [work(connection)]

        def done(error: BaseException | None) -> None:
            if future.done():  # nobody waits any longer
                return
            if error is None:
                future.set_result(outcome[0])
            else:
                future.set_exception(error)

        self.submit(kept, done)
        return await future

    async def close(self) -> None:
        """Carry out what waits, and end. Where the database fails, not for ever."""
        if self._closed:
            return
        self._closed = True
        self._writer.close()
        await self._ended
        await self._loop.run_in_executor(self._reader, self._disconnect)
        await asyncio.to_thread(self._reader.shutdown)
        self._holding.close()

    def _read(self, work: Callable[[Connection], T]) -> T:
        try:
            if self._reading is None:
                self._reading = self._readers.connect()
            with self._reading.begin():
                return work(self._reading)
        except Exception as error:
            wrong = of_the_database(error)
            if not wrong:
                raise
            self._disconnect()
            raise StoreError(f"{self.name} {wrong}") from error

    def _disconnect(self) -> None:
        connection, self._reading = self._reading, None
        if connection is not None:
            connection.close()

    def _later(self, told: Callable[[T], None], what: T) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended: there is nobody to tell
            self._loop.call_soon_threadsafe(told, what)

    def _reported(self, outcomes: list[tuple[Item, BaseException | None]]) -> None:
        for item, error in outcomes:
            self.waiting_items -= 1
            self.waiting_bytes -= item.size_bytes
            if item.done is None:
                if error is not None:
                    logger.error("work on %s failed", self.name, exc_info=error)
                continue
            try:
                item.done(error)
            except Exception:
                logger.exception("what follows a commit failed")
        if self._was_full and not self.full():
            self._was_full = False
            if self.on_room is not None:
                self.on_room()

    def _troubled(self, sentence: str) -> None:
        self.trouble = sentence
        if sentence:
            logger.error("%s; what waits is tried again", sentence)
        else:
            logger.info("%s takes what waits again", self.name)
        if self.on_trouble is not None:
            self.on_trouble(sentence)


def _prepare(url: URL, parts: Sequence[Part]) -> None:
    """All or nothing of the tables' making."""
    engine = engine_of(url, writes=True)
    try:
        with engine.begin() as connection:
            bring_up(connection, parts, name_of(url))
    except Exception as error:
        wrong = of_the_database(error)
        if not wrong:
            raise
        raise StoreError(f"{name_of(url)} {wrong}") from error

"""A database behind one thread that writes and one that reads.

Owns opening, closing, the waiting work and the way between the event loop and the two threads. Must
not know what is stored. Invariants: the loop never waits for a disk; work is carried out in the
order in which it came, and whoever submitted it is told in the loop's thread once it is durable; a
piece of work whose own error is reported has changed nothing.

A group is what came while the group before it was committed, so that a slow disk makes larger
groups and an idle broker waits for nobody. Each piece of work has a savepoint: one that fails takes
nothing else along. Where the database itself fails (the disk is full, the file locked), the whole
group is tried again, until it is done or the store is closed; until then `trouble` says what is
wrong. Each commit has a number, so that one whose outcome was not told is carried out once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from broker.store.connecting import engine_of, held, parse
from broker.store.errors import StoreError, name_of, of_the_database
from broker.store.parts import COMMITS, Part, bring_up

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection, Engine

Work = Callable[["Connection"], None]
Done = Callable[[BaseException | None], None]

GROUP_ITEMS_MAX: Final = 1000  # a transaction that grows without end would never be reported
AGAIN_S_MIN: Final = 0.05  # a lock may be gone in a moment
AGAIN_S_MAX: Final = 5.0  # a disk that is full stays so until somebody acts
CLOSE_WAIT_S: Final = 10.0  # what a failing database is given at the end

logger = logging.getLogger("headwater.store")


class Item(msgspec.Struct, frozen=True):
    """A piece of work and whom to tell."""

    work: Work
    done: Done | None
    size_bytes: int


Outcomes = list[BaseException | None]
NOTHING_UNSURE: Final[tuple[int, Outcomes]] = (-1, [])


class Reports(msgspec.Struct, frozen=True):
    """Whom the thread tells: of a group's outcomes, of trouble when it changes, and of its end."""

    outcomes: Callable[[list[tuple[Item, BaseException | None]]], None]
    trouble: Callable[[str], None]
    ended: Callable[[], None]


class StoreWriter:
    """The thread, in which `reports` are called too.

    `check` raises StoreError where the database is no longer the one that was opened.
    """

    def __init__(
        self, engine: Engine, called: str, check: Callable[[], None], reports: Reports
    ) -> None:
        self.trouble = ""
        self._engine = engine
        self._called = called
        self._check = check
        self._reports = reports
        self._items: deque[Item] = deque()
        self._state = threading.Condition()
        self._closing = threading.Event()
        self._waited_s = 0.0
        self._connection: Connection | None = None
        self._number: int | None = None  # of the last commit; to be asked for after connecting
        self._unsure = NOTHING_UNSURE  # of a commit whose outcome was not told
        self._shaken = False
        self._thread = threading.Thread(target=self._run, name="headwater-store", daemon=True)

    def start(self) -> None:
        """Begin to take work."""
        self._thread.start()

    def put(self, item: Item) -> None:
        """One more piece of work."""
        with self._state:
            self._items.append(item)
            self._state.notify()

    def close(self) -> None:
        """Carry out what waits and end."""
        with self._state:
            self._closing.set()
            self._state.notify()

    def _run(self) -> None:
        try:
            while group := self._gather():
                self._reports.outcomes(self._commit(group))
        finally:
            self._disconnect()
            self._reports.ended()

    def _gather(self) -> list[Item]:
        with self._state:
            self._state.wait_for(lambda: self._items or self._closing.is_set())
            taken = min(len(self._items), GROUP_ITEMS_MAX)
            return [self._items.popleft() for _ in range(taken)]

    def _commit(self, group: list[Item]) -> list[tuple[Item, BaseException | None]]:
        """Try until it is done, or the store is closed and has waited long enough."""
        pause_s = AGAIN_S_MIN
        while True:
            try:
                outcomes = self._attempt(group)
            except Exception as error:
                logger.debug("a transaction failed", exc_info=True)
                self._disconnect()
                self._shaken = True
                wrong = self._wrong(error)
                if not wrong:
                    self._unsure = NOTHING_UNSURE  # it was given up before the commit
                if not wrong and len(group) > 1:  # by itself, each has its own outcome
                    return [outcome for item in group for outcome in self._commit([item])]
                if not wrong:
                    return [(item, error) for item in group]
                self._in_trouble(wrong)
            else:
                self._in_trouble("")
                return list(zip(group, outcomes, strict=True))
            if self._waited_s >= CLOSE_WAIT_S:
                return [(item, StoreError(self.trouble)) for item in group]
            if self._closing.is_set():
                self._waited_s += pause_s
                time.sleep(pause_s)
            else:
                self._closing.wait(pause_s)
            pause_s = min(pause_s * 2, AGAIN_S_MAX)

    def _wrong(self, error: BaseException) -> str:
        """The sentence where an error is the database's, else nothing."""
        if isinstance(error, StoreError):
            return str(error)
        reason = of_the_database(error)
        return reason and f"{self._called} {reason}"

    def _attempt(self, group: list[Item]) -> Outcomes:
        """One transaction; raises where the database failed."""
        self._check()
        connection = self._connection or self._connect()
        with connection.begin():
            if self._number is None and self._committed(connection):
                outcomes, self._unsure = self._unsure[1], NOTHING_UNSURE
                return outcomes
            number = (self._number or 0) + 1
            outcomes = [_outcome(connection, item) for item in group]
            connection.exec_driver_sql(f"UPDATE {COMMITS} SET number = {number}")  # noqa: S608
            self._unsure = (number, outcomes)
        self._number, self._unsure = number, NOTHING_UNSURE
        return outcomes

    def _connect(self) -> Connection:
        self._connection = self._engine.connect()
        self._number = None
        if self._shaken and self._engine.dialect.name == "sqlite":
            # What the system did not write it may take for written from then on. All that lies in
            # SQLite's own log is therefore written once more, to another file.
            checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)"
            driver: Any = self._connection.connection.dbapi_connection
            if driver.execute(checkpoint).fetchone()[0]:
                raise StoreError(f"{self._called} cannot be synced, as it is being read")
        self._shaken = False
        return self._connection

    def _committed(self, connection: Connection) -> bool:
        """Tell whether the commit before the connection was lost took place after all."""
        rows = connection.exec_driver_sql(f"SELECT number FROM {COMMITS}")  # noqa: S608
        number = self._number = int(rows.scalar_one())
        return number == self._unsure[0]

    def _disconnect(self) -> None:
        """Drop the connection: after an error it cannot be relied on."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.invalidate()
                connection.close()
            except Exception:
                logger.debug("a broken connection did not close", exc_info=True)

    def _in_trouble(self, sentence: str) -> None:
        if sentence != self.trouble:
            self.trouble = sentence
            self._reports.trouble(sentence)


def _outcome(connection: Connection, item: Item) -> BaseException | None:
    """Carry out one piece of work; its own error, or nothing. Raises where the database failed."""
    savepoint = connection.begin_nested()
    try:
        item.work(connection)
    except Exception as error:
        if of_the_database(error):
            raise
        savepoint.rollback()
        return error
    savepoint.commit()  # fails where the work has ended the transaction
    return None


T = TypeVar("T")

# What may wait for the disk before `full()` asks those who submit to hold back. A disk that syncs
# in 20 ms takes some hundred kilobytes at a time.
WAITING_BYTES_MAX: Final = 16 * 2**20
WAITING_ITEMS_MAX: Final = 50_000


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

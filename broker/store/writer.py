"""The one thread that writes: whatever has gathered goes to disk in one transaction.

Owns the waiting work, the writing connection and what is done when the database fails. Must not
know what is written. Invariant: work is carried out in the order in which it came; a piece of work
that is reported as done is durable, and one whose own error is reported has changed nothing.

A group is what came while the group before it was committed, so that a slow disk makes larger
groups and an idle broker waits for nobody. Each piece of work has a savepoint: one that fails takes
nothing else along. Where the database itself fails (the disk is full, the file locked), the whole
group is tried again, until it is done or the store is closed; until then `trouble` says what is
wrong. Each commit has a number, so that one whose outcome was not told is carried out once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from broker.store.errors import StoreError, of_the_database
from broker.store.parts import COMMITS

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

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

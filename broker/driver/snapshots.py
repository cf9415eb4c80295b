"""When a snapshot of the core is taken, and when it may be written down.

Owns that moment. Must not know what is in a snapshot or how it is written. Invariant: a snapshot is
written only once the journal and the outbox have durably all that it stands for, and one at a time.

A snapshot is due when the journal has grown by a configured size and by a multiple of what the last
snapshot took: so a start after a crash has a bounded number of records to handle again, and no more
than a fixed share of what is written are snapshots.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Protocol

from broker import logs
from broker.driver.promises import IntakeGate
from broker.journal import JournalError
from broker.store import StoreError

TIMES_ITS_SIZE = 4
LOOKS = 32  # at so many sizes of the journal, until it has grown by what a snapshot is due for
AGAIN_S = 10.0  # after one that failed

logger = logging.getLogger(__name__)


class Core(Protocol):
    """Whose state it is."""

    number: int

    def snapshot(self) -> bytes:
        """Its state as of the last message."""


class Records(Protocol):
    """Take snapshots; see `broker.journal.Journal`."""

    appended_bytes: int
    waiting_bytes: int

    @property
    def size_bytes(self) -> int:
        """Return how many bytes are on the disk."""

    async def write_snapshot(self, number: int, data: bytes) -> None:
        """Write it, durably, in the place of what it stands for."""


class Line(Protocol):
    """Wait for what has to be settled before; see `broker.driver.promises.Promises`."""

    def settled(self, number: int) -> "asyncio.Future[None]":
        """Done once all that was promised so far is durable."""


class Snapshots:
    """`look` is called after a commit that reaches `next_look_bytes`.

    `size_bytes_max` is what the journal may grow to: `look` is also called as soon as what was
    appended reaches `full_bytes`, before any of that is on the disk. `idle` returns once no message
    is under way.
    """

    def __init__(
        self,
        core: Core,
        journal: Records,
        line: Line,
        gate: IntakeGate,
        *,
        every_bytes: int,
        size_bytes_max: int,
        idle: Callable[[], Awaitable[None]],
    ) -> None:
        self.taken = 0
        self.last_bytes = 0
        self._core = core
        self._journal = journal
        self._line = line
        self._gate = gate
        self._idle = idle
        self._every_bytes = every_bytes
        self._size_bytes_max = size_bytes_max
        self._from_bytes = -journal.size_bytes  # what was found has no snapshot yet
        # A look takes a lock of the thread that writes: not with each commit.
        self._step_bytes = min(every_bytes, size_bytes_max) // LOOKS
        self.next_look_bytes = 0  # that were appended to the journal
        self.full_bytes = 0  # the same, at which nothing more is let in
        self._why_not = ""
        self._task: asyncio.Task[None] | None = None
        self._again: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Begin one where it is due."""
        self.next_look_bytes = self._journal.appended_bytes + self._step_bytes
        # What waits comes to the disk whatever happens: it counts as if it were there.
        size_bytes = self._journal.size_bytes + self._journal.waiting_bytes
        room_bytes = max(0, self._size_bytes_max - size_bytes)
        self.full_bytes = self._journal.appended_bytes + room_bytes
        if not room_bytes:
            reason = self._why_not or "no snapshot has been taken yet"
            self._gate.shut(
                "journal size",
                f"the journal takes {size_bytes} bytes, journal.size_bytes_max is "
                f"{self._size_bytes_max}: {reason}",
            )
        if self._task is not None or self._again is not None:
            return
        grown = self._journal.appended_bytes - self._from_bytes
        least = max(self._every_bytes, TIMES_ITS_SIZE * self.last_bytes)
        if grown >= least or (grown and size_bytes > self._size_bytes_max // 2):
            self._task = asyncio.create_task(self._take(), name="snapshot")

    async def _take(self) -> None:
        try:
            await self._idle()  # the state amid a message is that of no record
            from_bytes, number = self._journal.appended_bytes, self._core.number
            began_s = perf_counter()
            data = self._core.snapshot()
            took_s = perf_counter() - began_s
            await self._line.settled(number)
            await self._journal.write_snapshot(number, data)
        except (JournalError, StoreError) as error:
            self._failed(str(error))
        except Exception as error:
            logger.exception("a snapshot failed")
            self._failed(f"{error!r}")
        else:
            self._from_bytes, self.last_bytes = from_bytes, len(data)
            self.taken += 1
            self._why_not = ""
            self._gate.open("journal size")
            fields = {"record": number, "bytes": len(data), "stood_still_ms": round(took_s * 1000)}
            logs.tell("debug", "snapshot", **fields)
        finally:
            self._task = None

    def _failed(self, why: str) -> None:
        """Say so once for each reason, and try again after a while, whatever happens meanwhile."""
        if why != self._why_not:
            self._why_not = why
            logs.tell("warning", "snapshot_failed", reason=why)
        self._again = asyncio.get_running_loop().call_later(AGAIN_S, self._once_more)

    def _once_more(self) -> None:
        self._again = None
        self.look()

    async def rest(self) -> None:
        """Wait for the one that is under way."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def close(self) -> None:
        """No further ones; one that is under way is given up."""
        if self._again is not None:
            self._again.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

"""From the outbox to one joined server, as a consumer of the outbox.

Owns how far the server has come and what is fetched from the disk for it. Must not know how results
are stored or sent. Invariant: results go to the server in the order of their offsets, none left out
but what retention took; where the server has come to is written down behind it, never before.

As long as the server keeps up, results are handed on as they come and nothing is read. One that was
away gets what it missed from the disk, as much at a time as there is room for.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from broker import logs
from broker.bridge.join import Join
from broker.core.effects import Emission

if TYPE_CHECKING:
    from broker.store import Outbox, Row

CONSUMER = "join:"  # before the name of the join, in the list of the outbox's consumers
MESSAGES = 2  # of a result: to its subscriber and to its actor
ROWS_MAX = 500  # at a time: nobody else's read is to wait long
BYTES_MAX = 4_194_304
WRITE_EVERY_S = 1.0  # a crash in between sends as much again
AGAIN_AFTER_S = 1.0  # where the database fails, which it tells by itself

logger = logging.getLogger(__name__)


class SuppliedResult(Protocol):
    """A result as it comes, or as it is stored."""

    @property
    def offset(self) -> int:
        """Its place in the outbox."""

    @property
    def subscriber(self) -> str:
        """Whose it is."""

    @property
    def subscription(self) -> str:
        """Of which subscription."""

    @property
    def actor(self) -> str:
        """Name the actor of the result."""

    @property
    def payload(self) -> bytes:
        """It as JSON."""


class Supply:
    """Supply a joined server with results; `put` sends one result, `run` is a task."""

    def __init__(
        self,
        join: Join,
        outbox: "Outbox",
        put: Callable[[SuppliedResult], None],
        now_ms: Callable[[], int],
    ) -> None:
        self.missed = 0
        self._join = join
        self._outbox = outbox
        self._put = put
        self._now_ms = now_ms
        self._consumer = CONSUMER + join.name
        self._next: int | None = None  # the next offset to be put; None: not known yet
        self._first: int | None = None  # the first offset that was offered
        self._end = 0
        self._written = -1
        self._wake = asyncio.Event()
        self._wake.set()
        join.on_room = self._look

    def offer(self, results: Sequence[Emission]) -> None:
        """Results that were just stored, in order; silent and void ones are passed over."""
        if self._first is None:
            self._first = results[0].offset
        for result in results:
            if result.offset == self._next and self._room():
                if result.payload and not result.is_silent:
                    self._put(result)
                self._next += 1
            self._end = max(self._end, result.offset + 1)
        self._wake.set()

    def _look(self) -> None:
        if self._next != self._end:
            self._wake.set()

    def _room(self) -> int:
        """For how many results: each is two messages, and one may always go a little beyond."""
        return (self._join.room + 1) // MESSAGES

    async def run(self) -> None:
        """Fetch and put what was missed, and write down how far the server has come."""
        from broker.store import StoreError

        while True:
            try:
                if self._next is None:
                    await self._begin()
                await self._fetch()
                await self.write()
            except StoreError:
                logger.debug("the outbox cannot be read", exc_info=True)
                await asyncio.sleep(AGAIN_AFTER_S)
            if self._written == self._next == self._end:
                self._wake.clear()
                await self._wake.wait()
            # Not at each message that goes: that would be a word to the disk for each.
            with suppress(TimeoutError):
                async with asyncio.timeout(WRITE_EVERY_S):
                    await self._lagging()

    async def _lagging(self) -> None:
        """Return when something has to be fetched and there is room for it."""
        while self._next is not None and (self._next >= self._end or not self._room()):
            self._wake.clear()
            await self._wake.wait()

    async def _begin(self) -> None:
        """Find where the server had come to; one joined for the first time begins at the end.

        That is where the outbox ended when results began to be offered.
        """
        end = self._outbox.end
        offsets = {consumer.name: consumer.offset for consumer in await self._outbox.consumers()}
        begin = offsets.get(self._consumer)
        if begin is None:
            begin = end if self._first is None else min(end, self._first)
            await self._acknowledge(begin)
        self._end = max(self._end, end)
        self._next = self._written = begin

    async def _fetch(self) -> None:
        from broker.store import GoneError

        while self._next is not None and self._next < self._end and self._room():
            begin = self._next
            count = min(ROWS_MAX, self._room(), self._end - begin)
            try:
                rows, end = await self._read(begin, begin + count)
            except GoneError as gone:
                rows, end = [], gone.standing.earliest
                self.missed += end - begin
                logs.tell(
                    "error", "join_missed", join=self._join.name, begin=begin, end=end - 1,
                    reason="retention took results before the server had them",
                )  # fmt: skip
            for row in rows:
                self._put(row)
            self._next = end

    async def _read(self, begin: int, end: int) -> tuple[list["Row"], int]:
        """The rows from one offset on, and where the next begin."""
        from broker.store import TooLargeError

        try:
            return await self._outbox.read(begin, end, BYTES_MAX), end
        except TooLargeError as large:
            return await self._outbox.read(begin, large.fits), large.fits

    async def write(self) -> None:
        """Write down how far the server has come, where that is news."""
        if self._next is None:
            return
        oldest = self._join.oldest_offset()
        reached = self._next if oldest is None else oldest
        if reached > self._written:
            await self._acknowledge(reached)
            self._written = reached

    async def _acknowledge(self, offset: int) -> None:
        await self._outbox.acknowledge(self._consumer, offset, self._now_ms())


async def forget_others(outbox: "Outbox", names: Sequence[str]) -> None:
    """Nothing is kept any longer for servers that are not joined any more."""
    from broker.store import StoreError

    kept = {CONSUMER + name for name in names}
    try:
        for consumer in await outbox.consumers():
            if consumer.name.startswith(CONSUMER) and consumer.name not in kept:
                await outbox.forget(consumer.name)
                logs.tell("info", "join_forgotten", join=consumer.name.removeprefix(CONSUMER))
    except StoreError:
        logger.debug("the outbox cannot be read", exc_info=True)  # then at the next start

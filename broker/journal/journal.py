"""The journal of a running broker, as the event loop sees it.

Owns what waits to be durable and the count of its bytes, and the making of snapshots. Must not know
what records mean. Invariant: all methods belong to the event loop's thread and none of them waits
for the disk; records become durable in the order in which they were appended.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

from msgspec import Struct

from broker.core.recovery.records import RECORD_HEADER_BYTES, frame_snapshot
from broker.journal import naming
from broker.journal.errors import JournalError, sentence
from broker.journal.files import put
from broker.journal.reading import JournalContent
from broker.journal.segment import Segments
from broker.journal.writer import RETRY_S, JournalWriter, Records
from broker.metrics.histogram import Histogram

SEGMENT_BYTES = 8 * 2**20


class JournalOptions(Struct, frozen=True, kw_only=True):
    """The size at which a segment is done, and how long after a failure it is tried again."""

    segment_bytes: int = SEGMENT_BYTES
    retry_s: float = RETRY_S


class Journal:
    """Goes on where `found` ends. `durable` and `trouble` are called in the loop's thread.

    `durable` gets the highest durable number; `trouble` a sentence when nothing can be written any
    more, and an empty text when it can.
    """

    def __init__(
        self,
        found: JournalContent,
        durable: Callable[[int], None],
        trouble: Callable[[str], None],
        options: JournalOptions | None = None,
    ) -> None:
        options = options or JournalOptions()
        self.last = self.durable = found.next_number - 1
        self.appended_bytes = 0  # since the start
        self.waiting_bytes = 0
        self._tell_durable = durable
        self._tell_trouble = trouble
        self._folder, self._files = found.folder, found.files
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[int, int]] = deque()  # number and bytes of what is not durable
        self._gathered: Records = []
        self.wait_s = Histogram()  # of what was handed over together
        self._handed_over: deque[tuple[int, float]] = deque()  # last number, when
        self._segments = Segments(
            found.folder, found.files, options.segment_bytes, found.segments, found.size_bytes
        )
        self._writer = JournalWriter(
            self._segments, self.durable, self._written, self._troubled, options.retry_s
        )
        self._snapshots = ThreadPoolExecutor(1, thread_name_prefix="snapshot")

    @property
    def size_bytes(self) -> int:
        """Return about how many bytes its segments take on the disk."""
        return self._segments.size_bytes

    def append(self, number: int, data: bytes) -> None:
        """Write a record with all others of this turn of the loop; numbers are consecutive."""
        if number != self.last + 1:
            raise ValueError(f"record {number} does not follow {self.last}")
        self.last = number
        size = RECORD_HEADER_BYTES + len(data)
        self.appended_bytes += size
        self.waiting_bytes += size
        self._waiting.append((number, size))
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        self._gathered.append((number, data))

    def _hand_over(self) -> None:
        if self._gathered:
            records, self._gathered = self._gathered, []
            self._handed_over.append((records[-1][0], perf_counter()))
            self._writer.put(records)

    async def write_snapshot(self, number: int, data: bytes) -> None:
        """Return once a snapshot is durable, and what it stands for is removed.

        To be called once at a time. Raises JournalError; then what was there is still there.
        """
        await self._loop.run_in_executor(self._snapshots, self._write_snapshot, number, data)

    def _write_snapshot(self, number: int, data: bytes) -> None:
        try:
            put(self._files, self._folder / naming.snapshot(number), frame_snapshot(number, data))
            for older in naming.snapshots(self._files.names(self._folder)):
                if older < number:
                    self._files.remove(self._folder / naming.snapshot(older))
            self._segments.trim(number)
        except OSError as error:
            raise JournalError(sentence(error, self._folder)) from None

    async def close(self, final: bytes | None = None) -> None:
        """Write what was appended, and at last a snapshot that stands for all of it.

        Raises JournalError where that cannot be: the journal itself is then what there is.
        """
        self._hand_over()
        await self._loop.run_in_executor(self._snapshots, self._writer.end)
        try:
            # What the thread told last is on its way through the loop.
            await asyncio.sleep(0)
            if final is not None and self.durable == self.last:
                await self.write_snapshot(self.last, final)
                await self._loop.run_in_executor(self._snapshots, self._clear)
        finally:
            self._snapshots.shutdown(wait=False)

    def _clear(self) -> None:
        try:
            self._segments.clear()
        except OSError as error:
            raise JournalError(sentence(error, self._folder)) from None

    # --- in the writer's thread ---------------------------------------------------------------

    def _written(self, number: int) -> None:
        self._loop.call_soon_threadsafe(self._now_durable, number)

    def _troubled(self, why: str) -> None:
        self._loop.call_soon_threadsafe(self._tell_trouble, why)

    # --- back in the loop's -------------------------------------------------------------------

    def _now_durable(self, number: int) -> None:
        self.durable = number
        waiting = self._waiting
        while waiting and waiting[0][0] <= number:
            self.waiting_bytes -= waiting.popleft()[1]
        while self._handed_over and self._handed_over[0][0] <= number:
            self.wait_s.observe(perf_counter() - self._handed_over.popleft()[1])
        self._tell_durable(number)

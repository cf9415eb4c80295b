"""The journal of a running broker: as the event loop sees it, and the thread that writes it.

Owns what waits to be durable and the count of its bytes, the order of writes and trying again, and
the making of snapshots. Must not know what records mean or what waits for one. Invariants: none of
the loop's methods waits for the disk; a number is told as durable only after a sync that covers it
succeeded, in ascending order; a record that could not be written is tried again until it can, or
until the end.

Commits come in groups that make themselves: whatever gathered while one sync ran is written
together by the next. Nothing waits for company, so that a lone record costs one sync.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from time import perf_counter

from msgspec import Struct

from broker.core.recovery.records import RECORD_HEADER_BYTES, frame_snapshot
from broker.journal import naming
from broker.journal.errors import JournalError, sentence
from broker.journal.files import MovedError, put
from broker.journal.reading import JournalContent
from broker.journal.segment import Segments
from broker.metrics.histogram import Histogram

GROUP_BYTES_MAX = 2**22  # so that what waits longest does not wait for all that came after it
RETRY_S = 1.0  # a full disk is not made fuller by asking once a second

logger = logging.getLogger(__name__)

Records = list[tuple[int, bytes]]


class JournalWriter:
    """`durable` and `trouble` are called in the writer's thread.

    `trouble` gets a sentence when writing begins to fail or fails in another way, and an empty text
    when it goes on.
    """

    def __init__(
        self,
        segments: Segments,
        last: int,
        durable: Callable[[int], None],
        trouble: Callable[[str], None],
        retry_s: float = RETRY_S,
    ) -> None:
        self._segments = segments
        self._durable_number = last
        self._durable = durable
        self._trouble = trouble
        self._retry_s = retry_s
        self._queue: SimpleQueue[Records | None] = SimpleQueue()
        self.put: Callable[[Records], None] = self._queue.put  # after all before; of any thread
        self._ending = threading.Event()
        self._told = ""
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Write what was put, try once more at most, and return."""
        self._ending.set()
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        pending: Records = []
        more = True
        while more:
            more = self._take(pending, wait=True)
            while pending:
                if self._commit(pending):
                    continue
                if not more:
                    break
                self._ending.wait(self._retry_s)
                more = self._take(pending, wait=False)
        self._segments.close()

    def _take(self, pending: Records, *, wait: bool) -> bool:
        """Add all that was put by now, or the first that will be; False at the end."""
        try:
            records = self._queue.get(wait)
            while records is not None:
                pending += records
                records = self._queue.get_nowait()
        except Empty:
            return True
        return False

    def _commit(self, pending: Records) -> bool:
        """Make one group durable and take it off the line; False where that failed."""
        group = _group(pending)
        try:
            self._segments.commit(group, self._durable_number)
        except MovedError as error:
            return self._tell(sentence(error, self._segments.folder))
        except OSError as error:
            return self._failed(sentence(error, self._segments.folder))
        except Exception as error:  # a fault of ours must not end the thread without a word
            logger.exception("the journal's writer failed")
            return self._failed(f"the journal cannot be written: {error!r}")
        del pending[: len(group)]
        self._durable_number = group[-1][0]
        if self._told:
            self._told = ""
            self._trouble("")
        self._durable(self._durable_number)
        return True

    def _failed(self, why: str) -> bool:
        """Go no further in this segment, and say so; False."""
        self._segments.give_up(self._durable_number)
        return self._tell(why)

    def _tell(self, why: str) -> bool:
        """Say what is wrong, once; False."""
        if why != self._told:
            self._told = why
            self._trouble(why)
        return False


def _group(pending: Records) -> Records:
    """As many of the records as are written at once; at least one."""
    size = 0
    for count, (_, data) in enumerate(pending, 1):
        size += len(data)
        if size >= GROUP_BYTES_MAX:
            return pending[:count]
    return pending[:]


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

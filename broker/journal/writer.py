"""The thread that writes the journal.

Owns the order of writes, and trying again. Must not know the event loop or what waits for a
record. Invariant: it tells that a number is durable only after a sync that covers it succeeded, in
ascending order; a record that could not be written is tried again until it can, or until the end.

Commits come in groups that make themselves: whatever gathered while one sync ran is written
together by the next. Nothing waits for company, so that a lone record costs one sync.
"""

import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from broker.journal.errors import sentence
from broker.journal.files import MovedError
from broker.journal.segment import Segments

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

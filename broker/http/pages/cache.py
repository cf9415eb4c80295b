"""Which pages are kept, and how a range is answered.

Owns the memory of pages. Must not know Arrow. Invariant: all kept pages together take no more than
`bytes_max`; a page is kept only when the log is past its end, and under the log's epoch.
"""

import asyncio
from collections import OrderedDict
from typing import Final

from broker.http.log_facade import ResultLog
from broker.http.pages.columns import PageSelection
from broker.http.pages.encoder import PageOrigin, make_page
from broker.store import Row

PAGE_OFFSETS: Final = 10_000  # a page is k·n … (k+1)·n − 1: as much as a range may be
# A compressed row of a usual result takes 70 bytes, so this holds about a million results.
PAGES_BYTES_MAX: Final = 64 * 2**20
ELSEWHERE_ROWS: Final = 200  # making more rows than that would hold the event loop up


class KeptPages:
    """Pages of one log. All methods belong to the loop's thread."""

    def __init__(self, log: ResultLog, broker: str, bytes_max: int = PAGES_BYTES_MAX) -> None:
        self.made = 0
        self._log = log
        self._broker = broker
        self._bytes_max = bytes_max
        self._bytes = 0
        self._epoch = log.epoch
        self._pages: OrderedDict[tuple[int, PageSelection], bytes] = OrderedDict()
        self._making = asyncio.Lock()

    async def page(
        self, begin: int, end: int, selection: PageSelection, range_bytes_max: int
    ) -> bytes:
        """Return the rows of a range in columns.

        Raises what reading the log raises, and MissingLibraryError.
        """
        log = self._log
        if begin % PAGE_OFFSETS or end != begin + PAGE_OFFSETS or end > log.end:
            rows = await log.read(begin, end, range_bytes_max)
            return await self._made(begin, end, rows, selection)
        # Retention may have taken what is kept: of that the log tells as of anything else.
        if begin < log.earliest:
            await log.read(begin, begin)
        self._forget_other_epochs()
        key = begin, selection
        # Who comes while it is made waits for it, and one page at a time is in the making: what
        # that takes of memory is not among the bytes that are counted.
        async with self._making:
            data = self._pages.get(key)
            if data is None:
                rows = await log.read(begin, end, range_bytes_max)
                data = await self._made(begin, end, rows, selection)
                self._keep(key, data)
            else:
                self._pages.move_to_end(key)
        return data

    async def _made(self, begin: int, end: int, rows: list[Row], selection: PageSelection) -> bytes:
        origin = PageOrigin(self._log.epoch, begin, end, self._broker)
        self.made += 1
        if len(rows) > ELSEWHERE_ROWS:
            return await asyncio.to_thread(make_page, origin, rows, selection)
        return make_page(origin, rows, selection)

    def _keep(self, key: tuple[int, PageSelection], data: bytes) -> None:
        if len(data) > self._bytes_max or self._epoch != self._log.epoch:
            return
        self._pages[key] = data
        self._bytes += len(data)
        while self._bytes > self._bytes_max:
            _, gone = self._pages.popitem(last=False)
            self._bytes -= len(gone)

    def _forget_other_epochs(self) -> None:
        """The disk went back: the same offsets are other results now."""
        if self._epoch != self._log.epoch:
            self._epoch = self._log.epoch
            self._pages.clear()
            self._bytes = 0

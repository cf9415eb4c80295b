"""The results of a log that its readers may not have read, read back at a start.

Owns how much of the log is looked at, and at a time. Must not know who is to have them. Invariant:
no more is in memory than a stand-in's copy of them holds, and one page.
"""

from __future__ import annotations

from collections import deque

from broker.core.effects import Emission
from broker.core.standby.home_copy import GIVEN_BYTES_MAX, GIVEN_MAX
from broker.store import GoneError, Outbox, Row, TooLargeError

PAGE_ROWS = 1_000  # nobody else's read is to wait long
PAGE_BYTES = 1024 * 1024


async def unread(log: Outbox, least: int | None, end: int) -> tuple[list[Emission], int]:
    """Return the latest results from offset `least` up to `end`, and where they begin.

    `least` None: nobody reads. Raises StoreError.
    """
    first = end if least is None else min(end, max(log.earliest, end - GIVEN_MAX, least))
    rows: deque[Row] = deque()
    size_bytes, begin = 0, first
    while begin < end:
        try:
            page, begin = await _page(log, begin, min(end, begin + PAGE_ROWS))
        except GoneError as gone:  # retention took them meanwhile, and more than these is not there
            rows.clear()
            size_bytes = 0
            first = begin = min(end, max(begin, gone.standing.earliest))
            continue
        rows += page
        size_bytes += sum([len(row.payload) for row in page])
        while size_bytes > GIVEN_BYTES_MAX:
            row = rows.popleft()
            size_bytes -= len(row.payload)
            first = row.offset + 1
    return [_emission(row) for row in rows], first


async def _page(log: Outbox, begin: int, end: int) -> tuple[list[Row], int]:
    """Return the rows from one offset on, and where the next begin."""
    try:
        return await log.read(begin, end, PAGE_BYTES), end
    except TooLargeError as large:
        return await log.read(begin, large.fits), large.fits


def _emission(row: Row) -> Emission:
    words = row.id, row.end_ms, row.subscriber, row.subscription, row.actor, row.payload
    return Emission(*words, row.offset)

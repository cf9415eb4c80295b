"""The log of results in the database: appending, ranges, consumers and retention.

Owns the statements. Must not know threads or the event loop: each function is given a connection
whose transaction is open. Invariant: offsets ascend, ids are unique among the rows that are there,
a row never changes, and rows leave from the front alone.

This module imports SQLAlchemy: import it where a store is open, not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap
from typing import Final

from sqlalchemy import Connection, bindparam, func, insert, select, update

from broker.store.errors import StoreError
from broker.store.results import (
    ROW_BYTES,
    GoneError,
    NotYetError,
    Row,
    Standing,
    TooLargeError,
    checked,
)
from broker.store.tables import LOG, OUTBOX

SOUGHT_MAX: Final = 500  # SQLite of old takes 999 values in a statement

# Made once: to put them together costs more than to carry them out.
_STANDING: Final = select(*(LOG.c[name] for name in Standing.__struct_fields__))
_KNOWN: Final = select(OUTBOX.c.id).where(OUTBOX.c.id.in_(bindparam("ids", expanding=True)))
_ADD: Final = insert(OUTBOX)
_RANGE: Final = (
    select(*(OUTBOX.c[name] for name in Row.__struct_fields__))
    .where(OUTBOX.c.offset >= bindparam("begin"), OUTBOX.c.offset < bindparam("to"))
    .order_by(OUTBOX.c.offset)
)
_PEAK: Final = (
    select(OUTBOX.c.peak_ms)
    .where(OUTBOX.c.offset <= bindparam("last"))
    .order_by(OUTBOX.c.offset.desc())
    .limit(1)
)
_NEXT_PEAK: Final = (
    select(OUTBOX.c.offset, OUTBOX.c.peak_ms)
    .where(OUTBOX.c.offset >= bindparam("begin"), OUTBOX.c.offset < bindparam("high"))
    .order_by(OUTBOX.c.offset)
    .limit(1)
)
_EARLIEST_BEHIND: Final = select(func.min(OUTBOX.c.end_ms)).where(
    OUTBOX.c.offset >= bindparam("begin"),
    OUTBOX.c.end_ms > bindparam("after"),
    OUTBOX.c.end_ms < OUTBOX.c.peak_ms,
)
_NEXT_ORDERED: Final = (
    select(OUTBOX.c.end_ms)
    .where(OUTBOX.c.offset >= bindparam("begin"), OUTBOX.c.end_ms >= OUTBOX.c.peak_ms)
    .order_by(OUTBOX.c.offset)
    .limit(1)
)
_ADVANCE: Final = update(LOG).values(
    end=bindparam("to"), kept_bytes=bindparam("size"), peak_ms=bindparam("peak")
)


def standing(connection: Connection) -> Standing:
    """The log as it stands."""
    return Standing(*connection.execute(_STANDING).one())


def renew(connection: Connection, epoch: str) -> None:
    """Give the log another epoch: offsets of the one before mean nothing any more."""
    connection.execute(update(LOG).values(epoch=epoch))


def append(connection: Connection, rows: Sequence[Row], now_ms: int) -> int:
    """Put rows behind the end; how many of them were there already and are passed over.

    A row is there already if its offset lies before the end, or its id among the rows kept. One
    without a payload is void: nobody is to read it, and its offset is left out. Raises
    StoreError where an offset before the end holds another result.
    """
    if not rows:
        return 0
    checked(rows)
    log = standing(connection)
    fresh = [row for row in rows if row.offset >= log.end]
    _compare(connection, [row for row in rows if log.earliest <= row.offset < log.end])
    if not fresh:
        return len(rows)
    added = _unknown(connection, [row for row in fresh if row.payload])
    peak_ms = _insert(connection, added, now_ms, log.peak_ms)
    kept_bytes = log.kept_bytes + sum(ROW_BYTES + len(row.payload) for row in added)
    connection.execute(_ADVANCE, {"to": fresh[-1].offset + 1, "size": kept_bytes, "peak": peak_ms})
    return len(rows) - len(added) - sum([not row.payload for row in fresh])


def _insert(
    connection: Connection, rows: Sequence[Row], now_ms: int, peak_ms: int | None
) -> int | None:
    """Write rows; the latest end with them."""
    values = []
    for row in rows:
        peak_ms = row.end_ms if peak_ms is None else max(peak_ms, row.end_ms)
        values.append(
            {
                "offset": row.offset,
                "id": row.id,
                "subscription": row.subscription,
                "subscriber": row.subscriber,
                "actor": row.actor,
                "end_ms": row.end_ms,
                "peak_ms": peak_ms,
                "stored_ms": now_ms,
                "payload": row.payload,
            }
        )
    if values:
        connection.execute(_ADD, values)
    return peak_ms


def _compare(connection: Connection, rows: Sequence[Row]) -> None:
    """Refuse an offer that differs from what the log holds: two histories would share it."""
    for begin in range(0, len(rows), SOUGHT_MAX):
        sought = {row.offset: row.id for row in rows[begin : begin + SOUGHT_MAX]}
        query = select(OUTBOX.c.offset, OUTBOX.c.id).where(OUTBOX.c.offset.in_(list(sought)))
        for offset, stored in connection.execute(query):
            if stored != sought[offset]:
                raise StoreError(
                    f"offset {offset} of the log holds the result {stored}, not {sought[offset]}: "
                    "the log and the journal are not of one history"
                )


def _unknown(connection: Connection, rows: Sequence[Row]) -> list[Row]:
    """Those whose id is not there yet, each once."""
    seen: set[str] = set()
    for begin in range(0, len(rows), SOUGHT_MAX):
        ids = [row.id for row in rows[begin : begin + SOUGHT_MAX]]
        seen.update(connection.scalars(_KNOWN, {"ids": ids}))
    unknown = []
    for row in rows:
        if row.id not in seen:
            seen.add(row.id)
            unknown.append(row)
    return unknown


def read(connection: Connection, begin: int, end: int, bytes_max: int | None = None) -> list[Row]:
    """The rows of begin <= offset < end, for ever the same.

    Raises GoneError, NotYetError, and TooLargeError where the payloads are more than `bytes_max`.
    """
    within(standing(connection), begin, end)
    if bytes_max is not None:
        _fits(connection, begin, end, bytes_max)
    # All at once: one by one they take a third more.
    return list(starmap(Row, connection.execute(_RANGE, {"begin": begin, "to": end}).all()))


def _fits(connection: Connection, begin: int, end: int, bytes_max: int) -> None:
    """Raise TooLargeError, with the end up to which it would fit; one row always does."""
    columns = OUTBOX.c
    within_range = (columns.offset >= begin, columns.offset < end)
    total = select(func.coalesce(func.sum(func.length(columns.payload)), 0)).where(*within_range)
    if connection.execute(total).scalar_one() <= bytes_max:
        return
    sizes = (
        select(columns.offset, func.length(columns.payload))
        .where(*within_range)
        .order_by(columns.offset)
    )
    taken = 0
    for count, (offset, size) in enumerate(connection.execute(sizes)):
        taken += size
        if taken > bytes_max and count:
            raise TooLargeError(begin, int(offset), bytes_max)


def within(log: Standing, begin: int, end: int) -> None:
    """Raise GoneError or NotYetError unless the log holds the range."""
    if begin < log.earliest:
        raise GoneError(log)
    if end > log.end or begin > log.end:
        raise NotYetError(log)


def ts_at(connection: Connection, offset: int) -> int | None:
    """The latest end of all results up to and with this offset, in ms; None before the first.

    Raises GoneError, NotYetError.
    """
    within(standing(connection), offset, offset + 1)
    return connection.execute(_PEAK, {"last": offset}).scalar()


def first_offset_after(connection: Connection, ts_ms: int) -> int:
    """The first offset whose result ends after this time; the end where there is none yet.

    Of what retention has left.
    """
    log = standing(connection)
    return _first_after(connection, (log.earliest, log.end), ts_ms)


def _first_after(connection: Connection, span: tuple[int, int], ts_ms: int) -> int:
    """The first offset of a half-open range whose result ends after this time; else its end.

    The peaks ascend, so that halving finds it without an index. It begins with the first, which is
    it where a reader keeps up.
    """
    low, high = span
    first, middle = high, low
    while low < high:
        row = connection.execute(_NEXT_PEAK, {"begin": middle, "high": high}).first()
        if row is None:
            high = middle
        elif row.peak_ms > ts_ms:
            high, first = middle, int(row.offset)
        else:
            low = int(row.offset) + 1
        middle = (low + high) // 2
    return first


def earliest_end(connection: Connection, offset: int, after_ms: int) -> int | None:
    """Of the results from this offset on that end after this time, the earliest end, in ms.

    None where there is none. Raises GoneError, NotYetError. Of the rows that end no earlier than
    all before them the first such counts; the others have an index of their own.
    """
    log = standing(connection)
    within(log, offset, offset)
    first = _first_after(connection, (offset, log.end), after_ms)
    ends = [
        connection.execute(_EARLIEST_BEHIND, {"begin": offset, "after": after_ms}).scalar(),
        connection.execute(_NEXT_ORDERED, {"begin": first}).scalar(),
    ]
    return min([end_ms for end_ms in ends if end_ms is not None], default=None)

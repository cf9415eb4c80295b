"""Who has read how far, and what may go: consumers' acknowledgements and retention.

Owns the statements. Must not know threads or the event loop: each function is given a connection
whose transaction is open. Invariant: rows leave from the front alone, none before its time, and
what leaves unread is counted for each consumer that it leaves behind.

This module imports SQLAlchemy: import it where a store is open, not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, delete, func, insert, select, update

from broker.store.log import standing
from broker.store.results import (
    ROW_BYTES,
    Consumer,
    ConsumersFullError,
    NotYetError,
    Retention,
    Standing,
    Taken,
)
from broker.store.tables import CONSUMERS, LOG, OUTBOX

TAKEN_MAX: Final = 2000  # rows in one pass: nobody else's commit is to wait long for it
CONSUMERS_MAX: Final = 1000  # each is a name that somebody made up


def consumers(connection: Connection) -> list[Consumer]:
    """All of them, by name."""
    columns = [CONSUMERS.c[name] for name in Consumer.__struct_fields__]
    rows = connection.execute(select(*columns).order_by(CONSUMERS.c.name))
    return [Consumer(*row) for row in rows]


def acknowledge(connection: Connection, name: str, offset: int, now_ms: int) -> Consumer:
    """A consumer has everything before this offset; the first time makes it one.

    An acknowledgement never goes back: an older one changes nothing but the time. Raises
    NotYetError, ConsumersFullError.
    """
    log = standing(connection)
    if offset > log.end:
        raise NotYetError(log)
    offset = max(offset, log.earliest)
    columns = [CONSUMERS.c[key] for key in Consumer.__struct_fields__]
    row = connection.execute(select(*columns).where(CONSUMERS.c.name == name)).first()
    if row is None:
        count = connection.execute(select(func.count()).select_from(CONSUMERS)).scalar_one()
        if count >= CONSUMERS_MAX:
            raise ConsumersFullError(f"{CONSUMERS_MAX} consumers are known already; forget some")
        consumer = Consumer(name, offset, now_ms)
        connection.execute(insert(CONSUMERS), msgspec.structs.asdict(consumer))
        return consumer
    before = Consumer(*row)
    consumer = msgspec.structs.replace(before, offset=max(before.offset, offset), acked_ms=now_ms)
    _write(connection, [consumer])
    return consumer


def forget(connection: Connection, name: str) -> bool:
    """Nothing is kept for this consumer any more; whether there was one of that name."""
    return connection.execute(delete(CONSUMERS).where(CONSUMERS.c.name == name)).rowcount > 0


def _write(connection: Connection, changed: Sequence[Consumer]) -> None:
    for consumer in changed:
        values: dict[str, Any] = msgspec.structs.asdict(consumer)
        connection.execute(
            update(CONSUMERS).where(CONSUMERS.c.name == consumer.name).values(values)
        )


def retain(
    connection: Connection, retention: Retention, now_ms: int, keep_from: int | None
) -> Taken:
    """Remove what need not be kept; nothing from `keep_from` on. One pass of bounded length."""
    log = standing(connection)
    before = consumers(connection)
    read_by_all = min((consumer.offset for consumer in before), default=log.earliest)
    fits_bytes = retention.size_bytes_max
    kept_bytes, earliest, count, unread = log.kept_bytes, log.earliest, 0, 0
    rows = _front(connection, log)
    for offset, size, stored_ms in rows:
        age_ms = now_ms - stored_ms
        done = offset < read_by_all and age_ms >= retention.acked_age_ms
        must = age_ms > retention.age_ms_max or kept_bytes > fits_bytes
        if not (done or must) or (keep_from is not None and offset >= keep_from):
            break
        kept_bytes -= size + ROW_BYTES
        earliest = offset + 1
        count += 1
        unread += offset >= read_by_all
    if not count:
        return Taken(log.earliest, 0, 0, (), more=False)
    lapsed = [_lapsed(consumer, earliest, [row[0] for row in rows]) for consumer in before]
    behind = [now for now, before in zip(lapsed, before, strict=True) if now is not before]
    _write(connection, behind)
    connection.execute(delete(OUTBOX).where(OUTBOX.c.offset < earliest))
    connection.execute(
        update(LOG).values(
            earliest=earliest,
            kept_bytes=kept_bytes,
            taken=log.taken + count,
            unread=log.unread + unread,
        )
    )
    return Taken(earliest, count, unread, tuple(behind), more=count == TAKEN_MAX)


def _front(connection: Connection, log: Standing) -> list[tuple[int, int, int]]:
    """(offset, bytes of payload, when it was stored) of the oldest rows, in order."""
    columns = OUTBOX.c
    rows = (
        select(columns.offset, func.length(columns.payload), columns.stored_ms)
        .where(columns.offset >= log.earliest)
        .order_by(columns.offset)
        .limit(TAKEN_MAX)
    )
    return [(row[0], row[1], row[2]) for row in connection.execute(rows)]


def _lapsed(one: Consumer, earliest: int, offsets: Sequence[int]) -> Consumer:
    """A consumer whose next offset is gone goes on at the earliest, and its gap is recorded."""
    if one.offset >= earliest:
        return one
    missed = sum(1 for offset in offsets if one.offset <= offset < earliest)
    begin = one.gap_begin if one.missed and one.gap_end == one.offset else one.offset
    return msgspec.structs.replace(
        one,
        offset=earliest,
        missed=one.missed + missed,
        gap_begin=begin,
        gap_end=earliest,
    )

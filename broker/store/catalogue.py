"""The catalogue on disk: what is installed, by whom, when and from which text.

Owns these rows and the way to them. Must not know the language or the core, whose own catalogue is
what counts while a broker runs. Invariant: a subscription stands here once, with the highest `seq`
that was put; rows come back in the order of installation.

How a driver uses it: `put` what a submission installed and `remove` what was cancelled, each before
the client is told; `all` at the start, where a journal was lost, to install it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from broker.store.writer import Done

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from broker.store.store import Store


class Entry(msgspec.Struct, frozen=True):
    """One subscription; `client` submitted the `text`, at `installed_ms`, that it came with."""

    subscriber: str
    subscription: str
    seq: int
    client: str
    installed_ms: int
    text: str


class Catalogue:
    """Of a store that was opened with the part RESULTS. All methods belong to the loop's thread."""

    def __init__(self, store: Store) -> None:
        from broker.store import tables

        self._store = store
        self._table = tables.CATALOGUE

    def put(self, entries: Sequence[Entry], done: Done | None = None) -> None:
        """Note what was installed, all of it or nothing; `done` is told when it is durable.

        An entry whose `seq` is lower than that of the one that is there changes nothing.
        """
        size = sum(len(one.text) for one in entries)
        self._store.submit(lambda connection: self._put(connection, entries), done, size)

    def remove(self, subscriber: str, subscription: str, done: Done | None = None) -> None:
        """Strike a subscription out, if it is there."""
        self._store.submit(
            lambda connection: self._remove(connection, subscriber, subscription), done
        )

    async def all(self) -> list[Entry]:
        """Every entry, in the order of installation. Raises StoreError."""
        return await self._store.read(self._all)

    def _put(self, connection: Connection, entries: Sequence[Entry]) -> None:
        from sqlalchemy import insert, select

        table = self._table
        for one in entries:
            there = connection.execute(
                select(table.c.seq).where(*self._key(one.subscriber, one.subscription))
            ).scalar()
            if there is not None and there > one.seq:
                continue
            if there is not None:
                self._remove(connection, one.subscriber, one.subscription)
            connection.execute(insert(table), msgspec.structs.asdict(one))

    def _remove(self, connection: Connection, subscriber: str, subscription: str) -> None:
        from sqlalchemy import delete

        connection.execute(delete(self._table).where(*self._key(subscriber, subscription)))

    def _all(self, connection: Connection) -> list[Entry]:
        from sqlalchemy import select

        columns = self._table.c
        found = select(*(columns[name] for name in Entry.__struct_fields__)).order_by(
            columns.installed_ms, columns.subscriber, columns.subscription
        )
        return [Entry(*row) for row in connection.execute(found)]

    def _key(self, subscriber: str, subscription: str) -> tuple[Any, Any]:
        columns = self._table.c
        return columns.subscriber == subscriber, columns.subscription == subscription

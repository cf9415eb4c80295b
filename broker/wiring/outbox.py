"""The outbox as the broker's driver sees it: results in, word of it when they are durable.

Owns the making of rows. Must not know tables or threads: `broker.store` does. Invariant: results
are stored in the order in which they were given.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from broker.core.effects import Emission
from broker.store.results import ROW_BYTES, row_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from broker.store import Store


class StoredOutbox:
    """See `broker.wiring.promises.Outbox`; `now_ms` is when a result is stored."""

    def __init__(self, store: "Store", now_ms: Callable[[], int]) -> None:
        from broker.store import log

        self._store = store
        self._now_ms = now_ms
        self._append = log.append

    def append(
        self, results: Sequence[Emission], done: Callable[[BaseException | None], None]
    ) -> None:
        """One piece of work for all of them."""
        rows = [
            row_of(one.offset, one.subscription, one.subscriber, one.actor, one.payload)
            for one in results
        ]
        now_ms, append = self._now_ms(), self._append
        size = sum(len(row.payload) + ROW_BYTES for row in rows)

        def work(connection: "Connection") -> None:
            if rows:
                append(connection, rows, now_ms)

        self._store.submit(work, done, size)

    def full(self) -> bool:
        """Whether more waits than should."""
        return self._store.full()

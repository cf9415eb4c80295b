"""The outbox as the broker's driver sees it: results in, word of it when they are durable.

Owns the making of rows. Must not know tables or threads: `broker.store` does. Invariant: results
are stored in the order in which they were given.
"""

from collections.abc import Callable, Sequence

from broker.core.effects import Emission
from broker.store import Outbox, Store, row_of


class StoredOutbox:
    """See `broker.wiring.promises.Outbox`; `now_ms` is when a result is stored."""

    def __init__(self, store: Store, outbox: Outbox, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._outbox = outbox
        self._now_ms = now_ms

    def append(
        self, results: Sequence[Emission], done: Callable[[BaseException | None], None]
    ) -> None:
        """One piece of work for all of them."""
        rows = [
            row_of(one.offset, one.subscription, one.subscriber, one.actor, one.payload)
            for one in results
        ]
        self._outbox.append(rows, self._now_ms(), done)

    def full(self) -> bool:
        """Whether more waits than should."""
        return self._store.full()

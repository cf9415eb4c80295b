"""The database as the broker's driver sees it: results and subscriptions in, word when durable.

Owns the making of rows. Must not know tables or threads: `broker.store` does. Invariant: what is
given is stored in the order in which it was given.
"""

from collections.abc import Callable, Sequence

from broker.core.effects import Emission, Enlist
from broker.core.effects import Entry as Listed
from broker.store import Catalogue, Entry, Outbox, Row, Store


class StoredOutbox:
    """See `broker.driver.promises.Outbox`; `now_ms` is when a result is stored."""

    def __init__(self, store: Store, outbox: Outbox, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._outbox = outbox
        self._catalogue = Catalogue(store)
        self._now_ms = now_ms

    def append(
        self, results: Sequence[Emission], done: Callable[[BaseException | None], None]
    ) -> None:
        """One piece of work for all of them."""
        rows = [
            Row(
                one.offset,
                one.id,
                one.subscription,
                one.subscriber,
                one.actor,
                one.end_ms,
                one.payload,
            )
            for one in results
        ]
        self._outbox.append(rows, self._now_ms(), done)

    def enlist(self, effect: Enlist, done: Callable[[BaseException | None], None]) -> None:
        """One piece of work, too."""
        coming = [_row(one) for one in effect.coming]
        self._catalogue.change(coming, effect.leaving, done)

    def full(self) -> bool:
        """Tell whether more waits than should."""
        return self._store.full()


async def listed(store: Store) -> list[Listed]:
    """Return what the catalogue lists, in order. Raises StoreError."""
    found = await Catalogue(store).all()
    return [
        Listed(
            one.subscriber,
            one.subscription,
            one.seq,
            one.actor,
            one.client,
            one.proven,
            one.installed_ms,
            one.text,
        )
        for one in found
    ]


def _row(one: Listed) -> Entry:
    return Entry(
        one.subscriber,
        one.subscription,
        one.seq,
        one.actor,
        one.client,
        one.proven,
        one.since,
        one.text,
    )

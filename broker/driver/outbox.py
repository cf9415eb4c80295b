"""The database as the broker's driver sees it: results and subscriptions in, word when durable.

Owns the making of rows. Must not know tables or threads: `broker.store` does. Invariant: what is
given is stored in the order in which it was given.
"""

from collections.abc import Callable, Sequence
from itertools import starmap
from operator import attrgetter

from broker.core.effects import Emission, Enlist
from broker.core.effects import Entry as Listed
from broker.store import CatalogueEntry, Outbox, Row, Store, StoredCatalogue

_columns = attrgetter("offset", "id", "subscription", "subscriber", "actor", "end_ms", "payload")


class StoredOutbox:
    """Store results as `broker.driver.promises.Outbox` asks for, at the time `now_ms`."""

    def __init__(self, store: Store, outbox: Outbox, now_ms: Callable[[], int]) -> None:
        self.full = store.full
        self._outbox = outbox
        self._catalogue = StoredCatalogue(store)
        self._now_ms = now_ms

    def append(
        self, results: Sequence[Emission], done: Callable[[BaseException | None], None]
    ) -> None:
        """One piece of work for all of them."""
        rows = list(starmap(Row, map(_columns, results)))
        self._outbox.append(rows, self._now_ms(), done)

    def enlist(self, effect: Enlist, done: Callable[[BaseException | None], None]) -> None:
        """One piece of work, too."""
        coming = [_row(entry) for entry in effect.coming]
        self._catalogue.change(coming, effect.leaving, done)


async def listed(store: Store) -> list[Listed]:
    """Return what the catalogue lists, in order. Raises StoreError."""
    entries = await StoredCatalogue(store).all()
    return [
        Listed(
            entry.subscriber,
            entry.subscription,
            entry.seq,
            entry.actor,
            entry.client,
            entry.proven,
            entry.installed_ms,
            entry.text,
        )
        for entry in entries
    ]


def _row(one: Listed) -> CatalogueEntry:
    return CatalogueEntry(
        one.subscriber,
        one.subscription,
        one.seq,
        one.actor,
        one.client,
        one.proven,
        one.since,
        one.text,
    )

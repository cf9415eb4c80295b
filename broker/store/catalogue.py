"""The catalogue on disk: what is installed, by whom, since when and from which text.

Owns these rows and the way to them. Must not know the language or the core, whose own catalogue is
what counts while a broker runs. Invariant: a subscription stands here once; rows come back in the
order in which they were put; a text is kept once, and as long as some row is of it.

How a driver uses it: `change` with what a request changed, before the client is told; `all` at the
start: what differs from the core is put right, and where the journal was lost it is what there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from broker.store.store import Done

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from broker.store.store import Store

Key = tuple[str, str]  # subscriber and subscription
ROW_BYTES: Final = 300  # of a row beside its text, about


class CatalogueEntry(msgspec.Struct, frozen=True):
    """One subscription; `client` submitted the `text` that it came with, at `installed_ms`.

    `proven`: the client had shown who it is, by a password or a certificate.
    """

    subscriber: str
    subscription: str
    seq: int
    actor: str
    client: str
    proven: bool
    installed_ms: int
    text: str


class StoredCatalogue:
    """Of a store that was opened with the part RESULTS. All methods belong to the loop's thread."""

    def __init__(self, store: Store) -> None:
        from broker.store import listing

        self._store = store
        self._listing = listing

    def change(
        self,
        coming: Sequence[CatalogueEntry],
        leaving: Sequence[Key] = (),
        done: Done | None = None,
    ) -> None:
        """Strike out and put rows, all of it or nothing; `done` is told when it is durable.

        A row that comes takes the place of the one of its name.
        """
        texts = {entry.text: len(entry.text) for entry in coming}
        size = sum(texts.values()) + ROW_BYTES * (len(coming) + len(leaving))

        def work(connection: Connection) -> None:
            self._listing.change(connection, coming, leaving)

        self._store.submit(work, done, size)

    async def all(self) -> list[CatalogueEntry]:
        """Every entry, in the order in which they were put. Raises StoreError."""
        rows: list[Any] = await self._store.read(self._listing.all_rows)
        return [CatalogueEntry(*row) for row in rows]

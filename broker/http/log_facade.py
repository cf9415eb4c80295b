"""What the HTTP face asks of the log of results.

Owns this interface. Must not know databases. Invariant: what it tells as there is durable.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from broker.store import Consumer, Row, Settled


class ResultLog(Protocol):
    """The log as the HTTP face sees it; `broker.store.Outbox` is one.

    Results of offsets earliest … end − 1 can be read. Each method that waits for the database may
    raise StoreError besides what stands at it.
    """

    @property
    def epoch(self) -> str:
        """The log's own name: where it is another, so are all offsets."""

    @property
    def earliest(self) -> int:
        """The first offset that can still be read."""

    @property
    def end(self) -> int:
        """The first offset that is not there yet."""

    @property
    def inherited(self) -> Callable[[int], Sequence[Mapping[str, object]]]:
        """Return, for the results before an offset, which of them are those of a lost home."""

    async def beyond(self, after: int) -> None:
        """Wait until the log ends elsewhere than at `after`."""

    async def settled(self, names: frozenset[str], *, fresh: bool) -> Settled | None:
        """Up to when all results of these subscriptions are there, as of now; or of all.

        What it tells is true of the log from its `end` of then on. Not `fresh`, it is what was told
        last, and nobody waits for a disk. None: that cannot be told.
        """

    async def read(self, begin: int, end: int, bytes_max: int | None = None) -> list[Row]:
        """Exactly this half-open range. Raises GoneError, NotYetError, TooLargeError."""

    async def ts_at(self, offset: int) -> int | None:
        """The latest end of all results up to and with it. Raises GoneError, NotYetError."""

    async def first_offset_after(self, ts_ms: int) -> int:
        """The first offset whose result ends after this time; the end where there is none yet."""

    async def earliest_end(self, offset: int, after_ms: int) -> int | None:
        """Of the results from an offset on that end after a time, the earliest such end."""

    async def acknowledge(self, consumer: str, offset: int, now_ms: int) -> Consumer:
        """A consumer has everything before it. Raises NotYetError, ConsumersFullError."""

    async def consumers(self) -> Sequence[Consumer]:
        """All of them, by name."""

    async def forget(self, consumer: str) -> bool:
        """Keep nothing for it any more; whether it was known."""

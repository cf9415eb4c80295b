"""What a result is in the log, and how long the log keeps it.

Owns these shapes, which need no database. Must not know tables. Invariant: a row never changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from broker.store.errors import StoreError
from broker.store.parts import Part

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

HOUR_MS: Final = 3_600_000
ROW_BYTES: Final = 250  # of a row beside its payload, on disk (measured) as in memory


class Row(msgspec.Struct, frozen=True, gc=False):
    """One result: its place in the log, its identity and whose it is; `payload` is its JSON.

    `end_ms` is the event time at which what was detected ended.
    """

    offset: int
    id: str
    subscription: str
    subscriber: str
    actor: str
    end_ms: int
    payload: bytes


class Standing(msgspec.Struct, frozen=True):
    """The log as it stands: results of offsets earliest … end − 1 can be read.

    `peak_ms` is the latest end of all results so far. `taken` counts what retention has removed,
    `unread` how many of these not every consumer had acknowledged, or none was there to do so.
    """

    epoch: str
    earliest: int
    end: int
    kept_bytes: int
    peak_ms: int | None = None
    taken: int = 0
    unread: int = 0


class Settled(msgspec.Struct, frozen=True):
    """No result of these `subscriptions` comes any more that ends at or before `until_ms`.

    None: one of them has promised nothing yet. `behind` is the one that has promised least, and
    why it has. Where there is no subscription there is no result to come either.
    """

    subscriptions: int
    until_ms: int | None = None
    behind: str = ""


class Consumer(msgspec.Struct, frozen=True):
    """One who reads the log and says how far it has come: everything below `offset`.

    `missed` counts the results that retention took before it had acknowledged them; the last such
    gap is gap_begin <= offset < gap_end. Where it was moved over a gap, `offset` is the gap's end.
    """

    name: str
    offset: int
    acked_ms: int
    missed: int = 0
    gap_begin: int = 0
    gap_end: int = 0


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """Bound how long results are kept: until all consumers have them and `acked_age_ms` has passed.

    Whether anybody has them or not, none is kept longer than `age_ms_max`, and the oldest go while
    all together take more than `size_bytes_max`. Where nobody consumes, only these two hold.
    """

    acked_age_ms: int = HOUR_MS  # somebody may want to look back a little
    age_ms_max: int = 7 * 24 * HOUR_MS  # a consumer that is away over a long weekend misses nothing
    size_bytes_max: int = 2**30  # of a card of 16 GB this leaves most to others


class Taken(msgspec.Struct, frozen=True):
    """Report what one pass of retention did: from then on the log begins at `earliest`.

    `lapsed` are consumers that it took something from; `more` is whether another pass is due.
    """

    earliest: int
    rows: int
    unread: int
    lapsed: tuple[Consumer, ...]
    more: bool


class ConsumersFullError(StoreError):
    """No further consumer is taken."""


class GoneError(StoreError):
    """Retention took what was asked for; `earliest` is what is still there."""

    def __init__(self, standing: Standing) -> None:
        super().__init__(f"the log begins at offset {standing.earliest}: earlier results are gone")
        self.standing = standing


class NotYetError(StoreError):
    """Report that what was asked for has not come yet; the log ends before it."""

    def __init__(self, standing: Standing) -> None:
        super().__init__(
            f"the log ends at offset {standing.end}: what comes later is not there yet"
        )
        self.standing = standing


class TooLargeError(StoreError):
    """A range is larger than the reader will take; up to `fits` it is not."""

    def __init__(self, begin: int, fits: int, bytes_max: int) -> None:
        super().__init__(
            f"this range has more than {bytes_max} bytes; the results from {begin} up to {fits} "
            "have not"
        )
        self.fits = fits


def _create(connection: Connection) -> None:
    from broker.store.tables import create

    create(connection)


def _second_of_first(connection: Connection) -> None:
    from broker.store.tables import second_of_first

    second_of_first(connection)


def _third_of_second(connection: Connection) -> None:
    from broker.store.listing import third_of_second

    third_of_second(connection)


def _fourth_of_third(connection: Connection) -> None:
    from broker.store.tables import fourth_of_third

    fourth_of_third(connection)


RESULTS: Final = Part(
    "results",
    4,
    _create,
    {1: _second_of_first, 2: _third_of_second, 3: _fourth_of_third},
)


def checked(rows: Sequence[Row]) -> None:
    """Raise ValueError unless the offsets ascend: nothing else can be a log."""
    before = -1
    for row in rows:
        if row.offset <= before:
            raise ValueError(f"offset {row.offset} comes after {before}: offsets must ascend")
        before = row.offset

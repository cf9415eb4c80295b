"""What origins are told of how far this broker has stored their events.

Owns which positions they know, and when they are told more. Must not know events or journals: what
is stored comes in as rows. Invariant: what is said of an origin was stored before; an origin that
waits, or keeps much, hears within `STORED_MS`.

An origin keeps its events until all hosts have stored them. It loses nothing by keeping some for
longer, so it is told seldom, and of all origins in one frame for each way; but soon where it was
not told since it answered a question, or is far behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from broker.network.replication.progress import PROGRESS_SINCE, StoredRow, StoredUpto

STORED_MS = 500  # origins are told at most so often, where one of them waits for it
STORED_MS_MAX = 60_000  # else; then of all that is new
FAR = 1_024  # positions, behind which an origin keeps what it might let go of

Say = Callable[[str, Any, int], None]


class StoredReports:
    """The reports of one host, and those of others that pass it.

    `unstored` returns what origins are not told yet, `single` makes a report of one row for
    neighbours of the version before.
    """

    def __init__(  # noqa: PLR0917  # what a broker lends it
        self,
        me: str,
        via: Mapping[str, str],
        version: Callable[[str], int],
        unstored: Callable[[], list[StoredRow]],
        say: Say,
        single: Callable[[str, str, int, int], Any],
    ) -> None:
        self.told_ms = 0
        self.positions: dict[str, int] = {}  # by origin: what it was told
        self._me = me
        self._via = via
        self._version = version
        self._unstored = unstored
        self._say = say
        self._single = single

    def due(self) -> int | None:
        """Return when origins are to be told; None where there is nothing to tell."""
        rows = self._unstored()
        if not rows:
            return None
        for origin, _, upto in rows:
            if upto - self.positions.get(origin, -FAR) >= FAR:
                return self.told_ms + STORED_MS
        return self.told_ms + STORED_MS_MAX

    def hurry(self, origin: str) -> None:
        """Tell an origin soon: it waits, or may have lost what it was told."""
        self.positions.pop(origin, None)

    def wake(self, now: int, after: int) -> None:
        """Tell origins if it is time for it."""
        due = self.due()
        if due is not None and due <= now:
            self.tell(now, after)

    def tell(self, now: int, after: int) -> None:
        """Tell all origins what they do not know, behind the record `after`."""
        self.told_ms = now
        rows = self._unstored()
        self.positions.update({origin: position for origin, _, position in rows})
        self.pass_on("", StoredUpto(self._me, tuple(rows)), after)

    def pass_on(self, peer: str, stored: StoredUpto, after: int = 0) -> None:
        """Say a host's report on the way to each of the origins, but not back to `peer`."""
        by_way: dict[str, list[StoredRow]] = {}
        for row in stored.rows:
            via = self._via.get(row[0], peer)
            if via != peer:
                by_way.setdefault(via, []).append(row)
        for via, rows in by_way.items():
            if self._version(via) >= PROGRESS_SINCE:
                self._say(via, StoredUpto(stored.host, tuple(rows)), after)
                continue
            for origin, life, position in rows:
                self._say(via, self._single(stored.host, origin, life, position), after)

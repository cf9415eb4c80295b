"""When a cell's state goes to its home, and what of it is under way.

Owns the pace and the one snapshot that is not stored yet. Must not know frames or tasks. Invariant:
a position is told to an origin only from a snapshot that the home has stored; a snapshot is given
out only once the home has all results before it.

A small state goes often, a large one seldom: at most so many bytes of snapshots for those that come
in, but for one now and then so that origins need not keep events for long.
"""

from __future__ import annotations

from msgspec import Struct

SAVE_MS = 1_000  # at most so often
SAVE_SHARE = 20  # the last snapshot's bytes have come in so many times before the next one, …
SAVE_MS_MAX = 15_000  # … or so long has passed, and for a large state
SAVE_BYTES_S = 100_000  # as long as it takes at this pace
SAVE_RESULTS = 10_000  # or so many results came, whose ids the home has to remember

Positions = dict[str, tuple[int, int]]  # by origin: life, position


class Saving(Struct, frozen=True):
    """A snapshot: the cell's records up to `number`, its results before `end`."""

    number: int
    end: int
    positions: Positions
    snapshot: bytes
    held: dict[str, int] = {}  # what origins keep because of what is in it
    revision: int = 0  # of the cell's text


class Saver:
    """Decide when a cell's state goes to its home, and keep what of it is under way.

    `stored` are the positions that the home has, `revision` is that of the text.
    """

    def __init__(self, stored: Positions, now: int, revision: int = 0) -> None:
        self.stored = stored
        self.revision = revision
        self.waiting: Saving | None = None
        self.size_bytes = 0  # of the last one
        self.came_bytes = 0  # since then
        self._at = now
        self._last: Saving | None = None
        self._event_at: dict[str, int] = {}  # by origin: the position of the last event
        self._asked_at: int | None = None  # when the next one is wanted

    @property
    def began(self) -> bool:
        """Tell whether there was a snapshot since the cell began here."""
        return self._last is not None

    def due_at(
        self, positions: Positions, end: int, held: dict[str, int] | None = None
    ) -> int | None:
        """When the next one is due; None: nothing has changed, or one is under way."""
        if self.waiting is not None:
            return None
        last = self._last
        if last is None or last.revision != self.revision:
            # The first one makes a cell active, or ends its move, or puts a text in force: it is
            # due at once.
            return self._at
        if self._asked_at is not None:
            return self._asked_at
        now, before = (end, _lives(positions)), (last.end, _lives(last.positions))
        is_same = not self.came_bytes and now == before and last.held == (held or {})
        if is_same and not self._is_owed(last, positions):
            return None
        # At 20 bytes in for each byte of state snapshots are at most 5 % of what comes.
        early = self.came_bytes >= SAVE_SHARE * self.size_bytes
        if early or end - last.end >= SAVE_RESULTS:
            return self._at + SAVE_MS
        return self._at + max(SAVE_MS_MAX, self.size_bytes * 1000 // SAVE_BYTES_S)

    def _is_owed(self, last: Saving, positions: Positions) -> bool:
        """Tell if an origin keeps an event that it need not once there is another snapshot.

        It may have come ahead of what was kept back on its way, and is there now.
        """
        return any(
            last.positions[origin][1] < min(position, self._event_at.get(origin, 0))
            for origin, (_, position) in positions.items()
            if origin in last.positions
        )

    def ask(self, at: int) -> None:
        """Have the next one be due then, whatever came since the last."""
        self._asked_at = at

    def save(self, one: Saving, now: int) -> None:
        """This is the next one."""
        self.waiting, self._asked_at = one, None
        self.size_bytes, self.came_bytes = len(one.snapshot), 0
        self._at, self._last = now, one

    def put_off(self, now: int) -> None:
        """It could not be made: the next one is not due before a while."""
        self._at = now + SAVE_MS_MAX

    def came(self, origin: str, position: int, size_bytes: int) -> None:
        """Events of an origin came; the last one stands there."""
        self.came_bytes += size_bytes
        self._event_at[origin] = position

    def may_tell(self, origin: str, life: int, position: int) -> int | None:
        """The position that an origin may be told, where the cell is at this one; None: nothing.

        That of the stored snapshot, or where the cell is if no event has come since.
        """
        stored = self.stored.get(origin)
        if stored is None or stored[0] != life:
            return None
        return stored[1] if self._event_at.get(origin, 0) > stored[1] else position

    def done(self, number: int) -> bool:
        """The home has stored it; whether it is the one that waited for that."""
        one = self.waiting
        if one is None or one.number != number:
            return False
        self.waiting, self.stored = None, one.positions
        return True


def _lives(positions: Positions) -> dict[str, int]:
    return {origin: life for origin, (life, _) in positions.items()}

"""The fence in front of the results of a home: how far its stand-in has them.

Owns which results may be given out. Must not know what a result is, links or clocks. Invariant: a
result is given out behind the stand-in's answer to the change that tells of it. A home without a
lease waits for that answer no longer than `GIVE_OUT_MS`, and not at all for a stand-in that cannot
be reached; one with a lease waits for as long as it takes.

So a take-over finds in the copy whatever a reader of the output log may have had: it can tell which
results are to be read still, and finds none of them a second time.
"""

from __future__ import annotations

from collections import deque

GIVE_OUT_MS = 1_000  # an alarm is not to wait longer for the second disk that has it


class ResultFence:
    """Lets results before the offset `upto` be given out."""

    def __init__(self, upto: int) -> None:
        self.upto = upto
        self._held: deque[tuple[int, int, int]] = deque()  # change, end of its results, since when

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, number: int, end: int, now: int) -> None:
        """Hold the results before an offset until the stand-in has a change."""
        self._held.append((number, end, now))

    def look(self, now: int, kept: int | None, *, is_leased: bool) -> bool:
        """Let go of what the stand-in has, of all without one; tell if that is more than before.

        `kept` is the number of the last change that it has; None: nobody is waited for.
        """
        before = self.upto
        while self._held:
            number, end, since = self._held[0]
            # In order: a result that waits holds those behind it, as offsets are given out so.
            is_due = not is_leased and now - since >= GIVE_OUT_MS
            if kept is not None and kept < number and not is_due:
                break
            self.upto = end
            self._held.popleft()
        return self.upto > before

    def next_wake(self) -> int | None:
        """Return when a result is held no longer."""
        return self._held[0][2] + GIVE_OUT_MS if self._held else None

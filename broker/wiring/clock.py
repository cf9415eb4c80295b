"""The wall clock as the core wants it: milliseconds since the epoch that never go back.

Owns that promise. Must not know who asks. Invariant: a later answer is never less than an earlier.
"""

import time
from collections.abc import Callable


class WallClock:
    """Follows the wall clock where it is set forward and ignores where it is set back.

    Between two settings it runs with the monotonic clock, so that time goes on after the wall clock
    was set back too. `wall_s` and `monotonic_s` are the clocks underneath, in seconds.
    """

    def __init__(
        self,
        wall_s: Callable[[], float] = time.time,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall_s = wall_s
        self._monotonic_s = monotonic_s
        self._ahead_s = wall_s() - monotonic_s()

    def not_before(self, moment_ms: int) -> None:
        """Go on from this moment, where the clock has not come to it: it was set back meanwhile."""
        self._ahead_s = max(self._ahead_s, moment_ms / 1000 - self._monotonic_s())

    def now_ms(self) -> int:
        """The time."""
        monotonic_s = self._monotonic_s()
        self._ahead_s = max(self._ahead_s, self._wall_s() - monotonic_s)
        return int((monotonic_s + self._ahead_s) * 1000)

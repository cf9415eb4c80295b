"""The time of the core, and the time of day beside it.

Owns both: `now_ms` runs with a steady clock that nobody sets, and `ahead_ms` says how far the time
of day is ahead of it, as far as this is believed. Must not know who asks. Invariant: a later
`now_ms` is never less than an earlier one, and no jump of the wall clock moves it.

Silence and deadlines are measured by `now_ms`, so that a jump makes no source silent and no event
late. Readings without a time are stamped with the time of day. A wall clock that jumps may jump
back: it is believed once it has stayed where it is for `wait_s`.

         |gap| < STEP_S: followed at once
    settled ------- |gap| ≥ STEP_S: `clock_jumped` ------> jumped
       ^                                                     | back: `clock_came_back`
       +-----------------------------------------------------+ stayed for `wait_s`: `clock_followed`
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial

from broker import logs
from broker.core.messages import ClockSet
from broker.network.effects import Note

STEP_S = 1.0  # time daemons correct less than that by steps in ordinary work
TELL_MS = 20  # less is not worth a record of the journal
WAIT_S = 60.0
LOOK_S = 1.0


# Seconds since some moment, also while the machine slept, where the system counts these.
steady_s: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic
)


class WallClock:
    """The clock that the module describes; `wall` and `steady` underneath are in seconds."""

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = steady_s,
        wait_s: float = WAIT_S,
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._wait_s = wait_s
        self._begin_s = wall() - steady()  # `now_ms` is the steady clock and this
        self._ahead_s = 0.0
        self._jumped: tuple[float, float] | None = None  # (gap, since when by the steady clock)
        self.jumps = 0

    def not_before(self, moment_ms: int) -> None:
        """Continue from `moment_ms`, where the wall clock has not come to it yet."""
        steady = self._steady()
        self._begin_s = max(self._begin_s, moment_ms / 1000 - steady)
        self._ahead_s = self._wall() - steady - self._begin_s

    def now_ms(self) -> int:
        """Return the time by which the core goes."""
        return int((self._steady() + self._begin_s) * 1000)

    @property
    def ahead_ms(self) -> int:
        """The believed distance of the time of day from `now_ms`; negative: it is behind."""
        ahead_ms = round(self._ahead_s * 1000)
        return ahead_ms if abs(ahead_ms) >= TELL_MS else 0

    @property
    def gap_ms(self) -> int:
        """The distance of the wall clock from where it is believed to be; 0 while settled."""
        return 0 if self._jumped is None else round(self._jumped[0] * 1000)

    def status(self) -> dict[str, int]:
        """Return what a person may want to know, in milliseconds, and how many jumps were seen."""
        return {"ahead_ms": self.ahead_ms, "gap_ms": self.gap_ms, "jumps": self.jumps}

    def look(self) -> Note | None:
        """Compare the clocks; what a person should know of it. To be called every second or so."""
        steady = self._steady()
        gap = self._wall() - steady - self._begin_s - self._ahead_s
        if abs(gap) < STEP_S:
            self._ahead_s += gap
            if self._jumped is None:
                return None
            by_ms, self._jumped = self.gap_ms, None
            return Note("warning", "clock_came_back", {"jumped_by_ms": by_ms})
        if self._jumped is None or abs(gap - self._jumped[0]) >= STEP_S:
            self._jumped = (gap, steady)
            self.jumps += 1
            wait_s = round(self._wait_s)
            jump_ms = round(gap * 1000)
            return Note("warning", "clock_jumped", {"by_ms": jump_ms, "followed_in_s": wait_s})
        if steady - self._jumped[1] < self._wait_s:
            return None
        self._ahead_s, self._jumped = self._ahead_s + gap, None
        return Note("warning", "clock_followed", {"by_ms": round(gap * 1000)})


class ClockWatch:
    """Looks at the clock every second, logs what it finds, and tells the core how far it is.

    `put` takes the core's messages. To be made before the core is told anything else.
    """

    def __init__(self, clock: WallClock, put: Callable[[ClockSet], None]) -> None:
        self._clock = clock
        self._put = put
        self._told_ms = 0
        self._timer: asyncio.TimerHandle | None = None
        self._look()

    def close(self) -> None:
        """Look no further."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        note = self._clock.look()
        if note is not None:
            logs.write(note)
        ahead_ms = self._clock.ahead_ms
        if abs(ahead_ms - self._told_ms) >= TELL_MS:
            self._told_ms = ahead_ms
            self._put(ClockSet(ahead_ms))
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

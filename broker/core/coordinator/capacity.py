"""Measure the bytes a second that a broker can take in, by the CPU time that its input costs.

Owns the measurement, and that a configured limit takes its place. Must not know clocks, control
groups or who is told. Invariant: nothing is said before the broker was busy for long enough, and
what was said stands until what is measured is another by more than `APART`; so a plan does not
begin anew each time that a rate goes up and down.

Bytes for a second of CPU are a mean over the last busy seconds of CPU. A broker that idles does
much that no byte is to blame for, so that of it nothing can be learnt; what it was when it was busy
is remembered, also when tasks have gone elsewhere since.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp

from broker.core.coordinator.metering import Counts
from broker.core.coordinator.statement import Piece

BUSY = 0.25  # the part of its processors that a broker has to use that it counts
LEARNT_MS = 5_000  # of busy CPU, as the mean weighs it, before anything is said
MEAN_MS = 30_000  # of busy CPU that bytes for CPU are a mean over
ROOM = 0.8  # the part of what it can take that tasks may take: a queue that is full grows for ever
APART = 1.5  # times as much or as little as was said is said anew


class Capacity:
    """One broker's capacity. `bytes_per_s` is as `configured`, or 0 while nothing is measured."""

    def __init__(self, configured: int = 0) -> None:
        self.bytes_per_s = configured
        self.is_configured = bool(configured)
        self._before: Mapping[Piece, Counts] = {}
        self._used_ms = 0
        self._at: int | None = None
        self._bytes = self._busy_ms = 0.0

    def look(
        self, counts: Mapping[Piece, Counts], used_ms: int, granted_ms_per_s: int, now: int
    ) -> bool:
        """Take in what was used; True where another capacity is to be said.

        `counts` are those of what runs here, `used_ms` the CPU that the process has used so far,
        and of `granted_ms_per_s` it may use so much in a second.
        """
        if self.is_configured:
            return False
        taken, cpu_ms = self._taken(counts), used_ms - self._used_ms
        took_ms = 0 if self._at is None else now - self._at
        self._before, self._used_ms, self._at = counts, used_ms, now
        if taken and cpu_ms * 1_000 >= BUSY * granted_ms_per_s * took_ms > 0:
            keeps = exp(-cpu_ms / MEAN_MS)
            self._bytes = self._bytes * keeps + taken
            self._busy_ms = self._busy_ms * keeps + cpu_ms
        if self._busy_ms < LEARNT_MS:
            return False
        measured = self._bytes / self._busy_ms * granted_ms_per_s * ROOM
        if self.bytes_per_s / APART <= measured <= self.bytes_per_s * APART:
            return False
        self.bytes_per_s = max(1, round(measured))
        return True

    def _taken(self, counts: Mapping[Piece, Counts]) -> int:
        """Return the bytes since the last look, of what ran here then as well."""
        return sum(
            sum(now.inputs.values()) - sum(before.inputs.values())
            for piece, now in counts.items()
            if (before := self._before.get(piece)) is not None and before.term == now.term
        )

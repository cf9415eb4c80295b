"""Which offsets the next batch reads from each broker.

Owns the sharing of a batch among brokers, their alignment in event time, and what happens where a
broker is away, new, or lost results. Must not know Spark. Invariant: what was not read because it
is held back is read later; what cannot be read any more is told with its exact range.

**Alignment.** Spark has one watermark: the greatest event time of all rows so far, less a delay.
Rows of a broker that is behind would all be late. So a batch goes no further in event time than the
least of what it can reach in each broker's log; the rest waits for the next batch. A broker that is
away holds the others at the event time that was reached with it.

Within one log results stand in the order in which they were found. One that was found late, as its
subscription waited for a source, stands behind others that end after it; no alignment mends that:
the delay of the watermark has to cover it, and what it does not is told where it is read.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from server.source.log import AwayError, EpochError, LogError, Standing, tell
from server.source.options import SourceOptions
from server.source.places import Place
from server.source.watch import Known


class LostError(LogError):
    """Results were taken before they were read."""


class EventTimes(Protocol):
    """What is asked of a log to align it; `Log` is one."""

    def ts_at(self, epoch: str, offset: int) -> int | None:
        """See Log."""

    def first_offset_after(self, epoch: str, ts_ms: int) -> int:
        """See Log."""


@dataclass
class _Range:
    """Of one broker: what can be read, and to where it is read now."""

    epoch: str
    begin: int
    end: int
    reached_ms: int | None


@dataclass
class Planner:
    """Plans batches of one stream; see the module."""

    options: SourceOptions
    times: Callable[[str], EventTimes]
    clock: Callable[[], float] = time.monotonic
    told: set[str] = field(default_factory=set)

    def plan(
        self,
        start: Mapping[str, Place],
        known: Mapping[str, Known],
        rows_max: int | None,
        *,
        live: bool = True,
    ) -> dict[str, Place]:
        """Where the batch that begins at `start` ends. Raises LogError.

        Not `live`, logs end where `known` says, and nobody will say more: no broker is waited for
        because it is quiet.
        """
        ends = dict(start)
        ranges: dict[str, _Range] = {}
        held: list[int | None] = []
        for name, seen in known.items():
            if seen.away is not None or seen.standing is None:
                self._away(seen)
                if self._is_waited_for(seen):
                    held.append(start[name].reached_ms if name in start else None)
                continue
            place, log = start.get(name), seen.standing
            if place is None or place.epoch != log.epoch:
                ends[name] = self._pinned(name, place, log)
                held.append(None)  # its first rows are read next
                continue
            begin = self._begin(name, place, log)
            if begin < log.end:
                ranges[name] = _Range(log.epoch, begin, log.end, place.reached_ms)
            elif live and self.clock() - seen.since_s < self.options.quiet_s:
                held.append(place.reached_ms)
        _share(ranges, rows_max)
        if self.options.align:
            self._align(ranges, held, passed(start))
        for name, one in ranges.items():
            if one.end > one.begin:
                ends[name] = Place(one.epoch, one.end, one.reached_ms)
        return ends

    # --- brokers that are not as they were ----------------------------------------------------

    def _away(self, seen: Known) -> None:
        why = seen.away or AwayError("it has not answered yet")
        if self.options.on_away == "fail" or not isinstance(why, AwayError):
            raise why
        self._tell(f"{why}; it is waited for")

    def _is_waited_for(self, seen: Known) -> bool:
        away_s = self.options.away_s
        return away_s is None or self.clock() - seen.since_s < away_s

    def _pinned(self, name: str, place: Place | None, log: Standing) -> Place:
        """Where a log is begun, with no rows yet: planned again, the batch is then the same."""
        if place is not None:
            message = (
                f"broker {name} has another log (epoch {log.epoch}) than the one that was read up"
                f" to offset {place.next} (epoch {place.epoch}): its disk was replaced"
            )
            if self.options.fail_on_loss:
                raise EpochError(message)
            self._tell(f"{message}; the new one is read from its beginning")
            return Place(log.epoch, log.earliest, place.reached_ms)
        latest = self.options.starting == "latest"
        return Place(log.epoch, log.end if latest else log.earliest)

    def _begin(self, name: str, place: Place, log: Standing) -> int:
        if place.next > log.end:
            raise LostError(
                f"the log of broker {name} ends at offset {log.end}, but was read up to"
                f" {place.next} before: its disk was put back to an older state"
            )
        if place.next >= log.earliest:
            return place.next
        message = gap(name, place.next, log.earliest)
        if self.options.fail_on_loss:
            raise LostError(message)
        self._tell(message)
        return log.earliest

    def _tell(self, message: str) -> None:
        """On the standard error of the driver's side of the source, once."""
        if message not in self.told:
            self.told.add(message)
            tell(message)

    # --- event times --------------------------------------------------------------------------

    def _align(
        self, ranges: dict[str, _Range], held: list[int | None], passed_ms: int | None
    ) -> None:
        if not ranges:
            return
        if None in held:  # nothing is known of how far somebody is: all wait
            for one in ranges.values():
                one.end = one.begin
            return
        slack_ms = round(self.options.slack_s * 1000)
        bounds = [ts for ts in held if ts is not None]
        reached: dict[str, int] = {}
        for name, one in ranges.items():
            ts = self.times(name).ts_at(one.epoch, one.end - 1)
            if ts is not None:
                reached[name] = ts
                bounds.append(ts)
        bound = min(bounds, default=None)
        if bound is not None and passed_ms is not None:
            # What ends before that moves no watermark: late already, it must not wait besides.
            bound = max(bound, passed_ms)
        for name, one in ranges.items():
            ts = reached.get(name)
            if ts is not None and bound is not None and ts > bound + slack_ms:
                times = self.times(name)
                first = times.first_offset_after(one.epoch, bound + slack_ms)
                one.end = min(one.end, max(one.begin, first))
                if one.end > one.begin:
                    ts = times.ts_at(one.epoch, one.end - 1)
            one.reached_ms = ts if ts is not None else one.reached_ms


def passed(places: Mapping[str, Place]) -> int | None:
    """The event time that was reached with any broker: the watermark follows it."""
    return max(
        (one.reached_ms for one in places.values() if one.reached_ms is not None), default=None
    )


def gap(name: str, begin: int, end: int) -> str:
    """The sentence about results that are gone: a half-open range of offsets."""
    return (
        f"broker {name}: offsets {begin} to {end - 1} ({end - begin} offsets) were taken by"
        f" retention before they were read"
    )


def _share(ranges: dict[str, _Range], rows_max: int | None) -> None:
    """Cut the ranges so that they hold at most so many offsets together, none starved."""
    if rows_max is None or rows_max <= 0:
        return
    left = rows_max
    # From the shortest on: what one does not need is the others'.
    waiting = sorted(ranges.values(), key=lambda one: one.end - one.begin)
    for n, one in enumerate(waiting):
        part = max(1, left // (len(waiting) - n))
        one.end = min(one.end, one.begin + part)
        left -= one.end - one.begin

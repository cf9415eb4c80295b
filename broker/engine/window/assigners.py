"""The assigner of aligned windows: which pane an instant lies in, which windows a pane belongs to.

Owns the numbers of panes and windows, and where the local days of a zone begin. Must not know
events. Invariant: panes and windows ascend with time, and a window is exactly its panes.

Panes are those of paired windows (Krishnamurthy, Wu, Franklin: On-the-fly sharing for streamed
aggregation, SIGMOD 2006): the edges of windows are at kT and kT − R, so at most two panes lie in
each T, and every event is taken once however many windows it belongs to. For `every 10 s range
25 s` the panes are [0, 5), [5, 10), [10, 15), … and a window is five of them. Panes as long as the
greatest common divisor of T and R (Li and others, SIGMOD Record 34, 2005) were rejected: 7 s and
23 s would have 23 panes a window in place of seven.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from broker.engine.event.source import Constants
from language.tree import Window

DAY_MS = 86_400_000
DAYS_KNOWN_MAX = 10_000  # beginnings of days that are remembered: 27 years of them
_EPOCH = date(1970, 1, 1)
_FIRST = (date.min - _EPOCH).days + 1
_LAST = (date.max - _EPOCH).days - 1


class LocalDays:
    """The days of one zone: [midnight, midnight), of 23, 24 or 25 hours, numbered from 1970-01-01.

    The zone's rules are read where a definition is compiled, from the time zone database of the
    host (PEP 615): nothing is read later. Where a midnight is skipped the day begins when the
    clocks change; where it comes twice, with the first. Outside of the calendar's years 1 to 9999
    days are of 24 hours. Raises ValueError of a name that the host does not know.
    """

    def __init__(self, zone: str) -> None:
        try:
            self._zone = ZoneInfo(zone)
        except (ZoneInfoNotFoundError, OSError, ValueError):
            raise ValueError(f"no time zone is called {zone!r}") from None
        self._starts: dict[int, int] = {}

    def start(self, day: int) -> int:
        """Return the first instant of a day."""
        start = self._starts.get(day)
        if start is None:
            if len(self._starts) >= DAYS_KNOWN_MAX:
                self._starts.clear()
            start = self._starts[day] = self._start(day)
        return start

    def number(self, time_ms: int) -> int:
        """Return the day that an instant lies in."""
        # No zone is further than 14 hours from UTC: the guess is a day off at most, but for Apia
        # and others that skipped a whole day.
        day = time_ms // DAY_MS
        while self.start(day) > time_ms:
            day -= 1
        while self.start(day + 1) <= time_ms:
            day += 1
        return day

    def _start(self, day: int) -> int:
        listed = min(max(day, _FIRST), _LAST)
        midnight = datetime.combine(_EPOCH + timedelta(days=listed), time(), self._zone)
        offset = midnight.utcoffset() or timedelta()
        return day * DAY_MS - offset // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Grid:
    """The panes and windows of `every T` (no reach) or `every T range R`, by number.

    `every` and `reach` are milliseconds, or whole local days where `days` are given.
    """

    every: int
    reach: int | None = None
    days: LocalDays | None = None

    @property
    def halved(self) -> bool:
        """Return True where each T has two panes: a window's beginning cuts it."""
        return self.reach is not None and self.reach % self.every != 0

    @property
    def cut(self) -> int:
        """Return where, from kT, the second pane of a T begins."""
        return self.every - (self.reach or 0) % self.every

    @property
    def panes_each(self) -> int:
        """Return the greatest number of panes of a window."""
        first, last = self.panes_of(0)
        return last - first + 1

    def windows_of(self, pane: int) -> tuple[int, int]:
        """Return the first and the last window with the pane; none if the last comes first."""
        if self.reach is None:
            return pane, pane
        whole = self.reach // self.every
        if not self.halved:
            return pane + 1, pane + whole
        period, second = divmod(pane, 2)
        return period + 1, period + whole + second

    def panes_of(self, window: int) -> tuple[int, int]:
        """Return the first and the last pane of a window."""
        if self.reach is None:
            return window, window
        whole = self.reach // self.every
        if not self.halved:
            return window - whole, window - 1
        return 2 * (window - whole) - 1, 2 * window - 1

    def closes_at(self, window: int) -> int:
        """Return the last instant of a window: with this watermark nothing more falls into it."""
        return self._instant((window + (self.reach is None)) * self.every) - 1

    def closed_by(self, watermark: int) -> int:
        """Return the last window that a watermark closes."""
        return self._number(watermark + 1) // self.every - (self.reach is None)

    def opens_at(self, window: int) -> int:
        """Return the first instant of a window."""
        return self.begins_at(self.panes_of(window)[0])

    def next_opens_at(self, watermark: int) -> int:
        """Return the first instant of the first window that a watermark leaves open."""
        return self.opens_at(self.closed_by(watermark) + 1)

    def frame_of(self, window: int) -> tuple[int, int, int]:
        """Return a window, its first instant and the one after its last."""
        return window, self.opens_at(window), self.closes_at(window) + 1

    def pane_of(self, time_ms: int) -> int:
        """Return the pane that an instant lies in."""
        number = self._number(time_ms)
        if not self.halved:
            return number // self.every
        period, offset = divmod(number, self.every)
        return 2 * period + (offset >= self.cut)

    def begins_at(self, pane: int) -> int:
        """Return the first instant of a pane."""
        if not self.halved:
            return self._instant(pane * self.every)
        period, second = divmod(pane, 2)
        return self._instant(period * self.every + second * self.cut)

    def pane_lines(self, constants: Constants) -> list[str]:
        """Return lines that set `pane` to that of the time `end`; it lasts from `low` to `high`."""
        if self.days is not None or self.halved:
            return [f"pane, low, high = {constants.add(self._located)}(end)"]
        every = constants.add(self.every)
        return [f"pane = end // {every}", f"low = pane * {every}", f"high = low + {every}"]

    def runs(self, times_ms: list[int]) -> Iterator[tuple[int, int, int]]:
        """Yield (pane, begin, stop) of times that ascend; of each pane they are bisected."""
        begin = 0
        while begin < len(times_ms):
            pane, _, high = self._located(times_ms[begin])
            stop = bisect_left(times_ms, high, begin)
            yield pane, begin, stop
            begin = stop

    def _located(self, time_ms: int) -> tuple[int, int, int]:
        pane = self.pane_of(time_ms)
        return pane, self.begins_at(pane), self.begins_at(pane + 1)

    def _instant(self, number: int) -> int:
        return number if self.days is None else self.days.start(number)

    def _number(self, time_ms: int) -> int:
        return time_ms if self.days is None else self.days.number(time_ms)


def grid_of(window: Window) -> Grid | None:
    """Return the windows of `every`, None without it.

    Raises ValueError of a zone or range that cannot be.
    """
    if window.every_days is None:
        return None if window.every_ms is None else Grid(window.every_ms, window.range_ms)
    assert window.zone is not None, "days are of a zone"
    days = LocalDays(window.zone)
    if window.range_ms is None:
        return Grid(window.every_days, None, days)
    range_days, remainder = divmod(window.range_ms, DAY_MS)
    if remainder:
        raise ValueError("a range in a zone is of whole days")
    return Grid(window.every_days, range_days, days)

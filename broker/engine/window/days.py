"""Windows that begin at the midnights of a time zone.

Owns where local days begin. Must not know events. Invariant: a day is [midnight, midnight), be it
of 23, 24 or 25 hours, and days ascend with time; days are numbered from 1 January 1970.

The zone's rules are read once, where a definition is compiled, from the time zone database of the
host (PEP 615): here nothing is read later. Where a midnight is skipped the day begins when the
clocks change; where it comes twice, with the first. Outside of the calendar's years 1 to 9999 days
are of 24 hours.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from broker.engine.event.source import Constants
from broker.engine.window.grid import Grid

DAY_MS = 86_400_000
DAYS_KNOWN_MAX = 10_000  # beginnings of days that are remembered
_EPOCH = date(1970, 1, 1)
_FIRST = (date.min - _EPOCH).days + 1
_LAST = (date.max - _EPOCH).days - 1


class LocalDays:
    """The days of one zone. Raises ValueError of a name that the host does not know."""

    def __init__(self, zone: str) -> None:
        try:
            self._zone = ZoneInfo(zone)
        except (ZoneInfoNotFoundError, OSError, ValueError):
            raise ValueError(f"no time zone is called {zone!r}") from None
        self._starts: dict[int, int] = {}

    def start(self, day: int) -> int:
        """The first instant of a day."""
        known = self._starts.get(day)
        if known is None:
            if len(self._starts) >= DAYS_KNOWN_MAX:
                self._starts.clear()
            known = self._starts[day] = self._start(day)
        return known

    def number(self, time_ms: int) -> int:
        """The day that an instant lies in."""
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


class DayGrid:
    """As window_grid.Grid, of whole local days: `every N days in Z`, perhaps with a range."""

    def __init__(self, zone: str, every_days: int, range_days: int | None = None) -> None:
        self._days = LocalDays(zone)
        self._grid = Grid(every_days, range_days)
        self.panes_each = self._grid.panes_each

    def windows_of(self, pane: int) -> tuple[int, int]:
        """See Grid."""
        return self._grid.windows_of(pane)

    def panes_of(self, window: int) -> tuple[int, int]:
        """See Grid."""
        return self._grid.panes_of(window)

    def closes_at(self, window: int) -> int:
        """See Grid."""
        return self._days.start(self._grid.closes_at(window) + 1) - 1

    def closed_by(self, watermark: int) -> int:
        """See Grid."""
        return self._grid.closed_by(self._days.number(watermark + 1) - 1)

    def opens_at(self, window: int) -> int:
        """See Grid."""
        return self._days.start(self._grid.opens_at(window))

    def begins_at(self, pane: int) -> int:
        """See Grid."""
        return self._days.start(self._grid.begins_at(pane))

    def next_opens_at(self, watermark: int) -> int:
        """Return the first instant of the first window that a watermark leaves open."""
        return self.opens_at(self.closed_by(watermark) + 1)

    def frame_of(self, window: int) -> tuple[int, int, int]:
        """Return a window, its first instant and the one after its last."""
        return window, self.opens_at(window), self.closes_at(window) + 1

    def pane_of(self, time: int) -> int:
        """See Grid."""
        return self._grid.pane_of(self._days.number(time))

    def pane_lines(self, constants: Constants) -> list[str]:
        """See Grid: most events lie in the pane of the one before, `low` to `high`."""
        locate = constants.add(self._locate)
        return [
            "end = e.end",
            "if not low <= end < high:",
            f"    pane, low, high = {locate}(end)",
        ]

    def _locate(self, time: int) -> tuple[int, int, int]:
        day = self._days.number(time)
        return self._grid.pane_of(day), self._days.start(day), self._days.start(day + 1)

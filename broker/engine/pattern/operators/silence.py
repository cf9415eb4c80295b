"""`absent P for T`: intervals in which there is no P.

Owns the instants from which silence is awaited. Must not know P. Invariant: each instant gives at
most one interval.
"""

from __future__ import annotations

from typing import Any

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.occurrence import Absence, Occurrence, end_of, start_of
from broker.engine.pattern.layout.operands import Silence
from broker.engine.pattern.stage.asked import Ahead
from broker.engine.pattern.stage.base import Inbox, Over, Site, Stage, least, next_of


class Awaiting(Over):
    """Await silences, with exact times or uncertain ones.

    An interval begins with the task, or where a P ends.
    """

    __slots__ = ("_early", "_empty_places", "_for_ms", "_instants", "_place")

    def __init__(self, silence: Silence, site: Site, beneath: Stage) -> None:
        super().__init__(site, (Inbox(beneath, site.budget),), None)
        self._for_ms = silence.for_ms
        self._place = silence.low
        self._empty_places = silence.high - silence.low - 1
        self._instants: list[int] = []  # from which silence may yet be
        self._early: list[Any] | None = []  # P so far, until the beginning is decided

    # --- what is awaited -------------------------------------------------------------------

    def wait_ms(self) -> int:
        """Return how long after an instant a P may begin that counts for the silence from there."""
        return self._for_ms

    def awaits_beginning(self) -> bool:
        """Tell whether the interval from the beginning is not decided yet."""
        return self._early is not None

    def known(self) -> int:
        """Count the P that it remembers."""
        return len(self._early or ())

    def begins_from(self) -> int:
        """No event that is still to come puts the beginning of the partition before this time."""
        if not self.awaits_beginning() or not self.site.group or self.watermark >= WATERMARK_END:
            return WATERMARK_END
        return self.watermark + 1 - self.site.durations.longest_of_all_ms()

    def _open(self) -> list[int]:
        """The instants from which silence may yet be, the beginning among them."""
        begin = self.site.begin
        if not self.awaits_beginning() or begin is None:
            return self._instants
        return [begin, *self._instants]

    # --- what follows from that ------------------------------------------------------------

    def hold(self) -> int:
        """Return the time after which later silences end, by the instants that are open."""
        open_now = [*self._open(), self.begins_from()]
        return min([super().hold(), *(u + self._for_ms - 1 for u in open_now)])

    def floor(self, above: int) -> int:  # noqa: ARG002
        """Return a bound: what is passed on later begins no earlier."""
        if self.watermark >= WATERMARK_END:
            return WATERMARK_END
        return min([self.watermark, super().hold(), self.begins_from(), *self._open()])

    def begins(self) -> int:
        """Return when what comes begins at the earliest; the task may yet have begun earlier."""
        if self.watermark >= WATERMARK_END:
            return WATERMARK_END
        if self.awaits_beginning():
            return WATERMARK_NONE
        return min([self.inboxes[0].begins(), *self._instants])

    def eldest(self) -> int:
        """Return the earliest instant from which silence may yet be."""
        return min(self._open(), default=WATERMARK_END)

    def clear_at(self, above: int, until: int) -> int:
        """Return the watermark at which all is decided that begins after `above` and by `until`."""
        if self.watermark >= WATERMARK_END:
            return self.watermark
        if super().hold() <= until:
            return WATERMARK_END
        beneath, wait_ms = self.inboxes[0], self.wait_ms()
        begun = [u for u in self._open() if above < u <= until]
        known = [beneath.clear_at(WATERMARK_NONE, u + wait_ms) for u in begun]
        return max([until + 1, *known, *self._begun_at(until)])

    def view(self) -> Ahead:
        """Return itself: it answers as it stands."""
        return self

    def _begun_at(self, until: int) -> list[int]:
        """From which watermark on no event to come puts the beginning at the time or before."""
        if not self.awaits_beginning() or not self.site.group:
            return []
        return [until + self.site.durations.longest_of_all_ms()]

    def due(self) -> int | None:
        """Return the next watermark that may decide a silence without events; None if none."""
        beneath, begin, wait_ms = self.inboxes[0], self.site.begin, self.wait_ms()
        times = [beneath.clear_at(WATERMARK_NONE, u + wait_ms) for u in self._instants]
        if self.awaits_beginning() and begin is not None:
            known = beneath.clear_at(WATERMARK_NONE, begin + wait_ms)
            times.append(max([known, *self._begun_at(begin - 1)]))
        return least([super().due(), next_of(times, self.watermark)])

    def held(self) -> int:
        """Count the occurrences held here and beneath, the instants and the P remembered."""
        return super().held() + len(self._instants) + self.known()

    def idle(self) -> bool:
        """Return False: a new one would begin again."""
        return False

    def forget(self, gone: set[int]) -> None:
        """Forget nothing: what is consumed still breaks a silence."""


class SilenceStage(Awaiting):
    """Find the silences in which there is no P; here all times are exact."""

    __slots__ = ("_last", "_too_long")

    def __init__(self, silence: Silence, site: Site, beneath: Stage) -> None:
        super().__init__(silence, site, beneath)
        self._too_long = silence.within_ms is not None and silence.for_ms > silence.within_ms
        self._last: int | None = None

    def advance(self, watermark: int) -> list[Occurrence]:
        """Return the silences that are certain by now, the beginning first."""
        self.watermark = watermark
        (inbox,) = self.inboxes
        limit = inbox.fill(watermark)
        for p in inbox.take(limit):
            self._break(p)
            self._note(p)
            end = int(end_of(p))  # an instant, however certain the P is
            if end != self._last:
                self._last = end
                self._instants.append(self._last)
        floor = inbox.floor()
        made = [u for u in self._instants if u + self._for_ms < floor]
        if made:
            self._instants = [u for u in self._instants if u + self._for_ms >= floor]
        found = self._beginning(floor) + [self._interval(u) for u in made]
        return [] if self._too_long else found

    def _note(self, p: Occurrence) -> None:
        """Keep a P that the interval from the beginning may meet; that begins no later than now."""
        begin, start = self.site.begin, start_of(p)
        if self._early is not None and (begin is None or start <= begin + self._for_ms):
            self._early.append((start, int(end_of(p))))

    def _beginning(self, floor: int) -> list[Occurrence]:
        """The interval from the beginning, which a later event may yet put earlier."""
        u = self.site.begin
        if u is None or self._early is None or u + self._for_ms >= floor:
            return []
        if u > self.begins_from():
            return []
        met = any(u < end and start <= u + self._for_ms for start, end in self._early)
        once = any(end == u for _, end in self._early)
        self._early = None
        return [] if met or once else [self._interval(u)]

    def _break(self, p: Occurrence) -> None:
        """No interval that p meets is silent."""
        if self._instants:
            end, start = end_of(p), start_of(p)
            self._instants = [
                u for u in self._instants if not (u < end and start <= u + self._for_ms)
            ]

    def _interval(self, u: int) -> Occurrence:
        end = u + self._for_ms
        return (end, u, Absence(u, end, self._place), *((None,) * self._empty_places))

    def shed(self, count: int) -> int:
        """Drop instants, then the beginning, which needs all that is known; return the count."""
        shed = min(count, len(self._instants))
        del self._instants[:shed]
        if self._early and shed < count:
            shed += min(count - shed, len(self._early))
            self._early = None
        return shed + super().shed(count - shed)

    def facts(self) -> list[Any]:
        """Return the P until the beginning is decided, the instants and the last end."""
        early = None if self._early is None else [list(one) for one in self._early]
        return [early, self._instants, self._last]

    def know(self, facts: list[Any]) -> None:
        """Take up such facts again."""
        early, self._instants, self._last = facts
        self._early = None if early is None else [(start, end) for start, end in early]

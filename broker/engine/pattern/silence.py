"""`absent P for T`: intervals in which there is no P.

Owns the instants from which silence is awaited. Must not know P. Invariant: each instant gives at
most one interval.
"""

from __future__ import annotations

from typing import Any

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.occurrence import Absence, Occurrence
from broker.engine.pattern.asked import Ahead
from broker.engine.pattern.base import Inbox, Over, Site, Stage, end_of, least, next_of, start_of
from broker.engine.pattern.operands import Silence


class Awaiting(Over):
    """What waits for silences, with exact times or uncertain ones.

    An interval begins with the task, or where a P ends.
    """

    __slots__ = ("_empty_places", "_for_ms", "_instants", "_place")

    def __init__(self, silence: Silence, site: Site, beneath: Stage) -> None:
        super().__init__(site, (Inbox(beneath, site.budget),), None)
        self._for_ms = silence.for_ms
        self._place = silence.low
        self._empty_places = silence.high - silence.low - 1
        self._instants: list[int] = []  # from which silence may yet be

    # --- what is awaited -------------------------------------------------------------------

    # Overridden where times are uncertain: a P that nominally begins after the interval may really
    # begin within it, so the wait is longer by the slack.
    def wait_ms(self) -> int:
        """How long after an instant a P may begin that counts for the silence from there."""
        return self._for_ms

    def awaits_beginning(self) -> bool:
        """Whether the interval from the beginning is not decided yet."""
        raise NotImplementedError

    def known(self) -> int:
        """How many P it remembers."""
        raise NotImplementedError

    def begins_from(self) -> int:
        """No event that is still to come puts the beginning of the partition before this time."""
        # A task without groups knows its beginning from outside (the replay's first input, the
        # installation); a group learns of its own only from its events, and one that lasts may
        # still put it earlier.
        if not self.awaits_beginning() or not self.site.group or self.watermark >= WATERMARK_END:
            return WATERMARK_END
        # An event to come ends after the watermark, and lasts no longer than the longest known: an
        # hour at most, and a watermark of 10:00, leave beginnings before 09:00 settled.
        return self.watermark + 1 - self.site.durations.longest_of_all_ms()

    def _open(self) -> list[int]:
        """The instants from which silence may yet be, the beginning among them."""
        begin = self.site.begin
        if not self.awaits_beginning() or begin is None:
            return self._instants
        return [begin, *self._instants]

    # --- what follows from that ------------------------------------------------------------

    def hold(self) -> int:
        """See base.Stage."""
        # A silence from u ends at u + T, and is passed on in order of its end: what is held is one
        # millisecond less, as an interval may end at that very time.
        open_now = [*self._open(), self.begins_from()]
        return min([super().hold(), *(u + self._for_ms - 1 for u in open_now)])

    def floor(self, above: int) -> int:  # noqa: ARG002
        """See base.Stage."""
        if self.watermark >= WATERMARK_END:
            return WATERMARK_END
        return min([self.watermark, super().hold(), self.begins_from(), *self._open()])

    def begins(self) -> int:
        """See base.Stage; where the task began may yet turn out to be earlier."""
        if self.watermark >= WATERMARK_END:
            return WATERMARK_END
        # An earlier beginning may still come, so nothing above may forget anything.
        if self.awaits_beginning():
            return WATERMARK_NONE
        return min([self.inboxes[0].begins(), *self._instants])

    def eldest(self) -> int:
        """See base.Stage."""
        return min(self._open(), default=WATERMARK_END)

    def clear_at(self, above: int, until: int) -> int:
        """See base.Stage: what begins then, and what may yet begin by then, must be decided."""
        if self.watermark >= WATERMARK_END:
            return self.watermark
        # Something beneath that ends by then may still come, and each of its ends begins a silence:
        # no watermark can be named, so the answer is never.
        if super().hold() <= until:
            return WATERMARK_END
        beneath, wait_ms = self.inboxes[0], self.wait_ms()
        # Each instant is settled once no P can begin within its wait; the last to settle counts.
        begun = [u for u in self._open() if above < u <= until]
        known = [beneath.clear_at(WATERMARK_NONE, u + wait_ms) for u in begun]
        return max([until + 1, *known, *self._begun_at(until)])

    def view(self) -> Ahead:
        """See base.Stage."""
        return self

    def _begun_at(self, until: int) -> list[int]:
        """From which watermark on no event to come puts the beginning at the time or before."""
        if not self.awaits_beginning() or not self.site.group:
            # Nothing to wait for: the beginning of a task without groups does not move.
            return []
        return [until + self.site.durations.longest_of_all_ms()]

    def due(self) -> int | None:
        """See base.Stage."""
        beneath, begin, wait_ms = self.inboxes[0], self.site.begin, self.wait_ms()
        # Only these times can decide anything, so a partition without open instants is never woken.
        # To wake each partition with every watermark was the alternative: it cost a call for each
        # group.
        times = [beneath.clear_at(WATERMARK_NONE, u + wait_ms) for u in self._instants]
        # The beginning is settled by whichever comes last: no P in its interval, and no earlier
        # event.
        if self.awaits_beginning() and begin is not None:
            known = beneath.clear_at(WATERMARK_NONE, begin + wait_ms)
            times.append(max([known, *self._begun_at(begin - 1)]))
        return least([super().due(), next_of(times, self.watermark)])

    def held(self) -> int:
        """See base.Stage."""
        return super().held() + len(self._instants) + self.known()

    def idle(self) -> bool:
        """See base.Stage: a new one would begin again."""
        return False

    def forget(self, gone: set[int]) -> None:
        """See base.Stage: what is consumed still breaks a silence."""


class SilenceStage(Awaiting):
    """See the module; here all times are exact."""

    __slots__ = ("_early", "_last", "_too_long")

    def __init__(self, silence: Silence, site: Site, beneath: Stage) -> None:
        super().__init__(silence, site, beneath)
        # `absent P for T within W` with T > W can never hold. It is decided here once; what was
        # open is still dropped as it closes, so that memory does not grow.
        self._too_long = silence.within_ms is not None and silence.for_ms > silence.within_ms
        self._early: list[tuple[int, int]] | None = []  # P so far, until the beginning is decided
        self._last: int | None = None

    def advance(self, watermark: int) -> list[Occurrence]:
        """See base.Stage."""
        self.watermark = watermark
        (inbox,) = self.inboxes
        limit = inbox.fill(watermark)
        # Each P first breaks what waits and then opens an instant of its own: it cannot break the
        # silence that begins with its own end, as (u, u + T] leaves u out.
        for p in inbox.take(limit):
            self._break(p)
            self._note(p)
            end = int(end_of(p))  # an instant, however certain the P is
            # LANGUAGE 3 says once for each u. The P come in order of their ends, so the last one is
            # enough to compare with, and no set of instants has to be kept.
            if end != self._last:
                self._last = end
                self._instants.append(self._last)
        floor = inbox.floor()
        # No P that begins before `floor` is still to come, so up to there silence is certain.
        made = [u for u in self._instants if u + self._for_ms < floor]
        if made:
            self._instants = [u for u in self._instants if u + self._for_ms >= floor]
        found = self._beginning(floor) + [self._interval(u) for u in made]
        return [] if self._too_long else found

    def awaits_beginning(self) -> bool:
        """See Awaiting."""
        return self._early is not None

    def known(self) -> int:
        """See Awaiting."""
        return len(self._early or ())

    def _note(self, p: Occurrence) -> None:
        """Keep a P that the interval from the beginning may meet; that begins no later than now."""
        begin, start = self.site.begin, start_of(p)
        # P that begin later than the interval from the beginning cannot meet it, and an earlier
        # beginning only makes that interval end earlier.
        if self._early is not None and (begin is None or start <= begin + self._for_ms):
            self._early.append((start, int(end_of(p))))

    def _beginning(self, floor: int) -> list[Occurrence]:
        """The interval from the beginning, which a later event may yet put earlier."""
        u = self.site.begin
        if u is None or self._early is None or u + self._for_ms >= floor:
            return []
        if u > self.begins_from():
            return []
        # As in _break: (u, u + T] leaves its first instant out and includes its last.
        met = any(u < end and start <= u + self._for_ms for start, end in self._early)
        # A P that ends at the very beginning opens the same instant, which is told once.
        once = any(end == u for _, end in self._early)
        self._early = None
        return [] if met or once else [self._interval(u)]

    def _break(self, p: Occurrence) -> None:
        """No interval that p meets is silent."""
        if self._instants:
            end, start = end_of(p), start_of(p)
            # The interval is (u, u + T]: one that ends at u leaves it alone, one that begins at u +
            # T breaks it.
            self._instants = [
                u for u in self._instants if not (u < end and start <= u + self._for_ms)
            ]

    def _interval(self, u: int) -> Occurrence:
        end = u + self._for_ms
        # An Absence stands for the interval, so that spans and ids see it; the places of P bind
        # nothing.
        return (end, u, Absence(u, end, self._place), *((None,) * self._empty_places))

    def shed(self, count: int) -> int:
        """See base.Stage: instants go, then the beginning, which needs all that is known of it."""
        shed = min(count, len(self._instants))
        del self._instants[:shed]
        # Without some of the early P the interval from the beginning might be told wrongly, so it
        # is given up as a whole rather than guessed.
        if self._early and shed < count:
            shed += min(count - shed, len(self._early))
            self._early = None
        return shed + super().shed(count - shed)

    def facts(self) -> list[Any]:
        """See base.Over."""
        # Lists instead of tuples, as JSON and MessagePack would give them back.
        early = None if self._early is None else [list(one) for one in self._early]
        return [early, self._instants, self._last]

    def know(self, facts: list[Any]) -> None:
        """See base.Over."""
        early, self._instants, self._last = facts
        self._early = None if early is None else [(start, end) for start, end in early]

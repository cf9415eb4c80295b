"""Which offsets the next batch reads from each broker.

Owns the sharing of a batch among brokers, who holds it back, and what happens where a broker is
away, new, or lost results. Must not know Spark. Invariant: what was not read because it is held
back is read later; what cannot be read any more is told with its exact range.

Spark has one watermark for all brokers, and rows that it has passed are in no window. Each batch
has a mark, which becomes that watermark. A broker that is away holds it where it is; one that
answers holds it at the event time up to which it promises that its log is settled (see
docs/output-log.md); `alignment` keeps to these. What cannot be held, as a broker promises nothing
or a subscription came later than the watermark, is told where it is read.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from server.source.alignment import BatchBounds, EventTimes, LogSpan, align, mark
from server.source.backfill import Backfill
from server.source.fanout import Fanout
from server.source.history import HistoryGap, note_gap
from server.source.log import AwayError, EpochError, LogError, LogStanding, tell
from server.source.options import SourceOptions
from server.source.places import CopiedRange, LogHeir, LogHeirs, LogPlace, Postponed, cut
from server.source.watch import KnownBroker

PAGE_ROWS: Final = 10_000  # offsets of the pages that brokers keep
GO_ON: Final = '; with lost = "skip" (failOnDataLoss=false) it goes on without them'


class LostError(LogError):
    """Results were taken before they were read."""


@dataclass
class Planner:
    """Plans batches of one stream; see the module."""

    options: SourceOptions
    times: Callable[[str], EventTimes]
    clock: Callable[[], float] = time.monotonic
    reported: set[str] = field(default_factory=set)
    fanout: Fanout = field(default_factory=Fanout)
    backfill: Backfill | None = None
    postponed: Postponed = field(default_factory=Postponed)
    wall: Callable[[], float] = time.time

    def plan(
        self,
        start: Mapping[str, LogPlace],
        known: Mapping[str, KnownBroker],
        rows_max: int | None,
        *,
        live: bool = True,
    ) -> dict[str, LogPlace]:
        """Return the place at each broker where the batch from `start` ends. Raises LogError.

        Not `live`, logs end where `known` says, and nobody will say more: no broker is waited for
        because it is quiet.
        """
        ends = dict(start)
        spans: dict[str, LogSpan] = {}
        homes: dict[str, str] = {}  # brokers of whose lost logs a span reads results
        delay_ms = round((self.options.late_s or 0) * 1000)
        holds = Holds(passed(start), mark_of(start, delay_ms), delay_ms)
        heirs = _heirs(known)
        for name, seen in known.items():
            heir = heirs.of(name, start.get(name))
            if heir is not None and self._is_inherited(name, seen, heir, start, ends):
                continue
            if seen.away is not None or seen.standing is None:
                self._away(seen)
                if self.is_waited_for(name, seen):
                    holds.wholly(blind=name not in start)
                continue
            self.postponed.forget_away(name)
            place, log = start.get(name), self._standing(name, start.get(name), seen.standing)
            if place is None or place.epoch != log.epoch:
                ends[name] = self._pinned(name, place, log, is_inherited=heir is not None)
                holds.wholly(blind=True)  # its first rows are read next
                continue
            begin, end, homes[name] = cut(heirs, (name, log.inherited), start, log.end)
            begin = max(begin, self._begin(name, place, log))
            if heir is not None and heir.is_unread(start):
                end = min(end, heir.inherited.first)  # what comes then is read at the heir
            if homes[name] and begin > place.next:
                ends[name] = self._passed(name, place, begin)
            if begin < end:
                promises = log.promises and self.options.by_promises
                spans[name] = LogSpan(log.epoch, begin, end, end, place.reached_ms, promises)
            elif live and self.clock() - seen.since_s < self.options.quiet_s:
                holds.wholly()
            self._promised(name, seen, log, holds)
        if self.options.align and holds.blind:
            return ends
        _share(spans, rows_max)
        mark_ms = self._aligned(spans, holds) if self.options.align else None
        for name, span in spans.items():
            if span.end > span.begin:
                first = ends[name].first if ends[name] != start[name] else None
                reached = span.end, span.reached_ms, mark_ms
                ends[name] = LogPlace(span.epoch, *reached, first, start[name].turn)
                self._follow_home(homes[name], known[name].standing, span.end, ends)
        marked = next((name for name in start if name in known), None)
        if ends == start and marked is not None and holds.is_due(mark_ms):
            ends[marked] = start[marked]._replace(mark_ms=mark_ms)
        return ends

    # --- brokers that were taken over ---------------------------------------------------------

    def _is_inherited(
        self,
        name: str,
        seen: KnownBroker,
        heir: LogHeir,
        start: Mapping[str, LogPlace],
        ends: dict[str, LogPlace],
    ) -> bool:
        """Tell if a broker's results are read at its heir for now. Raises LostError."""
        place, inherited = start.get(name), heir.inherited
        log = None if seen.away is not None else seen.standing
        is_back = log is not None and (place is None or place.epoch == log.epoch)
        if place is not None and place.next > inherited.end and not is_back:
            self._tell(uncopied(name, inherited.end, place.next, heir.name))
        if place is not None and place.next < inherited.first:
            if is_back:
                return False
            self._lose(name, place.epoch, (place.next, inherited.first), heir.name)
            ends[name] = place._replace(next=inherited.first, first=inherited.first)
        return heir.is_unread(start) or log is None

    def copies(
        self, planned: tuple[str, str, int, int], known: Mapping[str, KnownBroker]
    ) -> list[CopiedRange] | None:
        """Return where a range of (broker, epoch) is read, if that broker was taken over since.

        Spark will have a batch end where it was planned to, and by event time what is left out of
        it comes late: so it is read in the same batch. Raises LostError.
        """
        name, epoch, begin, end = planned
        seen = known.get(name)
        log = None if seen is None or seen.away is not None else seen.standing
        if log is not None and log.epoch == epoch:
            return None
        parts = _heirs(known).parts(epoch, begin, end)
        copied: list[CopiedRange] = []
        for heir, first, last in parts:
            inherited = heir.inherited
            if first < inherited.first:
                self._lose(name, epoch, (first, min(last, inherited.first)), heir.name)
            for theirs, own, size in inherited.cut(first, last):
                copied.append(CopiedRange(heir.name, theirs, theirs + size, own))
            if inherited.end < last:
                self._tell(uncopied(name, max(first, inherited.end), last, heir.name))
        return copied if parts else None

    def _lose(self, name: str, epoch: str, lost: tuple[int, int], heir: str) -> None:
        """Say which results are in no log any more. Raises LostError."""
        begin, end = lost
        message = (
            f"broker {name}: offsets {begin} to {end - 1} ({end - begin} offsets)"
            f" went with its disk, and broker {heir}, which took over, has no copy of them"
        )
        if self.options.fail_on_loss:
            raise LostError(f"{message}{GO_ON}")
        self._tell(message)
        note_gap(self.options.note_gaps, HistoryGap(name, epoch, begin, end))

    def _passed(self, name: str, place: LogPlace, begin: int) -> LogPlace:
        """Return the place behind what an heir has, and was read at the lost broker."""
        # A history is to look for these rows nowhere: it has them under the lost broker's name.
        note_gap(self.options.note_gaps, HistoryGap(name, place.epoch, place.next, begin))
        return place._replace(next=begin, first=begin)

    def _follow_home(
        self, home: str, log: LogStanding | None, upto: int, ends: dict[str, LogPlace]
    ) -> None:
        """Move the place at a lost broker along with what is read of its results at the heir."""
        if not home or log is None:
            return
        place = ends[home]
        for inherited in log.inherited:
            if inherited.epoch == place.epoch and upto > inherited.own_begin:
                theirs = max(place.next, inherited.read_upto(upto))
                ends[home] = place._replace(next=theirs, first=theirs)

    def _aligned(self, spans: dict[str, LogSpan], holds: "Holds") -> int | None:
        """Cut the spans in event time; the mark behind them, where brokers are to promise."""
        bounds = holds.bounds(self.options.slack_s)
        align(spans, bounds, self.times, self.fanout)
        return mark(spans, bounds, self.times, self.fanout) if self.options.by_promises else None

    def _promised(self, name: str, seen: KnownBroker, log: LogStanding, holds: "Holds") -> None:
        """Hold all by what a broker says that it still owes."""
        settled_s = self.options.settled_s
        if not self.options.by_promises:
            return
        if not log.promises:
            self._tell(
                f"broker {name} does not say up to when its log is settled, as it is of an older"
                " version: what it finds later than others by more than `delay` is late"
            )
        elif log.subscriptions and (
            settled_s is None or self.clock() - seen.settled_since_s < settled_s
        ):
            holds.settled(log.settled_ms)

    def _standing(self, name: str, place: LogPlace | None, log: LogStanding) -> LogStanding:
        """Return where a log begins and ends, with the history before it. Raises LogError."""
        if self.backfill is None:
            return log
        live = log if self.options.brokers else None
        for begin, end in self.backfill.missing(name, place, live) if place else ():
            message = neither(name, begin, end, self.options.history or "")
            if self.options.fail_on_loss:
                raise LostError(f"{message}{GO_ON}")
            self._tell(message)
        return self.backfill.standing(name, log)

    # --- brokers that are not as they were ----------------------------------------------------

    def _away(self, seen: KnownBroker) -> None:
        why = seen.away or AwayError("it has not answered yet")
        if self.options.on_away == "fail" or not isinstance(why, AwayError):
            raise why
        self._tell(f"{why}; it is waited for")

    def is_waited_for(self, name: str, seen: KnownBroker) -> bool:
        """Tell whether jobs by event time wait for a broker that is away, over all restarts."""
        away_s, seen_s = self.options.away_s, self.clock() - seen.since_s
        return away_s is None or self.postponed.away_s(name, self.wall(), seen_s) < away_s

    def _pinned(
        self, name: str, place: LogPlace | None, log: LogStanding, *, is_inherited: bool
    ) -> LogPlace:
        """Return a log's beginning, without rows yet: planned again, the batch is then the same."""
        if place is not None and is_inherited:  # nothing of the one before is left to read
            return place._replace(epoch=log.epoch, next=log.earliest, first=None)
        if place is not None:
            message = (
                f"broker {name} has another log (epoch {log.epoch}) than the one that was read up"
                f" to offset {place.next} (epoch {place.epoch}): its disk was replaced"
            )
            if self.options.fail_on_loss:
                raise EpochError(f"{message}{GO_ON}")
            self._tell(f"{message}; the new one is read from its beginning")
            return place._replace(epoch=log.epoch, next=log.earliest)
        if self.backfill is not None:
            return LogPlace(log.epoch, self.backfill.begin(name, self.times(name), log))
        latest = self.options.starting == "latest"
        return LogPlace(log.epoch, log.end if latest else log.earliest)

    def _begin(self, name: str, place: LogPlace, log: LogStanding) -> int:
        if place.next > log.end:
            raise LostError(
                f"broker {name}: offsets {log.end} to {place.next - 1} ({place.next - log.end}"
                " offsets) were read, and are not in its log any more: its disk was put back to an"
                " older state by hand. What it finds from now on would take their places: end it,"
                " and `headwater backup` and `headwater restore` of its disk give it a log of"
                ' its own; with lost = "skip" (failOnDataLoss=false) that is then read'
            )
        if place.next >= log.earliest:
            return place.next
        message = gap(name, place.next, log.earliest)
        if self.options.fail_on_loss:
            raise LostError(f"{message}{going_on(self.options)}")
        self._tell(message)
        note_gap(self.options.note_gaps, HistoryGap(name, place.epoch, place.next, log.earliest))
        return log.earliest

    def _tell(self, message: str) -> None:
        """On the standard error of the driver's side of the source, once."""
        if message not in self.reported:
            self.reported.add(message)
            tell(message)


@dataclass
class Holds:
    """The bounds that keep a batch back besides the logs' own rows."""

    passed_ms: int | None
    mark_ms: int | None
    delay_ms: int
    until_ms: int | None = None
    blind: bool = False  # nothing at all may be read

    def wholly(self, *, blind: bool = False) -> None:
        """The watermark must not move."""
        self.blind = self.blind or blind or self.passed_ms is None
        self._until(self.mark_ms or 0)

    def settled(self, until_ms: int | None) -> None:
        """It must not move past what a broker has promised; None: nothing yet."""
        if until_ms is None:
            self.wholly()
        else:
            self._until(until_ms)

    def is_due(self, mark_ms: int | None) -> bool:
        """Tell whether a batch is worth it in which nothing moves but the mark.

        Where rows were read ahead of it, as no more come that would take it along.
        """
        if mark_ms is None or self.mark_ms is None or self.passed_ms is None:
            return False
        if mark_ms <= self.mark_ms:
            return False
        whole_ms = self.passed_ms - self.delay_ms
        return mark_ms >= min(whole_ms, self.mark_ms + self.delay_ms)

    def _until(self, until_ms: int) -> None:
        self.until_ms = until_ms if self.until_ms is None else min(self.until_ms, until_ms)

    def bounds(self, slack_s: float) -> BatchBounds:
        """For `align` and `mark`."""
        slack_ms = round(slack_s * 1000)
        return BatchBounds(self.passed_ms, self.until_ms, self.mark_ms, self.delay_ms, slack_ms)


def passed(places: Mapping[str, LogPlace]) -> int | None:
    """The event time that was reached with any broker: the watermark follows it."""
    return max(
        (place.reached_ms for place in places.values() if place.reached_ms is not None),
        default=None,
    )


def mark_of(places: Mapping[str, LogPlace], delay_ms: int) -> int | None:
    """The mark of the batch that ended there; before there were marks, what stood for it."""
    marks = [place.mark_ms for place in places.values() if place.mark_ms is not None]
    if marks:
        return max(marks)
    passed_ms = passed(places)
    return None if passed_ms is None else passed_ms - delay_ms


def _heirs(known: Mapping[str, KnownBroker]) -> LogHeirs:
    return LogHeirs({name: log.standing.inherited for name, log in known.items() if log.standing})


def uncopied(name: str, begin: int, end: int, heir: str) -> str:
    """Say what an heir has not: a half-open range of offsets of a lost log, up to its end."""
    return (
        f"broker {name}: of offsets {begin} to {end - 1} broker {heir} had no copy when it took"
        " over: it may find these results once more, under the same ids"
    )


def gap(name: str, begin: int, end: int) -> str:
    """The sentence about results that are gone: a half-open range of offsets."""
    return (
        f"broker {name}: offsets {begin} to {end - 1} ({end - begin} offsets) were taken by"
        f" retention before they were read"
    )


def going_on(options: SourceOptions) -> str:
    """Return how a stream goes on without what retention took, and a history gets it after all."""
    mended = ", and `headwater server mend` can take them from another history then (--from)"
    return GO_ON + (mended if options.note_gaps else "")


def neither(name: str, begin: int, end: int, folder: str) -> str:
    """Return the sentence about results that are in no place: a half-open range of offsets."""
    return (
        f"broker {name}: offsets {begin} to {end - 1} ({end - begin} offsets) are neither in the"
        f" history {folder} nor in its log any more: put the missing files back from a backup, or"
        " have `headwater server mend` take the rows from another history (--from)"
    )


def _share(ranges: dict[str, LogSpan], rows_max: int | None) -> None:
    """Cut the ranges so that they hold at most so many offsets together, none starved."""
    if not rows_max:
        return
    left = rows_max
    # From the shortest on: what one does not need is the others'.
    waiting = sorted(ranges.values(), key=lambda span: span.end - span.begin)
    for n, span in enumerate(waiting):
        part = max(1, left // (len(waiting) - n))
        whole_pages = (span.begin + part) // PAGE_ROWS * PAGE_ROWS
        if (
            span.begin + part < span.end
        ):  # it is cut anyway: at the edge of a page, where one is near
            span.end = whole_pages if whole_pages > span.begin else span.begin + part
        left -= span.end - span.begin

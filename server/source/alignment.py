"""How far in event time a batch may go, and up to when all is read with it.

Owns the bound of a batch and the mark that goes with it: Spark's watermark. Must not know brokers
that are away, rows or Spark. Invariant: behind a batch nothing ends at or before its mark that was
not read, be it in a log or still owed by a broker, but what ended before the mark ahead of it.

A mark is not the greatest event time less a delay, as Spark would have it: results stand in a log
in the order in which they were found, and one that was found late stands behind others that end
after it. So those are read as they come, and the mark stays behind what is left. Nothing then has
to hold reading, but too much would wait in Spark for its windows to close. A batch goes as far as

- the least event time up to which every broker promises that its log is settled, plus the delay;
- the least of what it can reach in each broker's log, or it would fill with the rows of those who
  are ahead;

and in a log where something stands behind that ends earlier, and holds the mark, on to that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from server.source.fanout import Fanout

_EVER: Final = -(10**17)


class EventTimes(Protocol):
    """The questions to a log that align it; `Log` is one."""

    def ts_at(self, epoch: str, offset: int) -> int | None:
        """Return the latest end, in ms, of all results up to and with an offset."""

    def first_offset_after(self, epoch: str, ts_ms: int) -> int:
        """Return the first offset whose result ends after a time; else the log's end."""

    def earliest_end(self, epoch: str, offset: int, after_ms: int) -> int | None:
        """Return the earliest end, in ms, of those results from an offset on that end later."""


@dataclass
class LogSpan:
    """Of one broker: what can be read, and to where it is read now.

    `log_end` is where its log ended, `reached_ms` the latest end of all rows before `end`.
    `promises`: it is a broker that can be asked what stands behind an offset. `held` is what it
    answered: the offset, and the earliest end behind it.
    """

    epoch: str
    begin: int
    end: int
    log_end: int
    reached_ms: int | None
    promises: bool = True
    held: tuple[int, int | None] | None = None


@dataclass(frozen=True)
class BatchBounds:
    """The bounds of a batch besides the logs: all in ms.

    `passed_ms` is the event time reached so far, `mark_ms` the mark so far, `settled_ms` what all
    brokers have promised (None: nothing is asked of it), `delay_ms` how far the mark stays behind
    what is reached.
    """

    passed_ms: int | None
    settled_ms: int | None
    mark_ms: int | None = None
    delay_ms: int = 0
    slack_ms: int = 0


def align(
    spans: Mapping[str, LogSpan],
    bounds: BatchBounds,
    times: Callable[[str], EventTimes],
    fanout: Fanout,
) -> None:
    """Set where each span ends, and what is reached by then."""

    def latest(name: str) -> int | None:
        return times(name).ts_at(spans[name].epoch, spans[name].end - 1)

    reached = {name: ts for name, ts in fanout.ask(latest, spans).items() if ts is not None}
    if not reached:
        return  # nothing is left in these ranges
    bound = least = min(reached.values()) + bounds.slack_ms
    if bounds.settled_ms is not None:
        bound = min(bound, bounds.settled_ms + bounds.delay_ms)
        least = min(least, bounds.settled_ms)
    if bounds.mark_ms is not None:
        bound = max(bound, bounds.mark_ms + bounds.delay_ms)  # Spark has such rows already
    beyond = []
    for name, span in spans.items():
        if reached.get(name, bound) <= bound:
            span.reached_ms = reached.get(name, span.reached_ms)
        else:
            beyond.append(name)
    fanout.ask(lambda name: _cut(spans[name], times(name), bounds, (bound, least)), beyond)


def _cut(span: LogSpan, log: EventTimes, bounds: BatchBounds, reach_ms: tuple[int, int]) -> None:
    """End a span at the bound; or not, where something behind it ends before the least."""
    bound, least = reach_ms
    whole = span.end
    first = log.first_offset_after(span.epoch, bound)
    span.end = min(whole, max(span.begin, first))
    held_ms = _earliest(span, bounds, log)
    if held_ms is not None and held_ms <= least:
        span.end = whole
    if span.end > span.begin:
        span.reached_ms = log.ts_at(span.epoch, span.end - 1)


def mark(
    spans: Mapping[str, LogSpan],
    bounds: BatchBounds,
    times: Callable[[str], EventTimes],
    fanout: Fanout,
) -> int | None:
    """Up to when all is read with these spans, or came late: the watermark behind them."""
    reached = [span.reached_ms for span in spans.values() if span.end > span.begin]
    newest = max([ts for ts in (*reached, bounds.passed_ms) if ts is not None], default=None)
    if newest is None:
        return bounds.mark_ms
    limits = [newest - bounds.delay_ms]
    if bounds.settled_ms is not None:
        limits.append(bounds.settled_ms)
    behind = [name for name, span in spans.items() if _waits(span)]
    held = fanout.ask(lambda name: _earliest(spans[name], bounds, times(name)), behind)
    limits += [held_ms - 1 for held_ms in held.values() if held_ms is not None]
    return max(_EVER if bounds.mark_ms is None else bounds.mark_ms, min(limits))


def _waits(span: LogSpan) -> bool:
    """True where a span leaves something of a log that can be asked for."""
    return span.promises and span.end < span.log_end


def _earliest(span: LogSpan, bounds: BatchBounds, log: EventTimes) -> int | None:
    """The earliest end that waits behind a span and is not late already."""
    if not _waits(span):
        return None
    if span.held is None or span.held[0] != span.end:
        after_ms = _EVER if bounds.mark_ms is None else bounds.mark_ms
        span.held = span.end, log.earliest_end(span.epoch, span.end, after_ms)
    return span.held[1]

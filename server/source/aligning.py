"""How far in event time a batch may go.

Owns the bound that keeps Spark's one watermark behind whatever is still to come. Must not know
brokers that are away, rows or Spark. Invariant: behind the ends that it gives no result ends before
the watermark that they bring, be it in a log and not read yet, or still owed by a broker.

Spark's watermark is the greatest event time of all rows so far, less a delay. So a batch goes no
further than

- the least event time up to which every broker promises that its log is settled, plus the delay;
- the least of what it can reach in each broker's log, or it would fill with the rows of those who
  are ahead;
- what stands in a log behind a row that must wait, plus the delay. Results stand in the order in
  which they were found: one that was found late stands behind others that end after it, and a log
  is read from its beginning on. A lower bound leaves more rows to wait, and may so meet earlier
  ones: it is lowered until nothing changes, which is then the greatest that holds.

What ends before the watermark already can be neither saved nor hurt: it holds nobody.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

LOWERED_MAX: Final = 200  # each asks every broker; then this batch stays empty


class EventTimes(Protocol):
    """What is asked of a log to align it; `Log` is one."""

    def ts_at(self, epoch: str, offset: int) -> int | None:
        """See Log."""

    def first_offset_after(self, epoch: str, ts_ms: int) -> int:
        """See Log."""

    def earliest_end(self, epoch: str, offset: int, after_ms: int) -> int | None:
        """See Log."""


@dataclass
class Span:
    """Of one broker: what can be read, and to where it is read now.

    `log_end` is where its log ended, `reached_ms` the latest end of all rows before `end`.
    `promises`: it is a broker that can be asked what stands behind an offset.
    """

    epoch: str
    begin: int
    end: int
    log_end: int
    reached_ms: int | None
    promises: bool = True


@dataclass(frozen=True)
class Bounds:
    """What holds a batch besides the logs: all in ms.

    `passed_ms` is the event time reached so far, `settled_ms` what all brokers have promised (None:
    nothing is asked of it), `delay_ms` how far the watermark stays behind.
    """

    passed_ms: int | None
    settled_ms: int | None
    delay_ms: int = 0
    slack_ms: int = 0


def align(spans: Mapping[str, Span], bounds: Bounds, times: Callable[[str], EventTimes]) -> None:
    """Set where each span ends, and what is reached by then."""
    asked = {name: times(name).ts_at(one.epoch, one.end - 1) for name, one in spans.items()}
    reached = {name: ts for name, ts in asked.items() if ts is not None}
    if not reached:
        return  # nothing is left in these ranges
    most = max(reached.values())
    if bounds.settled_ms is not None:
        most = min(most, bounds.settled_ms + bounds.delay_ms)
    whole = {name: one.end for name, one in spans.items()}
    tried = [min(most, min(reached.values()) + bounds.slack_ms)]
    if all(one.promises for one in spans.values()):
        # Where nothing can be read in step, so much together may be.
        tried.append(most)
    for bound in dict.fromkeys(tried):
        _lowered(bound, spans, (whole, reached), bounds, times)
        if any(one.end > one.begin for one in spans.values()):
            return


def _lowered(
    bound: int,
    spans: Mapping[str, Span],
    known: tuple[Mapping[str, int], Mapping[str, int]],
    bounds: Bounds,
    times: Callable[[str], EventTimes],
) -> None:
    """Cut the spans at a bound, or at the greatest below it that hurts nothing that waits."""
    whole, reached = known
    for _ in range(LOWERED_MAX):
        if bounds.passed_ms is not None:
            bound = max(bound, bounds.passed_ms)  # what ends before that moves no watermark
        for name, one in spans.items():
            one.end = whole[name]
            if reached.get(name, bound) > bound:
                first = times(name).first_offset_after(one.epoch, bound)
                one.end = min(one.end, max(one.begin, first))
        newest = _newest(spans, bounds.passed_ms, times)
        if newest is None or newest == bounds.passed_ms:
            return
        lower = _held_back(spans, bounds, times)
        if lower is None or newest <= lower + bounds.delay_ms:
            return
        bound = lower + bounds.delay_ms  # less than before, as `newest` did not exceed that
    for one in spans.values():
        one.end = one.begin


def _newest(
    spans: Mapping[str, Span], passed_ms: int | None, times: Callable[[str], EventTimes]
) -> int | None:
    """The greatest event time behind such a batch; each span is told its own."""
    newest = passed_ms
    for name, one in spans.items():
        if one.end > one.begin:
            ts = times(name).ts_at(one.epoch, one.end - 1)
            one.reached_ms = ts if ts is not None else one.reached_ms
            if ts is not None and (newest is None or ts > newest):
                newest = ts
    return newest


def _held_back(
    spans: Mapping[str, Span], bounds: Bounds, times: Callable[[str], EventTimes]
) -> int | None:
    """The watermark must stay at this, or behind it, for what waits in the logs."""
    floor = -(10**17) if bounds.passed_ms is None else bounds.passed_ms - bounds.delay_ms
    waiting = [(name, one) for name, one in spans.items() if one.promises and one.end < one.log_end]
    ends_ms = [times(name).earliest_end(one.epoch, one.end, floor) for name, one in waiting]
    return min([end_ms - 1 for end_ms in ends_ms if end_ms is not None], default=None)

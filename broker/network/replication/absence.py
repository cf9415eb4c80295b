"""Origins that are away: since when, until when they promised to be back, and what is lacking.

Owns what the core of a host remembers of absences. Must not know links, nor what tasks compute.
Invariant: it is a function of the messages in the journal and of their times.

A *gap* is a stretch of event time that a clock has passed without an origin. What that origin sends
of it later is late for the subscriptions of this clock, and for nobody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from msgspec import Struct

# Of one clock: each absence makes one. Beyond, the two oldest of an origin become one, so that
# more results are called partial than are, and none less.
GAPS_MAX = 64


Key = tuple[str, str]
"""Subscriber and name of a subscription."""


class WaitingSubscription(Protocol):
    """A subscription, as far as it is needed here; without `clocks` it waits without end."""

    task: str
    clocks: tuple[str, ...]
    reach_ms: int

    @property
    def key(self) -> Key:
        """Subscriber and name."""


class OriginAway(Struct, array_like=True, frozen=True, tag="away"):
    """There has been no way to an origin `since`; it promised to be back by `back_by`, 0: never."""

    outlasts: ClassVar[bool] = True  # it is in the journal

    origin: str
    since: int
    back_by: int = 0


class OriginBack(Struct, array_like=True, frozen=True, tag="back"):
    """An origin that was away has answered, or nobody here needs it any more."""

    outlasts: ClassVar[bool] = True

    origin: str


class OriginAbsence(Struct, array_like=True):
    """One origin that is away `since`; `back_by` is when it promised to be back, 0 for never."""

    since: int
    back_by: int = 0


class TimeGap(Struct, array_like=True):
    """Event time in (after, upto] that a clock passed while `origin` was away."""

    origin: str
    after: int
    upto: int


class AbsentOrigins:
    """The origins that a host waits for in vain, and the gaps that clocks have left behind them."""

    def __init__(self) -> None:
        self.by_origin: dict[str, OriginAbsence] = {}
        self._gaps: dict[str, list[TimeGap]] = {}  # by clock, in the order in which they began

    def handle(self, message: OriginAway | OriginBack) -> None:
        """Take in that an origin is away, or back; one that is away already keeps its `since`."""
        if isinstance(message, OriginBack):
            self.come_back(message.origin)
            return
        before = self.by_origin.get(message.origin)
        # A home that restarts sees it gone from then on, and knows better.
        since = message.since if before is None else before.since
        self.by_origin[message.origin] = OriginAbsence(since, message.back_by)

    def come_back(self, origin: str) -> None:
        """Note that `origin` is back, or is to be waited for no more."""
        self.by_origin.pop(origin, None)

    def passed_over(self, wait_ms: int, now: int) -> list[str]:
        """Return the origins that have been away for `wait_ms` or longer."""
        return [name for name, absence in self.by_origin.items() if now - absence.since >= wait_ms]

    def next_wake(self, wait_ms: int, now: int) -> int | None:
        """Return when the next origin will have been away for `wait_ms`."""
        times = [absence.since + wait_ms for absence in self.by_origin.values()]
        return min((time for time in times if time > now), default=None)

    def shift(self, pause_ms: int) -> None:
        """Leave out a time in which this broker did not run: it saw nobody being away."""
        for absence in self.by_origin.values():
            absence.since += pause_ms

    # --- what is lacking ---------------------------------------------------------------------

    def pass_without(self, clock: str, promises: Mapping[str, int], reached: int) -> None:
        """Note that `clock` has `reached` a time that these origins had not promised."""
        gaps = self._gaps.setdefault(clock, [])
        for origin, promise in promises.items():
            if promise >= reached:
                continue
            last = next((gap for gap in reversed(gaps) if gap.origin == origin), None)
            # An absence goes on as long as the origin has promised nothing beyond the last gap.
            if last is not None and promise <= last.upto:
                last.upto = max(last.upto, reached)
            else:
                gaps.append(TimeGap(origin, promise, reached))
                self._merge(gaps)

    @staticmethod
    def _merge(gaps: list[TimeGap]) -> None:
        if len(gaps) <= GAPS_MAX:
            return
        # The time between the two is then taken for missing as well.
        oldest = gaps.pop(0)
        follower = next((gap for gap in gaps if gap.origin == oldest.origin), None)
        if follower is not None:
            follower.after = min(follower.after, oldest.after)

    def lacking(self, clocks: Iterable[str], begin: int, end: int) -> list[str]:
        """Return the origins of which events from `begin` to `end` may be missing, by name."""
        # Both ends are bounds: an event that ends just after a promise is the first to be missing.
        origins = {
            gap.origin
            for clock in clocks
            for gap in self._gaps.get(clock, ())
            if gap.after < end and gap.upto >= begin
        }
        return sorted(origins)

    # --- the state ---------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return plain data."""
        away = [[name, absence.since, absence.back_by] for name, absence in self.by_origin.items()]
        rows = {
            clock: [[gap.origin, gap.after, gap.upto] for gap in gaps]
            for clock, gaps in self._gaps.items()
        }
        return {"away": away, "gaps": rows}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up such a state."""
        self.by_origin = {name: OriginAbsence(since, by) for name, since, by in state["away"]}
        self._gaps = {
            clock: [TimeGap(*row) for row in rows] for clock, rows in state["gaps"].items()
        }


def without_promise(
    promises: Sequence[tuple[int, str]], gone: Iterable[str]
) -> tuple[list[int], dict[str, int]]:
    """Split the promises of a type into those of origins here and, by name, of those `gone`."""
    away = set(gone)
    present = [promise for promise, origin in promises if origin not in away]
    return present, {origin: promise for promise, origin in promises if origin in away}

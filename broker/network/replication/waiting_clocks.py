"""The clocks of a host where subscriptions may say how long they wait for those away.

Owns the clocks that have a wait, around those that have none, which are asked for theirs. Must not
know links or tasks. Invariant: a clock never goes back; one with a wait is where the one without
is, or further; and what it passes over changes nothing for the one without.

The watermark of a type is the least promise of all who send it. A clock with a wait leaves out the
origins that have been away for so long. Where nobody else sends the type it goes with the foremost
source of all, as the clock of a type does whose sources have fallen silent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from broker.engine.clock_names import SEPARATOR, parts_of
from broker.network.replication.absence import AbsentOrigins, WaitingSubscription, without_promise

WATERMARK_NONE = -(2**62)
# While an origin is passed over, nobody's word brings time further where all others are silent.
LOOK_MS = 1_000


class EndlessClocks(Protocol):
    """The clocks without a wait, as far as they are needed here."""

    def watermark(self, type_name: str, now: int = 0) -> int:
        """Return the watermark of a type; it is then given out."""

    def foreseen(self, type_name: str, now: int = 0) -> int:
        """Return the watermark that would be given out."""

    def hindmost(self, type_name: str, now: int) -> str:
        """Return whose clock holds the type's watermark."""

    def waited_for(self, type_name: str) -> list[tuple[int, str]]:
        """Return the promises of all origins that send the type."""

    def would_promise(self, type_name: str, now: int) -> int | None:
        """Return the watermark of this broker's own sources."""

    def foremost_clock(self, now: int) -> int:
        """Return the clock of the foremost source."""

    def next_wake(self, now: int, due: Mapping[str, int]) -> int | None:
        """Return when to ask again."""

    def pass_over(self, due: Mapping[str, int], now: int) -> bool:
        """Pass types that no source is left to send."""

    def state(self) -> dict[str, Any]:
        """Return plain data."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up such a state."""

    def resume(self, before: int, now: int) -> None:
        """Leave out a time in which nobody ran."""


class ResultSpan(Protocol):
    """A result, as far as it is needed here."""

    start: int
    end: int


class WaitingClocks:
    """Clocks by name, with and without a wait, around those that have none."""

    def __init__(self, endless: EndlessClocks, lateness_ms: int) -> None:
        self.absent = AbsentOrigins()
        self._endless = endless
        self._lateness_ms = lateness_ms
        self._passed: dict[str, int] = {}  # of clocks with a wait

    def watermark(self, name: str, now: int = 0) -> int:
        """Return the watermark of a clock with a wait; it is then given out."""
        reached, away = self._reached(name, now, looking=False)
        if reached > self._passed.get(name, WATERMARK_NONE):
            self._passed[name] = reached
            self.absent.pass_without(name, away, reached)
        return self.passed(name)

    def foreseen(self, name: str, now: int = 0) -> int:
        """Return the watermark that would be given out; asking changes nothing."""
        return max(self._reached(name, now, looking=True)[0], self.passed(name))

    def passed(self, name: str) -> int:
        """Return how far a clock with a wait has come: events that end by then are late for it."""
        return self._passed.get(name, WATERMARK_NONE)

    def hindmost(self, name: str, now: int) -> str:
        """Return whose clock holds the watermark, for people."""
        return self._endless.hindmost(parts_of(name)[0], now)

    def next_wake(self, now: int, due: Mapping[str, int]) -> int | None:
        """Return when time alone may bring a clock to its watermark in `due`; None if never."""
        plain = {name: target for name, target in due.items() if SEPARATOR not in name}
        wakes = [self._endless.next_wake(now, plain)] if plain else []
        for name, target in due.items():
            if SEPARATOR in name:
                wakes += self._wakes(name, target, now)
        return min((wake for wake in wakes if wake is not None), default=None)

    def pass_over(self, due: Mapping[str, int], now: int) -> bool:
        """Pass types whose last source was withdrawn, for whichever clocks of theirs are due."""
        by_type: dict[str, int] = {}
        for name, target in due.items():
            event_type = parts_of(name)[0]
            by_type[event_type] = max(target, by_type.get(event_type, target))
        return self._endless.pass_over(by_type, now)

    def origins_behind(self, types: Iterable[str]) -> dict[str, str]:
        """Return, by type, the origin that is furthest behind."""
        promises = {name: self._endless.waited_for(name) for name in types}
        return {name: rows[0][1] for name, rows in promises.items() if rows}

    # --- origins that are away ---------------------------------------------------------------

    def _reached(self, name: str, now: int, *, looking: bool) -> tuple[int, dict[str, int]]:
        """Return how far a clock with a wait is, and the promises of those it passes over."""
        event_type, wait_ms = parts_of(name)
        gone = self.absent.passed_over(wait_ms or 0, now)
        promises = self._endless.waited_for(event_type) if gone else []
        present, away = without_promise(promises, gone)
        if not away:
            ask = self._endless.foreseen if looking else self._endless.watermark
            return ask(event_type, now), away
        # Of this broker's own sources nobody is away: they are waited for as ever.
        own = self._endless.would_promise(event_type, now)
        least = present if own is None else [*present, own]
        if least:
            return min(least), away
        foremost = self._endless.foremost_clock(now)
        # A promise of theirs may be ahead of all that anybody has heard of.
        promised = max(away.values())
        if foremost <= WATERMARK_NONE:
            return promised, away
        return max(promised, foremost - self._lateness_ms - 1), away

    def _wakes(self, name: str, target: int, now: int) -> list[int | None]:
        event_type, wait_ms = parts_of(name)
        # As long as nobody is away, and where nobody is passed over, it is the type's own clock.
        wakes = [self._endless.next_wake(now, {event_type: target})]
        if wait_ms is not None and self.absent.by_origin:
            wakes.append(self.absent.next_wake(wait_ms, now))
            if self.absent.passed_over(wait_ms, now):
                wakes.append(now + LOOK_MS)
        return wakes

    def mark(self, waiter: WaitingSubscription, result: ResultSpan, now: int) -> dict[str, Any]:
        """Return the keys of a result that say whose events it may lack.

        It may rest on what happened up to `reach_ms` before its end or after its start, as the
        result of a window does.
        """
        clocks, reach_ms = waiter.clocks, waiter.reach_ms
        begin = min(result.start, result.end - reach_ms)
        end = max(result.end, result.start + reach_ms)
        lacking = self.absent.lacking(clocks, begin, end)
        # A result that needs no watermark comes before its clock has passed anybody over.
        for clock in clocks if self.absent.by_origin else ():
            event_type, wait_ms = parts_of(clock)
            gone = self.absent.passed_over(wait_ms or 0, now)
            for promise, origin in self._endless.waited_for(event_type):
                if origin in gone and promise < result.end and origin not in lacking:
                    lacking.append(origin)
        return {"partial": True, "without": sorted(lacking)} if lacking else {}

    # --- the state ---------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return plain data; without a wait anywhere it is that of the clocks that have none."""
        # A disk without any wait is the same as before there were any.
        state = self._endless.state()
        own = self.absent.state()
        if self._passed or any(own.values()):
            state["waiting"] = {**own, "passed": self._passed}
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up such a state, in the place of all that is here."""
        self._endless.restore(state)
        own = state.get("waiting")
        if own is not None:
            self.absent.restore(own)
            self._passed = dict(own["passed"])

    def resume(self, before: int, now: int) -> None:
        """Leave out the time from `before` to `now`, in which no process ran."""
        self._endless.resume(before, now)
        self.absent.shift(now - before)

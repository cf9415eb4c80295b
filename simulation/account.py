"""What became of events, by the clients' own reckoning.

Owns an account of every event that arrived: let in, a repeat, late, or refused for a reason. Must
not know the core's clocks or memory. Invariant: nothing here is asked of the core but which events
it told to be late, and that is held against a clock of each source kept here.

A source's clock is the greatest end among its events that were in time; after a silence as long as
the idle timeout the time of that silence is added. An event is late if it ends more than the
lateness before the clock. Of a source that is new, or that came back after it was withdrawn, an
event may be late besides, since others have gone on meanwhile; it cannot, if it ends after the
first that was in time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from broker.core.effects import Effect, Publish

Said = dict[str, Any]
Key = tuple[str, int]


class CheckFailedError(AssertionError):
    """A run did not hold what it must; the text says what."""


class Arrival(Struct):
    """One payload: its good events, as whole as the broker sees them, and what is dropped of it."""

    type_name: str
    source: str
    data: bytes
    events: list[Said] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)


def end_of(event: Said) -> int:
    """When it ends."""
    return int(event["end"] if "end" in event else event["timestamp"])


def key_of(event: Said) -> Key:
    """Make the key that tells it from others."""
    return event["id"], end_of(event)


class _Clock(Struct):
    """Of a source's events in time: the first's end, the greatest, and when the last arrived."""

    first: int
    newest: int
    heard_at: int


class ArrivalAccount:
    """Everything that arrived at one broker."""

    def __init__(self, lateness_ms: int, idle_timeout_ms: int) -> None:
        self.taken: dict[Key, Said] = {}
        self.steps: dict[Key, int] = {}  # the step in which an event was let in
        self.step = 0
        self.received = 0
        self.dropped: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()  # by the first reason of a payload
        self.judged = 0  # events whose lateness was known beforehand
        self.tokens: list[str] = []
        self._lateness_ms = lateness_ms
        self._idle_timeout_ms = idle_timeout_ms
        self._clocks: dict[str, _Clock] = {}

    def token(self) -> str:
        """A token that nobody else has."""
        self.tokens.append(f"token {len(self.tokens)}")
        return self.tokens[-1]

    def next_step(self) -> int:
        """Something is about to happen at the broker."""
        self.step += 1
        return self.step

    def withdrawn(self, source: str) -> None:
        """The source was withdrawn: it begins anew if it comes back."""
        self._clocks.pop(source, None)

    def note(self, arrivals: Sequence[Arrival], effects: Sequence[Effect], now: int) -> None:
        """Payloads arrived together, and the broker did this."""
        for arrival in arrivals:
            self.received += len(arrival.events) + sum(arrival.dropped.values())
            self.dropped.update(arrival.dropped)
            reasons = [reason for reason in arrival.dropped if reason != "undeclared_type"]
            self.refusals.update(reasons[:1])
        late_told = _late_of(effects)
        events = [event for arrival in arrivals for event in arrival.events]
        waiting = Counter(map(key_of, events))
        now_at = {source: self._clock_of(source, now) for source in self._clocks}
        for event in events:
            key = key_of(event)
            # Of equal events the last ones are late, if any, as clocks only go on.
            late = late_told[key] == waiting[key]
            waiting[key] -= 1
            self._judge(event, now_at, late=late)
            if late:
                late_told[key] -= 1
                self.dropped["late"] += 1
            else:
                self._heard(event, now_at, now)
                self._let_in(event)
        if late_told.total():
            raise CheckFailedError(f"told to be late, and did not come: {+late_told}")

    def _judge(self, event: Said, now_at: dict[str, int], *, late: bool) -> None:
        """Hold what was told against the source's clock, where that is known."""
        clock = now_at.get(event["source"])
        if clock is None:
            return
        end = end_of(event)
        passed = end < clock - self._lateness_ms
        if not passed and end <= self._clocks[event["source"]].first:
            return  # others may have gone on before it came
        self.judged += 1
        if late != passed:
            raise CheckFailedError(f"told to be {'late' if late else 'in time'}: {event}, {clock}")

    def _heard(self, event: Said, now_at: dict[str, int], now: int) -> None:
        source, end = event["source"], end_of(event)
        newest = max(end, now_at.get(source, end))
        now_at[source] = newest
        clock = self._clocks.get(source)
        self._clocks[source] = _Clock(clock.first if clock else end, newest, now)

    def _let_in(self, event: Said) -> None:
        key = key_of(event)
        first = self.taken.setdefault(key, event)
        if first is event:
            self.steps[key] = self.step
        else:
            self.dropped["repeat" if first == event else "conflicting_repeat"] += 1

    def _clock_of(self, source: str, now: int) -> int:
        clock = self._clocks[source]
        silent_ms = now - clock.heard_at
        return clock.newest + (silent_ms if silent_ms >= self._idle_timeout_ms else 0)


def _late_of(effects: Sequence[Effect]) -> Counter[Key]:
    return Counter(
        key_of(json.loads(publication.payload))
        for effect in effects
        if isinstance(effect, Publish)
        for publication in effect.publications
        if publication.topic.startswith("late/")
    )

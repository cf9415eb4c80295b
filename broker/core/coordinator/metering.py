"""Rates of what runs here, from counts, and when they are worth telling.

Owns the means. Must not know who is told. Invariant: a rate is told only where it and what all were
told last are apart by more than the stated part of the lesser of both, and not before it has been
looked at for long enough; so what stays the same is told once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp

from msgspec import Struct, field

from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.statement import Input

LOOKS = 6  # in the time that a rate is a mean over
WARM_MS = 10_000  # what came since the last snapshot comes again first, in less time
TRUSTED = 0.28  # the part of all weight that a third of that time has: then a rate is told first
STATELESS = 0.6  # the same where there was no snapshot: then there will be none for long
STATE_LASTS = 10  # times the time of a mean: a state that was so large may be again


class Counts(Struct, frozen=True):
    """What one submission's tasks have been sent and have sent since they began at this host.

    `inputs` in bytes by (origin, type), after the simple filters; `sent` in bytes of results.
    `state_bytes` is the size of the last snapshot, 0 before the first. `term` tells one beginning
    from another.
    """

    term: int
    inputs: dict[Input, int]
    sent: int
    state_bytes: int = 0


Pace = Callable[[int, int], int]
"""Bytes a second of snapshots, from those that come in and the size of a snapshot."""


class Rates(Struct, frozen=True):
    """Bytes a second."""

    inputs: dict[Input, int]
    sends: int


class _Mean(Struct):
    """A weighted mean: what was long ago counts little."""

    sum: float = 0.0

    def add(self, rate: float, fresh: float) -> None:
        self.sum += (rate - self.sum) * fresh


class Meter(Struct):
    """Of one submission that runs here.

    What snapshots take is not counted but reckoned from their size, so that it is the same where
    the home is the host, and in any moment: they are few, and their sizes go up and down.
    """

    settings: CoordinatorSettings
    pace: Pace
    since: int
    at: int
    counts: Counts
    state: float = 0.0
    weight: float = 0.0
    means: dict[Input, _Mean] = field(default_factory=dict)
    sends: _Mean = field(default_factory=_Mean)

    def look(self, counts: Counts, told: Rates, now: int) -> Rates | None:
        """Other counts; the rates, where these are others than what all were told."""
        took_ms = now - self.at
        if took_ms <= 0:
            return None
        before, self.counts, self.at = self.counts, counts, now
        lasts = exp(-took_ms / (STATE_LASTS * self.settings.measure_ms))
        self.state = max(float(counts.state_bytes), self.state * lasts)
        if now - self.since < WARM_MS:
            return None
        fresh = 1.0 - exp(-took_ms / self.settings.measure_ms)
        self.weight += (1.0 - self.weight) * fresh
        for place in dict.fromkeys([*self.means, *counts.inputs]):
            came = counts.inputs.get(place, 0) - before.inputs.get(place, 0)
            mean = self.means.setdefault(place, _Mean())
            mean.add(came * 1000 / took_ms, fresh)
        self.sends.add((counts.sent - before.sent) * 1000 / took_ms, fresh)
        if self.weight < TRUSTED or (not self.state and self.weight < STATELESS):
            return None
        rates = self._rates()
        return rates if self._differs(told, rates) else None

    def _rates(self) -> Rates:
        """The means, as if they had always been looked at."""
        inputs = {place: round(one.sum / self.weight) for place, one in sorted(self.means.items())}
        states = self.pace(sum(inputs.values()), round(self.state))
        return Rates(inputs, round(self.sends.sum / self.weight) + states)

    def _differs(self, told: Rates, rates: Rates) -> bool:
        places = dict.fromkeys([*told.inputs, *rates.inputs])
        pairs = [(told.inputs.get(place, 0), rates.inputs.get(place, 0)) for place in places]
        return any(self._is_other(a, b) for a, b in [*pairs, (told.sends, rates.sends)])

    def _is_other(self, told: int, rate: int) -> bool:
        change = abs(rate - told)
        most = self.settings.change_percent * min(told, rate)
        return change >= self.settings.rate_least and change * 100 > most


class Metering:
    """All that runs here, by whatever names it."""

    def __init__(self, settings: CoordinatorSettings, pace: Pace) -> None:
        self.every_ms = max(1, settings.measure_ms // LOOKS)
        self._settings = settings
        self._pace = pace
        self._meters: dict[tuple[str, str], Meter] = {}

    def look(
        self,
        counts: Mapping[tuple[str, str], Counts],
        told: Mapping[tuple[str, str], Rates],
        now: int,
    ) -> dict[tuple[str, str], Rates]:
        """Rates that are to be told; of what is not in `told` nobody wants to know."""
        for name in [name for name in self._meters if name not in counts]:
            del self._meters[name]
        found: dict[tuple[str, str], Rates] = {}
        for name, one in counts.items():
            meter = self._meters.get(name)
            if meter is None or meter.counts.term != one.term:
                self._meters[name] = Meter(self._settings, self._pace, now, now, one)
            elif name in told:
                rates = meter.look(one, told[name], now)
                if rates is not None:
                    found[name] = rates
        return found

    def __len__(self) -> int:
        return len(self._meters)

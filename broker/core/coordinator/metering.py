"""Rates of what runs here, from counts, and when they are worth telling.

Owns the means. Must not know who is told. Invariant: a rate is told only where it and what all were
told last are apart by more than the stated part of the lesser of both, and by more than chance, and
not before it has been looked at for long enough; so what stays the same is told once, and what goes
up and down only as its mean becomes exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp, hypot, inf, sqrt

from msgspec import Struct, field

from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.statement import Input, Measured, Piece, Submission
from broker.network.operators.filters import keys_told
from broker.network.routing.advertisement.operator import Key, Operator

LOOKS = 6  # in the time that a rate is a mean over
WARM_MS = 10_000  # what came since the last snapshot comes again first, in less time
TRUSTED = 0.28  # the part of all weight that a third of that time has: then a rate is told first
STATELESS = 0.6  # the same where there was no snapshot: then there will be none for long
SINCE = 6  # times as long a mean is as one of late, where nothing has changed for so long
LONG = 1.9  # stretches, each of LOOKS: of what is longer they tell how exact it is
ENDED = 3  # times as long a silence as any before: there is nothing more
SURE = 3.0  # times the standard error of a mean: of so much some 3 in 1,000 are by chance
STATE_LASTS = 10  # times the time of a mean: a state that was so large may be again


class Counts(Struct, frozen=True):
    """Count what one submission's tasks received and sent since they began at this host.

    `inputs` in bytes by (origin, type), after the simple filters; `sent` in bytes of results.
    `state_bytes` is the size of the last snapshot, 0 before the first. `term` tells one beginning
    from another. `asked` are the operators behind which the inputs come.
    """

    term: int
    inputs: dict[Input, int]
    sent: int
    state_bytes: int = 0
    asked: tuple[Operator, ...] = ()


Pace = Callable[[int, int], int]
"""Bytes a second of snapshots, from those that come in and the size of a snapshot."""


class Rates(Struct, frozen=True):
    """Bytes a second, and behind which filters."""

    inputs: dict[Input, int]
    sends: int
    filters: tuple[Key, ...] = ()


class _Apart(Struct):
    """Estimate how far a rate goes up and down: what two values after each other are apart.

    It is half of von Neumann's mean square successive difference (Ann. Math. Stat. 12, 1941,
    section 1): the variance, but that a step counts once.
    """

    square: float = 0.0
    weight: float = 0.0
    last: float | None = None

    def add(self, rate: float, lasting: float) -> None:
        """The next value."""
        if self.last is not None:
            self.square += ((rate - self.last) ** 2 / 2 - self.square) * lasting
            self.weight += (1.0 - self.weight) * lasting
        self.last = rate

    def error(self, count: float) -> float:
        """The standard error of a mean of so many."""
        return sqrt(self.square / self.weight / count)


class _Mean(Struct):
    """A rate: its mean of late, and that since it was another.

    What comes in bursts, or seldom, has means that go up and down though nothing has changed. Of
    bursts in a stretch of time little is seen in the means of stretches, so that errors of long
    means are reckoned from these, and those of short ones from looks.
    """

    late: float = 0.0
    since: float = 0.0
    weight: float = 0.0  # of `since`
    looks: _Apart = field(default_factory=_Apart)
    stretches: _Apart = field(default_factory=_Apart)
    came: int = 0  # in this stretch
    took_ms: int = 0
    silent_ms: int = 0  # up to now
    longest_ms: int = 0  # of silences before
    ended: bool = False  # silent for so long that what was before says nothing

    def add(self, came: int, took_ms: int, fresh: float, stretch_ms: int) -> None:
        """Add what one look saw; `fresh` is its part of the mean of late."""
        rate, lasting = came * 1000 / took_ms, fresh / SINCE
        self.late += (rate - self.late) * fresh
        self.since += (rate - self.since) * lasting
        self.weight += (1.0 - self.weight) * lasting
        self.looks.add(rate, lasting)
        self.came += came
        self.took_ms += took_ms
        if self.took_ms >= stretch_ms:
            self.stretches.add(self.came * 1000 / self.took_ms, 1 / SINCE)
            self.came = self.took_ms = 0
        self.ended = self.ended and not came
        if came:
            self.longest_ms, self.silent_ms = max(self.longest_ms, self.silent_ms), 0
        else:
            self.silent_ms += took_ms
            if self.silent_ms >= ENDED * max(stretch_ms, self.longest_ms):
                self.late, self.since, self.ended = 0.0, 0.0, True

    def settle(self, weight: float, fresh: float, settings: CoordinatorSettings) -> None:
        """Begin anew with what comes now, if the rate of late surely is another than before."""
        late_error, error = self.error(weight, fresh), self.error(self.weight, fresh / SINCE)
        if late_error is not None and error is not None:
            late, since = self.late / weight, self.since / self.weight
            if is_other(since, late, SURE * hypot(late_error, error), settings):
                self.weight = self.since = 0.0

    def error(self, weight: float, fresh: float) -> float | None:
        """The standard error of a mean of such a weight, of which a look more has such a part."""
        count = 2 * weight / ((2 - weight) * fresh)
        if count >= LONG * LOOKS and self.stretches.weight:
            return self.stretches.error(count / LOOKS)
        return self.looks.error(count) if self.looks.weight else None

    def told(self, fresh: float) -> tuple[float, float]:
        """(the rate, by how much it may be another); a first look may be anything.

        Where nothing came the rate is not 0 before that has been so for long enough.
        """
        if self.ended:
            return 0.0, 0.0
        if not self.since:
            return 0.0, inf
        error = self.error(self.weight, fresh / SINCE)
        rate = self.since / self.weight
        return rate, SURE * (rate if error is None else error)


def is_other(one: float, other: float, error: float, settings: CoordinatorSettings) -> bool:
    """Tell whether two rates are as far apart as is worth telling, and not by chance."""
    change = abs(one - other)
    most = settings.change_percent * min(one, other)
    return change >= max(settings.rate_least, error) and change * 100 > most


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
        for place in dict.fromkeys([*self.means, *counts.inputs, *told.inputs]):
            came = counts.inputs.get(place, 0) - before.inputs.get(place, 0)
            self._add(self.means.setdefault(place, _Mean()), came, took_ms, fresh)
        self._add(self.sends, counts.sent - before.sent, took_ms, fresh)
        self.weight += (1.0 - self.weight) * fresh  # behind what compares means of looks before
        if self.weight < TRUSTED or (not self.state and self.weight < STATELESS):
            return None
        return self._others(told, fresh)

    def _add(self, mean: _Mean, came: int, took_ms: int, fresh: float) -> None:
        mean.settle(self.weight, fresh, self.settings)
        mean.add(came, took_ms, fresh, self.settings.measure_ms)

    def _others(self, told: Rates, fresh: float) -> Rates | None:
        """The rates, if one of them is another than was told."""
        inputs: dict[Input, int] = {}
        are_others = False
        for place, one in sorted(self.means.items()):
            said, (rate, error) = told.inputs.get(place, 0), one.told(fresh)
            if is_other(said, rate, error, self.settings):
                inputs[place], are_others = round(rate), True
            else:  # so that nothing is told by chance because something else is told
                inputs[place] = said or round(rate)
        sends, error = self.sends.told(fresh)
        sends += self.pace(sum(inputs.values()), round(self.state))
        if are_others or is_other(told.sends, sends, error, self.settings):
            return Rates(inputs, round(sends))
        return None


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

    def words(
        self,
        counts: Mapping[Piece, Counts],
        stated: Mapping[Piece, Submission],
        me: str,
        now: int,
    ) -> list[Measured]:
        """Return the words to homes, from counts as they stand; not of what a home has stated."""
        last = {
            piece: Rates(dict(zip(word.inputs, word.rates, strict=True)), word.sends)
            for piece in counts
            if (word := stated.get(piece)) is not None
        }
        words = []
        for (home, key), fresh in self.look(counts, last, now).items():
            by_origin: dict[str, dict[str, int]] = {}
            for (origin, type_name), rate in fresh.inputs.items():
                by_origin.setdefault(origin, {})[type_name] = rate
            types = dict.fromkeys([type_name for _, type_name in fresh.inputs])
            filters = keys_told(counts[home, key].asked, types)
            words.append(Measured(home, me, key, by_origin, fresh.sends, filters))
        return words

    def __len__(self) -> int:
        return len(self._meters)


def rates_of(word: Measured) -> Rates:
    """Return the rates that such a word states."""
    inputs = {
        (origin, type_name): rate
        for origin, by_type in word.rates.items()
        for type_name, rate in by_type.items()
    }
    return Rates(inputs, word.sends, word.filters)

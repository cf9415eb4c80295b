"""Choose the keys of an operator whose events travel first, by how often sources send.

Owns what is counted of a broker's own sources, the rates that follow, and the choice of an
operator's *leads*: the keys whose events are so rare that it pays to have all others wait for them.
Must not know neighbours or matches. Invariant: leads travel as they would without the others, so
nothing waits for what waits for it; a choice rests on the rates that sources said, and on how long
the sources have been known that said none.

A rate is a power of two, of events a day. A source says it again only when it has changed by a
factor of four, and only where it may matter: a neighbour that joins nothing of the source with
others hears of it once it asks otherwise. A lead is told wherever others wait for it
(`leads.probes`), which costs an event for each link: so the others have to come many times as
often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import log2
from typing import Protocol, cast

from msgspec import Struct
from msgspec.structs import replace

from broker.network.routing.advertisement.messages import Advertise, Send
from broker.network.routing.advertisement.operator import Advertisement, Key, Operator
from broker.network.routing.advertisement.sources import AskedKey, Directory, serves
from broker.network.routing.matching.rows import EventView

RARER = 8  # events that wait come at least so many times as often as each lead
STILL = 4  # the same for events that wait already
COUNT_MIN, COUNT_MAX = 2, 256  # events of a rate; after so many measuring begins again
LEVELS = 2  # a rate is said again when it has changed by so many powers of two
DAY_MS = 86_400_000


class _Counted(Struct):
    """Events of one type of a source since a time, and the power that was said last."""

    since: int | None = None  # None: since the next look
    count: int = 0  # since then
    last: int | None = None  # None: too few to say


class SourceRates:
    """Measure how often a broker's own sources send, and remember since when all are known.

    `now` is any clock, in milliseconds; its zero does not matter.
    """

    def __init__(self) -> None:
        self._counted: dict[str, dict[str, _Counted]] = {}  # by source, type
        self._since: dict[str, int] = {}  # by source: when it was first known, here or elsewhere
        self._now = 0  # of the last look
        self._bounds: dict[AskedKey, tuple[float, float]] = {}  # since then: operators share keys

    def count(self, events: Iterable[EventView]) -> None:
        """Count events of sources here."""
        for event in events:
            types = self._counted.get(event.source or "")
            if types is None:
                continue
            counted = types.get(event.event_type)
            if counted is None:
                counted = types[event.event_type] = _Counted(self._since.get(event.source or ""))
            counted.count += 1

    def rated(self, advertisement: Advertisement) -> Advertisement:
        """Return what a source here says, with what is known of its rates."""
        types = self._counted.setdefault(advertisement.source, {})
        rates = [(name, each.last) for name, each in sorted(types.items()) if each.last is not None]
        return replace(advertisement, rates=tuple(rates))

    def forget(self, source: str) -> None:
        """A source here is none any more."""
        self._counted.pop(source, None)

    def look(self, known: Iterable[str], now: int) -> list[str]:
        """Return the sources here whose rates have changed; `known` are all sources."""
        self._now, self._bounds = now, {}
        self._since = {source: self._since.get(source, now) for source in known}
        return [source for source, types in self._counted.items() if self._measure(types, now)]

    def _measure(self, types: dict[str, _Counted], now: int) -> bool:
        is_new = False
        for counted in types.values():
            if counted.since is None:
                counted.since, counted.count = now, 0
            span_ms, last = now - counted.since, counted.last
            power, upper = _power(counted.count, span_ms), _power(counted.count + 1, span_ms)
            if last is None or power >= last + LEVELS:
                is_other = counted.count >= COUNT_MIN
            else:
                is_other = upper <= last - LEVELS
            if is_other:
                counted.last, is_new = power, True
            if counted.count >= COUNT_MAX:
                counted.since, counted.count = now, 0
        return is_new

    def bounds(self, key: Key, directory: Directory) -> tuple[float, float]:
        """Return between which rates events of a key are, a day, by what sources said of it.

        All is as it was when it was asked first since the last look.
        """
        asked = directory.asked_as(key)
        if asked in self._bounds:
            return self._bounds[asked]
        least, upper = 0.0, 0.0
        for direction in directory.directions:
            for source in directory.serving(direction, key):
                power = dict(source.rates).get(key.type_name)
                if power is not None:
                    least += 2.0**power
                    upper += 2.0**power
                else:
                    age_ms = self._now - self._since.get(source.source, self._now)
                    upper += COUNT_MIN * DAY_MS / max(1, age_ms)
        self._bounds[asked] = least, upper
        return least, upper


class AskedEntry(Protocol):
    """An operator as a neighbour asks for it."""

    operator: Operator


class RateNews:
    """Keep which neighbours were not told of the rates of which sources, as they had no use of it.

    Rates are compared where an operator is split, so of a part of one they matter. One all of whose
    keys a source serves hardly ever is: its broker has what is to be joined, as where a pattern is
    by source.
    """

    def __init__(self) -> None:
        self._owed: dict[str, dict[str, None]] = {}  # by neighbour: sources

    def forget(self, neighbour: str) -> None:
        """It is told everything anew."""
        self._owed.pop(neighbour, None)

    def sift(
        self, news: Iterable[Send], asked: Callable[[str], Iterable[AskedEntry]]
    ) -> list[Send]:
        """Return those of the news of rates that are of use; `asked` is what neighbours ask."""
        useful: list[Send] = []
        for send in news:
            advertisement = cast("Advertise", send.message).advertisement
            if any(_compares(entry.operator, advertisement) for entry in asked(send.to)):
                useful.append(send)
            else:
                self._owed.setdefault(send.to, {})[advertisement.source] = None
        return useful

    def due(self, neighbour: str, operator: Operator, directory: Directory) -> list[Send]:
        """Return what a neighbour is to be told that asks this, and was not."""
        news: list[Send] = []
        owed = self._owed.get(neighbour, {})
        for source in list(owed):
            advertisement = directory.said_to(neighbour, source)
            if advertisement is None or _compares(operator, advertisement):
                del owed[source]
                news += [Send(neighbour, Advertise(advertisement))] if advertisement else []
        return news


def _compares(operator: Operator, advertisement: Advertisement) -> bool:
    served = [serves(advertisement, key) for key in operator.keys]
    return any(served) and (operator.part or (operator.correlated and not all(served)))


def leads_of(
    operator: Operator, held: tuple[str, ...], rates: SourceRates, directory: Directory
) -> tuple[str, ...]:
    """Return the names of the keys that lead an operator, where these are `held` until now."""
    if not operator.correlated or operator.delta_t_ms is None:
        return ()
    wanted = [key for key in operator.keys if key.name not in operator.silent]
    bounds = {key.name: rates.bounds(key, directory) for key in wanted}
    wanted.sort(key=lambda key: (key.optional, bounds[key.name][1], key.name))
    for number in range(len(wanted) - 1, 0, -1):
        leads, others = wanted[:number], wanted[number:]
        names = tuple(sorted(key.name for key in leads))
        upper = max(bounds[key.name][1] for key in leads)
        least = min(bounds[key.name][0] for key in others)
        if upper and least >= upper * (STILL if names == held else RARER):
            return () if any(key.optional for key in leads) else names
    return ()


def _power(count: int, span_ms: int) -> int:
    return round(log2(max(1, count) * DAY_MS / max(1, span_ms)))

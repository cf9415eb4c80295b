"""What a home has to say of its own submissions, and where it has asked for them to run.

Owns the home's word: which host each submission has or is about to have, and who did not take one
up. Must not know what the rounds agree on. Invariant: a broker is asked once for each time that it
is chosen; one that does not take a submission up within its time is left out for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from msgspec import Struct

from broker.core.coordinator import bounds
from broker.core.coordinator.metering import Rates
from broker.core.coordinator.statement import Input
from broker.network.routing.advertisement.operator import Key

NOTHING = Rates({}, 0)


class Work(Struct, frozen=True):
    """A submission that is at home here. `host`: who runs its tasks; "": nobody but the home.

    `begins`: it is to be the host, and has not begun yet. `failed`: whoever was to be it last is
    not, and the tasks are where they were.
    """

    key: str
    name: str
    host: str
    begins: bool = False
    failed: bool = False


class Need(Struct, frozen=True):
    """State of a submission who runs it or was asked to, and what it takes."""

    key: str
    name: str
    host: str
    inputs: tuple[Input, ...]
    rates: tuple[int, ...]
    sends: int
    not_at: tuple[str, ...]
    filters: tuple[Key, ...]


class _Stay(Struct):
    """Record how long a task stays where it was moved to, and where it was before."""

    since: int
    for_ms: int
    was: dict[str, None]


class Works:
    """Keep what a home states of its submissions, and where it asked for them to run.

    `untold` counts those of which too much would have to be said.
    """

    def __init__(self, me: str, stay_ms: int) -> None:
        self.me = me
        self.stay_ms = stay_ms
        self._stays: dict[str, _Stay] = {}
        self.untold = 0
        self._works: dict[str, Work] = {}
        self._asked: dict[str, tuple[str, int]] = {}
        self._refused: dict[str, dict[str, int]] = {}
        self._rates: dict[str, Rates] = {}
        self._wishes: dict[str, tuple[str, int]] = {}  # not asked for yet, and since when
        self._lost: dict[str, int] = {}  # since when nothing is known of a host
        self._back: dict[str, None] = {}  # to be left where they are, as somebody had its time

    def __contains__(self, key: object) -> bool:
        return key in self._works

    def put(self, works: Iterable[Work], known: Container[str], now: int) -> None:
        """These are at home here; what does not fit into bounds is left at home.

        Who is not `known` by now has not refused anything.
        """
        some = list(works)
        told = some[: bounds.SUBMISSIONS_MAX]
        self.untold = len(some) - len(told)
        self._works = {one.key: one for one in told}
        kept: tuple[dict[str, Any], ...] = (
            self._asked,
            self._refused,
            self._rates,
            self._lost,
            self._stays,
            self._back,
        )
        for by_key in kept:
            for key in [key for key in by_key if key not in self._works]:
                del by_key[key]
        for key, one in self._works.items():
            self._look_at(key, one, known, now)

    def _look_at(self, key: str, one: Work, known: Container[str], now: int) -> None:
        broker, since = self._asked.get(key, (one.host, now))
        if broker == one.host:
            if not one.begins:
                self._asked.pop(key, None)
        elif broker != self.me and broker not in known:
            del self._asked[key]  # what it was asked is lost with it
        elif one.failed or now - since >= bounds.REFUSED_MS:
            del self._asked[key]
            if broker != self.me:
                self._refused.setdefault(key, {})[broker] = now
                self._back[key] = None
        refused = self._refused.get(key, {})
        for broker in [b for b, at in refused.items() if now - at >= bounds.REFUSALS_MS]:
            del refused[broker]

    @property
    def wishes(self) -> int:
        """Count the submissions that are soon to be asked to run elsewhere."""
        return len(self._wishes)

    def due(self, now: int) -> int | None:
        """When somebody is to be asked, has had its time, or may be asked again."""
        times = [self._ripe_at(key, at) for key, (_, at) in self._wishes.items()]
        times += [at + bounds.LOST_MS for at in self._lost.values() if at + bounds.LOST_MS > now]
        waits = [at for key, (_, at) in self._asked.items() if self._waits(key)]
        times += [at + bounds.REFUSED_MS for at in waits]
        times += [
            at + bounds.REFUSALS_MS for some in self._refused.values() for at in some.values()
        ]
        return min(times, default=None)

    def _waits(self, key: str) -> bool:
        """Tell whether a broker was asked that is not seen yet; who begins is waited for."""
        return key in self._asked and self._asked[key][0] != self._works[key].host

    def host_of(self, key: str) -> str:
        """Return the broker that runs a submission, or is about to; the home if it is just gone."""
        asked, known = self._asked.get(key), self._works.get(key)
        if asked is not None:
            return asked[0]
        return self.me if known is None else known.host or self.me

    def want(
        self,
        wanted: Mapping[str, str],
        known: Mapping[str, bool],
        place: Callable[[str, str], None],
        now: int,
    ) -> None:
        """Have submissions run there; what is not named stays where it is.

        Where nothing is `known` of a host, it may be soon, and is waited for; who is known, and
        whether it is to be rid of all.
        """
        back, self._back = self._back, {}
        for key in back:
            place(key, self._works[key].host or self.me)
        before, self._wishes = self._wishes, {}
        for key, one in self._works.items():
            missed_ms = self._missed_ms(key, one.host, known, now)
            if 0 <= missed_ms < bounds.LOST_MS:
                continue
            goal = wanted.get(key, self.me if missed_ms >= 0 else one.host or self.me)
            if goal in self._refused.get(key, {}):
                continue
            if goal != self.host_of(key) or (not one.host and key not in self._asked):
                wish = before.get(key, (goal, now))
                since = wish[1] if wish[0] == goal else now
                chosen = bool(one.host) and missed_ms < 0 and not known.get(one.host, False)
                if chosen and now < self._ripe_at(key, since):
                    self._wishes[key] = (goal, since)
                    continue
                if chosen:
                    self._move(key, one.host, goal, now)
                self._asked[key] = (goal, now)
                place(key, goal)

    def _ripe_at(self, key: str, since: int) -> int:
        """When a wish may be carried out: others have had their say, and the last move is over."""
        stay = self._stays.get(key)
        steady_at = since + bounds.STEADY_MS
        return steady_at if stay is None else max(steady_at, stay.since + stay.for_ms)

    def _move(self, key: str, host: str, goal: str, now: int) -> None:
        """A task goes elsewhere as that was chosen; where it was before it stays longer."""
        stay = self._stays.get(key)
        if stay is None or now - stay.since >= bounds.STAY_OVER * stay.for_ms:
            stay = self._stays[key] = _Stay(now, self.stay_ms, {})
        stay.was[host] = None
        stay.since = now
        if goal in stay.was:
            stay.for_ms = min(2 * stay.for_ms, bounds.STAY_MAX * self.stay_ms)

    def _missed_ms(self, key: str, host: str, known: Mapping[str, bool], now: int) -> int:
        """For how long nothing has been known of a host; -1 where it is known."""
        if not host or host == self.me or host in known or self._waits(key):
            self._lost.pop(key, None)
            return -1
        return now - self._lost.setdefault(key, now)

    def rate(self, key: str, rates: Rates) -> None:
        """Keep what a submission at home here takes in and sends by now."""
        taken = sorted(rates.inputs.items(), key=lambda row: (-row[1], row[0]))
        some = [(place, rate) for place, rate in taken[: bounds.INPUTS_MAX] if rate]
        self._rates[key] = Rates(dict(sorted(some)), rates.sends, rates.filters)

    def needs(self, only: str = "") -> tuple[Need, ...]:
        """Return what is to be said of all, or of one key."""
        needs = []
        chosen = {only: self._works[only]} if only else self._works
        for key, work in chosen.items():
            rates = self._rates.get(key, NOTHING)
            needs.append(
                Need(
                    key,
                    work.name[: bounds.NAME_CHARS_MAX],
                    self.host_of(key),
                    tuple(rates.inputs),
                    tuple(rates.inputs.values()),
                    rates.sends,
                    tuple(self._refused.get(key, ())),
                    rates.filters,
                )
            )
        return tuple(needs)

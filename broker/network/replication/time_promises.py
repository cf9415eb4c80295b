"""What an origin promises of the times of its events, by type, and what hosts have heard of that.

Owns the greatest uncertainty of each type, and whether its events last; what of this was promised,
and how it is heard by others. Must not know operators, frames or links. Invariant: no event of a
type that its origin has said anything of exceeds what is promised at that moment; and what a host
has heard of an origin, it never takes for less while its process goes on.

How far apart two events may be that a pattern joins (δt) depends on how wrong their times may be
and how long they last. What limits allow, a day and a week, would have every event wait as long
for its partner. So an origin promises what it has learnt: of a type no event was less certain than
so, a source's own word (its advertisement) included. A promise goes up in steps, 1, 5, 20, 100, …
ms, so that it changes rarely. It is a function of the events that the journal holds, so that a
process that begins again keeps it. A type whose events so far were points in time is promised to
have points alone, as an engine takes it to have; of one that has had an event which lasts longer
than its sources have said (`lasts_ms_max`) nothing is promised any more: engines then keep what may
be its partners for as long as limits allow.

Why nothing is missed while a promise grows (`growth_hold` keeps the order): the event that breaks
it, and all that its origin would say behind it, stay there until every broker that can be reached
has taken up the greater one. By then the operators that rest on it have gone out; what waits for
partners by the earlier ones travels when they come, and nothing waits by the new ones before their
hosts have heard again of all origins. Partners that were let go before were let go by a promise
of *time* of that very origin: none of its events would end before that. So that event and others
behind it that are less certain than was promised then may miss partners that an engine would have
forgotten by the same time, as it goes by the greatest uncertainty so far and by durations so far,
too; nothing else is missed. A promise that is heard of again after a broker was away comes ahead of
its events, and while it is away nothing waits for partners of it.

    unknown --an event, or an advertisement--> promised --a greater one--> promised (counted)
    promised points --an advertisement says how long--> promised to last no longer
    promised --an event that lasts longer--> unbounded
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from broker.engine.event.event import Event, doubtful, lasting
from broker.engine.ingest.advertised import Advertisement


class TimeBound(Struct, array_like=True, frozen=True):
    """No event of a type is less certain than so, or lasts longer; None: as limits allow."""

    uncertainty_ms: int | None = 0
    lasts_ms: int | None = 0

    def wider(self, other: TimeBound) -> TimeBound:
        """Return what holds of the events of both."""
        return TimeBound(
            _greatest(self.uncertainty_ms, other.uncertainty_ms),
            _greatest(self.lasts_ms, other.lasts_ms),
        )


POINTS = TimeBound()  # certain points in time: nothing else was heard of
UNBOUNDED = TimeBound(None, None)
Bounds = tuple[TimeBound, ...]  # one for each type of an origin, in their order; none: all points


def _greatest(a: int | None, b: int | None) -> int | None:
    # None is no bound, so it is the greatest of all.
    return None if a is None or b is None else max(a, b)


def _fitting(bounds: Bounds | None, types: tuple[str, ...]) -> Bounds | None:
    return bounds if bounds is not None and len(bounds) == len(types) else None


def step_ms(uncertainty_ms: int) -> int:
    """Return the least step that is no less: 1, 5, 20, 100, 500, 2,000, … ms, or 0."""
    if uncertainty_ms <= 0:
        return 0
    power = 1  # steps are a factor of four or five apart: each growth has all hosts ask anew
    while True:
        for digit in (1, 5, 20):
            if digit * power >= uncertainty_ms:
                return digit * power
        power *= 100


class TimePromises:
    """Keep what this origin promises; `version` ascends with each change of a promise."""

    def __init__(self, uncertainty_ms_max: int) -> None:
        self.version = 0
        self._most_ms = uncertainty_ms_max
        self._by_type: dict[str, TimeBound] = {}

    def of(self, types: Iterable[str]) -> Bounds:
        """Return what is promised of each of these types."""
        return tuple([self._by_type.get(name, POINTS) for name in types])

    def said_of(self, types: Iterable[str]) -> Bounds:
        """Return the same in the fewest words."""
        bounds = self.of(types)
        return bounds if any(bound != POINTS for bound in bounds) else ()

    def observe(self, events: Sequence[Event]) -> dict[str, int]:
        """Learn from events that were admitted; by type, how many broke what was promised."""
        # Nearly all events are certain points: these two look at a batch without a loop in Python.
        vague = [event for event in events if event.uncertainty] if doubtful(events) else ()
        outside = {id(event): event for event in (*vague, *lasting(events))}
        broken: dict[str, int] = {}
        learnt: dict[str, TimeBound] = {}
        for event in outside.values():
            name = event.event_type
            bound = self._by_type.get(name, POINTS)
            wider = bound.wider(self._bound(event, bound))
            # Each event is held to what was promised before the batch, as its order says nothing.
            if wider != bound:
                broken[name] = broken.get(name, 0) + 1
                learnt[name] = learnt.get(name, bound).wider(wider)
        self._learn(learnt)
        return broken

    def advertise(self, types: Iterable[str], said: Advertisement) -> None:
        """Take up what a source says of its events, which are of these types.

        Those that say nothing themselves are as uncertain as that; none lasts longer than that.
        """
        # A statement widens what is promised and never narrows it: `lasts_ms_max` of 3 s beside
        # events of another source that last has nothing promised, as those may last for longer.
        if said.uncertainty or said.lasts_ms_max:
            stated = TimeBound(self._step(said.uncertainty or 0), said.lasts_ms_max or 0)
            self._learn({name: self._by_type.get(name, POINTS).wider(stated) for name in types})

    def _bound(self, event: Event, bound: TimeBound) -> TimeBound:
        """Return what holds of an event whose type is promised to be within `bound`."""
        lasted_ms = event.end - event.start
        # How long others will last that last longer than anybody has said, nobody knows.
        lasts_ms = None if _greatest(lasted_ms, bound.lasts_ms) != bound.lasts_ms else 0
        return TimeBound(self._step(event.uncertainty), lasts_ms)

    def _step(self, uncertainty_ms: int) -> int:
        return min(step_ms(uncertainty_ms), max(self._most_ms, uncertainty_ms))

    def _learn(self, learnt: Mapping[str, TimeBound]) -> None:
        for name, bound in learnt.items():
            if self._by_type.get(name, POINTS) != bound:
                self._by_type[name] = bound
                self.version += 1

    def stated(self, types: Sequence[str]) -> dict[str, dict[str, int | None]]:
        """Return what is promised of these types, for people."""
        return {
            name: {"uncertainty_ms": bound.uncertainty_ms, "lasts_ms": bound.lasts_ms}
            for name, bound in zip(types, self.of(types), strict=True)
        }

    # --- snapshots -------------------------------------------------------------------------

    def state(self) -> list[list[Any]]:
        """Return plain data."""
        return [
            [name, bound.uncertainty_ms, bound.lasts_ms] for name, bound in self._by_type.items()
        ]

    def restore(self, state: Iterable[Sequence[Any]], kept: Sequence[Event]) -> None:
        """Take up such a state in the place of all that is here.

        `kept` are the events that others may still ask for: a disk of an earlier version has these
        alone.
        """
        # What hosts have heard was a function of the same events: it is said again as it was.
        self._by_type = {name: TimeBound(*bound) for name, *bound in state}
        self.observe(kept)
        self.version += 1


class HeardPromises:
    """Keep what other origins have promised, as far as this process has heard.

    `version` ascends with each change.
    """

    def __init__(self) -> None:
        self.version = 0
        self._said: dict[str, Bounds | None] = {}  # likewise, as it said last
        self._bounds: dict[str, dict[str, TimeBound]] = {}  # by origin and type, the widest so far

    def take(self, origin: str, types: tuple[str, ...], bounds: Bounds | None) -> None:
        """Hear an origin; `bounds` None: it is of a version that promises nothing."""
        # A neighbour that says fewer or more than there are types makes no sense of it at all.
        self._said[origin] = bounds = () if bounds == () else _fitting(bounds, types)
        widest = self._bounds.setdefault(origin, {})
        others = POINTS if bounds is not None else UNBOUNDED
        for name, bound in zip(types, bounds or (others,) * len(types), strict=True):
            before = widest.get(name, POINTS)
            # Who promises again what it had not, as it is of a later version now, is believed.
            again = bounds is not None and before == UNBOUNDED
            widest[name] = wider = bound if again else before.wider(bound)
            self.version += wider != before

    def said(self, origin: str) -> Bounds | None:
        """Return what it said last, to be passed on with its types."""
        return self._said.get(origin)

    def forget(self, origin: str) -> None:
        """Forget an origin, for which nobody waits any more."""
        for by_origin in (self._said, self._bounds):
            by_origin.pop(origin, None)

    def of(self, name: str) -> TimeBound:
        """Return what holds of a type, wherever its events come from."""
        widest = POINTS
        # An origin that is away counts, too: what it keeps comes when it is back.
        for by_type in self._bounds.values():
            bound = by_type.get(name)
            if bound is not None:
                widest = widest.wider(bound)
        return widest


class KnownPromises:
    """Look up what is promised by this origin and by all others."""

    def __init__(self, own: TimePromises, heard: HeardPromises) -> None:
        self._own = own
        self._heard = heard

    @property
    def version(self) -> int:
        """Return a number that ascends with each change."""
        return self._own.version + self._heard.version

    def of(self, name: str) -> TimeBound:
        """Return what holds of a type, wherever its events come from."""
        (own,) = self._own.of((name,))
        return self._heard.of(name).wider(own)

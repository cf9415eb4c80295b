"""How certain a relation of time is while every time may be off by its uncertainty.

Owns: whether some choice of true times meets a set of conditions.
Must not know: patterns. Invariant: exact; times are real numbers, and choices of different events
are independent, but start ≤ end within one.

A condition is `(a, b, c, strict)`: a - b ≤ c, or < c. Names are the ends of the occurrences asked
about: "ps" and "pe" where p starts and ends, "qs" and "qe" for q. A system is a list of conditions
that hold together; it may hold `REACHES_P`, `REACHES_Q` (a reading ends p, or starts q) or
`LASTS_P`, `LASTS_Q` (none does).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TypeAlias

from tests.oracles.events import Event
from tests.oracles.verdicts import Certainty

Condition: TypeAlias = tuple[str, str, Fraction, bool]
System: TypeAlias = list["Condition | str"]

REACHES_P, REACHES_Q = "a reading ends p", "a reading starts q"
LASTS_P, LASTS_Q = "no reading ends p", "no reading starts q"


def verdict(holds: Sequence[System], fails: Sequence[System], times: Times) -> Certainty:
    """Yes if no choice of times fails, no if none holds; each is given as alternatives."""
    if not any(times.can(system) for system in holds):
        return Certainty.NO
    return Certainty.MAYBE if any(times.can(system) for system in fails) else Certainty.YES


def at_most(a: str, b: str, c: Fraction | int = 0) -> System:
    """The condition a - b ≤ c."""
    return [(a, b, Fraction(c), False)]


def less(a: str, b: str, c: Fraction | int = 0) -> System:
    """The condition a - b < c."""
    return [(a, b, Fraction(c), True)]


def same(a: str, b: str) -> System:
    """The two ends are at one instant."""
    return at_most(a, b) + at_most(b, a)


@dataclass(frozen=True)
class Times:
    """The events of p, and of q where there is one, with all the times that they may have."""

    p: Sequence[Event]
    q: Sequence[Event] = ()

    def can(self, system: System) -> bool:
        """Whether some choice of times meets all conditions."""
        known = [*self._boxes("p", self.p), *self._boxes("q", self.q)]
        told = [one for one in system if not isinstance(one, str)]
        marks = [one for one in system if isinstance(one, str)]
        choices = [
            *self._extremes("p", self.p),
            *self._extremes("q", self.q),
            *(self._touching(mark) for mark in marks),
        ]
        return any(
            _is_feasible([*known, *told, *(one for part in chosen for one in part)])
            for chosen in product(*choices)
        )

    def _boxes(self, side: str, events: Sequence[Event]) -> Iterator[Condition]:
        for number, event in enumerate(events):
            start, end = _ends(side, number, event)
            off = event.uncertainty
            for name, time in {start: event.start, end: event.end}.items():
                yield (name, "0", Fraction(time + off), False)
                yield ("0", name, Fraction(off - time), False)
            yield (start, end, Fraction(0), False)

    def _extremes(self, side: str, events: Sequence[Event]) -> list[list[list[Condition]]]:
        """Which event starts the occurrence, and which ends it."""
        if not events:
            return []
        ends = [_ends(side, number, event) for number, event in enumerate(events)]
        start, end = f"{side}s", f"{side}e"
        zero = Fraction(0)
        first = [(start, one, zero, False) for one, _ in ends]
        last = [(one, end, zero, False) for _, one in ends]
        return [
            [[*first, (one, start, zero, False)] for one, _ in ends],
            [[*last, (end, one, zero, False)] for _, one in ends],
        ]

    def _touching(self, mark: str) -> list[list[Condition]]:
        """The ways in which a reading is, or none is, where p ends or where q starts."""
        zero = Fraction(0)
        if mark in (REACHES_P, LASTS_P):
            points = [_ends("p", i, e)[1] for i, e in enumerate(self.p) if e.is_point]
            if mark == REACHES_P:
                return [[("pe", one, zero, False)] for one in points]
            return [[(one, "pe", zero, True) for one in points]]
        points = [_ends("q", i, e)[0] for i, e in enumerate(self.q) if e.is_point]
        if mark == REACHES_Q:
            return [[(one, "qs", zero, False)] for one in points]
        return [[("qs", one, zero, True) for one in points]]


def _ends(side: str, number: int, event: Event) -> tuple[str, str]:
    """The names of an event's two times; a reading has one."""
    if event.is_point:
        return f"{side}{number}", f"{side}{number}"
    return f"{side}{number}.s", f"{side}{number}.e"


def _is_feasible(conditions: Sequence[Condition]) -> bool:
    """Whether differences can meet all conditions: no cycle adds up to less than nothing."""
    names = sorted({name for a, b, _, _ in conditions for name in (a, b)})
    closest: dict[tuple[str, str], tuple[Fraction, int]] = {}
    for a, b, c, strict in conditions:
        bound = (c, -1 if strict else 0)
        if (a, b) not in closest or bound < closest[a, b]:
            closest[a, b] = bound
    for middle, a, b in product(names, names, names):
        if (a, middle) in closest and (middle, b) in closest:
            left, right = closest[a, middle], closest[middle, b]
            bound = (left[0] + right[0], min(left[1], right[1]))
            if (a, b) not in closest or bound < closest[a, b]:
                closest[a, b] = bound
    return all(closest.get((name, name), (Fraction(0), 0)) >= (Fraction(0), 0) for name in names)

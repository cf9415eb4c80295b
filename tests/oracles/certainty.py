"""How certain a relation of time is while every time may be off by its uncertainty.

Owns: whether some choice of true times meets a set of conditions.
Must not know: patterns. Invariant: exact; times are real numbers, and choices of different events
are independent, but start ≤ end within one.

A condition is `(a, b, c, strict)`: a - b ≤ c, or < c. Names are the ends of the occurrences asked
about: "ps" and "pe" where p starts and ends, "qs" and "qe" for q. An event that is in both has the
same times in both. A system is a list of conditions that hold together; it may hold `REACHES_P`,
`REACHES_Q` (a reading ends p, or starts q) or `LASTS_P`, `LASTS_Q` (none does).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, TypeAlias

from tests.oracles.events import Event
from tests.oracles.verdicts import Certainty

Condition: TypeAlias = tuple[str, str, "int | Fraction", bool]
Span: TypeAlias = tuple[str, int, int, int]  # a name, nominal start and end, uncertainty
System: TypeAlias = list["Condition | str"]

REACHES_P, REACHES_Q = "a reading ends p", "a reading starts q"
LASTS_P, LASTS_Q = "no reading ends p", "no reading starts q"


def verdict(holds: Sequence[System], fails: Sequence[System], times: Times) -> Certainty:
    """Yes if no choice of times fails, no if none holds; each is given as alternatives."""
    systems = tuple(tuple(tuple(one) for one in some) for some in (holds, fails))
    named = {event: f"q{number}" for number, event in enumerate(times.q)}
    named |= {event: f"p{number}" for number, event in enumerate(times.p)}
    return _verdict(systems, _spans(times.p, named), _spans(times.q, named))


def _spans(events: Sequence[Event], named: Mapping[Event, str]) -> tuple[Span, ...]:
    return tuple((named[one], one.start, one.end, one.uncertainty) for one in events)


@lru_cache(maxsize=100_000)
def _verdict(systems: Any, p: tuple[Span, ...], q: tuple[Span, ...]) -> Certainty:
    """The same question comes back often: every operator and every suffix asks anew."""
    holds, fails = systems
    if not any(_can(system, p, q) for system in holds):
        return Certainty.NO
    return Certainty.MAYBE if any(_can(system, p, q) for system in fails) else Certainty.YES


def at_most(a: str, b: str, c: Fraction | int = 0) -> System:
    """The condition a - b ≤ c."""
    return [(a, b, c, False)]


def less(a: str, b: str, c: Fraction | int = 0) -> System:
    """The condition a - b < c."""
    return [(a, b, c, True)]


def same(a: str, b: str) -> System:
    """The two ends are at one instant."""
    return at_most(a, b) + at_most(b, a)


@dataclass(frozen=True)
class Times:
    """The events of p, and of q where there is one."""

    p: Sequence[Event]
    q: Sequence[Event] = ()


def _can(system: Sequence[Condition | str], p: Sequence[Span], q: Sequence[Span]) -> bool:
    """Whether some choice of times meets all conditions."""
    known = [*_boxes(p), *_boxes(q)]
    told = [one for one in system if not isinstance(one, str)]
    marks = [one for one in system if isinstance(one, str)]
    choices = [
        *_extremes("p", p),
        *_extremes("q", q),
        *(_touching(mark, p, q) for mark in marks),
    ]
    return any(
        _is_feasible([*known, *told, *(one for part in chosen for one in part)])
        for chosen in product(*choices)
    )


def _boxes(events: Sequence[Span]) -> Iterator[Condition]:
    """Each time lies within the uncertainty of its event; no event ends before it starts."""
    for event in events:
        first, last = _ends(event)
        _, start, end, off = event
        for name, time in {first: start, last: end}.items():
            yield (name, "0", time + off, False)
            yield ("0", name, off - time, False)
        if first != last:
            yield (first, last, 0, False)


def _extremes(side: str, events: Sequence[Span]) -> list[list[list[Condition]]]:
    """Which event starts the occurrence, and which ends it."""
    if not events:
        return []
    ends = [_ends(event) for event in events]
    start, end = f"{side}s", f"{side}e"
    first: list[Condition] = [(start, one, 0, False) for one, _ in ends]
    last: list[Condition] = [(one, end, 0, False) for _, one in ends]
    return [
        [[*first, (one, start, 0, False)] for one, _ in ends],
        [[*last, (end, one, 0, False)] for _, one in ends],
    ]


def _touching(mark: str, p: Sequence[Span], q: Sequence[Span]) -> list[list[Condition]]:
    """The ways in which a reading is, or none is, where p ends or where q starts."""
    if mark in (REACHES_P, LASTS_P):
        points = [_ends(one)[1] for one in p if one[1] == one[2]]
        if mark == REACHES_P:
            return [[("pe", one, 0, False)] for one in points]
        return [[(one, "pe", 0, True) for one in points]]
    points = [_ends(one)[0] for one in q if one[1] == one[2]]
    if mark == REACHES_Q:
        return [[(one, "qs", 0, False)] for one in points]
    return [[("qs", one, 0, True) for one in points]]


def _ends(event: Span) -> tuple[str, str]:
    """The names of an event's two times; a reading has one."""
    name, start, end, _ = event
    return (name, name) if start == end else (f"{name}.s", f"{name}.e")


def _is_feasible(conditions: Sequence[Condition]) -> bool:
    """Whether some times meet all conditions: no cycle of them adds up to less than nothing.

    A difference is bounded by (c, 0), or (c, -1) where it must be less; the shortest ways settle
    in as many rounds as there are names unless such a cycle goes on shortening them.
    """
    names = sorted({name for a, b, _, _ in conditions for name in (a, b)})
    far: dict[str, tuple[int | Fraction, int]] = dict.fromkeys(names, (0, 0))
    for _ in names:
        settled = True
        for a, b, c, strict in conditions:
            way = (far[b][0] + c, far[b][1] - strict)
            if way < far[a]:
                far[a], settled = way, False
        if settled:
            return True
    return False

"""Which occurrences a pattern has in a finished trace, by enumeration.

Owns: the reference meaning of atoms, `or`, `and`, `then`, contexts, suffixes and `last`.
Must not know: definitions, windows, results; it is given the events of each type.
Invariant: nothing is incremental. Each operator lists all pairs of what its operands report, and
its context chooses among the pairs that pass every test that can be judged there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias

from tests.oracles import spec as s
from tests.oracles.events import Event, Key, Occurrence
from tests.oracles.expressions import Scope, event_in_region, holds, names_in
from tests.oracles.places import distance_m
from tests.oracles.relations import RELATIONS, in_bound

Candidates: TypeAlias = Mapping[str, Sequence[Event]]
Test: TypeAlias = Callable[[Occurrence], bool]


@dataclass(frozen=True)
class Setting:
    """What surrounds a pattern: the candidate events by type, what names mean, the context of
    operators that name none, and the tests of the suffixes further out.
    """

    candidates: Candidates
    scope: Scope
    context: s.Context
    tests: tuple[JudgedTest, ...] = ()


@dataclass(frozen=True)
class JudgedTest:
    """A test and the names that an occurrence must have before it can be judged."""

    needs: frozenset[str]
    test: Test

    def lets_pass(self, occurrence: Occurrence) -> bool:
        """False if the test can be judged and fails."""
        return not self.needs <= set(occurrence.names) or self.test(occurrence)


def names_of(pattern: s.Pattern) -> tuple[str, ...]:
    """The names of a pattern's places in the order of the text."""
    return tuple(atom.name for atom in s.atoms_of(pattern))


def occurrences(pattern: s.Pattern, setting: Setting) -> list[Occurrence]:
    """All occurrences of the pattern of a `detect`, in order, each once."""
    found = set(_occurrences(pattern, setting))
    kept = [one for one in found if _is_last(one, found, last_places(pattern))]
    return sorted(kept, key=lambda one: one.order)


# --- each form --------------------------------------------------------------------------------


def _occurrences(pattern: s.Pattern, setting: Setting) -> list[Occurrence]:
    """What the form reports: its occurrences that pass every test that can be judged here."""
    found: list[Occurrence]
    match pattern:
        case s.Atom():
            found = _atom(pattern, setting)
        case s.Or(left, right):
            found = _either(left, right, setting)
        case s.Pair():
            found = _pair(pattern, setting)
        case s.Last(operand):
            found = _occurrences(operand, setting)  # chosen at the end, over the whole pattern
        case s.Outer():
            raise ValueError("outer stands in windows only")
        case s.Suffixed(operand, suffixes):
            added = tuple(test for one in suffixes for test in _tests(one, operand, setting))
            found = _occurrences(operand, replace(setting, tests=setting.tests + added))
    return [one for one in found if all(test.lets_pass(one) for test in setting.tests)]


def matches(event: Event, atom: s.Atom, scope: Scope) -> bool:
    """Whether one event meets an atom's conditions; a bare name is the event's own."""
    own = replace(scope, bare=event.value, events={atom.name: (event,)})
    return event.type == atom.type and all(holds(one, own) for one in atom.conditions)


def _atom(atom: s.Atom, setting: Setting) -> list[Occurrence]:
    events = setting.candidates[atom.type]
    met = [event for event in events if matches(event, atom, setting.scope)]
    return [Occurrence((atom.name,), ((event,),)) for event in met]


def _either(left: s.Pattern, right: s.Pattern, setting: Setting) -> list[Occurrence]:
    names = names_of(left) + names_of(right)
    none_left, none_right = ((),) * len(names_of(left)), ((),) * len(names_of(right))
    found = [Occurrence(names, one.places + none_right) for one in _occurrences(left, setting)]
    found += [Occurrence(names, none_left + one.places) for one in _occurrences(right, setting)]
    return found


def _joined(p: Occurrence, q: Occurrence) -> Occurrence:
    return Occurrence(p.names + q.names, p.places + q.places)


def _pair(pair: s.Pair, setting: Setting) -> list[Occurrence]:
    """The pairs that the operator's context chooses among all that may stand."""
    lefts, rights = _occurrences(pair.left, setting), _occurrences(pair.right, setting)

    def may_stand(p: Occurrence, q: Occurrence) -> bool:
        if set(p.events) & set(q.events):  # an event fills at most one place
            return False
        if not RELATIONS[pair.op](p, q) or not in_bound(pair, p, q):
            return False
        return all(test.lets_pass(_joined(p, q)) for test in setting.tests)

    choose = CONTEXTS[pair.context or setting.context]
    return [_joined(p, q) for p, q in choose(lefts, rights, may_stand)]


# --- contexts ---------------------------------------------------------------------------------

Pairs: TypeAlias = set[tuple[Occurrence, Occurrence]]
MayStand: TypeAlias = Callable[[Occurrence, Occurrence], bool]


def _unrestricted(
    lefts: Sequence[Occurrence], rights: Sequence[Occurrence], may_stand: MayStand
) -> Pairs:
    return {(p, q) for p in lefts for q in rights if may_stand(p, q)}


def _recent(
    lefts: Sequence[Occurrence], rights: Sequence[Occurrence], may_stand: MayStand
) -> Pairs:
    """For each occurrence of either operand, the latest candidate of the other before it."""
    chosen: Pairs = set()
    for q in rights:
        before = [p for p in lefts if p.order < q.order and may_stand(p, q)]
        chosen |= {(p, q) for p in _latest(before)}
    for p in lefts:
        before = [q for q in rights if q.order < p.order and may_stand(p, q)]
        chosen |= {(p, q) for q in _latest(before)}
    return chosen


def _latest(candidates: Iterable[Occurrence]) -> list[Occurrence]:
    return sorted(candidates, key=lambda one: one.order)[-1:]


CONTEXTS: dict[str, Callable[[Sequence[Occurrence], Sequence[Occurrence], MayStand], Pairs]] = {
    "unrestricted": _unrestricted,
    "recent": _recent,
}

# --- suffixes ---------------------------------------------------------------------------------


def _tests(suffix: s.Suffix, operand: s.Pattern, setting: Setting) -> list[JudgedTest]:
    match suffix:
        case s.Within(ms, None):
            return [JudgedTest(frozenset(), lambda one: one.end - one.start <= ms)]
        case s.Within(ms, start) if start is not None:
            assert start in names_of(operand)
            return [JudgedTest(frozenset({start}), lambda one: _within_from(one, start, ms))]
        case s.Spread(metres):
            return [JudgedTest(frozenset(), lambda one: _spread(one, metres))]
        case s.In(name):
            region = setting.scope.regions[name]
            return [
                JudgedTest(
                    frozenset(), lambda one: all(event_in_region(e, region) for e in one.events)
                )
            ]
        case s.Where(condition):
            return [_conjunct(part, setting.scope) for part in conjuncts(condition)]
    raise AssertionError(suffix)


def conjuncts(condition: s.Expr) -> list[s.Expr]:
    """The conditions that are joined by `and` at the top."""
    if isinstance(condition, s.AllOf):
        return [one for part in condition.parts for one in conjuncts(part)]
    return [condition]


def _conjunct(condition: s.Expr, scope: Scope) -> JudgedTest:
    def test(one: Occurrence) -> bool:
        bound = dict(zip(one.names, one.places, strict=True))
        return holds(condition, replace(scope, events=bound))

    return JudgedTest(names_in(condition), test)


def _within_from(one: Occurrence, start: str, ms: int) -> bool:
    """Every other event begins at or after the named one's end and ends at most `ms` after it.

    Where the name stands for nothing (the other side of `or`) there is no end to count from.
    """
    anchors = one.bound(start)
    if not anchors:
        return False
    (anchor,) = anchors
    others = [event for event in one.events if event != anchor]
    return all(anchor.end <= event.start and event.end <= anchor.end + ms for event in others)


def _spread(one: Occurrence, metres: float) -> bool:
    """Any two positions are near enough; an event without one, or of another kind, fails."""
    if any(event.position is None for event in one.events):
        return False
    for a, b in combinations(one.events, 2):
        away = distance_m(a.position, b.position)
        if away is None or away > metres:
            return False
    return True


# --- last -------------------------------------------------------------------------------------


def last_places(pattern: s.Pattern) -> list[tuple[str, ...]]:
    """The names under each `last` of a pattern."""
    match pattern:
        case s.Last(operand):
            return [names_of(operand), *last_places(operand)]
        case s.Or(left, right) | s.Pair(_, left, right):
            return last_places(left) + last_places(right)
        case s.Suffixed(operand):
            return last_places(operand)
    return []


def _is_last(one: Occurrence, found: Iterable[Occurrence], lasts: list[tuple[str, ...]]) -> bool:
    """Of the occurrences that agree in every other place, the one with the latest operand."""
    for names in lasts:
        others = [name for name in one.names if name not in names]
        for rival in found:
            agrees = all(rival.bound(name) == one.bound(name) for name in others)
            if agrees and _key_of_part(rival, names) > _key_of_part(one, names):
                return False
    return True


def _key_of_part(one: Occurrence, names: tuple[str, ...]) -> Key:
    """The order of what is bound to some names; () where they stand for nothing."""
    places = tuple(one.bound(name) for name in names)
    return Occurrence(names, places).order if any(places) else ()

"""What surrounds a pattern while its occurrences are listed, and the tests that suffixes make.

Owns: the names of places, when a test can be judged, and the meaning of every suffix.
Must not know: operators and contexts.
Invariant: a test that cannot be judged yet lets pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, combinations, product
from typing import Any, TypeAlias

from tests.oracles import spec as s
from tests.oracles.events import Event, Key, Occurrence
from tests.oracles.expressions import (
    Scope,
    event_in_region,
    holds,
    names_aggregated,
    names_in,
)
from tests.oracles.places import distance_m
from tests.oracles.relations import follows_within, spans_at_most
from tests.oracles.verdicts import Certainty, certainly, weakest

Candidates: TypeAlias = Mapping[str, Sequence[Event]]
Test: TypeAlias = Callable[[Occurrence], Certainty]


@dataclass(frozen=True)
class JudgedTest:
    """A test and when it can be judged: `needs` must stand for one event each, `needs_lists` for
    whole lists. Where `singly` is set, it is also asked of each member that a list may take.
    """

    test: Test
    needs: frozenset[str] = frozenset()
    needs_lists: frozenset[str] = frozenset()
    singly: bool = True

    def judged(self, occurrence: Occurrence) -> Certainty:
        """How certainly the test holds; yes while it cannot be judged."""
        names, lists = set(occurrence.names), occurrence.lists
        can_be = self.needs <= names - lists and self.needs_lists <= names & lists
        return self.test(occurrence) if can_be else Certainty.YES


@dataclass
class Memory:
    """What operators that spend have chosen: it stands, whatever is consumed later.

    `before`: per operator, what it had chosen when the case last reported; `after`: what completed
    that report, which must come before what completes all that is chosen now; `chosen`: all that it
    has chosen by now.
    """

    before: Mapping[s.Pair, Sequence[Occurrence]] = field(default_factory=dict)
    after: Key | None = None
    chosen: dict[s.Pair, list[Occurrence]] = field(default_factory=dict)

    def is_past(self, one: Occurrence) -> bool:
        """Whether it would have completed before the case last reported."""
        return self.after is not None and _completion(one) <= self.after

    def reported(self, whole: Occurrence) -> Memory:
        """The memory with which matching goes on after a report."""
        # Of what ends together an earlier start is reported first, whatever completes it.
        after = max(_completion(whole), self.after or ())
        kept = {
            pair: [one for one in chosen if _completion(one) <= after]
            for pair, chosen in self.chosen.items()
        }
        return Memory(kept, after)


def _completion(one: Occurrence) -> Key:
    """The order of what comes last in it."""
    return max(event.order for event in one.spans)


@dataclass(frozen=True)
class Setting:
    """What surrounds a pattern: the candidate events by type, what names mean, the context of
    operators that name none, the tests of the suffixes further out.

    `everything` holds consumed events as well; `beginning` is when the task began; `within_ms` is
    the nearest enclosing `within`; `restrictions` are the conjuncts that narrow what a `without`
    looks for; `drift` is ρ.
    """

    candidates: Candidates
    scope: Scope
    context: s.Context = "unrestricted"
    tests: tuple[JudgedTest, ...] = ()
    everything: Candidates = field(default_factory=dict)
    beginning: int | None = None
    within_ms: int | None = None
    restrictions: Mapping[s.Without, tuple[s.Expr, ...]] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    drift: Fraction = Fraction(0)

    def judged(self, one: Occurrence) -> Certainty:
        """How certainly all tests that can be judged hold."""
        return weakest(test.judged(one) for test in self.tests)

    def for_members(self) -> Setting:
        """What surrounds the operand of a list."""
        return replace(self, tests=tuple(test for test in self.tests if test.singly))

    def for_what_must_not_be(self) -> Setting:
        """What surrounds the operand of `absent` and what `without` looks for."""
        return replace(
            self,
            candidates=self.everything,
            context="unrestricted",
            tests=(),
            within_ms=None,
            memory=Memory(),
        )


def names_of(pattern: s.Pattern) -> tuple[str, ...]:
    """The names of a pattern's places in the order of the text; an absence has one too."""
    match pattern:
        case s.Atom():
            return (pattern.name,)
        case s.Absent():
            return (pattern.name,)
        case s.Without(left, _):
            return names_of(left)
    return tuple(name for part in s.parts_of(pattern) for name in names_of(part))


def lists_of(pattern: s.Pattern) -> frozenset[str]:
    """The names that stand for lists."""
    match pattern:
        case s.Listed() | s.Times() | s.Run():
            return frozenset(names_of(pattern))
        case s.Atom() | s.Absent():
            return frozenset()
        case s.Without(left, _):
            return lists_of(left)
    return frozenset().union(*(lists_of(part) for part in s.parts_of(pattern)))


def listed_names(pattern: s.Pattern) -> frozenset[str]:
    """The names beneath `P+` and `P*`, which no context chooses."""
    if isinstance(pattern, s.Listed):
        return frozenset(names_of(pattern))
    return frozenset().union(*(listed_names(part) for part in s.parts_of(pattern)))


# --- suffixes ---------------------------------------------------------------------------------


def inside(suffixed: s.Suffixed, setting: Setting) -> Setting:
    """What surrounds the operand of suffixes."""
    added = [test for one in suffixed.suffixes for test in _tests(one, suffixed.operand, setting)]
    spans = [one.ms for one in suffixed.suffixes if isinstance(one, s.Within)]
    return replace(
        setting,
        tests=(*setting.tests, *added),
        within_ms=min(spans) if spans else setting.within_ms,
    )


def _tests(suffix: s.Suffix, operand: s.Pattern, setting: Setting) -> list[JudgedTest]:
    match suffix:
        case s.Within(ms, None):
            return [JudgedTest(lambda one: spans_at_most(one, ms, setting.drift))]
        case s.Within(ms, start) if start is not None:
            assert start in names_of(operand)
            return [
                JudgedTest(
                    lambda one: _within_from(one, start, ms, setting.drift), frozenset({start})
                )
            ]
        case s.Spread(metres):
            return [JudgedTest(lambda one: certainly(_spread(one, metres)), singly=False)]
        case s.In(where):
            region = setting.scope.regions[where] if isinstance(where, str) else where
            return [
                JudgedTest(
                    lambda one: certainly(all(event_in_region(e, region) for e in one.events))
                )
            ]
        case s.Where(condition):
            restricting = {one for some in setting.restrictions.values() for one in some}
            return [
                _condition_test(part, operand, setting.scope)
                for part in conjuncts(condition)
                if part not in restricting
            ]
    raise AssertionError(suffix)


def conjuncts(condition: s.Expr) -> list[s.Expr]:
    """The conditions that are joined by `and` at the top."""
    if isinstance(condition, s.AllOf):
        return [one for part in condition.parts for one in conjuncts(part)]
    return [condition]


def condition_holds(
    condition: s.Expr, scope: Scope, one: Occurrence, rows: Sequence[frozenset[str]] = ()
) -> bool:
    """Whether a condition holds of what an occurrence binds; of a list, of each member.

    `rows`: the names that are members of one list together.
    """
    bound: dict[str, Any] = dict(zip(one.names, one.places, strict=True))
    listed = one.lists & names_in(condition)
    together = [sorted(row & listed) for row in rows if row & listed]
    alone = listed - {name for row in together for name in row}
    lists = [*together, *([name] for name in sorted(alone))]
    choices = product(*(_members(names, bound) for names in lists))
    return all(
        holds(condition, replace(scope, events=bound, members=dict(chain.from_iterable(chosen))))
        for chosen in choices
    )


def _members(
    names: Sequence[str], bound: Mapping[str, Sequence[Event]]
) -> list[list[tuple[str, Event]]]:
    """What the names of one list stand for, member by member."""
    columns = [[(name, event) for event in bound[name]] for name in names]
    return [list(member) for member in zip(*columns, strict=True)]


def _condition_test(condition: s.Expr, operand: s.Pattern, scope: Scope) -> JudgedTest:
    """A conjunct that names the members of one repetition alone is asked of each before runs are
    formed; one that names something else as well, of all of them where everything is bound.
    """
    named, aggregated = names_in(condition), names_aggregated(condition)
    rows = [frozenset(names_of(one)) for one in _repetitions(operand)]
    repeated = named & frozenset().union(*rows)
    if not aggregated and any(named <= row for row in rows):
        repeated = frozenset()

    def test(one: Occurrence) -> Certainty:
        return certainly(condition_holds(condition, scope, one, rows))

    return JudgedTest(test, named - repeated, aggregated | repeated)


def _repetitions(pattern: s.Pattern) -> list[s.Times | s.Run]:
    """The `P{n}` and `P+[a..b]` that bind something."""
    if isinstance(pattern, s.Times | s.Run):
        return [pattern]
    if isinstance(pattern, s.Atom | s.Absent):
        return []
    inner = (pattern.left,) if isinstance(pattern, s.Without) else s.parts_of(pattern)
    return [one for part in inner for one in _repetitions(part)]


def _within_from(one: Occurrence, start: str, ms: int, drift: Fraction) -> Certainty:
    """Every other event begins at or after the named one's end and ends at most `ms` after it.

    Where the name stands for nothing (the other side of `or`) there is no end to count from.
    """
    anchors = one.bound(start)
    if not anchors:
        return Certainty.NO
    (anchor,) = anchors
    others = [event for event in one.events if event != anchor]
    return weakest(follows_within(anchor, event, ms, drift) for event in others)


def _spread(one: Occurrence, metres: float) -> bool:
    """Any two positions are near enough; an event without one, or of another kind, fails."""
    if any(event.position is None for event in one.events):
        return False
    for a, b in combinations(one.events, 2):
        away = distance_m(a.position, b.position)
        if away is None or away > metres:
            return False
    return True

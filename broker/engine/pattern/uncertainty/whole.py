"""Tests of whole occurrences: what suffixes and conjuncts ask where no operator joins two sides.

Owns their compilation. Must not know stages. Invariant: the same question as on a join.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.engine.event.event import near
from broker.engine.event.occurrence import (
    Occurrence,
    after_anchor,
    bound_events,
    flat,
    strangers,
    touches,
)
from broker.engine.event.source import Constants, build
from broker.engine.pattern.layout.operands import (
    Gathered,
    Member,
    Negation,
    Operand,
    composite,
    silent_places,
    types_of,
)
from broker.engine.pattern.layout.pattern import Layout
from broker.engine.pattern.layout.scopes import PlaceScope, condition_code
from broker.engine.pattern.uncertainty.uncertainty import YES
from broker.engine.pattern.uncertainty.verdicts import Doubt, certainty_of, spanning, spans_of
from broker.engine.pattern.uncertainty.weighed import anchored_parts, marked

# Later than any time that an event may have, and still a plain integer: None would need a test in
# each comparison of generated code.
NEVER_SO_LATE = 2**62


def spread_ok(occurrence: Occurrence, distance_m: float) -> bool:
    """Tell whether all positions are so near to each other; a missing one is not."""
    positions = [event.position for event in bound_events(occurrence)]
    # LANGUAGE 1: an event without a position fails `spread`.
    if any(position is None for position in positions):
        return False
    return all(
        near(a, b, distance_m) for at, a in enumerate(positions) for b in positions[at + 1 :]
    )


def _member(variable: str, operand: Operand, place: int) -> str:
    if not composite(operand):
        return variable
    # A composite is (end, start, bound events …), a single event stands for itself: so there are
    # two ways to reach a place, chosen while code is written and never while it runs.
    return f"{variable}[{2 + place - operand.low}]"


def _times(variable: str, operand: Operand) -> tuple[str, str]:
    """Code of start and end."""
    if composite(operand):
        return f"{variable}[1]", f"{variable}[0]"
    return f"{variable}.start", f"{variable}.end"


class Passes:
    """Test an operand's occurrence by what suffixes and conjuncts ask."""

    def __init__(
        self,
        layout: Layout,
        operand: Operand,
        keys: tuple[str, ...],
        doubt: Doubt | None,
    ) -> None:
        self._operand = operand
        self._doubt = doubt
        # Places of `without` and of absences bind nothing, so no suffix asks anything of them.
        silent = silent_places(operand)
        self._places = [at for at in range(operand.low, operand.high) if at not in silent]
        # One function for each shape, shared by all texts and groups that have it (source.build):
        # with 100,000 subscriptions of one template that is one compilation instead of 100,000.
        self._test = self._compiled(layout, keys, silent)

    def __call__(self, occurrence: Occurrence, group: tuple[Any, ...]) -> Occurrence | None:
        """The occurrence, marked where it is not certain; None where it fails."""
        if not self._test(occurrence, group):
            return None
        if self._doubt is None:
            return occurrence
        return marked(occurrence, min(certainty_of(occurrence), self._weigh(occurrence)))

    def _compiled(
        self, layout: Layout, keys: tuple[str, ...], silent: frozenset[int]
    ) -> Callable[[Occurrence, tuple[Any, ...]], bool]:
        operand = self._operand
        constants = Constants()
        start, end = _times("o", operand)
        parts = []
        if operand.spread_m is not None:
            constants.helper("spread_ok", spread_ok)
            # Positions are exact, so `spread` is asked the same way where times are uncertain.
            parts.append(f"spread_ok(o, {constants.add(operand.spread_m)})")
        # With uncertain times `within` and anchors have three answers; `_weigh` gives these, as a
        # generated test could only say yes or no.
        if self._doubt is None:
            if operand.within_ms is not None:
                parts.append(f"{end} - {start} <= {constants.add(operand.within_ms)}")
            parts += self._anchored(constants)
        scope = PlaceScope(
            layout, keys, lambda place: _member("o", operand, place), constants, silent
        )
        parts += [condition_code(one, scope, constants) for one in operand.conjuncts]
        text = f"def test(o, g):\n    return {' and '.join(parts) or 'True'}\n"
        return build(text, "test", constants)

    def _anchored(self, constants: Constants) -> list[str]:
        operand = self._operand
        constants.helper("after_anchor", after_anchor)
        parts = []
        for anchor, within_ms in operand.anchors:
            if operand.low <= anchor < operand.high:
                a, limit = _member("o", operand, anchor), constants.add(within_ms)
                parts += [
                    f"after_anchor({a}, {_member('o', operand, place)}, {limit})"
                    for place in self._places
                    if place != anchor
                ]
        return parts

    def _weigh(self, occurrence: Occurrence) -> int:
        """Judge how certainly it meets what is asked of its times."""
        doubt, operand = self._doubt, self._operand
        assert doubt is not None
        parts = [YES]
        if operand.within_ms is not None:
            # The span of what is bound, as T(1 - drift) for yes and T(1 + drift) for no (paper 001,
            # table 1).
            parts.append(spanning(spans_of(occurrence), operand.within_ms, doubt))
        parts += anchored_parts(operand, occurrence, self._places, doubt)
        # A conjunction is as weak as its weakest part (LANGUAGE 3, "Uncertain time").
        return min(parts)


def negation_test(
    layout: Layout, negation: Negation, keys: tuple[str, ...], holder: Operand | None = None
) -> Callable[..., bool] | None:
    """`counts(p, q, g)`: whether a q is one of those that count; None: all are.

    Where it is judged further out, p is an occurrence of the holder.
    """
    if not negation.conjuncts:
        return None
    constants = Constants()

    def code_of(place: int) -> str | None:
        if negation.right.low <= place < negation.right.high:
            return _member("q", negation.right, place)
        return _member("p", holder or negation.left, place)

    scope = PlaceScope(layout, keys, code_of, constants, frozenset())
    parts = [condition_code(one, scope, constants) for one in negation.conjuncts]
    return build(f"def counts(p, q, g):\n    return {' and '.join(parts)}\n", "counts", constants)


# --- lists ------------------------------------------------------------------------------------


def place_end(occurrence: Occurrence, low: int, high: int) -> int:
    """When what is bound at the places (of a composite) ends."""
    # An empty list there ends "never": nothing fits behind it.
    return max([event.end for event in flat(occurrence[2 + low : 2 + high])], default=NEVER_SO_LATE)


def place_start(occurrence: Occurrence, low: int, high: int) -> int:
    """When it begins."""
    starts = [event.start for event in flat(occurrence[2 + low : 2 + high])]
    return min(starts, default=-NEVER_SO_LATE)


def fits_test(
    layout: Layout,
    gathered: Operand,
    member: Member,
    keys: tuple[str, ...],
    *,
    # False goes by nominal times, as lists do over what is not NO (LANGUAGE 3).
    certain: bool = True,
) -> Callable[..., bool]:
    """`fits(o, m, g)`: whether a candidate fits singly into a list of the chain's occurrence o.

    It goes by nominal times, also where these are uncertain (not `certain`); then the chain itself
    may be one that stands for other times alone, and nothing fits into that.
    """
    constants = Constants()
    # `m` is the candidate and `o` the chain's occurrence, whose lists are still empty.
    start, end = _times("m", member.operand)
    parts = []
    for name, helper in (
        ("place_end", place_end),
        ("place_start", place_start),
        ("touches", touches),
        ("after_anchor", after_anchor),
    ):
        constants.helper(name, helper)
    # `touches` asks which of both sides is longer than a point: two readings of one instant never
    # follow each other, a detected event counts as itself (LANGUAGE 3, `then`).
    events = "m[2:]" if composite(member.operand) else "(m,)"
    for element, bound, after in (
        (member.after, member.after_bound, True),
        (member.before, member.before_bound, False),
    ):
        # A leading or trailing list has no neighbour on that side.
        if element is None:
            continue
        low, high = element.low - gathered.low, element.high - gathered.low
        there = f"o[{2 + low}:{2 + high}]"
        # The edge is computed once, and read again for the tie and the bound.
        name = constants.temporary()
        edge = f"({name} := place_{'end' if after else 'start'}(o, {low}, {high}))"
        if after:
            parts.append(
                f"({edge} < {start} or ({name} == {start} and touches({name}, {there}, {events})))"
            )
            gap = f"{start} - {name}"
        else:
            parts.append(
                f"({edge} > {end} or ({name} == {end} and touches({name}, {events}, {there})))"
            )
            gap = f"{name} - {end}"
        if bound is not None and bound.low_ms is not None:
            parts.append(f"{gap} >= {constants.add(bound.low_ms)}")
        if bound is not None and bound.high_ms is not None:
            parts.append(f"{gap} <= {constants.add(bound.high_ms)}")
    if gathered.within_ms is not None:
        # The member together with the chain, as `within` spans all of the pattern.
        limit = constants.add(gathered.within_ms)
        parts.append(f"max({end}, o[0]) - min({start}, o[1]) <= {limit}")
    parts += _anchored(gathered, member, constants, certain=certain)
    parts += _apart(gathered, member, constants)
    parts += _conjuncts(layout, gathered, member, keys, constants)
    text = f"def fits(o, m, g):\n    return {' and '.join(parts)}\n"
    return build(text, "fits", constants)


def _apart(gathered: Operand, member: Member, constants: Constants) -> list[str]:
    # One event fills at most one place (LANGUAGE 3); tested last but for conditions, as it makes a
    # set. Lists are still empty, so it may only be one of the other elements of its type.
    assert isinstance(gathered, Gathered)
    if not types_of(member.operand) & types_of(gathered.base):
        return []
    return [f"{constants.helper('strangers', strangers)}(o, m)"]


def _anchored(
    gathered: Operand, member: Member, constants: Constants, *, certain: bool
) -> list[str]:
    own = range(member.operand.low, member.operand.high)
    silent = silent_places(member.operand)
    # Where times are exact the chain itself has been tested already; where they are not, it may
    # have passed as a maybe, and then nothing fits that the nominal times do not allow.
    others = [] if certain else _chain_places(gathered)
    parts = []
    for anchor, within_ms in gathered.anchors:
        # The anchor lies outside of this operand: an operator above it will ask.
        if not gathered.low <= anchor < gathered.high:
            continue
        limit = constants.add(within_ms)
        a = (
            _member("m", member.operand, anchor)
            if anchor in own
            else _member("o", gathered, anchor)
        )
        parts += [
            f"after_anchor({a}, {_member('m', member.operand, place)}, {limit})"
            for place in own
            if place != anchor and place not in silent
        ]
        if anchor not in own:
            parts += [
                f"after_anchor({a}, {_member('o', gathered, place)}, {limit})"
                for place in others
                if place != anchor
            ]
    return parts


def _chain_places(gathered: Operand) -> list[int]:
    """The places of a chain's elements that are no lists and bind something."""
    assert isinstance(gathered, Gathered)
    lists = [range(one.operand.low, one.operand.high) for one in gathered.members]
    silent = silent_places(gathered)
    places = range(gathered.low, gathered.high)
    return [at for at in places if at not in silent and not any(at in one for one in lists)]


def _conjuncts(
    layout: Layout,
    gathered: Operand,
    member: Member,
    keys: tuple[str, ...],
    constants: Constants,
) -> list[str]:
    own = range(member.operand.low, member.operand.high)
    silent = silent_places(gathered)
    scope = PlaceScope(layout, keys, lambda place: _member("o", gathered, place), constants, silent)
    codes = []
    for one in member.conjuncts:
        # Within the conjunct the alias of the list means this one candidate.
        with scope.each_of({place: _member("m", member.operand, place) for place in own}):
            codes.append(condition_code(one, scope, constants))
    return codes

"""What can be said of a part of a chain before its operators are complete.

Owns the tests that ask for some elements only. Must not know runs. Invariant: what is judged here
is judged again when the operator is complete, so that a wrong yes costs time alone; a no is final.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from broker.engine.event.expressions import names_in
from broker.engine.event.occurrence import (
    Occurrence,
    after_anchor,
    all_near,
    bound_events,
    end_of,
    events_of,
    start_of,
)
from broker.engine.event.source import Constants, build
from broker.engine.pattern.layout.attach import places_of
from broker.engine.pattern.layout.operands import Joint, Leaf, operands, silent_places
from broker.engine.pattern.layout.pattern import Layout
from broker.engine.pattern.layout.scopes import PlaceScope, condition_code
from broker.engine.pattern.uncertainty.verdicts import Doubt, spanning, spans_of

# Judging early is a saving and never a decision: a run of `first` with three elements of five is
# dropped as soon as two of them break a condition, instead of waiting for its end.
Conjunct = tuple[frozenset[int], Callable[..., bool]]  # elements that it names, test


class Judge:
    """Judges the filled elements of one chain; `links[i]` joins 0..i with i + 1."""

    def __init__(
        self,
        layout: Layout,
        links: list[Joint],
        keys: tuple[str, ...],
        doubt: Doubt | None = None,
    ) -> None:
        self._doubt = doubt
        self._links = links
        self._elements = [links[0].left, *(link.right for link in links)]
        self._low = links[0].low
        self._width = links[-1].high - self._low
        self._silent = silent_places(links[-1])
        parts = [part for element in self._elements for part in operands(element)]
        types = [part.event_type for part in parts if isinstance(part, Leaf)]
        self._repeats = len(set(types)) < len(types)  # only then may one event be in two elements
        # Tests that another test implies are left out once, here, as they would be asked for every
        # event.
        self._durations = _not_implied(links)
        self._placed = [link for link in links if link.anchors or link.spread_m is not None]
        # Conditions are compiled over the members by place, so that they can be asked while some
        # are empty.
        self._conjuncts = [
            self._compiled(layout, conjunct, keys) for link in links for conjunct in link.conjuncts
        ]

    def __call__(self, filled: Mapping[int, Occurrence], group: tuple[Any, ...]) -> bool:
        """Tell whether nothing of what is filled says no."""
        if self._repeats:
            ids = [id(event) for item in filled.values() for event in bound_events(item)]
            # One event fills at most one place of an occurrence (LANGUAGE 3).
            if len(ids) != len(set(ids)):
                return False
        if not all(self._lasts_at_most(*duration, filled) for duration in self._durations):
            return False
        if not (self._placed or self._conjuncts):
            return True
        members: list[Any] = [None] * self._width
        for element, item in filled.items():
            low = self._elements[element].low - self._low
            bound = events_of(item)
            members[low : low + len(bound)] = bound
        if not all(self._stands_by(link, members) for link in self._placed):
            return False
        return all(
            test(members, group)
            for elements, test in self._conjuncts
            if all(element in filled for element in elements)
        )

    def _lasts_at_most(self, last: int, within_ms: int, filled: Mapping[int, Occurrence]) -> bool:
        """Return if what is filled of the elements 0 to `last` may be `within` that time."""
        items = [item for element, item in filled.items() if element <= last]
        # One element alone spans what it spans; its own operator has asked that.
        if len(items) < 2:
            return True
        if self._doubt is not None:
            events = [span for item in items for span in spans_of(item)]
            # Only NO is final here: a MAYBE goes on and is weighed when the operator is complete.
            return bool(spanning(events, within_ms, self._doubt))
        span_ms: int = max(map(end_of, items)) - min(map(start_of, items))
        return span_ms <= within_ms

    def _stands_by(self, link: Joint, members: list[Any]) -> bool:
        """Return if what is filled of a link keeps to its anchors and is near enough."""
        places = [
            place
            for place in range(link.low, link.high)
            if place not in self._silent and members[place - self._low] is not None
        ]
        # With uncertain times a nominal no may be a maybe, so the early judgement abstains.
        for anchor, within_ms in link.anchors if self._doubt is None else ():
            if anchor in places and not all(
                after_anchor(members[anchor - self._low], members[place - self._low], within_ms)
                for place in places
                if place != anchor
            ):
                return False
        spread_m = link.spread_m
        return spread_m is None or all(
            all_near(members[a - self._low], members[b - self._low], spread_m)
            for a in places
            for b in places
            if a < b
        )

    def _compiled(self, layout: Layout, conjunct: Any, keys: tuple[str, ...]) -> Conjunct:
        places = layout.places
        # A conjunct can be asked as soon as every element that it names is filled, and not before:
        # an element that is still empty would be read as null, and null makes comparisons false.
        named = {places[name] for name in names_in(conjunct) if name in places}
        elements = frozenset(
            at for at, element in enumerate(self._elements) if places_of(element) & named
        )
        constants = Constants()
        scope = PlaceScope(
            layout, keys, lambda place: f"o[{place - self._low}]", constants, self._silent
        )
        code = condition_code(conjunct, scope, constants)
        return elements, build(f"def test(o, g):\n    return {code}\n", "test", constants)


def _not_implied(links: list[Joint]) -> list[tuple[int, int]]:
    """The last element and the time of each `within` that no outer one of less time implies."""
    needed: list[tuple[int, int]] = []
    # From the outermost inwards: an outer `within 5 s` implies an inner `within 10 s`.
    for last in range(len(links), 0, -1):
        within_ms = links[last - 1].within_ms
        if within_ms is not None and (not needed or within_ms < needed[-1][1]):
            needed.append((last, within_ms))
    return needed

"""Complete matches among events that passed the keys of one shape, for all its operators at once.

Owns the search in time and in space. Must not know rows, slots' names or directions. Invariant: a
hit is found for an operator exactly if events no further apart than the variant allows, one for
each key that is not optional, match with it; the hits that are new must be among them or lie in
the same window.

Windows lie on both sides of the event that came (paper 002, algorithm 5, says where they begin,
not where they end; an event that was held back upstream comes behind younger ones).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.engine.event.event import distance_m
from broker.network.routing.matching.rows import Held

if TYPE_CHECKING:
    from broker.network.routing.matching.matching import Place

Found = tuple["Hit", int]


class Variant(NamedTuple):
    """Bound how far apart events may be: `strict` less than the bounds, else at most."""

    delta_t_ms: int  # no two events further apart
    delta_l: float | None  # None: nothing is asked of places
    strict: bool  # whether the bounds themselves are too far

    def within(self, duration_ms: int) -> bool:
        """Tell whether a match may last so long."""
        return duration_ms < self.delta_t_ms or (duration_ms == self.delta_t_ms and not self.strict)

    def near(self, a: Held, b: Held) -> bool:
        """Tell whether two events may be so far from each other."""
        if self.delta_l is None:
            return True
        distance = distance_m(a.event.position, b.event.position)
        if distance is None:
            return False
        return distance < self.delta_l or (distance == self.delta_l and not self.strict)


class Hit:
    """An event that passed the key at one place, for the operators in `mask`.

    `got`: the operators that have it already, where each gets its own.
    """

    __slots__ = ("end", "got", "held", "mask", "place", "start")

    def __init__(self, held: Held, place: int, mask: int) -> None:
        self.held = held
        self.start = held.start  # for searches by time, which compare plain numbers
        self.end = held.end  # likewise
        self.place = place
        self.mask = mask
        self.got = 0


def complete(
    places: list[Place], new: list[Hit], variant: Variant, slots: int, unsent: int | None
) -> Iterator[Found]:
    """The hits that complete matches hold now that the hits `new`, of one event, are there.

    `slots`: the operators asked about. `unsent`: only hits whose event lacks this bit are of
    interest, and for any operator; None: all, with every operator.
    """
    came = new[0].held
    asked = 0
    for hit in new:
        asked |= hit.mask
    asked &= slots
    if not asked or not variant.within(came.end - came.start):
        return
    near = _in_reach(places, came, variant, asked)
    if near is None:
        return
    hits, asked = near
    if not any(_open(places, hit, unsent) for hit in hits):
        return
    hits.sort(key=attrgetter("start"))
    for window in _windows(hits, came, variant):
        mask = asked & _joined(places, window)
        if not mask:
            continue
        if variant.delta_l is None or _all_near(window, variant):
            for hit in window:
                if hit.mask & mask and _open(places, hit, unsent):
                    yield hit, hit.mask & mask
        else:
            yield from _Space(places, variant, window, mask, unsent).found(came)


def possible(places: list[Place], new: list[Hit], variants: list[Variant]) -> int:
    """The operators that may have a match with the new hits, as far as the longest δt tells."""
    widest = Variant(max(variant.delta_t_ms for variant in variants), None, strict=False)
    asked = 0
    for hit in new:
        asked |= hit.mask
    near = _in_reach(places, new[0].held, widest, asked)
    return 0 if near is None else near[1]


def _open(places: list[Place], hit: Hit, unsent: int | None) -> bool:
    """Tell whether it is of interest that a match holds this hit."""
    if places[hit.place].role.silent:
        return False
    return not hit.held.sent & unsent if unsent is not None else bool(hit.mask & ~hit.got)


def _in_reach(
    places: list[Place], came: Held, variant: Variant, asked: int
) -> tuple[list[Hit], int] | None:
    """The hits that may share a match with an event, and the operators that may have one."""
    first = came.end - variant.delta_t_ms
    last = came.start + variant.delta_t_ms
    # Keys that must be there come first: most events end here.
    for place in places:
        if not place.role.optional:
            union = 0
            for hit in place.hits[bisect_left(place.starts, first) :]:
                if hit.end <= last:
                    union |= hit.mask
            asked &= union
            if not asked:
                return None
    reach = [
        hit
        for place in places
        for hit in place.hits[bisect_left(place.starts, first) :]
        if hit.end <= last and hit.mask & asked
    ]
    return reach, asked


def _windows(hits: list[Hit], came: Held, variant: Variant) -> Iterator[list[Hit]]:
    """The widest sets of hits in one window with the event; `hits` are in order of starts."""
    begun: int | None = None  # the start before
    widest: int | None = None  # that of the window before
    for index, first in enumerate(hits):
        start = first.start
        if start > came.start:
            return
        if start == begun or not variant.within(came.end - start):
            continue
        begun = start
        window = [hit for hit in hits[index:] if variant.within(hit.end - start)]
        # A window that only lost its beginning finds nothing new.
        if widest is not None and all(variant.within(hit.end - widest) for hit in window):
            continue
        widest = start
        yield window


def _joined(places: list[Place], window: list[Hit]) -> int:
    """The operators whose keys, but for optional ones, all have an event in the window."""
    unions = [0] * len(places)
    for hit in window:
        unions[hit.place] |= hit.mask
    mask = -1
    for place, union in zip(places, unions, strict=True):
        if not place.role.optional:
            mask &= union
    return mask


def _all_near(window: list[Hit], variant: Variant) -> bool:
    some = list({hit.held.place: hit.held for hit in window}.values())
    return all(variant.near(a, b) for index, a in enumerate(some) for b in some[index:])


class _Group:
    """The hits of one place of the shape at one place of the world: alike as far as space goes."""

    __slots__ = ("found", "hits", "mask", "missing")

    def __init__(self) -> None:
        self.hits: list[Hit] = []
        self.mask = 0
        self.found = 0
        self.missing = 0  # operators for which it is not known yet whether a match holds it


class _Space:
    """The search among the hits of one window that are not all near each other."""

    def __init__(
        self,
        places: list[Place],
        variant: Variant,
        window: list[Hit],
        mask: int,
        unsent: int | None,
    ) -> None:
        self._places = places
        self._variant = variant
        self._mask = mask
        self._unsent = unsent
        self._near: dict[tuple[Any, Any], bool] = {}
        self._groups: list[dict[Any, _Group]] = [{} for _ in places]
        for hit in window:
            bits = hit.mask & mask
            if not bits:
                continue
            group = self._groups[hit.place].setdefault(hit.held.place, _Group())
            group.hits.append(hit)
            group.mask |= bits
            if _open(places, hit, unsent):
                group.missing |= bits if unsent is not None else bits & ~hit.got

    def found(self, came: Held) -> Iterator[Found]:
        """The hits that are in matches with what stands where the event came from."""
        for place, groups in enumerate(self._groups):
            group = groups.get(came.place)
            if group is not None and any(hit.held is came for hit in group.hits):
                self._extend(place, group)
        for groups in self._groups:
            for group in groups.values():
                for hit in group.hits:
                    bits = hit.mask & group.found
                    if bits and _open(self._places, hit, self._unsent):
                        yield hit, bits

    def _extend(self, place: int, group: _Group) -> None:
        needed = [
            index
            for index, each in enumerate(self._places)
            if not each.role.optional and index != place
        ]
        needed.sort(key=lambda index: len(self._groups[index]))
        # What comes into question at all: what is near the one that is fixed.
        around = [
            [other for other in groups.values() if self._is_near(group, other)]
            for groups in self._groups
        ]
        fixed_optional = self._places[place].role.optional
        self._search([group], group.mask & self._mask, needed, (around, fixed_optional))

    def _search(
        self,
        chosen: list[_Group],
        mask: int,
        needed: list[int],
        rest: tuple[list[list[_Group]], bool],
    ) -> None:
        around, fixed_optional = rest
        if not mask & self._wanted(chosen, needed, around, fixed_optional):
            return
        if needed:
            for group in around[needed[0]]:
                if mask & group.mask and all(self._is_near(group, one) for one in chosen):
                    self._search([*chosen, group], mask & group.mask, needed[1:], rest)
            return
        for group in chosen:
            self._note(group, mask)
        if fixed_optional:
            return
        for index, place in enumerate(self._places):
            if place.role.optional:
                for group in around[index]:
                    if mask & group.missing and all(self._is_near(group, one) for one in chosen):
                        self._note(group, mask & group.mask)

    def _wanted(
        self,
        chosen: list[_Group],
        needed: list[int],
        around: list[list[_Group]],
        fixed_optional: bool,
    ) -> int:
        """The operators for which the search can still find something."""
        wanted = 0
        for group in chosen:
            wanted |= group.missing
        for index in needed:
            for group in around[index]:
                wanted |= group.missing
        if not fixed_optional:
            for index, place in enumerate(self._places):
                if place.role.optional:
                    for group in around[index]:
                        wanted |= group.missing
        return wanted

    def _note(self, group: _Group, mask: int) -> None:
        group.found |= mask
        if self._unsent is None:
            group.missing &= ~mask
        elif mask & group.missing:
            self._settle(group)

    def _settle(self, group: _Group) -> None:
        """One operator is enough for an event to go: ask on for the other hits alone."""
        missing = 0
        for hit in group.hits:
            if _open(self._places, hit, self._unsent) and not hit.mask & group.found:
                missing |= hit.mask & self._mask
        group.missing = missing

    def _is_near(self, a: _Group, b: _Group) -> bool:
        one, other = a.hits[0].held, b.hits[0].held
        key = (one.place, other.place)
        near = self._near.get(key)
        if near is None:
            near = self._variant.near(one, other)
            self._near[key] = self._near[other.place, one.place] = near
        return near

"""Occurrences: what a pattern has bound so far, and their order.

Owns the shape of an occurrence and how its events are looked through. Must not know how one is
found. Invariant: the order of occurrences depends on their events alone.

At a leaf an occurrence is the event itself. Above, it is (end, start, one member for each place of
the text): an event, a tuple of events where a list stands, or None where nothing is bound.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from itertools import chain, islice
from operator import attrgetter, eq, lt
from typing import Any

from broker.engine.event.event import Event, Head, Order, Tie, near

Occurrence = Any
Key = Callable[[Any], Any]
Tied = Callable[[Sequence[Any]], None]

_ids = attrgetter("ids")
_ties = attrgetter("ties")
_moment = attrgetter("end", "start", "id")
_span = attrgetter("end", "start")
_chained = chain.from_iterable
_primitive = attrgetter("primitive")


class Absence:
    """An interval that `absent P for T` puts in a place; it binds no event.

    `uncertainty`: the greatest of the P with whose end it begins.
    """

    __slots__ = ("end", "place", "start", "uncertainty")

    def __init__(self, start: int, end: int, place: int, uncertainty: int = 0) -> None:
        self.start = start
        self.end = end
        self.place = place
        self.uncertainty = uncertainty

    @property
    def ids(self) -> tuple[str, ...]:
        """None: no event is bound."""
        return ()

    @property
    def ties(self) -> tuple[Tie, ...]:
        """None, as of an event that nothing detected."""
        return ()

    @property
    def order(self) -> Order:
        """Its interval alone, where it stands alone."""
        return (self.end, self.start, (), (), (), ())


def identity(member: Any) -> Any:
    """Return what distinguishes one event, or one absence, from every other."""
    if member.__class__ is Absence:
        return (member.place, member.start)
    return id(member)


# Greater than any rank, so that an empty place sorts last.
_EMPTY_PLACE = (2**62,)  # of two sides of an `or` the one on the left comes first


def end_of(occurrence: Occurrence) -> int:
    """When an occurrence ends."""
    # By class and not by isinstance: this is the most frequent question of all, and an event is
    # never a tuple.
    end: int = occurrence[0] if occurrence.__class__ is tuple else occurrence.end
    return end


def start_of(occurrence: Occurrence) -> int:
    """When an occurrence begins."""
    start: int = occurrence[1] if occurrence.__class__ is tuple else occurrence.start
    return start


def events_of(occurrence: Occurrence) -> tuple[Any, ...]:
    """The members of an occurrence, by place."""
    if occurrence.__class__ is tuple:
        members: tuple[Any, ...] = occurrence[2:]
        return members
    return (occurrence,)


def flat(members: Sequence[Any]) -> list[Any]:
    """All that is bound at the places, those of lists one after the other."""
    found: list[Any] = []
    for member in members:
        if member.__class__ is tuple:
            found += member
        elif member is not None:
            found.append(member)
    return found


def bound_events(occurrence: Occurrence) -> list[Event]:
    """The events of an occurrence, by place; what binds none is left out."""
    return [event for event in flat(events_of(occurrence)) if event.__class__ is not Absence]


def order_of(occurrence: Occurrence) -> Order:
    """The order of an occurrence: end, start, then what its events in order say, then by place."""
    if occurrence.__class__ is not tuple:
        order: Order = occurrence.order
        return order
    members = occurrence[2:]
    # An absence has no id that two brokers would agree on; its interval stands in `_placed`.
    given = [event.order for event in flat(members) if event.__class__ is not Absence]
    if len(given) == 1:  # it stands where its event does
        # A silence beside it may have made one span of two events of one id.
        placed = (given[0][:2], *_placed(members, (0,)))
        return (occurrence[0], occurrence[1], *given[0][2:5], placed)
    ranked = sorted(range(len(given)), key=given.__getitem__)
    ids, ties, below = said_in_order([given[at] for at in ranked])
    ranks = [0] * len(given)
    for rank, at in enumerate(ranked):
        ranks[at] = rank
    return (occurrence[0], occurrence[1], ids, ties, below, _placed(members, ranks))


def said_in_order(
    orders: Sequence[Order],
) -> tuple[tuple[str, ...], tuple[Tie, ...], tuple[Any, ...]]:
    """Gather from the orders of events, given in order, their ids, ties and what lies below."""
    ids = tuple([primitive for order in orders for primitive in order[2]])
    ties = tuple([tie for order in orders for tie in order[3]])
    return ids, ties, tuple([order[4][0] if order[4] else order[:2] for order in orders])


def _placed(members: Sequence[Any], ranks: Sequence[int]) -> tuple[Any, ...]:
    """Which of the events in order are at each place; nothing comes after all that can be.

    An absence is no event: where it stands, its interval does.
    """
    placed: list[Sequence[int]] = []
    at = 0
    for member in members:
        if member.__class__ is Absence:
            placed.append((member.end, member.start))
            continue
        count = len(_each(member))
        placed.append(tuple(ranks[at : at + count]) or _EMPTY_PLACE)
        at += count
    return tuple(placed)


def span_of(occurrence: Occurrence) -> tuple[int, int]:
    """Its end and start, which nearly always decide the order."""
    if occurrence.__class__ is tuple:
        span: tuple[int, int] = occurrence[:2]
        return span
    return (occurrence.end, occurrence.start)


def follows(occurrence: Occurrence, other: Occurrence) -> bool:
    """Tell whether it comes after the other one; the spans nearly always say so."""
    # The whole order is a walk over all bound events; a comparison of two numbers settles all but
    # those that end and start together.
    span, before = span_of(occurrence), span_of(other)
    return span > before or (span == before and order_of(occurrence) > order_of(other))


def first_of(occurrences: Sequence[Occurrence], tied: Tied) -> Occurrence:
    """The first in order; `tied` is told of those whose span says no more."""
    first = min(map(span_of, occurrences))
    equal = [occurrence for occurrence in occurrences if span_of(occurrence) == first]
    if len(equal) == 1:
        return equal[0]
    tied(equal)
    return min(equal, key=order_of)


def head_of(occurrence: Occurrence) -> Head:
    """Its order without the places: with the ids, which decide nearly all that the span leaves."""
    if occurrence.__class__ is not tuple:
        return (occurrence.end, occurrence.start, occurrence.ids, occurrence.ties)
    members = _in_order(occurrence)
    if members is None:
        return order_of(occurrence)[:4]
    ids, ties = map(_ids, members), map(_ties, members)
    return (occurrence[0], occurrence[1], tuple(_chained(ids)), tuple(_chained(ties)))


def lead_of(occurrence: Occurrence) -> tuple[str, ...]:
    """Its first id, of which nothing more is made than has to be: of many groups it decides."""
    # Fifty windows of one tick end together. All their ids took 0.37 of 1.24 s to put in order,
    # while no two of them have the first in common.
    if occurrence.__class__ is not tuple:
        return lead(occurrence.ids)
    events = occurrence[2:]
    try:
        spans = list(map(_span, events))
    except AttributeError:  # a list, or nothing
        spans = []
    first = min(spans, default=(0, 0))
    if spans.count(first) == 1 and (beginning := lead(events[spans.index(first)].ids)):
        return beginning  # of the one that comes first, and nothing is sorted
    for member in _in_order(occurrence) or ():
        if beginning := lead(member.ids):
            return beginning
    return lead(order_of(occurrence)[2])


def lead(ids: Any) -> tuple[str, ...]:
    """Return the first of ids as a tuple; those of a window's event may be made late."""
    if ids.__class__ is tuple:
        beginning: tuple[str, ...] = ids[:1]
        return beginning
    first = ids.first()
    return () if first is None else (first,)


def ids_of(occurrence: Occurrence) -> tuple[str, ...]:
    """The primitive ids that an occurrence is made of, in order."""
    if occurrence.__class__ is not tuple:
        ids: tuple[str, ...] = occurrence.ids
        return ids
    members = _in_order(occurrence)
    if members is None:
        return order_of(occurrence)[2]
    return tuple(_chained(map(_ids, members)))


def _in_order(occurrence: Occurrence) -> list[Event] | None:
    """The events of an occurrence in order; None where that takes more than spans and ids."""
    events: Sequence[Any] = occurrence[2:]
    try:
        spans = list(map(_span, events))
    except AttributeError:  # a list, or nothing
        events = flat(events)
        spans = list(map(_span, events))
    if Absence in map(type, events):
        return None
    # Mostly they are in order already: then nothing is sorted.
    if all(map(lt, spans, islice(spans, 1, None))):
        return list(events)
    if all(map(_primitive, events)):
        return sorted(events, key=_moment)
    # Of detected events with one span the whole order decides; mostly there are none.
    spans.sort()
    unequal = all(map(lt, spans, islice(spans, 1, None)))
    return sorted(events, key=_span) if unequal else None


def sort_in_order(items: list[Any], *keys: Key, tied: Tied | None = None) -> None:
    """Sort in place by keys: each begins with the one before, and is asked for among equals alone.

    Without keys the items are occurrences. `tied` is told of the equal ones before the next key.
    """
    if len(items) < 2:
        return
    first, *rest = keys or (span_of, lead_of, ids_of, order_of)
    if not rest:
        items.sort(key=first)
        return
    # Key after key among equals, not one tuple of all keys: of 1,000 occurrences with 1,000 ends
    # the second key is never computed, and the first only once for each.
    for begin, stop in sort_by(first, items):
        equal = items[begin:stop]
        if len(equal) == 2:
            if _is_inverted(equal, rest, tied):
                items[begin], items[begin + 1] = equal[1], equal[0]
            continue
        if tied is not None:
            tied(equal)
        sort_in_order(equal, *rest, tied=tied)
        items[begin:stop] = equal


def _is_inverted(pair: list[Any], keys: Sequence[Key], tied: Tied | None) -> bool:
    """Tell whether the second of two, as most ties are, comes first (see `sort_in_order`)."""
    first, second = pair
    for key in keys:
        if tied is not None:
            tied(pair)
        before, after = key(first), key(second)
        if before != after:
            return bool(after < before)
    return False


def sort_by(key: Key, items: list[Any]) -> Sequence[tuple[int, int]]:
    """Sort in place; where those begin and stop that are equal, if there are several."""
    values = list(map(key, items))
    if len(values) == 2:
        if values[1] < values[0]:
            items.reverse()
        return ((0, 2),) if values[0] == values[1] else ()
    # In order already, as the results of a stream in order are: one pass and no sort.
    if all(map(lt, values, islice(values, 1, None))):
        return ()
    places = sorted(range(len(items)), key=values.__getitem__)
    items[:] = [items[place] for place in places]
    values = [values[place] for place in places]
    equal, stop = [], 0
    for at in [at for at, same in enumerate(map(eq, values, islice(values, 1, None))) if same]:
        if at >= stop:
            stop = bisect_right(values, values[at], at)
            equal.append((at, stop))
    return equal


def sorted_events(events: Sequence[Event]) -> list[Event]:
    """Events of one type in order."""
    if events and events[0].primitive:
        return sorted(events, key=_moment)  # its order says no more
    found = list(events)
    sort_in_order(found)
    return found


def _each(member: Any) -> tuple[Any, ...]:
    if member is None:
        return ()
    return member if member.__class__ is tuple else (member,)


def apart(left: Any, right: Any) -> bool:
    """Tell whether what is bound at two places, perhaps lists, has no event in common."""
    ids = {id(event) for event in _each(left)}
    return not any(id(event) in ids for event in _each(right))


def strangers(one: Occurrence, other: Occurrence) -> bool:
    """Tell whether two occurrences have no event in common."""
    if one.__class__ is not tuple and other.__class__ is not tuple:
        return one is not other
    ids = {id(event) for event in bound_events(one)}
    return not any(id(event) in ids for event in bound_events(other))


def all_near(left: Any, right: Any, distance_m: float) -> bool:
    """Tell whether all that is bound at two places, perhaps lists, is so near to each other."""
    return all(near(a.position, b.position, distance_m) for a in _each(left) for b in _each(right))


def after_anchor(anchor: Any, member: Any, within_ms: int) -> bool:
    """Tell whether all bound at a place comes after the anchor's end and within the time."""
    ends = [event.end for event in _each(anchor)]
    if not ends:
        return False
    end = max(ends)
    return all(end <= x.start and x.end <= end + within_ms for x in _each(member))


def touches(instant: int, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
    """Tell whether what ends and what begins at one instant may follow each other.

    Two readings of the same instant never do, inside composites neither.
    """
    return not (has_reading(instant, before) and has_reading(instant, after))


def has_reading(instant: int, members: tuple[Any, ...]) -> bool:
    """Return if an event that is bound at one of the places, perhaps in a list, is an instant."""
    for member in members:
        if member is None:
            continue
        for event in member if member.__class__ is tuple else (member,):
            if event.start == instant and event.end == instant:
                return True
    return False


def holds_any(occurrence: Occurrence, gone: Collection[int]) -> bool:
    """Return True where one of the events (by identity) is bound."""
    if occurrence.__class__ is not tuple:
        return id(occurrence) in gone
    for member in occurrence[2:]:
        if member.__class__ is tuple:
            if any(id(event) in gone for event in member):
                return True
        elif id(member) in gone:
            return True
    return False


def without(items: list[Occurrence], gone: Collection[int]) -> list[Occurrence]:
    """The occurrences that bind none of the events."""
    return [item for item in items if not holds_any(item, gone)]

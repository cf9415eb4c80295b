"""Events as a router keeps them, and the store of those that something may yet be correlated with.

Owns what is kept and for how long. Must not know operators. Invariant: an event is kept once, in
the order of starts, until it is forgotten by its start.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias

from broker.engine.event.event import slot_of


class EventView(Protocol):
    """Offer what a router reads of an event; attributes are slots: `broker.engine.event.event`."""

    @property
    def id(self) -> str:
        """Names the event among those of its type and end."""

    @property
    def event_type(self) -> str:
        """The type's name."""

    @property
    def source(self) -> str | None:
        """Names who sent it."""

    @property
    def location(self) -> str | None:
        """A path of places."""

    @property
    def position(self) -> Any:
        """Its place, as `broker.engine.event.event.Position`."""

    @property
    def start(self) -> Any:
        """Milliseconds."""

    @property
    def end(self) -> Any:
        """Milliseconds."""


# In the place of an attribute's name: when the event began, and where it was. No attribute's name
# begins with a zero character.
START = "\0start"  # no attribute begins with NUL
METRES = ("\0x", "\0y")  # of the plane
DEGREES = ("\0latitude", "\0longitude")  # of the globe

SPOTS_MAX = 16_384  # places that events come from, told apart by a number; more are told anew


class Held:
    """One event at one broker; `sent` has a bit for each direction that has it.

    `spot` is the same number for events of one source and place that came the same way, where an
    index remembers what it found for them; 0: not told.
    """

    __slots__ = ("end", "event", "place", "sent", "spot", "start", "via")

    def __init__(self, event: EventView, via: str, spot: int = 0) -> None:
        self.event = event  # as it came: nobody else keeps it
        self.spot = spot
        self.via = via  # the neighbour it came from
        self.start: int = event.start  # read often, so taken once
        self.end: int = event.end  # in ms, as the start
        self.sent = 0  # bits of directions that have it, or were told of it
        self.place = place_of(event.position)  # None: it says no place

    def value(self, attribute: str) -> Any:
        """An attribute's value, None where it is missing."""
        if attribute[:1] == "\0":
            return self._own(attribute)
        return getattr(self.event, slot_of(attribute), None)

    def _own(self, name: str) -> Any:
        if name == START:
            return self.start
        position = self.event.position
        if name in METRES:
            return getattr(position, name[1:], None)
        return position[DEGREES.index(name)] if position.__class__ is list else None


def place_of(position: Any) -> Any:
    """A position as something hashable."""
    return tuple(position) if position.__class__ is list else position


EventKey: TypeAlias = tuple[str, str, int, str | None]
"""Type, id, end and source: two events that agree in these are one."""


class Store(dict[EventKey, Held]):
    """The events kept, by type in the order of their starts.

    Stores whose events the same indexes look up share the numbers of their `spots`.
    """

    def __init__(self, spots: Iterator[int] | None = None) -> None:
        super().__init__()
        self._types: dict[str, tuple[list[int], list[Held]]] = {}
        self._spots: dict[Any, int] = {}
        self.numbers = itertools.count(1) if spots is None else spots

    def add(
        self, event: EventView, via: str, among: dict[EventKey, Held] | None = None
    ) -> Held | None:
        """Keep an event, here or among others; None if it is there already."""
        among = self if among is None else among
        key = (event.event_type, event.id, event.end, event.source)
        if key in among:
            return None
        held = among[key] = Held(event, via)
        where = event.source, event.location, held.place, via
        spot = self._spots.get(where)
        if spot is None:
            if len(self._spots) >= SPOTS_MAX:
                self._spots.clear()
            spot = self._spots[where] = next(self.numbers)  # an index may remember those before
        held.spot = spot
        if among is self:
            starts, kept = self._types.setdefault(event.event_type, ([], []))
            insert(starts, kept, held.start, held)
        return held

    def of_type(self, type_name: str) -> list[Held]:
        """The events of a type, in the order of their starts."""
        return self._types.get(type_name, ((), []))[1]

    def everything(self) -> list[Held]:
        """All events, in the order in which they came."""
        return list(self.values())

    def expire(self, before_ms: int) -> None:
        """Forget what began before."""
        for type_name in list(self._types):
            starts, kept = self._types[type_name]
            count = bisect_left(starts, before_ms)
            if not count:
                continue
            for held in kept[:count]:
                event = held.event
                del self[event.event_type, event.id, held.end, event.source]
            del starts[:count], kept[:count]
            if not kept:
                del self._types[type_name]


def insert(starts: list[int], items: list[Any], start: int, item: Any) -> None:
    """Put an item where its start belongs, behind those of the same start."""
    if not starts or start >= starts[-1]:
        starts.append(start)
        items.append(item)
        return
    place = bisect_right(starts, start)
    starts.insert(place, start)
    items.insert(place, item)

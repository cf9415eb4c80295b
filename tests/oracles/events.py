"""Events and occurrences: what they are, when two are the same, and their order.

Owns: the reference meaning of an event's interval and attributes, of repeats, and of *order*.
Must not know: patterns, windows, files.
Invariant: the order key is a total order over all that differs; no digest and no hash decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tests.oracles import spec as s
from tests.oracles.places import Position, position_from
from tests.oracles.verdicts import Certainty, weakest

Value: TypeAlias = int | float | str | bool | Position | None
# A nested tuple of texts and numbers; two keys of the same depth can be compared.
Key: TypeAlias = tuple[Any, ...]

RESERVED = frozenset({"timestamp", "start", "end", "location", "source", "position"})


@dataclass(frozen=True)
class Event:
    """A primitive or a detected event. Two are the same if their identity is.

    `identity` is ("event", id, end) or ("detected", definition, case, window, group, places) with
    places ((alias, (identities…)), …). `parts` are a detected event's constituents by alias,
    `tail` its (definition, case, window), all empty for a primitive one. An absence stands in its
    place as ("absent", place, u): it has an interval, but it is no event. `uncertainty` is ε in
    milliseconds; `certainty` is that of the occurrence that a detected event stands for.
    """

    identity: Key
    type: str = field(compare=False)
    start: int = field(compare=False)
    end: int = field(compare=False)
    attributes: Mapping[str, Value] = field(compare=False)
    source: str | None = field(compare=False, default=None)
    location: str | None = field(compare=False, default=None)
    position: Position | None = field(compare=False, default=None)
    parts: tuple[tuple[str, tuple[Event, ...]], ...] = field(compare=False, default=())
    tail: Key = field(compare=False, default=("", 0, ()))
    uncertainty: int = field(compare=False, default=0)
    certainty: Certainty = field(compare=False, default=Certainty.YES)
    order: Key = field(compare=False, default=(), repr=False)

    def __post_init__(self) -> None:
        """The order key is made once; it is asked for at every comparison."""
        ids, *beneath = _constituents(events for _, events in self.parts)
        own = ids if self.is_detected else (self.identity[1],)
        told = (self.end, self.start, own, self.tail, tuple(beneath))
        object.__setattr__(self, "order", told)

    @property
    def is_detected(self) -> bool:
        """Whether a definition made it."""
        return bool(self.identity[0] == "detected")

    @property
    def is_absence(self) -> bool:
        """Whether it stands for what did not happen."""
        return bool(self.identity[0] == "absent")

    @property
    def is_point(self) -> bool:
        """Whether it is a reading of one instant."""
        return self.start == self.end

    @property
    def primitive_ids(self) -> tuple[str, ...]:
        """The ids of the primitive events in it, in order; its own where it is one."""
        ids: tuple[str, ...] = self.order[2]
        return ids

    def value(self, name: str) -> Value:
        """What `alias.name` is worth; None is null."""
        match name:
            case "timestamp" | "end":
                return self.end
            case "start":
                return self.start
            case "duration":
                return self.end - self.start
            case "source" | "srcid":
                return self.source
            case "location":
                return self.location
            case "position":
                return self.position
        return self.attributes.get(name)


def absence(name: str, start: int, end: int, uncertainty: int = 0) -> Event:
    """What fills the place of an `absent` from `start` on."""
    return Event(("absent", name, start), "", start, end, {}, uncertainty=uncertainty)


def in_order(events: Iterable[Event]) -> tuple[Event, ...]:
    """Events by (end, start, id), detected ones by their constituents' ids and so on."""
    return tuple(sorted(events, key=lambda event: event.order))


def _constituents(places: Iterable[tuple[Event, ...]]) -> tuple[Key, Key, Key, Key]:
    """The constituents' ids in order (a detected one by its own list), their tails in the same
    order, what they are made of in the same order, and last the order keys place by place as the
    text has them, to settle what is left: a place that stands for nothing comes after one that is
    filled.
    """
    listed = tuple(places)
    ordered = in_order(e for events in listed for e in events if not e.is_absence)
    ids = tuple(one for event in ordered for one in event.primitive_ids)
    tails = tuple(event.order[3] for event in ordered)
    deeper = tuple((event.end, event.start, event.order[4]) for event in ordered)
    nothing = ((float("inf"),),)
    in_places = tuple(tuple(e.order for e in events) or nothing for events in listed)
    return ids, tails, deeper, in_places


@dataclass(frozen=True)
class Occurrence:
    """What a pattern holds for: per name, in the order of the text, the events bound to it.

    An empty tuple is a name that stands for nothing (the other side of `or`), or an empty list.
    `lists` are the names that stand for lists, whatever their length; `names` holds one for each
    absence too. `certainty` is how certainly the pattern holds for them.
    """

    names: tuple[str, ...]
    places: tuple[tuple[Event, ...], ...]
    lists: frozenset[str] = field(compare=False, default=frozenset())
    certainty: Certainty = field(compare=False, default=Certainty.YES)
    order: Key = field(compare=False, default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", (self.end, self.start, *_constituents(self.places)))

    @property
    def spans(self) -> tuple[Event, ...]:
        """All that its interval covers, place by place: the bound events and the absences."""
        return tuple(event for place in self.places for event in place)

    @property
    def events(self) -> tuple[Event, ...]:
        """All bound events, place by place."""
        return tuple(event for event in self.spans if not event.is_absence)

    @property
    def start(self) -> int:
        """Where the span begins."""
        return min(event.start for event in self.spans)

    @property
    def end(self) -> int:
        """Where the span ends."""
        return max(event.end for event in self.spans)

    def bound(self, name: str) -> tuple[Event, ...]:
        """The events bound to a name."""
        return self.places[self.names.index(name)]

    def part(self, names: tuple[str, ...]) -> Occurrence:
        """What stands in some of the places."""
        places = tuple(self.bound(name) for name in names)
        return Occurrence(names, places, self.lists & set(names), self.certainty)

    def weakened(self, certainty: Certainty) -> Occurrence:
        """The same, no more certain than that."""
        return replace(self, certainty=min(self.certainty, certainty))

    def exact(self) -> Occurrence:
        """The same at its nominal times."""
        places = tuple(tuple(replace(e, uncertainty=0) for e in place) for place in self.places)
        return replace(self, places=places)

    def shares_event_with(self, other: Occurrence) -> bool:
        """Whether an event stands in both."""
        return bool(set(self.events) & set(other.events))


def joined(parts: Iterable[Occurrence]) -> Occurrence:
    """Several occurrences as one, their places one after the other."""
    listed = tuple(parts)
    return Occurrence(
        tuple(name for one in listed for name in one.names),
        tuple(place for one in listed for place in one.places),
        frozenset().union(*(one.lists for one in listed)),
        weakest(one.certainty for one in listed),
    )


# --- intake -----------------------------------------------------------------------------------


def intake(types: tuple[s.EventType, ...], given: Iterable[Mapping[str, Any]]) -> list[Event]:
    """The events of a trace: declared types and attributes only, repeats left out (the first
    stands), in order. The trace is taken to be well-formed; what is refused at the door is tested
    elsewhere.
    """
    declared = {one.name: dict(one.attributes) for one in types}
    seen: dict[tuple[str, int], Event] = {}
    for raw in given:
        if raw["type"] in declared:
            event = _primitive(raw, declared[raw["type"]])
            seen.setdefault((event.identity[1], event.end), event)
    return list(in_order(seen.values()))


def _primitive(raw: Mapping[str, Any], attributes: Mapping[str, str]) -> Event:
    start = raw.get("start", raw.get("timestamp"))
    end = raw.get("end", raw.get("timestamp"))
    assert isinstance(start, int)
    assert isinstance(end, int)
    assert start <= end
    values: dict[str, Value] = {}
    for name, kind in attributes.items():
        value = raw.get(name)
        if value is not None:
            values[name] = float(value) if kind == "float" else value
    return Event(
        identity=("event", raw["id"], end),
        type=raw["type"],
        start=start,
        end=end,
        attributes=values,
        source=raw.get("source"),
        location=raw.get("location"),
        position=position_from(raw.get("position")),
        uncertainty=raw.get("uncertainty") or 0,
    )

"""The reference matcher: what a specification reports for a finished trace.

Owns: definitions, partitions, consumption and results, from the meaning of the language alone.
Must not know: the product; no code is shared with it.
Invariant: all results follow from the whole trace at once (all input on time, certain time, the
watermark infinite at the end); no state is carried from event to event.

Where the language's description leaves a choice, READINGS.md says which is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tests.oracles import spec as s
from tests.oracles.events import RESERVED, Event, Key, Occurrence, Value, in_order, intake
from tests.oracles.expressions import Scope, evaluate
from tests.oracles.functions import rows_of
from tests.oracles.patterns import occurrences
from tests.oracles.places import Position, position_as_given
from tests.oracles.settings import Candidates, Memory, Setting, listed_names
from tests.oracles.thinning import (
    collected,
    ends_before,
    is_completed_anew,
    not_too_many,
    only_first,
)
from tests.oracles.verdicts import Certainty, weakest
from tests.oracles.windows import Happening, happening, standing_groups

Group = tuple[tuple[str, Value], ...]


def run(
    spec: s.Spec, events: Iterable[Mapping[str, Any]], drift: float = 0
) -> list[dict[str, Any]]:
    """The results of a specification over a trace, in order.

    Args:
        spec: what to match.
        events: the trace in any order, as JSON objects.
        drift: the greatest drift of a clock, ρ, as the decimal number that is written.

    Returns:
        Results as the product writes them, without `id` and `subscriber`, and with
        `structure` (alias -> nested identities of the bound events; absences too), `primitives`
        (alias -> the ids of the primitive events in the bound ones, in order) and `order` ([end,
        start, ids]).
        `events` lists ids for primitive events and None for each detected one.
    """
    return World(spec, events, Fraction(str(drift))).results()


class World:
    """A specification and a trace, with the detected events of each definition once asked for."""

    def __init__(self, spec: s.Spec, events: Iterable[Mapping[str, Any]], drift: Fraction) -> None:
        self.spec = spec
        self.drift = drift
        self.primitives = intake(spec.types, events)
        self.scope = Scope(
            sets=dict(spec.sets),
            regions=dict(spec.regions),
            tables={one.name: (one.key, rows_of(one)) for one in spec.tables},
        )
        self._definitions = {one.name: one for one in spec.definitions}
        self._detected: dict[str, tuple[Event, ...]] = {}

    def results(self) -> list[dict[str, Any]]:
        """All results, in order and then by the subscription's place in the file."""
        found = []
        for place, subscription in enumerate(self.spec.subscriptions):
            for group, occurrence in self._counting(subscription):
                *order, deeper, places = occurrence.order
                # Only detected events are compared by what they are made of before that.
                made = [deeper] if any(one.is_detected for one in occurrence.events) else []
                key = (*order, made, place, deeper, places)
                found.append((key, self._result(subscription, group, occurrence)))
        return [result for _, result in sorted(found, key=lambda item: item[0])]

    def _counting(self, subscription: s.Subscription) -> list[tuple[Group, Occurrence]]:
        """What a subscription reports before it ends, at most as often as it asks."""
        case = subscription.case
        limit_ms = ends_before(subscription, self._beginning((), {}))
        return [
            (group, one)
            for group, candidates in self.partitions(case)
            for one in not_too_many(
                [
                    one
                    for one in self._reported(case, group, candidates)
                    if limit_ms is None or one.end < limit_ms
                ],
                subscription.at_most,
            )
        ]

    def events_of(self, type_name: str) -> tuple[Event, ...]:
        """The events of a type, primitive or defined, in order."""
        if type_name not in self._definitions:
            return tuple(event for event in self.primitives if event.type == type_name)
        if type_name not in self._detected:
            self._detected[type_name] = in_order(self._detect(self._definitions[type_name]))
        return self._detected[type_name]

    # --- one case ---------------------------------------------------------------------------

    def detections(self, case: s.Case) -> list[tuple[Group, Occurrence]]:
        """What a case reports, each with the key of its partition."""
        return [
            (group, one)
            for group, candidates in self.partitions(case)
            for one in self._reported(case, group, candidates)
        ]

    def partitions(self, case: s.Case) -> list[tuple[Group, Candidates]]:
        """The keys of `group by` and, for each, the events that have it; null keys are in none."""
        everything = {name: self.events_of(name) for name in sorted(types_in(case.pattern))}
        keys: list[Group] = [] if case.group_by else [()]
        floats = self._floats(case, everything)
        for event in (event for events in everything.values() for event in events):
            key = _shown(_key(event, case.group_by), floats)
            if key not in keys and all(value is not None for _, value in key):
                keys.append(key)
        return [
            (
                key,
                {
                    name: [event for event in events if _key(event, case.group_by) == key]
                    for name, events in everything.items()
                },
            )
            for key in keys
        ]

    def _floats(self, case: s.Case, everything: Mapping[str, Sequence[Event]]) -> set[str]:
        """The parts of the key that are floats: of equal ones all are shown alike.

        What a definition makes is asked for its values, as its types are not written.
        """
        declared = {one.name: dict(one.attributes) for one in self.spec.types}
        return {
            name
            for name in case.group_by
            for kind, events in everything.items()
            if declared.get(kind, {}).get(name) == "float"
            or any(isinstance(event.value(name), float) for event in events)
        }

    def _reported(self, case: s.Case, group: Group, candidates: Candidates) -> list[Occurrence]:
        """The occurrences of one partition after consumption."""
        reported: list[Occurrence] = []
        consumed: set[Event] = set()
        memory = Memory()
        while True:
            left = {
                name: [event for event in events if event not in consumed]
                for name, events in candidates.items()
            }
            setting = Setting(
                left,
                self._scope(group),
                case.context or "unrestricted",
                everything=candidates,
                beginning=self._beginning(group, candidates),
                memory=memory,
                drift=self.drift,
            )
            found = occurrences(case.pattern, setting)
            if case.maybe_drop:
                found = [one for one in found if one.certainty == Certainty.YES]
            if not case.consuming:
                return _thinned(found, case)
            later = [
                one
                for one in found
                if not reported
                or (
                    one.order > reported[-1].order
                    and (case.thin != "one" or is_completed_anew(one, reported))
                )
            ]
            if not later:
                return reported
            reported.append(later[0])
            consumed |= {event for name in case.consuming for event in later[0].bound(name)}
            chosen = [name for name in later[0].names if name not in listed_names(case.pattern)]
            memory = memory.reported(later[0].part(tuple(chosen)))

    def _beginning(self, group: Group, candidates: Candidates) -> int | None:
        """When the task began; in a partition with its first event. None where nothing came."""
        partition = [event for events in candidates.values() for event in events]
        return min(
            (event.start for event in (partition if group else self.primitives)), default=None
        )

    def _scope(self, group: Group) -> Scope:
        return replace(self.scope, group=dict(group))

    def _assigned(self, case: s.Case, group: Group, one: Occurrence) -> dict[str, Value]:
        span = {"timestamp": one.end, "start": one.start, "end": one.end}
        scope = replace(
            self._scope(group),
            events=dict(zip(one.names, one.places, strict=True)),
            bare=lambda name: span[name],
        )
        return {name: evaluate(value, scope) for name, value in case.assign}

    # --- definitions ------------------------------------------------------------------------

    def _detect(self, definition: s.Definition) -> list[Event]:
        """The events that a definition makes; those with start > end are dropped."""
        if definition.window is not None:
            made = self._windowed(definition)
        else:
            made = [
                make_event(
                    (definition.name, number, ()),
                    group,
                    tuple(zip(one.names, one.places, strict=True)),
                    self._assigned(case, group, one),
                    one.certainty,
                )
                for number, case in enumerate(definition.cases)
                for group, one in self.detections(case)
            ]
        return [event for event in made if event is not None]

    def _windowed(self, definition: s.Definition) -> list[Event | None]:
        partitions = self.partitions(definition.cases[0])
        window = definition.window
        carried = {"interval": window.gap_ms} if isinstance(window, s.Session) else {}
        return [
            make_event(
                (definition.name, 0, one.window),
                one.group,
                one.events,
                {**dict(one.assigned), **carried},
                happens=when,
            )
            for one in standing_groups(definition, partitions, self.scope)
            if (when := happening(definition, one)) is not None
        ]

    # --- results ----------------------------------------------------------------------------

    def _result(
        self, subscription: s.Subscription, group: Group, one: Occurrence
    ) -> dict[str, Any]:
        case = subscription.case
        bound = [
            (name, place)
            for name, place in zip(one.names, one.places, strict=True)
            if name in one.lists or any(not event.is_absence for event in place)
        ]
        if case.assign:
            assigned = self._assigned(case, group, one)
            values = {name: _as_given(value) for name, value in assigned.items()}
        else:
            values = {
                name: _own_values(events) if name in one.lists else _own_values(events)[0]
                for name, events in bound
            }
        return {
            "subscription": subscription.name,
            "seq": subscription.seq,
            "actor": _actor(subscription, dict(group)),
            "start": one.start,
            "end": one.end,
            "certainty": one.certainty.name.lower(),
            "group": {name: _as_given(value) for name, value in group},
            "values": values,
            "events": {name: [_own_id(event) for event in events] for name, events in bound},
            "structure": {
                name: [event.identity for event in place]
                for name, place in zip(one.names, one.places, strict=True)
                if place or name in one.lists
            },
            "primitives": {
                name: [one for event in events for one in event.primitive_ids]
                for name, events in bound
            },
            "order": list(one.order[:3]),
        }


def _actor(subscription: s.Subscription, group: Mapping[str, Value]) -> str:
    if subscription.actor_of is None:
        return subscription.actor
    key = group[subscription.actor_of]
    told = str(key).lower() if isinstance(key, bool) else str(key)  # as it is written in the text
    return f"{subscription.actor}/{told}"


def _thinned(found: list[Occurrence], case: s.Case) -> list[Occurrence]:
    if case.thin == "one":
        return only_first(found)
    return collected(found) if case.thin == "collect" else found


def types_in(pattern: s.Pattern) -> set[str]:
    """The event types that a pattern names."""
    return {atom.type for atom in s.atoms_of(pattern)}


def make_event(
    tail: Key,
    group: Group,
    parts: tuple[tuple[str, tuple[Event, ...]], ...],
    assigned: Mapping[str, Value],
    certainty: Certainty | None = None,
    happens: Happening | None = None,
) -> Event | None:
    """The detected event of (definition, case, window); None if it would start after its end.

    It spans its constituents; an assigned `timestamp` makes it a point, `start` and `end` an
    interval, and an assigned null leaves the span's. That of a window is at `happens`. It is as
    certain as its occurrence, that of a window as the events in it.
    """
    events = [event for _, bound in parts for event in bound]
    if happens is None:
        happens = _span(events, assigned)
    if happens.start > happens.end:
        return None
    places = tuple((name, tuple(event.identity for event in bound)) for name, bound in parts)
    source, location = assigned.get("source"), assigned.get("location")
    position = assigned.get("position")
    assert source is None or isinstance(source, str)
    assert location is None or isinstance(location, str)
    assert position is None or isinstance(position, Position)
    return Event(
        identity=("detected", *tail, group, places),
        type=tail[0],
        start=happens.start,
        end=happens.end,
        attributes={name: value for name, value in assigned.items() if name not in RESERVED},
        source=source,
        location=location,
        position=position,
        parts=parts,
        tail=tail,
        uncertainty=happens.uncertainty,
        certainty=weakest(e.certainty for e in events) if certainty is None else certainty,
    )


def _span(events: Sequence[Event], assigned: Mapping[str, Value]) -> Happening:
    """The span of an occurrence's events, with the assigned times in its place."""
    start = _time(assigned, "start", min(event.start for event in events))
    end = _time(assigned, "end", max(event.end for event in events))
    if assigned.get("timestamp") is not None:
        start = end = _time(assigned, "timestamp", end)
    return Happening(start, end, max(event.uncertainty for event in events))


def _time(assigned: Mapping[str, Value], name: str, otherwise: int) -> int:
    value = assigned.get(name)
    assert value is None or isinstance(value, int)
    return otherwise if value is None else value


def _shown(key: Group, floats: set[str]) -> Group:
    return tuple(
        (name, value + 0.0 if name in floats and _has_float(value) else value)
        for name, value in key
    )


def _has_float(value: Value) -> bool:
    return isinstance(value, int | float) and float(value) == value


def _key(event: Event, group_by: Sequence[str]) -> Group:
    return tuple((name, event.value(name)) for name in group_by)


def _own_id(event: Event) -> str | None:
    return None if event.is_detected else event.primitive_ids[0]


def _own_values(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [
        {name: _as_given(value) for name, value in event.attributes.items() if value is not None}
        for event in events
    ]


def _as_given(value: Value) -> Any:
    return position_as_given(value) if isinstance(value, Position) else value

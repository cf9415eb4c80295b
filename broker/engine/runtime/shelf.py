"""Events and occurrences as plain data, for snapshots.

Owns the packing of what agents hold. Must not know what it is for. Invariant: an event that stands
in many places is packed once, and is one object again after unpacking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from broker.engine.event.event import Detected, Event
from broker.engine.event.occurrence import Absence
from broker.engine.pattern.uncertainty.uncertainty import Maybe
from broker.engine.window.constituents import Lazy, made_of, order_of, plain_order


class Shelf:
    """The events of one snapshot, by number."""

    def __init__(
        self, classes: Mapping[str, type[Event]], packed: Sequence[Any] | None = None
    ) -> None:
        self._classes = classes
        self._numbers: dict[int, int] = {}
        self._events: list[Event] = []
        for name, fields in packed or ():
            event = msgspec.convert(fields, classes[name], builtin_types=(bytes,))
            if isinstance(event, Detected):
                event.lineage = order_of(event.lineage)
            self._events.append(event)

    def put(self, event: Event | None) -> int | None:
        """The number of an event; None of none."""
        if event is None:
            return None
        # By identity: an agent's groups, lists and partial matches share events, and packing each
        # place's own copy would make snapshots of joins quadratic.
        number = self._numbers.get(id(event))
        if number is None:
            number = self._numbers[id(event)] = len(self._events)
            self._events.append(event)
        return number

    def get(self, number: int) -> Event:
        """The event of a number."""
        return self._events[number]

    def packed(self) -> list[Any]:
        """The events as [type, fields].

        The fields are those of the type's own class, however the event's payload was decoded.
        """
        packed: list[Any] = []
        by_class: dict[type[Event], _Fields] = {}
        for event in self._events:
            fields = by_class.get(event.__class__)
            if fields is None:
                declared = self._classes[event.event_type]
                fields = by_class[event.__class__] = _fields_of(event.__class__, declared)
            packed.append([event.event_type, _said(event, fields)])
        return packed

    def put_all(self, value: Any) -> Any:
        """Plain values, events and occurrences in lists and tuples; see `get_all`."""
        if isinstance(value, Event):
            return {"event": self.put(value)}
        if isinstance(value, Absence):
            return {"absence": [value.start, value.end, value.place, value.uncertainty]}
        # Before the plain values: it is an integer that knows it may not be.
        if value.__class__ is Maybe:
            return {"maybe": int(value)}
        if isinstance(value, Lazy):
            value = value.made()
        if value.__class__ is tuple:
            return {"tuple": [self.put_all(part) for part in value]}
        if isinstance(value, list):
            return [self.put_all(part) for part in value]
        return value

    def get_all(self, packed: Any) -> Any:
        """Return again what was put."""
        if isinstance(packed, list):
            return [self.get_all(part) for part in packed]
        if not isinstance(packed, dict):
            return packed
        ((kind, value),) = packed.items()
        if kind == "event":
            return self._events[value]
        if kind == "absence":
            return Absence(*value)
        if kind == "maybe":
            return Maybe(value)
        return tuple([self.get_all(part) for part in value])


_Fields = tuple[tuple[str, ...], Callable[[Event], tuple[Any, ...]]]
LINEAGE = "#lineage"  # as `Detected` has it encoded
_PLAIN = frozenset((int, float, str, bool, bytes))


def _fields_of(decoded: type[Event], declared: type[Event]) -> _Fields:
    """Return the names of the fields that both classes have, and what reads them of an event."""
    # Classes gain slots as their types gain attributes: an event may have been decoded when its
    # type had fewer than are declared by now, or have more than the reader will know.
    pairs = zip(declared.__struct_fields__, declared.__struct_encode_fields__, strict=True)
    common = [(slot, name) for slot, name in pairs if slot in decoded.__struct_fields__]
    names = tuple([name for _, name in common])
    return names, attrgetter(*[slot for slot, _ in common])


def _said(event: Event, fields: _Fields) -> dict[str, Any]:
    """Return what an event says, by name; what is null is left out."""
    names, values_of = fields
    return {
        name: value
        if value.__class__ in _PLAIN
        else plain_order(value)
        if name == LINEAGE
        else msgspec.to_builtins(made_of(value), builtin_types=(bytes,))
        for name, value in zip(names, values_of(event), strict=True)
        if value is not None
    }

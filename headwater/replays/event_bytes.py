"""Events that were taken in, to bytes and back, for sorting more of them than memory holds.

Owns this form, which no other process reads. Must not know why events are sorted. Invariant: what
comes back says the same as what went in, of a class with the same attributes.

The classes of events cannot be used for this as they are: those that payloads are decoded into read
`timestamp` where an event taken in has `end`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from broker.engine.event.event import Event, MetricPosition, event_class
from language import EventType


class Packer:
    """Packs events of the declared types."""

    def __init__(self, event_types: Mapping[str, EventType]) -> None:
        self._classes = {
            name: event_class(name, kind.attributes)
            for name, kind in event_types.items()
            if not kind.defined
        }
        self._slots = {name: kind.slots for name, kind in self._classes.items()}
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(tuple[Any, ...]).decode

    def pack(self, event: Event) -> bytes:
        """The event as bytes."""
        name = event.event_type
        values = [getattr(event, slot) for slot in self._slots[name]]
        position, place = event.position, (event.source, event.location)
        times = (event.start, event.end, event.uncertainty)
        return self._encode((name, event.id, *place, position, *times, values))

    def unpack(self, data: bytes) -> Event:
        """The event that `pack` made these bytes of."""
        name, id_, source, location, position, start, end, uncertainty, values = self._decode(data)
        if isinstance(position, dict):
            position = MetricPosition(**position)
        return self._classes[name](
            id=id_,
            source=source,
            location=location,
            position=position,
            start=start,
            end=end,
            uncertainty=uncertainty,
            **dict(zip(self._slots[name], values, strict=True)),
        )

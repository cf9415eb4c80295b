"""The event that a program hands to the engine.

Owns the public event class. Must not know how the core takes events in. Invariant: it says exactly
what the same event says as JSON, and it never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker.engine import native
from broker.engine.event.event import ByClass
from broker.engine.event.event import Event as CoreEvent
from broker.engine.ingest.registry import typed

RESERVED = (
    "type",
    "id",
    "source",
    "location",
    "position",
    "timestamp",
    "start",
    "end",
    "uncertainty",
)


class Event:
    """An event: reserved keys by name, every other keyword an attribute.

    `timestamp`, `start` and `end` are integer milliseconds since the epoch or ISO 8601 texts;
    `position` is (lat, lon) in degrees or {"x":, "y":} in metres; `uncertainty` is ε in ms.
    An attribute with a reserved name's spelling cannot exist; `attributes` takes a mapping as well.

    A plain reading is checked when it is made, so that an engine whose text declares its attributes
    so, in this order, takes it at once. An engine decides about any other when it gets it.

    What `to_dict` gives, and so an event as JSON has it, makes the event again: `Event(**said)`.

    >>> Event("Temp", source="t7", timestamp=1191234567000, val=21.5).to_dict()
    {'type': 'Temp', 'source': 't7', 'timestamp': 1191234567000, 'val': 21.5}
    """

    __slots__ = ("_said", "typed")

    typed: CoreEvent | None  # what an engine may take

    def __init__(
        self, /, type: str, *, attributes: Mapping[str, Any] | None = None, **fields: Any
    ) -> None:
        document: dict[str, Any] = {"type": type, **fields}
        if None in fields.values():
            document = {
                key: value
                for key, value in document.items()
                if value is not None or key not in RESERVED
            }
        if attributes:
            clash = [name for name in attributes if name in RESERVED]
            if clash:
                raise ValueError(f"found attribute {clash[0]}, which is a reserved key of events")
            document.update(attributes)
        self._said = document
        self.typed = typed(document)

    @property
    def type(self) -> str:
        """The event type's name."""
        kind: str = self._said["type"]
        return kind

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON data."""
        return dict(self._said)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and other._said == self._said

    def __hash__(self) -> int:
        return hash((self._said["type"], self._said.get("id"), self._said.get("end")))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._said,)

    def __repr__(self) -> str:
        keywords = "".join(
            f", {name}={value!r}" for name, value in self._said.items() if name != "type"
        )
        return f"Event({self._said['type']!r}{keywords})"


def taken_out(events: list[Any]) -> tuple[list[Any], ByClass | None] | None:
    """Return what an engine may take of events, and that by class, if known.

    None if not all are events. What it cannot take as it is stands there as None.
    """
    if native.passes is not None:
        taken: tuple[list[Any], ByClass] | None = native.passes.readings(events, Event)
        if taken is not None:
            return taken
    try:
        return [event.typed for event in events], None
    except AttributeError:  # there are mappings among them
        return None


def _again(said: dict[str, Any]) -> Event:
    """A copy, unpickled."""
    fields = {name: value for name, value in said.items() if name in RESERVED[1:]}
    attributes = {name: value for name, value in said.items() if name not in RESERVED}
    return Event(said["type"], attributes=attributes, **fields)

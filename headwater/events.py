"""The event that a program hands to the engine.

Owns the public event class. Must not know how the core holds events. Invariant: it says exactly
what the same event says as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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

    >>> Event("Temp", source="t7", timestamp=1191234567000, val=21.5).to_dict()
    {'type': 'Temp', 'source': 't7', 'timestamp': 1191234567000, 'val': 21.5}
    """

    __slots__ = ("fields",)

    def __init__(
        self, type: str, /, *, attributes: Mapping[str, Any] | None = None, **fields: Any
    ) -> None:
        self.fields: dict[str, Any] = {"type": type}
        for name in RESERVED[1:]:
            if fields.get(name) is not None:
                self.fields[name] = fields[name]
        clash = [name for name in attributes or () if name in RESERVED]
        if clash:
            raise ValueError(f"found attribute {clash[0]}, which is a reserved key of events")
        self.fields.update(attributes or {})
        self.fields.update((name, value) for name, value in fields.items() if name not in RESERVED)

    @property
    def type(self) -> str:
        """The event type's name."""
        kind: str = self.fields["type"]
        return kind

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON data."""
        return dict(self.fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and other.fields == self.fields

    def __hash__(self) -> int:
        return hash((self.fields["type"], self.fields.get("id"), self.fields.get("end")))

    def __repr__(self) -> str:
        rest = "".join(
            f", {name}={value!r}" for name, value in self.fields.items() if name != "type"
        )
        return f"Event({self.fields['type']!r}{rest})"

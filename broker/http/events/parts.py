"""The events of a body, each with what the rights ask for and the place where it stands.

Owns the split. Must not know rights or sockets. Invariant: a body with one part that is no event is
refused as a whole.
"""

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

MEDIA: Final = ("application/json", "application/x-ndjson")


class EventPart(msgspec.Struct, frozen=True):
    """One event as it came; `number` counts events of an array, or lines, from 1."""

    type_name: str
    source: str
    data: bytes
    unit: Literal["event", "line"]
    number: int


class PartError(Exception):
    """A part of a body is no event that could be handed on; `unit` and `number` are its place."""

    def __init__(self, message: str, unit: Literal["event", "line"], number: int) -> None:
        super().__init__(message)
        self.unit = unit
        self.number = number


class _Header(msgspec.Struct):
    """The fields of an event for which its topic can stand."""

    type: str | None = None
    source: str | None = None
    srcid: str | None = None


_header = msgspec.json.Decoder(_Header).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


def split_events(
    body: bytes, media: str, type_name: str, source: str, events_max: int
) -> list[EventPart]:
    """Return the events of a body; `type_name` and `source` are for those that name none.

    Raises PartError.
    """
    unit: Literal["event", "line"] = "event" if media == MEDIA[0] else "line"
    parts: list[EventPart] = []
    for number, data in _numbered(body, unit):
        if len(parts) == events_max:
            limit = f"{events_max} (limits.batch_events_max)"
            raise PartError(f"a request holds at most {limit} events; send several", unit, number)
        try:
            header = _header(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise PartError(f"this is no event: {error}", unit, number) from None
        event_type = header.type or type_name
        # `srcid` means the source, too; where it is an attribute of the type the core says so.
        origin = header.source or header.srcid or source
        if not event_type or not origin:
            lacking = "source" if event_type else "type"
            hint = f"name it in the event, or as `?{lacking}=`"
            raise PartError(f"the event has no `{lacking}`; {hint}", unit, number)
        parts.append(EventPart(event_type, origin, data, unit, number))
    if not parts:
        raise PartError("the body holds no event", unit, 1)
    return parts


def _numbered(body: bytes, unit: Literal["event", "line"]) -> Iterator[tuple[int, bytes]]:
    """Iterate over the events' bytes with their numbers. Raises PartError."""
    if unit == "line":
        for number, line in enumerate(body.split(b"\n"), 1):
            if line.strip():
                yield number, line.strip()
    elif body.lstrip()[:1] == b"[":
        try:
            items = _items(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise PartError(f"this is no array of events: {error}", unit, 1) from None
        for number, item in enumerate(items, 1):
            yield number, bytes(item)
    else:
        yield 1, body

"""Events that intake let in, as bytes for a snapshot and back.

Owns the packing of many events at once. Must not know who keeps them. Invariant: an event comes
back with all that it says, whatever its type is declared as by then: type, id, source, place,
times, uncertainty and the attributes that it has.

They are encoded as they are, without a look at any of them, since there may be hundreds of
thousands. Read back they are of classes made for this alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, cast

import msgspec

from broker.engine.event.event import Event, MetricPosition, event_class, slot_of
from broker.engine.ingest.registry import RESERVED, exact_name

CLASSES_MAX = 4_096

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[dict[str, Any]]).decode
_PLAIN = (bytes, bytearray, memoryview, datetime)  # that stay what they are


def packed(events: Sequence[Event]) -> bytes:
    """The events' bytes; all are of the classes that leave intake, or were unpacked here."""
    return _encode(events)


def unpacked(data: bytes) -> list[Event]:
    """The events again."""
    return [_event(said) for said in _decode(data)]


def said_again(data: bytes) -> list[dict[str, Any]]:
    """The events as the formats write them."""
    return _timed(_decode(data))


def written_out(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Return the same of events as of their bytes, without packing them.

    Raises TypeError for what only bytes can hold, as an extension of MessagePack.
    """
    return _timed(msgspec.to_builtins(events, builtin_types=_PLAIN))


def _timed(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for said in found:
        start, end = said.pop("start", None), said["timestamp"]
        if start is not None and start != end:
            del said["timestamp"]
            said["start"], said["end"] = start, end
    return found


def _event(said: dict[str, Any]) -> Event:
    name = said.pop("type")
    made, attributes = _layout(name, tuple(said))
    own: dict[str, Any] = {}
    for key, slot in attributes:
        own[slot] = said[key]
    position = said.get("position")
    return made(
        id=said["id"],
        source=said.get("source"),
        location=said.get("location"),
        position=MetricPosition(**position) if isinstance(position, dict) else position,
        timestamp=said.get("end"),
        start=said.get("start"),
        end=said["timestamp"],
        uncertainty=said.get("uncertainty", 0),
        **own,
    )


@lru_cache(maxsize=CLASSES_MAX)
def _layout(name: str, keys: tuple[str, ...]) -> tuple[type[Event], tuple[tuple[str, str], ...]]:
    """The class of events of a type that have these keys, and the slots of their own ones."""
    attributes = tuple(key for key in keys if key not in RESERVED)
    return _class(name, attributes), tuple((key, slot_of(key)) for key in attributes)


@lru_cache(maxsize=CLASSES_MAX)
def _class(name: str, attributes: tuple[str, ...]) -> type[Event]:
    """A class whose events are packed as those that leave intake."""
    base = event_class(name, dict.fromkeys(attributes, "text"))
    # Only fields that are named here are renamed; what is as usual is not written.
    usual = dict(zip(base.__struct_fields__, base.__struct_defaults__, strict=True))
    fields = [(field, Any, value) for field, value in usual.items()]
    made = msgspec.defstruct(
        name,
        fields,
        bases=(base,),
        rename=exact_name,
        tag_field="type",
        tag=name,
        omit_defaults=True,
        gc=False,
        eq=False,
        kw_only=True,
    )
    return cast("type[Event]", made)

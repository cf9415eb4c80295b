"""A broker's result as an event for the next specification.

Owns that translation. Must not know specifications. Invariant: the event keeps the result's id and
interval, so that what is detected twice of it is one.
"""

import re
from collections.abc import Container, Mapping
from functools import cache
from typing import Any, Final

from msgspec import Struct

# What an event has besides attributes; what the values say of these is taken for the event itself.
_RESERVED: Final = frozenset(
    ("type", "id", "source", "location", "position", "timestamp", "start", "end", "uncertainty")
)

_SCALARS: Final = (str, int, float)  # and bool, which is an int


class UsedParts(Struct, gc=False):
    """The parts of a result that its event is made of; the others are not decoded."""

    id: Any
    start: Any
    end: Any
    subscription: Any = ""
    certainty: Any = "yes"
    group: Any = None
    values: Any = None


def type_of(result: UsedParts, types: Mapping[str, str]) -> str:
    """Return the type of the event that a result is.

    That is the subscription's name, or what `types` has for that; characters that no name of a
    type may have become `_`.
    """
    name = result.subscription
    if not isinstance(name, str):
        name = str(name)
    return types.get(name) or _named(name)


def event_of(
    result: UsedParts, broker: str | None, kind: str, wanted: Container[str] | None = None
) -> dict[str, Any]:
    """The event of a type that a result is.

    Its attributes are the group's keys and the values; without `assign`, those of an alias get the
    alias before them (`t_val`). Lists and nulls are no attributes. With `wanted` there are no other
    attributes than these, and one time in place of two that are equal: the shortest form in which
    an engine that declares no more takes the event.
    """
    start, end = result.start, result.end
    event: dict[str, Any]
    if wanted is not None and type(start) is int and start == end:
        event = {"type": kind, "id": result.id, "timestamp": end}
    else:
        event = {"type": kind, "id": result.id, "start": start, "end": end}
    if wanted is None or "certainty" in wanted:
        event["certainty"] = result.certainty
    named = _named_parts(result)
    for key, value in named.items():
        if isinstance(value, _SCALARS):
            if (wanted is None or key in wanted) and key not in _RESERVED:
                event[key] = value
        elif isinstance(value, dict):
            for inner, item in value.items():
                if isinstance(item, _SCALARS):
                    name = f"{key}_{inner}"
                    if name not in _RESERVED and (wanted is None or name in wanted):
                        event[name] = item
    source = named.get("source")
    event["source"] = source if isinstance(source, str) else broker
    if "location" in named:
        event["location"] = named["location"]
    if "position" in named:
        event["position"] = named["position"]
    if None in event.values():
        return {key: value for key, value in event.items() if value is not None}
    return event


def _named_parts(result: UsedParts) -> dict[str, Any]:
    """Return the values and the group, which has the last word."""
    values, group = result.values, result.group
    # JSON is decoded to dicts: to ask for any mapping costs five times that.
    if not isinstance(values, dict):
        return group if isinstance(group, dict) else {}
    return values | group if isinstance(group, dict) else values


@cache
def _named(name: str) -> str:
    """Return the type of a subscription's results; a specification has a few subscriptions."""
    return re.sub(r"\W", "_", name)

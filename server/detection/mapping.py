"""A broker's result as an event for the next specification.

Owns that translation. Must not know specifications. Invariant: the event keeps the result's id and
interval, so that what is detected twice of it is one.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

# What an event has besides attributes; what the values say of these is taken for the event itself.
_RESERVED: Final = frozenset(
    ("type", "id", "source", "location", "position", "timestamp", "start", "end", "uncertainty")
)


def event_of(
    result: Mapping[str, Any], broker: str | None, types: Mapping[str, str]
) -> dict[str, Any]:
    """The event that a result is.

    Its type is the subscription's name, or what `types` has for that; characters that no name of a
    type may have become `_`. Its attributes are the group's keys and the values; without `assign`,
    those of an alias get the alias before them (`t_val`). Lists and nulls are no attributes.
    """
    name = str(result.get("subscription", ""))
    event: dict[str, Any] = {
        "type": types.get(name) or re.sub(r"\W", "_", name),
        "id": result["id"],
        "start": result["start"],
        "end": result["end"],
    }
    named: dict[str, Any] = {}
    for part in (result.get("values"), result.get("group")):  # the group has the last word
        if isinstance(part, Mapping):
            named.update(part)
    event["source"] = named["source"] if isinstance(named.get("source"), str) else broker
    for key in ("location", "position"):
        if named.get(key) is not None:
            event[key] = named[key]
    event["certainty"] = result.get("certainty", "yes")
    for key, value in named.items():
        if isinstance(value, Mapping):
            pairs = {f"{key}_{inner}": item for inner, item in value.items()}
        else:
            pairs = {key: value}
        event |= {
            attribute: item
            for attribute, item in pairs.items()
            if attribute not in _RESERVED and isinstance(item, bool | int | float | str)
        }
    return {key: value for key, value in event.items() if value is not None}

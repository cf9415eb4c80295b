"""When an event ended, as events say it.

Owns the forms of a time and the order of the language. Must not know more of events.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

_INSTANT: Final = re.compile(r"-?\d{1,16}")


def end_of(event: Mapping[str, Any]) -> int:
    """The event time, in ms."""
    end = event["end"] if "end" in event else event.get("timestamp")
    if isinstance(end, int):
        return end
    return _instant(str(end))


def order_of(event: Mapping[str, Any]) -> tuple[int, int, str]:
    """(end, start, id): the language's order. Raises ValueError where there is no time."""
    end = end_of(event)
    start = event.get("start", end)
    return end, start if isinstance(start, int) else _instant(str(start)), str(event.get("id", ""))


def _instant(text: str) -> int:
    if _INSTANT.fullmatch(text):
        return int(text)
    when = datetime.fromisoformat(text)
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return round(when.timestamp() * 1000)

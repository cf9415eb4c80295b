"""A result as a person reads it, on one line.

Owns this form. Must not know where results come from. Invariant: one result is one line, whatever
its values hold.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from headwater.cli.output import harmless


def as_line(result: Mapping[str, Any]) -> str:
    """Time (UTC), subscription, group and values of a result."""
    parts = [time_of(result.get("end")), str(result.get("subscription", "?"))]
    if result.get("certainty") == "maybe":
        parts.append("(maybe)")
    for key in ("group", "values"):
        held = result.get(key)
        if isinstance(held, Mapping):
            parts += [f"{name}={json.dumps(v, ensure_ascii=False)}" for name, v in held.items()]
    return harmless(" ".join(part.replace("\n", " ") for part in parts))


def time_of(end_ms: object) -> str:
    """A time in ms, in UTC to the millisecond; as a number where the calendar has none."""
    if not isinstance(end_ms, int) or not 0 <= end_ms < 253_402_300_800_000:  # until the year 9999
        return "-" if end_ms is None else str(end_ms)
    moment = datetime.fromtimestamp(end_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{end_ms % 1000:03}Z"

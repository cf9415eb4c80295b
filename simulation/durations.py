"""Lengths of time as people write them in commands: `250ms`, `2s`, `20m`, `1.5h`, `1d`.

Owns that one form; a specification has its own, with the words of the grammar. Must not know who
asks. Invariant: a length is told in whole milliseconds, or refused with the form that is expected.
"""

import re

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
PATTERN = r"\d{1,9}(?:\.\d{1,3})? ?(?:ms|s|min|m|h|d)"
_PARTS = re.compile(r"([\d.]+) ?([a-z]+)")


def duration_ms(text: str) -> int:
    """Return the milliseconds of a text that fits `PATTERN`. Raises ValueError."""
    match = _PARTS.fullmatch(text)
    if match is None or re.fullmatch(PATTERN, text) is None:
        raise ValueError(f"found {text}, expected a duration such as 250ms, 2s, 20m or 1h")
    return round(float(match[1]) * UNITS_MS[match[2]])

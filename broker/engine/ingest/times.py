"""Points in time as payloads write them.

Owns the reading of ISO 8601 texts. Must not know events or clocks. Invariant: a time is integer
milliseconds since the epoch within the years 0001 to 9999, or there is none.
"""

from __future__ import annotations

import re
from calendar import isleap
from datetime import UTC, datetime, timedelta
from typing import Final

TIME_MIN_MS = -62_135_596_800_000  # 0001-01-01T00:00:00.000Z
TIME_MAX_MS = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z
TEXT_CHARS_MAX = 64  # the longest ISO 8601 text with a zone is far shorter

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_DAY_MS: Final = 86_400_000

# What ISO 8601 (and RFC 3339) writes and not every Python reads, beside small letters: the day of a
# year, the midnight at the end of a day, and the second that is put in before one.
_DAY_OF_YEAR = re.compile(r"(\d{4})(-?)(\d{3})(?=[T ]|$)(.*)", re.ASCII)
_MIDNIGHT = re.compile(r"(.+[T ])24((?::?00){0,2}(?:[.,]0+)?)(?![\d:.,])(.*)", re.ASCII)
_LEAP = re.compile(r"(.+[T ]\d\d:?\d\d:?)60(?![\d:])(.*)", re.ASCII)


def parse_time(text: str) -> int | None:
    """Milliseconds since the epoch of an ISO 8601 text, or None.

    A text without a zone is in UTC; a date alone is its midnight. What is finer than a millisecond
    is cut off (towards the past). A leap second is the first of the next day, as clocks that count
    from the epoch have it.
    """
    if len(text) > TEXT_CHARS_MAX:
        return None
    time_ms = _common(text)
    if time_ms is None and text[:4].isdigit():
        time_ms = _unusual(text.upper())
    return time_ms if time_ms is not None and TIME_MIN_MS <= time_ms <= TIME_MAX_MS else None


def _common(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        # Whole division of timedeltas rounds down, in exact integers; `timestamp() * 1000` is a
        # float that may lie just below its millisecond.
        return (moment - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        return None


def _unusual(text: str) -> int | None:
    later_ms = 0
    if found := _DAY_OF_YEAR.fullmatch(text):
        year, dash, day, rest = found.groups()
        if not 1 <= int(day) <= 365 + isleap(int(year)):
            return None
        text, later_ms = f"{year}{dash}01{dash}01{rest}", (int(day) - 1) * _DAY_MS
    leap = None
    if found := _MIDNIGHT.fullmatch(text):
        text, later_ms = f"{found[1]}00{found[2]}{found[3]}", later_ms + _DAY_MS
    elif leap := _LEAP.fullmatch(text):
        text, later_ms = f"{leap[1]}59{leap[2]}", later_ms + 1_000
    time_ms = _common(text)
    if time_ms is None or (leap and time_ms % _DAY_MS < _DAY_MS - 1_000):
        return None
    return time_ms + later_ms

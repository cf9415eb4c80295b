"""Points in time as payloads write them.

Owns the reading of ISO 8601 texts. Must not know events or clocks. Invariant: a time is integer
milliseconds since the epoch within the years 0001 to 9999, or there is none.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

TIME_MIN_MS = -62_135_596_800_000  # 0001-01-01T00:00:00.000Z
TIME_MAX_MS = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z
TEXT_CHARS_MAX = 64  # the longest ISO 8601 text with a zone is far shorter

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def parse_time(text: str) -> int | None:
    """Milliseconds since the epoch of an ISO 8601 text, or None.

    A text without a zone is in UTC; a date alone is its midnight. What is finer than a millisecond
    is cut off (towards the past).
    """
    if len(text) > TEXT_CHARS_MAX:
        return None
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        time_ms = (moment - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        return None
    return time_ms if TIME_MIN_MS <= time_ms <= TIME_MAX_MS else None

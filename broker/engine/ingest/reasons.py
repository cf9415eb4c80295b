"""Why an event is not let in: the closed list of reasons that counters and messages use.

Owns the codes and the sentence for each. Must not know who judges. Invariant: every event or
payload that intake does not hand on is counted under exactly one of these.
"""

from __future__ import annotations

from typing import Final

NOT_JSON: Final = "not_json"
NOT_AN_EVENT: Final = "not_an_event"
WRONG_TYPE: Final = "wrong_type"
TOPIC_MISMATCH: Final = "topic_mismatch"
TOO_LARGE: Final = "too_large"
TOO_DEEP: Final = "too_deep"
NOT_FINITE: Final = "not_finite"
INT_RANGE: Final = "int_range"
NO_TIME: Final = "no_time"
BAD_TIME: Final = "bad_time"
START_AFTER_END: Final = "start_after_end"
DURATION_TOO_LONG: Final = "duration_too_long"
NEGATIVE_UNCERTAINTY: Final = "negative_uncertainty"
UNCERTAINTY_TOO_LARGE: Final = "uncertainty_too_large"
TOO_FAR_IN_FUTURE: Final = "too_far_in_future"
BAD_POSITION: Final = "bad_position"
TEXT_TOO_LONG: Final = "text_too_long"
BATCH_TOO_LONG: Final = "batch_too_long"
TOO_MANY_SOURCES: Final = "too_many_sources"
UNDECLARED_TYPE: Final = "undeclared_type"
REPEAT: Final = "repeat"
CONFLICTING_REPEAT: Final = "conflicting_repeat"
LATE: Final = "late"

REASONS: Final[dict[str, str]] = {
    NOT_JSON: "the payload is not well-formed JSON (or msgpack, where that was announced)",
    NOT_AN_EVENT: "it is no object with an event type",
    WRONG_TYPE: "a declared attribute or a reserved key has a value of another JSON type",
    TOPIC_MISMATCH: "the payload names another type or source than the topic it came on",
    TOO_LARGE: "the payload has more bytes than are allowed",
    TOO_DEEP: "arrays and objects nest deeper than is allowed",
    NOT_FINITE: "it holds NaN, an infinity or a number beyond a float's range",
    INT_RANGE: "it holds an integer beyond signed 64 bits",
    NO_TIME: "it has no time, and one is required",
    BAD_TIME: "expected `timestamp`, or `start` and `end`, in integer milliseconds or ISO 8601,"
    " within the years 0001 to 9999",
    START_AFTER_END: "it starts after it ends",
    DURATION_TOO_LONG: "it lasts longer than is allowed",
    NEGATIVE_UNCERTAINTY: "its uncertainty is negative",
    UNCERTAINTY_TOO_LARGE: "its uncertainty is larger than is allowed",
    TOO_FAR_IN_FUTURE: "it ends further in the future than is allowed",
    BAD_POSITION: "its position is neither [lat, lon] or [lat, lon, height] nor x and y in metres",
    TEXT_TOO_LONG: "a text or a bytes value is longer than is allowed",
    BATCH_TOO_LONG: "the batch has more events than are allowed",
    TOO_MANY_SOURCES: "its source is new, and as many sources as allowed are known",
    UNDECLARED_TYPE: "no specification declares its type; it is skipped",
    REPEAT: "an event with its id and end was taken in before",
    CONFLICTING_REPEAT: "an event with its id and end, saying something else, was taken in before",
    LATE: "it ends at or before its source's watermark",
}

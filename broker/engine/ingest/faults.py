"""What is wrong with a payload or an event, in bounded words.

Owns the rejection and the reading of msgspec's errors. Must not know how payloads are decoded.
Invariant: a rejection's reason is one of the closed list, and its message has a bounded length
whatever the payload holds.
"""

from __future__ import annotations

import re

import msgspec

from broker.engine.ingest import reasons

MESSAGE_CHARS_MAX = 200

# What decoding a stranger's bytes may raise.
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

# The decoder says where it failed only in its message; its form is held by tests, so that another
# version of it shows there.
_PATH = re.compile(r" - at `(?:key` in `)?\$(?P<index>\[\d+\])?\.?(?P<field>[^`.\[]*)[^`]*`$")
_BY_FIELD = {
    "timestamp": reasons.BAD_TIME,
    "start": reasons.BAD_TIME,
    "end": reasons.BAD_TIME,
    "position": reasons.BAD_POSITION,
}


class Rejection(msgspec.Struct, frozen=True):
    """A payload, or one event of it, that was refused, and why.

    `index` is its place in the batch (from 0); None is the whole payload or a single event.
    """

    reason: str
    message: str
    index: int | None = None


def rejection(reason: str, found: str, index: int | None = None) -> Rejection:
    """A rejection with the reason's own sentence behind what was found."""
    # Bounded twice: a stranger's payload must not be able to fill a log, whichever part of the
    # sentence it reaches.
    text = f"{bounded(found)}: {reasons.REASONS[reason]}"
    return Rejection(reason, text[: 2 * MESSAGE_CHARS_MAX], index)


def bounded(text: str, chars_max: int = MESSAGE_CHARS_MAX) -> str:
    """The text, cut where it is long; nothing in it breaks a line or a log."""
    cut = text[:chars_max]
    shown = cut if cut.isprintable() else repr(cut)[1:-1][:chars_max]
    return shown if len(text) <= chars_max else shown + "…"


def of_error(error: Exception, index: int | None = None) -> Rejection:
    """The rejection that a decoding error means."""
    if isinstance(error, RecursionError):
        return rejection(reasons.TOO_DEEP, "nesting", index)
    # Python's texts may hold half a character pair, UTF-8 cannot.
    if isinstance(error, UnicodeEncodeError):
        return rejection(reasons.WRONG_TYPE, "an unpaired surrogate", index)
    text = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return rejection(reasons.NOT_JSON, _lowered(text), index)
    place = _PATH.search(text)
    field = place["field"] if place else ""
    return rejection(_reason(text, field, located=place is not None), _lowered(text), index)


def _reason(text: str, field: str, *, located: bool) -> str:
    if field in _BY_FIELD:
        return _BY_FIELD[field]
    if field == "type":
        mismatch = text.startswith("Invalid value")
        return reasons.TOPIC_MISMATCH if mismatch else reasons.NOT_AN_EVENT
    if not located or not field:
        return _whole(text)
    if field == "uncertainty":
        return _uncertainty(text)
    if "of length <=" in text:
        return reasons.TEXT_TOO_LONG
    if "Integer value out of range" in text or "`int` <=" in text or "`int` >=" in text:
        return reasons.INT_RANGE
    if "Number out of range" in text:
        return reasons.NOT_FINITE
    return reasons.WRONG_TYPE


def _whole(text: str) -> str:
    """Of an error that names no key: a number beyond its range says so, else it is no object."""
    if "Number out of range" in text:
        return reasons.NOT_FINITE
    if "Integer value out of range" in text:
        return reasons.INT_RANGE
    return reasons.NOT_AN_EVENT


def _uncertainty(text: str) -> str:
    if ">= 0" in text:
        return reasons.NEGATIVE_UNCERTAINTY
    if "`int` <=" in text:
        return reasons.UNCERTAINTY_TOO_LARGE
    return reasons.WRONG_TYPE


def _lowered(text: str) -> str:
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]

"""How deep a payload nests, and what to do with numbers that JSON does not have.

Owns the slow looks at a payload that is out of the ordinary. Must not know events. Invariant: no
function here recurses, so that no payload meets the interpreter's own limit.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec

_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
# Texts are cut out and all but brackets deleted by the C of `re` and `translate`; the loop sees
# brackets only.
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NON_FINITE: Final = object()


def brackets(payload: bytes) -> int:
    """Return the most arrays and objects that a JSON text can open (brackets in texts count)."""
    return payload.count(b"{") + payload.count(b"[")


def json_deeper_than(payload: bytes, levels_max: int) -> bool:
    """Tell whether arrays and objects nest deeper in a JSON text, or in what begins as one."""
    if brackets(payload) <= levels_max:
        return False
    level = 0
    for byte in _TEXT.sub(b"", payload).translate(None, _NO_BRACKETS):
        level += _STEP[byte]
        if level > levels_max:
            return True
    return False


def value_deeper_than(value: Any, levels_max: int) -> bool:
    """Tell whether lists and dicts nest deeper in a decoded value."""
    layer = [value]
    # Level by level instead of recursively, and no further than asked for.
    for _ in range(levels_max):
        layer = [inner for outer in layer for inner in _inside(outer)]
    return any(isinstance(inner, dict | list) for inner in layer)


def _inside(value: Any) -> Any:
    if isinstance(value, list):
        return value
    return value.values() if isinstance(value, dict) else ()


def holds_non_finite(payload: bytes) -> bool:
    """Tell whether a text that is not JSON may be so only for NaN or an infinity."""
    return b"NaN" in payload or b"Infinity" in payload


def items_beyond_json(payload: bytes) -> list[bytes | None] | None:
    """The items of an array (or the one object) in a text that has NaN or infinities.

    Each is JSON again, and fares as it would alone; None stands for one with such a number. None
    for all if the text is malformed in another way too.
    """
    try:
        # The standard library reads NaN, as it is what wrote it. Numbers stay as they were written,
        # so that 1.0 and 1, or 20 digits, are judged by the same decoder as in clean JSON.
        parsed = json.loads(
            payload, parse_constant=_constant, parse_float=_verbatim, parse_int=_verbatim
        )
    except (ValueError, RecursionError):
        return None
    return [_item(item) for item in (parsed if isinstance(parsed, list) else [parsed])]


def _constant(_name: str) -> object:
    return _NON_FINITE


def _verbatim(text: str) -> msgspec.Raw:
    """A number as it was written: what is wrong with one of its own is judged later."""
    return msgspec.Raw(text.encode())


def _item(item: Any) -> bytes | None:
    layer = [item]
    while layer:
        if any(inner is _NON_FINITE for inner in layer):
            return None
        layer = [inner for outer in layer for inner in _inside(outer)]
    try:
        return msgspec.json.encode(item)
    except (ValueError, RecursionError):  # an unpaired surrogate: no JSON text
        return b""

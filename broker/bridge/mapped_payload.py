"""What a mapping makes of a payload.

Owns the reading of foreign payloads. Must not know topics or who waits. Invariant: the outcome for
any bytes is an event as JSON, None, or an UnmappableError whose text is bounded.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import msgspec

from broker.config.mappings import PLAIN
from broker.engine.ingest.faults import DECODE_ERRORS, bounded
from broker.engine.ingest.registry import RESERVED
from language.lexicon import SOURCE_SYNONYM

if TYPE_CHECKING:
    from broker.config.mappings import MappingSection

SHOWN_CHARS_MAX = 60  # of a payload or value, in a reason
DIGITS_MAX = 18  # of a whole number; with more it is read as a float
TIME_MAX = 2**63  # the core judges times of 64 bits; JSON's numbers may be of thousands of digits

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_WHITE = b" \t\r\n"
_OPENINGS = (b"{", b"[")  # of what can be nothing but JSON
_WORDS = {"true": True, "false": False}

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class UnmappableError(Exception):
    """A payload of which the mapping can make nothing; the text says what was found."""


class PayloadReader:
    """The payloads of one mapping."""

    def __init__(self, section: MappingSection) -> None:
        """`section` is settled, see `broker.config.mappings`."""
        self._form = section.payload
        self._attributes = [(name, path.split(".")) for name, path in section.attributes.items()]
        self._timestamp = section.timestamp.split(".") if section.timestamp else None
        self._factor = 1_000 if section.timestamp_unit == "s" else 1
        self._ignored = ignored(section)

    def event(self, data: bytes, location: str) -> bytes | None:
        """The event as JSON, without type and source; None where the payload says nothing of it.

        Raises UnmappableError.
        """
        document = self._object(data)
        values = self._chosen(document) if self._attributes else self._all(document)
        if not values:
            return None
        if location:
            values["location"] = location
        time = self._time(document)
        if time is not None:
            values["timestamp"] = time
        try:
            return _encode(values)
        except (OverflowError, UnicodeEncodeError) as error:
            raise UnmappableError(f"found what JSON cannot say: {bounded(str(error))}") from None

    # --- values ---------------------------------------------------------------------------

    def _all(self, document: dict[str, Any]) -> dict[str, Any]:
        attributes = {}
        for name, value in document.items():
            if name in RESERVED or name == SOURCE_SYNONYM or isinstance(value, dict | list):
                continue
            if self._is_said(value):
                attributes[name] = finite(name, value)
        return attributes

    def _chosen(self, document: dict[str, Any]) -> dict[str, Any]:
        attributes = {}
        for name, path in self._attributes:
            value = _at(document, path)
            if not self._is_said(value):
                continue
            if isinstance(value, dict | list):
                kind = "an object" if isinstance(value, dict) else "an array"
                raise UnmappableError(f"found {kind} at `{'.'.join(path)}`, expected one value")
            attributes[name] = finite(".".join(path), value)
        return attributes

    def _is_said(self, value: object) -> bool:
        if isinstance(value, str):
            return value.strip() not in self._ignored
        return value is not None

    def _time(self, said: dict[str, Any]) -> int | str | None:
        """The time for the core to judge, in ms where it is a number."""
        value = _at(said, self._timestamp) if self._timestamp else None
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            path = ".".join(self._timestamp or ())
            raise UnmappableError(f"found no time at `{path}`, expected a number or ISO 8601")
        if not -TIME_MAX < value < TIME_MAX:
            raise UnmappableError("found a time beyond all numbers")
        return round(value * self._factor)

    # --- payloads -------------------------------------------------------------------------

    def _object(self, data: bytes) -> dict[str, Any]:
        """The payload as an object; what is none stands in it as the one value."""
        if self._form == "bytes":
            return {PLAIN: data}
        if self._form == "json" or (self._form == "any" and data.lstrip(_WHITE)[:1] in _OPENINGS):
            return _json(data)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise UnmappableError("found bytes that are no UTF-8") from None
        if self._form == "text":
            return {PLAIN: text}
        plain = text.strip()
        if plain in self._ignored:
            return {}
        number = _number(plain)
        if number is not None:
            return {PLAIN: number}
        if self._form == "number":
            raise UnmappableError(f"found {shown(plain)}, expected a number")
        return {PLAIN: _WORDS.get(plain, text)}


def ignored(section: MappingSection) -> frozenset[str]:
    """The texts that stand for no value."""
    return frozenset(filter(None, map(str.strip, section.ignore.split(","))))


def _json(data: bytes) -> dict[str, Any]:
    try:
        value = _decode(data)
    except DECODE_ERRORS as error:
        what = "too deep nesting" if isinstance(error, RecursionError) else bounded(str(error))
        raise UnmappableError(f"found no JSON that can be read: {what}") from None
    if isinstance(value, list):
        raise UnmappableError("found an array, expected an object or one value")
    return value if isinstance(value, dict) else {PLAIN: value}


def _number(text: str) -> int | float | None:
    """The number that a text is; no digits but those of ASCII, no words."""
    if len(text) <= DIGITS_MAX and _WHOLE.fullmatch(text):
        return int(text)
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    if not math.isfinite(number):
        raise UnmappableError(f"found {shown(text)}, which is beyond all numbers")
    return number


def _at(value: object, path: list[str]) -> Any:
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def finite(path: str, value: Any) -> Any:
    """The value. Raises UnmappableError where it is a float that is no number."""
    if isinstance(value, float) and not math.isfinite(value):
        raise UnmappableError(f"found a number beyond all at `{shown(path)}`")
    return value


def shown(text: str) -> str:
    """A text of a stranger's, for a reason."""
    return f'"{bounded(text, SHOWN_CHARS_MAX)}"'

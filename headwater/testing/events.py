"""Lines that send an event: `3s Temp t1 val=21.5 @source t7`, or its JSON after the time.

Owns their form and the reading of values by their declared kinds. Must not know expectations.
Invariant: what is read here is an event that the engine takes, or a fault with its column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from broker.core.intake import Intake, IntakeOptions
from broker.engine.event.event import INT64_MAX, INT64_MIN
from broker.engine.ingest.decode import Decoded
from headwater.events import RESERVED
from headwater.testing.notation import (
    ScriptFaultError,
    Word,
    as_json,
    duration_ms,
    interval_ms,
    text_of,
    time_ms,
)
from headwater.testing.script import SendStep
from language import Specification
from language.diagnostics import quote, shorten
from language.suggest import nearest

FORM = "an event is `TIME TYPE ID name=value … @source NAME @location PATH`"
_TIME_KEYS = ("timestamp", "start", "end")
_METRES = re.compile(r"(-?\d+(?:\.\d+)?)m")
_WHOLE = re.compile(r"[+-]?\d+")


class EventReader:
    """Reads the event lines of one test after the other."""

    def __init__(self, specification: Specification | None) -> None:
        """Without a specification, as where it has errors, types and attributes are not judged."""
        self._types = None if specification is None else specification.event_types
        self._door = Intake(IntakeOptions(lateness_ms=None))
        if specification is not None:
            kinds = [kind for kind in specification.event_types.values() if not kind.defined]
            self._door.declare(kinds)
        self._counts: dict[str, int] = {}

    def begin(self) -> None:
        """A test begins: ids are counted anew."""
        self._counts.clear()

    def read(self, number: int, words: list[Word], zero_ms: int) -> SendStep:
        """The event of a line. Raises FaultError."""
        if words[0].text.startswith("{"):
            if len(words) > 1:
                raise ScriptFaultError(words[1], "nothing may follow the event's JSON")
            fields = self._object(words[0], zero_ms)
        else:
            start, end = interval_ms(words[0], zero_ms)
            if len(words) == 1:
                raise ScriptFaultError(words[0], "no event follows the time", FORM)
            if words[1].text.startswith("{"):
                if len(words) > 2:
                    raise ScriptFaultError(words[2], "nothing may follow the event's JSON")
                fields = self._object(words[1], zero_ms, timed=True)
            else:
                fields = self._plain(words[1:])
            fields |= {"timestamp": end} if start == end else {"start": start, "end": end}
        kind = str(fields["type"])
        self._counts[kind] = self._counts.get(kind, 0) + 1
        fields.setdefault("id", f"{kind}{self._counts[kind]}")
        self._judge(words, fields)
        return SendStep(number, str(fields["id"]), fields)

    # --- what stands in a line -----------------------------------------------------------

    def _plain(self, words: list[Word]) -> dict[str, Any]:
        kinds = self._kinds(words[0], words[0].text)
        fields: dict[str, Any] = {"type": words[0].text}
        index = 1
        if index < len(words) and not _is_pair(words[index]) and words[index].text[0] != "@":
            fields["id"] = text_of(words[index])
            index += 1
        while index < len(words):
            word = words[index]
            if word.text.startswith("@"):
                value = words[index + 1] if index + 1 < len(words) else None
                name, read = _of_event(word, value)
                index += 2
            else:
                if not _is_pair(word):
                    raise ScriptFaultError(
                        word, f"found `{shorten(word.text)}`, expected name=value", FORM
                    )
                name, read = _attribute(word, kinds)
                index += 1
            if name in fields:
                raise ScriptFaultError(word, f"{quote(name)} is given twice")
            fields[name] = read
        return fields

    def _object(self, word: Word, zero_ms: int, *, timed: bool = False) -> dict[str, Any]:
        fields = as_json(word)
        if not isinstance(fields, dict) or not isinstance(fields.get("type"), str):
            raise ScriptFaultError(
                word, "the event's JSON needs a `type`", '{"type": "Temp", "val": 1}'
            )
        kinds = self._kinds(word, fields["type"])
        for name in fields:
            if name not in RESERVED and kinds is not None:
                _known(word, name, kinds)
        for key in _TIME_KEYS:
            if timed and key in fields:
                raise ScriptFaultError(word, "its time stands before it and in its JSON")
            if isinstance(fields.get(key), str):
                fields[key] = time_ms(Word(fields[key], word.column), zero_ms)
        return fields

    def _kinds(self, word: Word, name: str) -> Mapping[str, str] | None:
        """The attributes of a declared type; None where no specification tells."""
        if self._types is None:
            return None
        kind = self._types.get(name)
        if kind is None:
            declared = [type_name for type_name, type_ in self._types.items() if not type_.defined]
            near = nearest(name, declared)
            hint = f"did you mean {quote(near)}?" if near else f"declared are {', '.join(declared)}"
            raise ScriptFaultError(word, f"no event type {quote(name)} is declared", hint)
        if kind.defined:
            raise ScriptFaultError(
                word, f"{quote(name)} is detected by a definition", "send what it is detected from"
            )
        return kind.attributes

    def _judge(self, words: list[Word], fields: dict[str, Any]) -> None:
        """Have the engine's own door look at the event."""
        if self._types is None:
            return
        try:
            decoded: Decoded = self._door.from_mapping(fields)
        except (TypeError, ValueError) as error:
            raise ScriptFaultError(words[-1], str(error)) from None
        if decoded.rejections:
            width = words[-1].column - words[0].column + len(words[-1].text)
            raise ScriptFaultError(
                Word(" " * width, words[0].column), decoded.rejections[0].message
            )


def _is_pair(word: Word) -> bool:
    return "=" in word.text and not word.text.startswith(("=", '"'))


def _attribute(word: Word, kinds: Mapping[str, str] | None) -> tuple[str, Any]:
    name, _, value_text = word.text.partition("=")
    value = word.part(len(word.text) - len(value_text))
    if name in RESERVED:
        hint = "the time stands first" if name in _TIME_KEYS else f"write `@{name} {value_text}`"
        hint = f"the {name} stands before the attributes" if name in {"id", "type"} else hint
        raise ScriptFaultError(word, f"`{name}` is no attribute", hint)
    if kinds is None:
        return name, text_of(value)
    kind = _known(word.part(0, len(name)), name, kinds)
    if not value_text:
        raise ScriptFaultError(word, f"no value follows `{shorten(name)}=`", 'no text is `""`')
    return name, _value(value, name, kind)


def _known(word: Word, name: str, kinds: Mapping[str, str]) -> str:
    if name not in kinds:
        near = nearest(name, kinds)
        hint = f"did you mean {quote(near)}?" if near else f"it has {', '.join(kinds) or 'none'}"
        raise ScriptFaultError(word, f"the event type has no attribute {quote(name)}", hint)
    return kinds[name]


def _value(word: Word, name: str, kind: str) -> Any:
    text = word.text
    if kind in {"text", "bytes"}:
        return text_of(word)
    if kind == "bool" and text in {"true", "false"}:
        return text == "true"
    if kind == "int" and _WHOLE.fullmatch(text) and INT64_MIN <= int(text[:20]) <= INT64_MAX:
        return int(text[:20])
    if kind == "float":
        try:
            return float(text)
        except ValueError:
            pass
    raise ScriptFaultError(word, f"{quote(name)} is of kind {kind}; found `{shorten(text)}`")


def _of_event(word: Word, value: Word | None) -> tuple[str, Any]:
    """Read what every event may have: `@source s1` and the like."""
    name = word.text[1:]
    if name not in {"source", "location", "position", "uncertainty"}:
        hint = "there are @source, @location, @position and @uncertainty"
        raise ScriptFaultError(word, f"found `{shorten(word.text)}`", hint)
    if value is None:
        raise ScriptFaultError(word, f"no value follows `@{name}`")
    if name == "uncertainty":
        return name, duration_ms(value)
    if name == "position":
        return name, _position(value)
    return name, text_of(value)


def _position(word: Word) -> Any:
    if word.text.startswith(("[", "{")):
        return as_json(word)
    parts = word.text.split(",")
    metres = [match[1] for match in map(_METRES.fullmatch, parts) if match]
    if len(metres) == len(parts) and 2 <= len(parts) <= 3:
        return dict(zip("xyz", map(float, metres), strict=False))
    try:
        degrees = [float(part) for part in parts]
    except ValueError:
        degrees = []
    if not 2 <= len(degrees) <= 3:
        expected = "`45.87,7.17` in degrees or `3m,4.5m` in metres"
        raise ScriptFaultError(word, f"found `{shorten(word.text)}`, expected {expected}")
    return degrees

"""The words of a line of a test, and times as people write them.

Owns tokens, durations and the form of an error with its place. Must not know what a line means.
Invariant: every character of a line belongs to a word, to white space or to a comment, and each
word knows its column.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from broker.engine.ingest.times import TIME_MAX_MS, TIME_MIN_MS, parse_time
from language.diagnostics import shorten
from language.lexicon import UNITS_MS
from language.limits import SOURCE_LINE_LENGTH_MAX

_OPENING, _CLOSING = "[{(", "]})"
_DURATION = re.compile(r"(?:\d{1,15}(?:\.\d{1,9})?[a-z]+)+|0")
_PART = re.compile(r"(\d+(?:\.\d+)?)([a-z]+)")
_ISO = re.compile(r"\d{4}-\d\d")
# The units that times are told in above the second, from the largest.
_TOLD = ((86_400_000, "day"), (3_600_000, "h"), (60_000, "min"))


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a line; `column` counts from 1."""

    text: str
    column: int

    def part(self, start: int, end: int | None = None) -> Word:
        """A piece of the word, which knows its own column."""
        return Word(self.text[start:end], self.column + start)


@dataclass(frozen=True, slots=True)
class ScriptFault:
    """An error in one place of a file; `width` is that of the caret."""

    line: int
    column: int
    width: int
    message: str
    hint: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As programs get it."""
        return {
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "hint": self.hint,
        }

    def told(self, file: str, lines: list[str]) -> str:
        """Place, sentence, source line, caret and hint, as `headwater check` tells them."""
        source = lines[self.line - 1] if self.line <= len(lines) else ""
        begin = max(0, self.column - 1 - SOURCE_LINE_LENGTH_MAX // 2)
        source = source[begin : begin + SOURCE_LINE_LENGTH_MAX]
        shown = "".join(
            c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in source
        )
        before = shown[: self.column - 1 - begin]
        pad = "".join("\t" if c == "\t" else " " for c in before)
        width = max(1, min(self.width, len(shown) - len(before)))
        parts = [f"{file}:{self.line}:{self.column}: {self.message}", f"{self.line:>5} | {shown}"]
        parts.append(f"      | {pad}{'^' * width}")
        if self.hint:
            parts.append(f"      = {self.hint}")
        return "\n".join(parts)


class ScriptFaultError(Exception):
    """A line cannot be read; the reader of the file notes it and goes on with the next line."""

    def __init__(self, word: Word, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.word = word
        self.message = message
        self.hint = hint

    def at(self, line: int) -> ScriptFault:
        """The fault, now that the line's number is known."""
        return ScriptFault(line, self.word.column, len(self.word.text), self.message, self.hint)


def words_of(line: str) -> list[Word]:
    """The words of a line; texts in double quotes and what stands in brackets hold together.

    A `#` where a word could begin starts a comment. Raises FaultError.
    """
    words: list[Word] = []
    index, size = 0, len(line)
    while index < size:
        if line[index].isspace():
            index += 1
        elif line[index] == "#":
            break
        else:
            end = _end_of_word(line, index)
            words.append(Word(line[index:end], index + 1))
            index = end
    return words


def _end_of_word(line: str, index: int) -> int:
    open_at: list[int] = []
    while index < len(line):
        char = line[index]
        if char == '"':
            index = _end_of_text(line, index)
            continue
        if char in _OPENING:
            open_at.append(index)
        elif char in _CLOSING and open_at:
            open_at.pop()
        elif char.isspace() and not open_at:
            return index
        index += 1
    if open_at:
        word = Word(line[open_at[0] :], open_at[0] + 1)
        raise ScriptFaultError(word, f"`{word.text[0]}` is never closed")
    return index


def _end_of_text(line: str, start: int) -> int:
    index = start + 1
    while index < len(line):
        if line[index] == "\\":
            index += 1
        elif line[index] == '"':
            return index + 1
        index += 1
    raise ScriptFaultError(
        Word(line[start:], start + 1), "the text is never closed", 'end it with `"`'
    )


def as_json(word: Word) -> Any:
    """The value that a word writes as JSON. Raises FaultError."""
    try:
        return json.loads(word.text)
    except (ValueError, RecursionError):
        raise ScriptFaultError(
            word, f"found {shorten(word.text)}, which is no well-formed JSON"
        ) from None


def text_of(word: Word) -> str:
    """The text that a word says, in quotes or bare. Raises FaultError."""
    if word.text.startswith('"'):
        value = as_json(word)
        if isinstance(value, str):
            return value
    return word.text


def duration_ms(word: Word) -> int:
    """The milliseconds of `3s`, `2.5min` or `1h30min`; 0 needs no unit. Raises FaultError."""
    total = 0.0
    if not _DURATION.fullmatch(word.text):
        raise _no_time(word, "a duration such as `3s`, `250ms` or `1h30min`")
    for number, unit in _PART.findall(word.text):
        if unit not in UNITS_MS:
            raise _no_time(word, "the units `ms`, `s`, `min`, `h`, `day` or `week`")
        total += float(number) * UNITS_MS[unit]
    if total != int(total) or total > TIME_MAX_MS:
        raise _no_time(word, "whole milliseconds within the years 0001 to 9999")
    return int(total)


def time_ms(word: Word, zero_ms: int) -> int:
    """The moment of a word: a duration after zero, or an ISO 8601 text. Raises FaultError."""
    if _ISO.match(word.text):
        moment = parse_time(word.text)
        if moment is None:
            raise _no_time(word, "an ISO 8601 time such as `2026-03-01T06:00Z`")
        return moment
    if word.text.startswith("-"):
        moment_ms = zero_ms - duration_ms(word.part(1))
    elif _DURATION.fullmatch(word.text):
        moment_ms = zero_ms + duration_ms(word)
    else:
        raise _no_time(word, "a time such as `3s`, `1h30min` or `2026-03-01T06:00Z`")
    if not TIME_MIN_MS <= moment_ms <= TIME_MAX_MS:
        raise _no_time(word, "a time within the years 0001 to 9999")
    return moment_ms


def interval_ms(word: Word, zero_ms: int) -> tuple[int, int]:
    """The start and end of `3s..7s`, or of the moment `3s`. Raises FaultError."""
    first, dots, last = word.text.partition("..")
    if not dots:
        moment = time_ms(word, zero_ms)
        return moment, moment
    start = time_ms(word.part(0, len(first)), zero_ms)
    end = time_ms(word.part(len(word.text) - len(last)), zero_ms)
    if start > end:
        raise ScriptFaultError(word, "it starts after it ends")
    return start, end


def _no_time(word: Word, expected: str) -> ScriptFaultError:
    return ScriptFaultError(word, f"found `{shorten(word.text)}`, expected {expected}")


def duration_text(duration_ms: int) -> str:
    """A duration as `duration_ms` reads it, exactly."""
    if duration_ms < 0:
        return "-" + duration_text(-duration_ms)
    parts = []
    for size, unit in _TOLD:
        count, duration_ms = divmod(duration_ms, size)
        if count:
            parts.append(f"{count}{unit}")
    if duration_ms >= 1000 and duration_ms % 1000:
        parts.append(f"{duration_ms // 1000}.{duration_ms % 1000:03}".rstrip("0") + "s")
    elif duration_ms:
        even = duration_ms % 1000 == 0
        parts.append(f"{duration_ms // 1000}s" if even else f"{duration_ms}ms")
    return "".join(parts) or "0s"


def interval_text(start: int, end: int, zero_ms: int) -> str:
    """An interval as `interval_ms` reads it, exactly."""
    first, last = duration_text(start - zero_ms), duration_text(end - zero_ms)
    return last if start == end else f"{first}..{last}"

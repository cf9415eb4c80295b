"""The actions that make the window of a definition's header.

Owns which parts go together and how long a window may be. Must not know what is aggregated.
Invariant: as for the package.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from language import tree
from language.limits import WINDOW_MS_MAX, WINDOWS_AT_ONCE_MAX
from language.reading.values import duration_ms, note, span_of, text

if TYPE_CHECKING:
    from lark import Token

DAY_MS = 86_400_000
ZONE_NAME = re.compile(r"[A-Za-z][\w+-]*(?:/[\w+-]+)*", re.ASCII)
ZONE_LENGTH_MAX = 64


class WindowActions:
    """Actions of the grammar's `window`."""

    def window_length(self, children: list[Any]) -> dict[str, Any]:
        word, duration = children
        return {tree.WINDOW_PARTS[word].field: (duration_ms(duration), word)}

    def window_zone(self, children: list[Any]) -> dict[str, Any]:
        word, duration, _, zone = children
        days, over_ms = divmod(duration_ms(duration), DAY_MS)
        if over_ms:
            note("HW426", duration.span)
            days = max(1, days)
        name = text(zone)
        if not _is_zone(name):
            note("HW437", span_of(zone), name=name)
        return {"every_days": (days, word), "zone": (name, zone)}

    def window(self, children: list[Any]) -> tree.Window:
        aggregated = not isinstance(children[0], dict)
        parts: dict[str, int | str] = {}
        words: dict[str, Token] = {}
        for part in children[1:] if aggregated else children:
            for key, (value, word) in part.items():
                if key in parts:
                    note("HW427", span_of(word))
                parts[key] = value
                words[key] = word
        first = children[0] if aggregated else next(iter(words.values()))
        _check_window(aggregated, words, span_of(first))
        _check_lengths(parts, words)
        marks = tuple((key, span_of(token)) for key, token in words.items())
        return tree.Window(aggregated, span=span_of(first), marks=marks, **cast("Any", parts))


def _is_zone(name: str) -> bool:
    """Tell whether the time zone database of this host has a zone of this name (PEP 615)."""
    if len(name) > ZONE_LENGTH_MAX or ZONE_NAME.fullmatch(name) is None:
        return False
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        return False
    return True


def _check_window(aggregated: bool, words: dict[str, Token], span: tree.Span) -> None:
    """Which parts of a header go together."""
    parts = [part for part in tree.WINDOW_PARTS.values() if part.field in words]
    for part in parts:
        beside = {each.field for each in tree.WINDOW_PARTS.values() if each.beside == part.word}
        if part.beside is not None and tree.WINDOW_PARTS[part.beside] not in parts:
            note("HW428", span_of(words[part.field]), part=part.word, other=part.beside)
        if part.alone and len(words.keys() - beside) > 1:
            note("HW427", span_of(words[part.field]))
    if aggregated and not words:
        note("HW429", span)
    if not aggregated:
        for part in parts:
            if part.aggregated and part.beside is None:
                note("HW428", span_of(words[part.field]), part=part.word, other="aggr")


def _check_lengths(parts: dict[str, int | str], words: dict[str, Token]) -> None:
    """A window has a greatest length, and an event lies in so many of them at most."""
    lengths = {key: value for key, value in parts.items() if isinstance(value, int)}
    if "every_days" in lengths:
        lengths["every_days"] *= DAY_MS
    for key, length_ms in lengths.items():
        if length_ms > WINDOW_MS_MAX:
            days = WINDOW_MS_MAX // DAY_MS
            note("HW435", span_of(words[key]), part=words[key], limit=days)
            return
    every_ms = lengths.get("every_ms", lengths.get("every_days"))
    range_ms = lengths.get("range_ms")
    if "every_days" in lengths and range_ms and range_ms % DAY_MS:
        note("HW426", span_of(words["range_ms"]))
    if every_ms and range_ms and range_ms > every_ms * WINDOWS_AT_ONCE_MAX:
        count = -(-range_ms // every_ms)
        note("HW436", span_of(words["range_ms"]), count=count, limit=WINDOWS_AT_ONCE_MAX)

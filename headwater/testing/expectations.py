"""Lines that expect: `expect Frost: a=a1 b=b1,b2 at 3s with temp=-1.5`, `expect nothing`.

Owns their form. Must not know how results are compared. Invariant: each name in what is read is
one that can occur, so that a misspelt expectation is a fault and never one that holds by chance.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from decimal import Decimal, InvalidOperation
from typing import Any

from broker.engine.ingest import reasons
from headwater.testing.notation import (
    ScriptFaultError,
    Word,
    as_json,
    interval_ms,
    text_of,
    time_ms,
)
from headwater.testing.script import ApproximateNumber, Expect, ExpectRefused, NoMore
from language import Specification
from language.diagnostics import quote, shorten
from language.suggest import nearest
from language.tree import Subscription
from language.walk import atoms

FORM = "`expect NAME: alias=id … at TIME with name=value … group key=value …`"
COUNT_MAX = 10_000  # of one line; a test is for people to read
_NUMBER_TEXT_MAX = 40
_REASONS = {"late": reasons.LATE, "repeat": reasons.REPEAT}


class ExpectationReader:
    """Reads the expectations of tests; knows the subscriptions that can report."""

    def __init__(self, specification: Specification | None) -> None:
        self._subscriptions: dict[str, list[Subscription]] | None = None
        if specification is not None:
            self._subscriptions = {}
            for (_, name), node in specification.subscriptions.items():
                self._subscriptions.setdefault(name, []).append(node)

    def read(
        self, number: int, words: list[Word], zero_ms: int, ids: Collection[str] | None
    ) -> list[Expect | NoMore | ExpectRefused]:
        """Return what a line expects: several where it says how often. Raises FaultError.

        `ids` are those sent so far in the test; None where they are not known.
        """
        if words[0].text == "then":
            if [word.text for word in words[1:2]] != ["no"] or words[2:3] == []:
                raise ScriptFaultError(words[0], "found `then`, expected `then no more`")
            if words[2].text != "more":
                raise ScriptFaultError(
                    words[2], f"found `{shorten(words[2].text)}`, expected `more`"
                )
            return [NoMore(number, self._of(words[3:]))]
        if len(words) == 1:
            raise ScriptFaultError(
                words[0], "nothing follows `expect`", f"{FORM}, `expect nothing`"
            )
        if words[1].text == "nothing":
            return [NoMore(number, self._of(words[2:]))]
        if words[1].text in _REASONS and len(words) == 3:
            wanted = text_of(words[2])
            _among(words[2], wanted, ids)
            return [ExpectRefused(number, wanted, _REASONS[words[1].text])]
        index, count = 1, 1
        if words[1].text.isdecimal():
            count, index = int(words[1].text[:9]), 2
            if not 1 <= count <= COUNT_MAX or len(words) == 2:
                raise ScriptFaultError(
                    words[1], f"found `{words[1].text}`, expected `{count or 1} NAME`"
                )
        expectation = self._expect(number, words[index:], zero_ms, ids)
        return [expectation] * count

    def _of(self, words: list[Word]) -> str | None:
        """The subscription of `of NAME`, if that stands there."""
        if not words:
            return None
        if words[0].text != "of" or len(words) != 2:
            raise ScriptFaultError(
                words[0], f"found `{shorten(words[0].text)}`, expected `of NAME`"
            )
        self._known(words[1], words[1].text)
        return words[1].text

    def _known(self, word: Word, name: str) -> list[Subscription]:
        if self._subscriptions is None:
            return []
        if name not in self._subscriptions:
            near = nearest(name, self._subscriptions)
            names = ", ".join(self._subscriptions) or "none"
            hint = f"did you mean {quote(near)}?" if near else f"there are {names}"
            raise ScriptFaultError(word, f"no subscription {quote(name)} stands in it", hint)
        return self._subscriptions[name]

    def _expect(
        self, number: int, words: list[Word], zero_ms: int, ids: Collection[str] | None
    ) -> Expect:
        name = words[0].text.removesuffix(":")
        aliases = _aliases(self._known(words[0].part(0, len(name)), name))
        read = _Parts(zero_ms)
        index = 1
        while index < len(words) and "=" in words[index].text:
            alias, wanted = _bound(words[index], aliases, ids)
            if alias in dict(read.events):
                raise ScriptFaultError(words[index], f"{quote(alias)} is given twice")
            read.events.append((alias, wanted))
            index += 1
        while index < len(words):
            index = read.section(words, index)
        return Expect(
            number,
            name,
            tuple(read.events),
            read.start,
            read.end,
            tuple(read.values),
            tuple(read.group),
            read.certainty,
        )


class _Parts:
    """The sections of one expectation."""

    def __init__(self, zero_ms: int) -> None:
        self._zero_ms = zero_ms
        self.events: list[tuple[str, tuple[str, ...]]] = []
        self.start: int | None = None
        self.end: int | None = None
        self.values: list[tuple[tuple[str, ...], Any]] = []
        self.group: list[tuple[str, Any]] = []
        self.certainty: str | None = None

    def section(self, words: list[Word], index: int) -> int:
        """Read the section that begins at a word; where the next one begins."""
        word = words[index]
        if word.text in {"maybe", "certain"}:
            self.certainty = "maybe" if word.text == "maybe" else "yes"
            return index + 1
        if word.text == "at":
            if index + 1 == len(words):
                raise ScriptFaultError(word, "no time follows `at`")
            self._time(words[index + 1])
            return index + 2
        if word.text not in {"with", "group"}:
            hint = "after the events stand `at TIME`, `with name=value`, `group key=value`, `maybe`"
            raise ScriptFaultError(word, f"found `{shorten(word.text)}`", f"{hint} or `certain`")
        start = index = index + 1
        while index < len(words) and "=" in words[index].text:
            name, _, value_text = words[index].text.partition("=")
            value = _expected(words[index].part(len(words[index].text) - len(value_text)))
            if word.text == "with":
                self.values.append((tuple(name.split(".")), value))
            else:
                self.group.append((name, value))
            index += 1
        if index == start:
            raise ScriptFaultError(word, f"no name=value follows `{word.text}`")
        return index

    def _time(self, word: Word) -> None:
        if ".." in word.text:
            self.start, self.end = interval_ms(word, self._zero_ms)
        else:
            self.end = time_ms(word, self._zero_ms)


def _aliases(nodes: list[Subscription]) -> dict[str, None] | None:
    """The names that a result's events can stand under; None where that is not known."""
    if not nodes:
        return None
    aliases: dict[str, None] = {}
    for node in nodes:
        for atom in atoms(node.case.detect.pattern):
            aliases[atom.alias or atom.type] = None
    return aliases


def _bound(
    word: Word, aliases: dict[str, None] | None, ids: Collection[str] | None
) -> tuple[str, tuple[str, ...]]:
    alias, _, value_text = word.text.partition("=")
    if aliases is not None and alias not in aliases:
        near = nearest(alias, aliases)
        hint = f"did you mean {quote(near)}?" if near else f"it binds {', '.join(aliases)}"
        raise ScriptFaultError(word.part(0, len(alias)), f"it binds no {quote(alias)}", hint)
    value = word.part(len(word.text) - len(value_text))
    if value_text.startswith("["):
        wanted = as_json(value)
        if not all(isinstance(event_id, str) for event_id in wanted):
            raise ScriptFaultError(value, "expected an array of ids")
    elif value_text.startswith('"'):
        wanted = [text_of(value)]
    else:
        wanted = value_text.split(",") if value_text else []
    for event_id in wanted:
        _among(value, event_id, ids)
    return alias, tuple(wanted)


def _among(word: Word, wanted: str, ids: Collection[str] | None) -> None:
    if ids is not None and wanted not in ids:
        near = nearest(wanted, ids)
        hint = f"did you mean {quote(near)}?" if near else "ids are those of the lines above"
        raise ScriptFaultError(word, f"no event {quote(wanted)} was sent so far", hint)


def _expected(word: Word) -> Any:
    """A value: a number, true, false, null, a text in quotes or bare, JSON, or about: `~20.3`."""
    if word.text.startswith("~"):
        try:
            number = Decimal(word.text[1 : 1 + _NUMBER_TEXT_MAX])
        except InvalidOperation:
            number = Decimal("NaN")
        if not number.is_finite():
            raise ScriptFaultError(
                word, f"found `{shorten(word.text)}`, expected a number after `~`"
            )
        return ApproximateNumber(number)
    if word.text.startswith(("[", "{", '"')):
        return as_json(word)
    try:
        value = json.loads(word.text, parse_constant=str)
    except ValueError:
        return word.text
    return value

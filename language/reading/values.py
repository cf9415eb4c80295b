"""Tokens to values: names, numbers, texts, durations, distances, and the places where they stand.

Owns the conversion of units and the limits of single values. Must not know the grammar.
Invariant: a value that cannot be is noted and replaced by one that can, so that reading goes on.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from decimal import ROUND_CEILING, Decimal
from sys import intern
from typing import TYPE_CHECKING, Any, TypeVar, cast

from language import tree
from language.diagnostics import Collector
from language.lexicon import (
    QUOTED_NAME,
    RESERVED,
    SOURCE_SYNONYM,
    UNITS_M,
    UNITS_MS,
)
from language.limits import (
    DISTANCE_M_MAX,
    DURATION_MS_MAX,
    INTEGER_MAX,
    LIST_LENGTH_MAX,
    NAME_LENGTH_MAX,
    STRING_LENGTH_MAX,
)
from language.tree import Constant, Span

if TYPE_CHECKING:
    from lark import Token

_P = TypeVar("_P", "Token", tree.Assignment)
Marks = tuple[tuple[str, Span], ...]

COLLECTOR: ContextVar[Collector] = ContextVar("COLLECTOR")
"""Where errors of the text being read go; set for the time of one reading."""

_QUANTITY = re.compile(r"([\d.]+)\s*([a-z]+)")
_ESCAPE = re.compile(r'\\(u[0-9a-fA-F]{4}|["\\nt]|.|$)')
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}
_DIGITS_MAX = 400  # the smallest float written out has 341


def note(code: str, span: Span, hint: str | None = None, /, **words: object) -> None:
    """Record an error of the text being read."""
    COLLECTOR.get().note(code, span, hint, **words)


def span_of(token: Token) -> Span:
    """Return the span of a token."""
    return Span(
        cast("int", token.start_pos),
        cast("int", token.end_pos),
        cast("int", token.line),
        cast("int", token.column),
    )


def place(part: Token | tree.Node) -> Span:
    """Return the span of a token or node."""
    return part.span if isinstance(part, tree.Node) else span_of(part)


def between(first: Token | tree.Node, last: Token | tree.Node) -> Span:
    """From the beginning of `first` to the end of `last`."""
    begin, end = place(first), place(last)
    return Span(begin.start, end.end, begin.line, begin.column)


def name_of(token: Token) -> str:
    """The name that a token spells, without its backticks."""
    text = str(token)
    if text[0] == "`":
        text = text[1:-1]
        if QUOTED_NAME.fullmatch(text) is None:
            note("HW106", span_of(token), name=text)
            text = "_"
    elif text in RESERVED:
        note("HW210", span_of(token), f"write `{text}` in backticks", name=text)
    if len(text) > NAME_LENGTH_MAX:
        note("HW107", span_of(token), name=text, limit=NAME_LENGTH_MAX)
    return intern(text)  # thousands of subscriptions speak of few names


def owner_name(token: Token) -> str:
    """As `name_of`, for what can own attributes: in `group.x` the word `group` is the key."""
    name = name_of(token)
    if name == "group" and token[0] == "`":
        note("HW218", span_of(token))
    return name


def attribute_name(token: Token) -> str:
    """As `name_of`, where the name is an attribute's: `srcid` is read as `source`."""
    name = name_of(token)
    return "source" if name == SOURCE_SYNONYM else name


def unique_names(tokens: list[Token], what: str, *, attributes: bool = False) -> tuple[str, ...]:
    """The names of a list in which none may stand twice; a repeated one is noted and left out."""
    names: dict[str, None] = {}
    for token in bounded(tokens):
        name = attribute_name(token) if attributes else name_of(token)
        if name in names:
            note("HW215", span_of(token), name=name, what=what)
        names[name] = None
    return tuple(names)


def bounded(parts: list[_P]) -> list[_P]:
    """As many parts of a list as there may be; the first one beyond is noted."""
    if len(parts) > LIST_LENGTH_MAX:
        note("HW129", place(parts[LIST_LENGTH_MAX]), count=len(parts), limit=LIST_LENGTH_MAX)
    return parts[:LIST_LENGTH_MAX]


def marks_of(tokens: list[Token], prefix: str) -> Marks:
    """Return the span of each name of a list, under `prefix name`."""
    return tuple(
        (f"{prefix} {_spelt(token)}", span_of(token)) for token in tokens[:LIST_LENGTH_MAX]
    )


def _spelt(token: Token) -> str:
    name = token[1:-1] if token[0] == "`" else str(token)
    return "source" if name == SOURCE_SYNONYM else name


def integer(token: Token) -> int:
    """The value of an INT token."""
    if len(token) > _DIGITS_MAX or (value := int(token)) > INTEGER_MAX:
        note("HW112", span_of(token), number=str(token))
        return 0
    return value


def number(token: Token) -> float:
    """The value of a FLOAT token."""
    value = float(token) if len(token) <= _DIGITS_MAX else float("inf")
    if value == float("inf"):
        note("HW112", span_of(token), number=str(token))
        return 0.0
    return value


def text(token: Token) -> str:
    """The value of a STRING token, without quotes and escapes."""
    inner = str(token)[1:-1]
    if len(inner) > STRING_LENGTH_MAX:
        note("HW116", span_of(token), limit=STRING_LENGTH_MAX)
        return ""

    def plain(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        if escape not in _ESCAPES:
            note("HW117", span_of(token), escape=match[0])
        return _ESCAPES.get(escape, escape)

    value = _ESCAPE.sub(plain, inner) if "\\" in inner else inner
    if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
        note("HW117", span_of(token), escape="half of a surrogate pair")
        return ""
    return value


def quantity(token: Token) -> Constant:
    """A duration in milliseconds or a distance in metres."""
    match = cast("re.Match[str]", _QUANTITY.fullmatch(token))
    digits, unit = match[1], match[2]
    if len(digits) > _DIGITS_MAX:
        note("HW112", span_of(token), number=digits)
        digits = "1"
    if unit in UNITS_M:
        metres = Decimal(digits) * UNITS_M[unit]
        if metres > DISTANCE_M_MAX:
            note("HW119", span_of(token), None, quantity=str(token))
            metres = Decimal(DISTANCE_M_MAX)
        return Constant(float(metres), "m", span=span_of(token))
    value = Decimal(digits) * UNITS_MS[unit]
    if value != value.to_integral_value():
        note("HW118", span_of(token), None, duration=str(token))
        value = value.to_integral_value(ROUND_CEILING)
    elif value > DURATION_MS_MAX:
        note("HW119", span_of(token), None, quantity=str(token))
        value = Decimal(DURATION_MS_MAX)
    return Constant(int(value), "ms", span=span_of(token))


def duration_ms(node: Constant, *, zero: bool = False) -> int:
    """The milliseconds of a constant that must be a duration, above zero unless `zero`."""
    if node.unit != "ms":
        hint = None
        if node.unit is None and isinstance(node.value, int) and not isinstance(node.value, bool):
            hint = f"with its unit: {node.value} s, {node.value} mins, …"
        note("HW113", node.span, hint)
        return 1
    value = cast("int", node.value)
    if value < 0 or (value == 0 and not zero):
        note("HW313", node.span)
        return 1
    return value


def distance_m(node: Constant, *, zero: bool = False) -> float:
    """The metres of a constant that must be a distance, above zero unless `zero`."""
    if node.unit != "m":
        note("HW114", node.span)
        return 1.0
    value = cast("float", node.value)
    if value < 0 or (value == 0 and not zero):
        note("HW314", node.span)
        return 1.0
    return value


class Values:
    """The actions that make constants."""

    def constant(self, children: list[Any]) -> Constant:
        token: Token = children[0]
        kind = token.type
        if kind == "INT":
            return Constant(integer(token), span=span_of(token))
        if kind == "STRING":
            return Constant(text(token), span=span_of(token))
        if kind in {"DURATION", "DISTANCE"}:
            return quantity(token)
        if kind == "FLOAT":
            return Constant(number(token), span=span_of(token))
        return Constant(kind == "TRUE", span=span_of(token))

    def signed_constant(self, children: list[Any]) -> Constant:
        """`-x` where only a constant can stand."""
        sign, operand = children
        span = between(sign, operand)
        if isinstance(operand.value, bool | str):
            note(
                "HW302", span, kind="a text" if isinstance(operand.value, str) else "a truth value"
            )
            return cast("Constant", operand)
        return Constant(-operand.value, operand.unit, span=span)

    def minus(self, children: list[Any]) -> tree.Expression:
        """`-x`; before a number it is the number's sign."""
        sign, operand = children
        span = between(sign, operand)
        if isinstance(operand, Constant) and not isinstance(operand.value, bool | str):
            return Constant(-operand.value, operand.unit, span=span)
        return tree.Unary("-", operand, span=span)

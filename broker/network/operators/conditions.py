"""Conditions as they travel: as text, and as what a key says in its fields.

Owns reading a key back into conditions, and compiling them where a type may not be declared. Must
not know how keys are made. Invariant: a text from a neighbour makes a test of one event, or a
ValueError; the test never raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from broker.engine.event.event import slot_of
from broker.engine.event.expressions import FUNCTIONS, NEVER_NULL, RESERVED_CODE, Writer, divide
from broker.engine.event.source import Constants, build
from broker.network.routing.advertisement.operator import Key, Range, Region
from language.printing.expressions import expression_text
from language.tree import (
    Arithmetic,
    Atom,
    Attribute,
    Call,
    Comparison,
    Constant,
    Expression,
    Logical,
    Lookup,
    Membership,
    Name,
    RegionLiteral,
    SetLiteral,
    Subscription,
)
from language.walk import descendants

CONDITION_CHARS_MAX = 8_192  # every broker on the way reads and keeps it; a long set has no place
COMPILED_MAX = 4_096  # texts kept compiled; the same condition comes from every neighbour

Test = Callable[[Any], bool]


def text_of(conditions: Sequence[Expression]) -> str:
    """The canonical text of a conjunction: each part once, in the order of their texts."""
    parts = {expression_text(condition): condition for condition in conditions}
    ordered = tuple(parts[text] for text in sorted(parts))
    return expression_text(ordered[0] if len(ordered) == 1 else Logical("and", ordered))


@lru_cache(maxsize=COMPILED_MAX)
def read_condition(text: str) -> Expression:
    """The condition that a canonical text says.

    Raises ValueError for what is no condition on one event that any broker could judge.
    """
    if len(text) > CONDITION_CHARS_MAX:
        raise ValueError(f"a condition of {len(text)} characters, at most {CONDITION_CHARS_MAX}")
    from language.diagnostics import Collector
    from language.reading.parser import read

    collector = Collector()
    items = read(f"subscription c from c to c detect c({text})", collector).file.items
    if not collector.found() and len(items) == 1 and isinstance(items[0], Subscription):
        match items[0].case.detect.pattern:
            case Atom(type="c", conditions=(condition,), alias=None) if travels(condition):
                return condition
    raise ValueError(f"found `{text[:200]}`, expected a condition on one event")


def travels(condition: Expression) -> bool:
    """Tell whether another broker can judge it: tables and users' own functions are at the home."""
    for part in descendants(condition):
        if isinstance(part, Lookup) or (isinstance(part, Call) and not _known(part)):
            return False
        if isinstance(part, Membership) and isinstance(part.container, Name):
            return False
    return True


def _known(call: Call) -> bool:
    return call.own is None and call.function in FUNCTIONS


class _AnyScope:
    """Names of attributes that an event's class may lack; the missing are null."""

    def reference(self, node: Name | Attribute | Call) -> tuple[str, bool] | None:
        """Return the code that reads a name, and whether it may be null; None for a call."""
        if isinstance(node, Call):
            return None
        reserved = RESERVED_CODE.get(node.name)
        if reserved is not None:
            return reserved.format(e="e"), node.name not in NEVER_NULL
        return f"getattr(e, {slot_of(node.name)!r}, None)", True


def number(value: Any) -> Any:
    """The value, if one can reckon with it: nobody has checked that it is no text."""
    if value.__class__ is int or value.__class__ is float:
        return value
    raise TypeError("no number")


class _Careful(Writer):
    """Writes texts of others, whose types were checked elsewhere or nowhere."""

    def _arithmetic(self, node: Arithmetic, guards: list[str]) -> str:
        self._constants.helper("number", number)
        left = f"number({self._strict(node.left, guards)})"
        right = f"number({self._strict(node.right, guards)})"
        if node.operator == "/":
            self._constants.helper("divide", divide)
            return self._guarded(f"divide({left}, {right})", guards)
        return f"({left} {node.operator} {right})"


@lru_cache(maxsize=COMPILED_MAX)
def compile_condition(text: str) -> Test:
    """The test of an event that a key's condition says; "" passes all.

    Where an attribute is of another type than the condition takes it to be, the event passes: who
    wants it will judge. Raises ValueError, see `read_condition`.
    """
    if not text:
        return lambda _: True
    constants = Constants()
    code = _Careful(_AnyScope(), constants).condition(read_condition(text))
    lines = (
        "def test(e):",
        "    try:",
        f"        return {code}",
        "    except (TypeError, ValueError, OverflowError, AttributeError):",
        "        return True",
    )
    return build("\n".join(lines) + "\n", "test", constants)


# --- keys as conditions ---------------------------------------------------------------------------


def conditions_of(key: Key) -> tuple[Expression, ...]:
    """Return what must hold of an event that passes the key, all of it.

    Raises ValueError as above.
    """
    if key.condition:
        return (read_condition(key.condition),)
    expressions: list[Expression] = []
    if key.source is not None:
        expressions.append(_compared("source", "=", key.source))
    if key.location is not None:
        expressions.append(Membership(Name("location"), RegionLiteral("path", path=key.location)))
    if key.region is not None:
        expressions.append(Membership(Name("position"), literal_of(key.region)))
    expressions += [_compared(attribute, "=", value) for attribute, value in key.equals]
    for bounds in key.ranges:
        expressions += _bounded(bounds)
    return tuple(expressions)


def literal_of(region: Region) -> RegionLiteral:
    """A key's region in the words of the language."""
    return RegionLiteral(region.shape, tuple(region.numbers), metric=region.metric)


def _compared(attribute: str, operator: Any, value: bool | int | float | str) -> Expression:
    return Comparison((Name(attribute), Constant(value)), (operator,))


def _bounded(bounds: Range) -> list[Expression]:
    name, low, high = bounds.attribute, bounds.low, bounds.high
    if low is not None and low == high and not (bounds.low_open or bounds.high_open):
        return [_compared(name, "=", low)]
    expressions = []
    if low is not None:
        expressions.append(_compared(name, ">" if bounds.low_open else ">=", low))
    if high is not None:
        expressions.append(_compared(name, "<" if bounds.high_open else "<=", high))
    if not expressions:  # whatever the number, there must be one
        expressions.append(Comparison((Name(name), Name(name)), ("=",)))
    return expressions


def members_of(container: object) -> tuple[Any, ...]:
    """The values of a set; none of what is no set."""
    if not isinstance(container, SetLiteral):
        return ()
    return tuple(member.value for member in container.members)

"""Assigned times: among which times one is chosen, and what is added to them.

Owns the one reading of a time that a case assigns. Must not know scopes, windows at run time or
events. Invariant: the value is that of one of its choices, with what is added to that, or null.

A time that is assigned is a time of the occurrence, of one of its events or of the window, a choice
among such by `Min`, `Max`, `First`, `Last`, `min` or `max`, and what is added to or taken from one
(LANGUAGE, section 2). So whoever asks for the earliest or the latest that it can be, or whose time
it is, asks each choice; choices of choices are choices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from language.functions import AGGREGATES, CHOOSING
from language.tree import Arithmetic, Attribute, Call, Constant, Expression, Name

if TYPE_CHECKING:
    from collections.abc import Iterator

ENDS = frozenset(("timestamp", "end"))
TIMES = ENDS | {"start"}


@dataclass(frozen=True, slots=True)
class TimeChoice:
    """One of the times that a value is chosen of; `time` None: of a form that nothing is said of.

    `added_ms`: what is added to it, less what is taken away. `of_many`: an aggregate chooses among
    the times of that name of several events.
    """

    time: Name | Attribute | None
    added_ms: float = 0
    of_many: bool = False


def choices_of(value: Expression, *, of_many: bool = False) -> Iterator[TimeChoice]:
    """Yield the choices of a value, each with what is added to it.

    `max(x.end, Max(y.start)) + 5 s` is chosen of x.end + 5 s and of the y.start + 5 s of many y.
    """
    if isinstance(value, Name | Attribute):
        yield TimeChoice(value, 0, of_many)
    elif isinstance(value, Call) and value.function in CHOOSING and value.arguments:
        for argument in value.arguments:
            yield from choices_of(argument, of_many=of_many or value.function in AGGREGATES)
    elif (shifted := _shifted(value)) is not None:
        time, added_ms = shifted
        for choice in choices_of(time, of_many=of_many):
            yield replace(choice, added_ms=choice.added_ms + added_ms)
    else:
        yield TimeChoice(None, 0, of_many)


def _shifted(value: Expression) -> tuple[Expression, float] | None:
    """A value without the constant that is added to it or taken from it, and that constant."""
    if not isinstance(value, Arithmetic):
        return None
    if value.operator == "-":
        taken = _number(value.right)
        return None if taken is None else (value.left, -taken)
    if value.operator == "+":
        for time, added in ((value.left, value.right), (value.right, value.left)):
            number = _number(added)
            if number is not None:
                return time, number
    return None


def _number(node: Expression) -> float | None:
    if isinstance(node, Constant) and isinstance(node.value, int | float):
        return node.value
    return None


def added_max_ms(value: Expression) -> int:
    """Return how long after the latest of the times that it is chosen of a value lies at most."""
    return max([int(choice.added_ms) for choice in choices_of(value)], default=0)

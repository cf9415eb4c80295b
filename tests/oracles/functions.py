"""What the arithmetic and text functions are worth, and what tables hold.

Owns: the reference meaning of both. Must not know: expressions.
Invariant: a function of a null is null; what is not in a table is null.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from tests.oracles import spec as s

Row: TypeAlias = Mapping[str, int | float | str | None]


def call(function: str, arguments: Sequence[Any]) -> Any:
    """The worth of a function; null where an argument is."""
    if any(argument is None for argument in arguments):
        return None
    return _FUNCTIONS[function](*arguments)


def _nearest(number: float) -> int:
    """The nearest whole number, of two the even one."""
    low = math.floor(number)
    rest = Fraction(number) - low
    if rest == Fraction(1, 2):
        return low if low % 2 == 0 else low + 1
    return low if rest < Fraction(1, 2) else low + 1


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": lambda number: -number if number < 0 else number,
    "min": lambda *numbers: min(numbers),
    "max": lambda *numbers: max(numbers),
    "round": _nearest,
    "floor": math.floor,
    "ceil": math.ceil,
    "sqrt": lambda number: None if number < 0 else math.sqrt(number),
    "lower": lambda text: text.lower(),
    "upper": lambda text: text.upper(),
    "length": len,
    "concat": lambda *texts: "".join(texts),
}


# --- tables -----------------------------------------------------------------------------------


def rows_of(table: s.Table) -> list[Row]:
    """The rows of a table; a column is of numbers where all that stands in it is."""
    header, *lines = csv.reader(io.StringIO(table.text))
    columns = {name: _typed([line[number] for line in lines]) for number, name in enumerate(header)}
    return [{name: column[i] for name, column in columns.items()} for i in range(len(lines))]


def _typed(cells: Sequence[str]) -> list[int | float | str | None]:
    for kind in (int, float):
        try:
            return [kind(cell) if cell else None for cell in cells]
        except ValueError:
            continue
    return [cell or None for cell in cells]


def look_up(rows: Sequence[Row], key: str, value: Any, column: str) -> Any:
    """What stands in the column of the row with that key; null where there is none."""
    for row in rows:
        if value is not None and row[key] == value:
            return row[column]
    return None

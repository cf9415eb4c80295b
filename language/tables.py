"""Reference data: a table's text to rows by key.

Owns the reading of comma-separated text and the types of its columns. Must not know files: whoever
has them gives their text. Invariant: a column is of numbers (int if all are) where all that is not
empty in it is, else of text; an empty cell is null.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite
from typing import Any, Literal

ROWS_MAX = 1_000_000
TEXT_MAX = 256 * 2**20  # characters
INT64 = 2**63
DIGEST_LENGTH = 16

ColumnType = Literal["int", "float", "text"]
ReadTable = Callable[[str], str]  # the file's name as it is written → its text, or TableError


class TableError(Exception):
    """A table cannot be had; the sentence says why."""


@dataclass(frozen=True)
class Table:
    """The content of a table: the types of its columns, and each column's values by key.

    `digest` stands for the whole content, so that tasks over different data never meet.
    """

    key: str
    types: Mapping[str, ColumnType]
    columns: Mapping[str, Mapping[Any, Any]]
    digest: str


def parse(text: str, key: str) -> Table:
    """The table that a text holds; raises TableError with a sentence."""
    if len(text) > TEXT_MAX:
        raise TableError(f"it has more than {TEXT_MAX:,} characters")
    try:
        rows = list(csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True))
    except csv.Error as error:
        raise TableError(f"it is no comma-separated text: {error}") from None
    header, lines = _header(rows, key)
    if len(lines) > ROWS_MAX:
        raise TableError(f"it has {len(lines):,} rows, at most {ROWS_MAX:,} are read")
    types: dict[str, ColumnType] = {}
    values: dict[str, list[Any]] = {}
    for index, name in enumerate(header):
        types[name], values[name] = _column([line[index] for _, line in lines])
    keys = values[key]
    _check_keys(keys, [number for number, _ in lines], key)
    columns = {
        name: {
            row_key: value for row_key, value in zip(keys, column, strict=True) if value is not None
        }
        for name, column in values.items()
    }
    return Table(key, types, columns, sha256(text.encode()).hexdigest()[:DIGEST_LENGTH])


def _header(rows: list[list[str]], key: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The names of the columns, and the rows that hold something, with their line numbers."""
    if not rows or not any(rows[0]):
        raise TableError("its first line should name the columns")
    header = [name.strip() for name in rows[0]]
    for name in header:
        if not name:
            raise TableError("a column has no name")
        if header.count(name) > 1:
            raise TableError(f"two columns are called {name}")
    if key not in header:
        raise TableError(f"no column is called {key}; there are {', '.join(header)}")
    lines = []
    for number, row in enumerate(rows[1:], 2):
        if not row:
            continue
        if len(row) != len(header):
            raise TableError(f"row {number} has {len(row)} cells, not {len(header)}")
        lines.append((number, row))
    return header, lines


def _check_keys(keys: list[Any], numbers: list[int], key: str) -> None:
    seen: dict[Any, int] = {}
    for row_key, number in zip(keys, numbers, strict=True):
        if row_key is None:
            raise TableError(f"row {number} has no {key}")
        if row_key in seen:
            raise TableError(f"rows {seen[row_key]} and {number} have the same {key}, {row_key}")
        seen[row_key] = number


def _column(cells: list[str]) -> tuple[ColumnType, list[Any]]:
    filled = [cell for cell in cells if cell != ""]
    for kind, number in (("int", _int), ("float", _float)):
        try:
            numbers = [None if cell == "" else number(cell) for cell in cells]
        except ValueError:
            continue
        if filled:
            return ("int" if kind == "int" else "float"), numbers
    return "text", [cell or None for cell in cells]


def _int(cell: str) -> int:
    value = int(cell) if cell.strip().lstrip("+-").isascii() and "_" not in cell else None
    if value is None or not -INT64 <= value < INT64:
        raise ValueError
    return value


def _float(cell: str) -> float:
    value = float(cell) if "_" not in cell else float("nan")
    if not isfinite(value):
        raise ValueError
    return value

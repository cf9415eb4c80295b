"""What the columns of a CSV file mean: from a header to a converter of rows into events.

Owns the names understood unasked, the `--map` option and the conversion of cells by the declared
types of attributes. Must not know files, nor how an event is used.
Invariant: a cell that does not hold what its attribute's type demands makes no event.
"""

from __future__ import annotations

import base64
import csv
import difflib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from language.errors import HeadwaterError

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
CELL_SHOWN_MAX = 40  # characters of a bad cell that a message repeats

# An event type's attributes with the kinds of their values: int, float, text, bool or bytes.
Types = Mapping[str, Mapping[str, str]]
Event = dict[str, Any]

_TIMES = ("timestamp", "start", "end")
_COORDINATES = ("lat", "lon", "height", "x", "y", "z")
_RESERVED = ("type", "id", "source", "location", *_TIMES, "uncertainty", "position")
# Columns that serve a reserved name without being asked to, where no column has the name itself.
_UNASKED = {
    "timestamp": ("timestamp_ms",),
    "source": ("srcid", "station"),
    "type": ("attribute",),
}


# What other programs put between columns.
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


class ColumnError(HeadwaterError):
    """A header or a `--map` that does not say how rows become events."""


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """The meaning of `--map`: for a name the column that holds it, or a constant text."""

    columns: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)


def parse_map(texts: Iterable[str]) -> ColumnMap:
    """Read `name=column,name==constant,…`; a name given twice is a ColumnError.

    A pair with a comma in it is put in double quotes as in CSV.
    """
    columns: dict[str, str] = {}
    constants: dict[str, str] = {}
    for text in texts:
        for pair in next(csv.reader([text], skipinitialspace=True), []):
            name, equals, column = pair.partition("=")
            name = name.strip()
            if len(column) > 1 and column[0] == column[-1] == '"':
                column = column[1:-1]
            if not equals or not name or not column:
                raise ColumnError(f"`{pair}` is no mapping; write name=column or name==constant")
            if name in columns or name in constants:
                raise ColumnError(f"`{name}` is mapped twice")
            if column.startswith("="):
                constants[name] = column[1:]
            else:
                columns[name] = column
    return ColumnMap(columns, constants)


# --- cells ------------------------------------------------------------------------------------


def _number(cell: str) -> float:
    number = float(cell)
    # Only infinities and NaN differ from themselves.
    if number - number != 0.0 or "_" in cell or not cell.isascii():
        raise ValueError
    return number


def _integer(cell: str) -> int:
    number = int(cell)
    if not INT64_MIN <= number <= INT64_MAX or "_" in cell or not cell.isascii():
        raise ValueError
    return number


def _time(cell: str) -> int | str:
    """Milliseconds; any other text is left as it is, to be read as an ISO 8601 time."""
    try:
        return _integer(cell)
    except ValueError:
        return cell.strip()


_TRUTH = {"true": True, "1": True, "false": False, "0": False}


def _truth(cell: str) -> bool:
    return _TRUTH[cell.strip().lower()]


def _octets(cell: str) -> bytes:
    return base64.b64decode(cell, validate=True)


def _place(cell: str) -> Any:
    """A position as JSON writes it; whether it is one is judged where the event enters."""
    return json.loads(cell)


_READ: dict[str, tuple[Callable[[str], Any], str]] = {
    "int": (_integer, "an integer of 64 bits"),
    "float": (_number, "a number"),
    "text": (str, "a text"),
    "bool": (_truth, "true, false, 1 or 0"),
    "bytes": (_octets, "base64"),
    "time": (_time, "a time"),
    "position": (_place, "a position in JSON, [lat, lon]"),
}
_RESERVED_KINDS = {
    **dict.fromkeys(_RESERVED, "text"),
    **dict.fromkeys(_TIMES, "time"),
    "uncertainty": "int",
    "position": "position",
}

# What reading a cell may raise: no number or base64, no truth value, a position nested too deep.
_CELL_ERRORS = (ValueError, KeyError, RecursionError)


def _quoted(cell: str) -> str:
    return f"`{cell if len(cell) <= CELL_SHOWN_MAX else cell[:CELL_SHOWN_MAX] + '…'}`"


# --- rows -------------------------------------------------------------------------------------


# Where a value stands, its name in the event, how it is read, and what the cell should hold.
_Cell = tuple[int, str, Callable[[str], Any], str]


class RowConverter:
    """Turns the rows of one file into events, each as a dict with native values.

    Built from the header, the declared types and the mapping; raises ColumnError where these do
    not fit together.
    """

    def __init__(self, header: Sequence[str], types: Types, mapping: ColumnMap) -> None:
        self._header = [name.strip() for name in header]
        self._types = types
        self._mapping = mapping
        self._attributes = {name for declared in types.values() for name in declared}
        self._check()
        self._columns = {name: index for index, name in enumerate(self._header)}
        index_of = {name: self._column_of(name) for name in (*_RESERVED, *_COORDINATES)}
        self._type_index = index_of["type"]
        self._type_constant = mapping.constants.get("type", "")
        if self._type_index is None and not self._type_constant:
            raise ColumnError(
                "no column names the event type; --map type=COLUMN or type==Name does "
                f"(found: {self._listed()})"
            )
        if not any(index_of[name] is not None or name in mapping.constants for name in _TIMES):
            raise ColumnError(
                f"no column gives the time; --map timestamp=COLUMN does (found: {self._listed()})"
            )
        self._common = [
            (index, name, *_READ[_RESERVED_KINDS[name]])
            for name in _RESERVED[1:]
            if (index := index_of[name]) is not None
        ]
        self._coordinates = (
            () if index_of["position"] is not None else self._coordinates_of(index_of)
        )
        metric = index_of["x"] is not None
        self._position = _metric_position if metric else _degrees_position
        self._constants = {
            name: self._constant(name, _RESERVED_KINDS[name])
            for name in _RESERVED[1:]
            if name in mapping.constants
        }
        self._by_type: dict[str, tuple[Event, list[_Cell]]] = {
            name: self._recipe(name, types[name]) for name in types
        }

    def convert(self, row: Sequence[str]) -> Event | str | None:
        """The row's event, the reason why it holds none, or None where its type is undeclared.

        `type_of` names the undeclared type.
        """
        if len(row) != len(self._header):
            return f"{len(row)} cells where the header names {len(self._header)} columns"
        type_index = self._type_index
        type_name = self._type_constant if type_index is None else row[type_index]
        recipe = self._by_type.get(type_name)
        if recipe is None:
            return None if type_name else "the cell that names the event type is empty"
        constants, cells = recipe
        event = constants.copy()
        text = expected = ""
        index = 0
        try:
            for index, name, read, expected in cells:  # noqa: B007  (the message needs it)
                text = row[index]
                if text:
                    event[name] = read(text)
        except _CELL_ERRORS:
            return f"column {self._header[index]}: {_quoted(text)} is not {expected}"
        if self._coordinates:
            texts = tuple([row[index] for index in self._coordinates])
            if any(texts):
                try:
                    event["position"] = self._position(texts)
                except ValueError:
                    return self._no_position(texts)
        return event

    def type_of(self, row: Sequence[str]) -> str:
        """The event type that a row of the right length names."""
        return self._type_constant if self._type_index is None else row[self._type_index]

    def _no_position(self, texts: Sequence[str]) -> str:
        names = " and ".join(self._header[index] for index in self._coordinates)
        return f"columns {names}: {', '.join(map(_quoted, texts))} is not a position"

    # --- building -----------------------------------------------------------------------------

    def _check(self) -> None:
        if self._header in ([], [""]):
            raise ColumnError("the header row is empty")
        only = self._header[0] if len(self._header) == 1 else ""
        for separator, name in _OTHER_SEPARATORS.items():
            if separator in only and only not in self._mapping.columns.values():
                raise ColumnError(f"the columns are parted by {name}; write commas")
        doubled = [name for name, count in Counter(self._header).items() if name and count > 1]
        if doubled:
            raise ColumnError(f"the header names {_quoted(doubled[0])} twice")
        names = [*_RESERVED, *_COORDINATES, *sorted(self._attributes)]
        for name in (*self._mapping.columns, *self._mapping.constants):
            if name not in names:
                raise ColumnError(f"--map {name}: no such name{_nearest(name, names)}")
        for name, column in self._mapping.columns.items():
            if column not in self._header:
                near = _nearest(column, self._header)
                raise ColumnError(f"--map {name}={column}: the header has no such column{near}")
        for name, constant in self._mapping.constants.items():
            if name in _COORDINATES and name not in self._attributes:
                raise ColumnError(f"--map {name}: a coordinate cannot be a constant")
            if name == "type" and constant not in self._types:
                near = _nearest(constant, sorted(self._types))
                raise ColumnError(
                    f"--map type: no event type {_quoted(constant)} is declared{near}"
                )

    def _listed(self) -> str:
        return ", ".join(self._header)[:200]

    def _column_of(self, name: str) -> int | None:
        if name in self._mapping.columns:
            return self._columns[self._mapping.columns[name]]
        if name in self._mapping.constants:
            return None
        if name in ("height", "x", "y", "z"):  # too common as names of something else
            return None
        taken = set(self._mapping.columns.values())
        for candidate in (name, *_UNASKED.get(name, ())):
            if candidate == "srcid" and candidate in self._attributes:
                continue  # as in JSON
            if candidate in self._columns and candidate not in taken:
                return self._columns[candidate]
        return None

    def _coordinates_of(self, found: Mapping[str, int | None]) -> tuple[int, ...]:
        """The columns of the coordinates, in the order in which a position lists them."""
        metric = found["x"] is not None or found["y"] is not None
        if metric and {"lat", "lon"} & set(self._mapping.columns):
            raise ColumnError("--map gives both x, y and lat, lon; a position is one or the other")
        names = ("x", "y", "z") if metric else ("lat", "lon", "height")
        pair = [index for name in names[:2] if (index := found[name]) is not None]
        third = found[names[2]]
        if len(pair) == 2:
            return tuple(pair) if third is None else (*pair, third)
        for name in names:
            if name in self._mapping.columns and name not in self._attributes:
                raise ColumnError(f"--map {name}: a position needs both {names[0]} and {names[1]}")
        return ()

    def _constant(self, name: str, kind: str) -> Any:
        read, expected = _READ[kind]
        try:
            return read(self._mapping.constants[name])
        except _CELL_ERRORS:
            shown = _quoted(self._mapping.constants[name])
            raise ColumnError(f"--map {name}: {shown} is not {expected}") from None

    def _recipe(self, type_name: str, declared: Mapping[str, str]) -> tuple[Event, list[_Cell]]:
        """Return what every event of the type holds alike, and the cells that differ."""
        constants: Event = {"type": type_name, **self._constants}
        cells = self._common.copy()
        mapped_away = set(self._mapping.columns.values())
        for name, kind in declared.items():
            if name in self._mapping.constants:
                constants[name] = self._constant(name, kind)
            elif name in self._mapping.columns:
                cells.append((self._columns[self._mapping.columns[name]], name, *_READ[kind]))
            elif name in self._columns and name not in mapped_away:
                cells.append((self._columns[name], name, *_READ[kind]))
        return constants, cells


# A station's position is the same in all of its rows, and texts repeat.
@lru_cache(maxsize=4_096)
def _degrees_position(texts: tuple[str, ...]) -> list[float]:
    if len(texts) == 3 and not texts[2]:
        texts = texts[:2]
    return [_number(text) for text in texts]


@lru_cache(maxsize=4_096)
def _metric_position(texts: tuple[str, ...]) -> dict[str, float]:
    position = {"x": _number(texts[0]), "y": _number(texts[1])}
    if len(texts) == 3 and texts[2]:
        position["z"] = _number(texts[2])
    return position


def _nearest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else f" (known: {', '.join(known)[:200]})"

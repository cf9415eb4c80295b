"""The columns of a page: which there are, of which type, and what each takes of a result.

Owns this table. Must not know Arrow or how a page is kept. Invariant: every column is decided by
one row and by nothing around it.

A value that a subscription assigns is a column of its own under the value's name; where that is a
column's name already, under `values.NAME`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec

Kind = Literal["int", "float", "bool", "text", "time", "json"]
"""How a column is typed: `time` is in ms where a result has it, `json` a text that is JSON."""

_NOTHING: Final = msgspec.Raw(b"{}")
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
# Of years 1 to 9999, which the dates of most programs can show.
TIME_MIN_MS: Final = -62_135_596_800_000
TIME_MAX_MS: Final = 253_402_300_799_999


class Parts(msgspec.Struct, gc=False):
    """A result, taken apart as far as columns need; group, values and events stay as they are."""

    start: Any = None
    end: Any = None
    detected_at: Any = None
    certainty: Any = None
    group: msgspec.Raw = _NOTHING
    values: msgspec.Raw = _NOTHING
    events: msgspec.Raw = _NOTHING


class _Location(msgspec.Struct, gc=False):
    location: Any = None


parts_of: Final = msgspec.json.Decoder(Parts).decode
values_of: Final = msgspec.json.Decoder(dict[str, Any]).decode
_location_of: Final = msgspec.json.Decoder(_Location).decode


def location_of(group: bytes, values: bytes) -> str | None:
    """Return the location of a result: that of the group, else as the subscription assigned it."""
    for held in (group, values):
        location = _location_of(held).location
        if isinstance(location, str):
            return location
    return None


class PageColumn(msgspec.Struct, frozen=True):
    """A column: an attribute of the row itself, or of the parts of the result in it.

    Without either it is `broker` or `location`, which more than one attribute decides.
    """

    kind: Kind
    of_row: str = ""
    of_parts: str = ""


# `offset` and `end` are words that query languages
# keep for themselves: beside them stand columns that can be asked for without quotes.
COLUMNS: Final[Mapping[str, PageColumn]] = MappingProxyType(
    {
        "offset": PageColumn("int", of_row="offset"),
        "id": PageColumn("text", of_row="id"),
        "subscription": PageColumn("text", of_row="subscription"),
        "subscriber": PageColumn("text", of_row="subscriber"),
        "actor": PageColumn("text", of_row="actor"),
        "end": PageColumn("int", of_row="end_ms"),
        "payload": PageColumn("json", of_row="payload"),
        "log_offset": PageColumn("int", of_row="offset"),
        "broker": PageColumn("text"),
        "started_at": PageColumn("time", of_parts="start"),
        "ended_at": PageColumn("time", of_row="end_ms"),
        "detected_at": PageColumn("time", of_parts="detected_at"),
        "certainty": PageColumn("text", of_parts="certainty"),
        "location": PageColumn("text"),
        "group": PageColumn("json", of_parts="group"),
        "values": PageColumn("json", of_parts="values"),
        "events": PageColumn("json", of_parts="events"),
    }
)
# Given where nobody names columns: the first seven are those of releases before there were others.
USUAL: Final = (
    "offset", "id", "subscription", "subscriber", "actor", "end", "payload",
    "log_offset", "broker", "started_at", "ended_at", "certainty", "values",
)  # fmt: skip


class PageSelection(msgspec.Struct, frozen=True):
    """The choice of a page: columns, of these subscriptions alone (of all where none is named).

    `values` are (column, value, kind) of what a subscription assigns; `packed` is whether the page
    is compressed. Two selections that are equal show the same.
    """

    columns: tuple[str, ...] = USUAL
    subscriptions: tuple[str, ...] = ()
    values: tuple[tuple[str, str, Kind], ...] = ()
    packed: bool = False


def value_columns(types: Mapping[str, str]) -> dict[str, tuple[str, str, Kind]]:
    """(column, value, kind) by column of values of these types, as the language calls them.

    What no column type fits, such as a position or what a table gives, is JSON.
    """
    kinds: Mapping[str, Kind] = {"int": "int", "float": "float", "bool": "bool", "text": "text"}
    named: dict[str, tuple[str, str, Kind]] = {}
    for value, of_language in types.items():
        column = f"values.{value}" if value in COLUMNS else value
        named[column] = (column, value, kinds.get(of_language, "json"))
    return named


def fitted(value: Any, kind: Kind) -> Any:
    """A value as its column has it; None where it is of another type, as of an earlier `seq`."""
    if kind == "json":
        return None if value is None else msgspec.json.encode(value)
    if kind == "text":
        return value if isinstance(value, str) else None
    if kind == "bool":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if kind == "float":
        return _float(value)
    bounds = (TIME_MIN_MS, TIME_MAX_MS) if kind == "time" else (_INT_MIN, _INT_MAX)
    return value if isinstance(value, int) and bounds[0] <= value <= bounds[1] else None


def _float(value: float) -> float | None:
    try:
        return float(value)
    except OverflowError:  # a whole number of more digits than there are
        return None

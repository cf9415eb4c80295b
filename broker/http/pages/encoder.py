"""The making of a page: rows into a stream of Arrow's IPC.

Owns all that is asked of pyarrow, which a broker need not have. Must not know which pages are kept.
Invariant: of a row nothing is taken apart that no asked column needs.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

from broker.http.pages.columns import (
    COLUMNS,
    TIME_MAX_MS,
    TIME_MIN_MS,
    Kind,
    PageSelection,
    Parts,
    fitted,
    location_of,
    parts_of,
    values_of,
)
from broker.store import Row


class MissingLibraryError(Exception):
    """A form needs a library that is not installed; the text says which."""


class PageOrigin:
    """The range and the log that a page is of."""

    def __init__(self, epoch: str, begin: int, end: int, broker: str = "") -> None:
        self.epoch = epoch
        self.begin = begin
        self.end = end
        self.broker = broker


def make_page(origin: PageOrigin, rows: Sequence[Row], selection: PageSelection) -> bytes:
    """Return the page as a stream of one batch. Raises MissingLibraryError without pyarrow."""
    pa = _library()
    wanted = frozenset(selection.subscriptions)
    if wanted:
        rows = [row for row in rows if row.subscription in wanted]
    types = _types(pa)
    fields, arrays = [], []
    for name, kind, values in _columns(origin, rows, selection):
        fields.append((name, types[kind]))
        arrays.append(_array(pa, values, kind, types[kind]))
    about = {"epoch": origin.epoch, "from": str(origin.begin), "to": str(origin.end)}
    schema = pa.schema(fields, metadata=about)
    packs = selection.packed and pa.Codec.is_available("lz4")
    options = pa.ipc.IpcWriteOptions(compression="lz4" if packs else None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    return bytes(sink.getvalue())


def _columns(
    origin: PageOrigin, rows: Sequence[Row], selection: PageSelection
) -> list[tuple[str, Kind, list[Any]]]:
    """(name, kind, values) of each asked column, in the order in which they were asked."""
    named = {column: (value, kind) for column, value, kind in selection.values}
    result = _Results(rows)
    made: list[tuple[str, Kind, list[Any]]] = []
    for name in selection.columns:
        if name in named:
            value, kind = named[name]
            made.append((name, kind, [fitted(each.get(value), kind) for each in result.values]))
            continue
        column = COLUMNS[name]
        if column.of_row:
            values = list(map(attrgetter(column.of_row), rows))
        elif name == "group":
            values = result.groups
        elif name in ("values", "events"):
            values = result.texts(name)
        elif column.of_parts:
            values = list(map(attrgetter(column.of_parts), result.parts))
        elif name == "location":
            values = result.locations()
        else:
            values = [origin.broker] * len(rows)
        made.append((name, column.kind, values))
    return made


class _Results:
    """The results of some rows, each taken apart at most once and only when that is needed."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    @cached_property
    def parts(self) -> list[Parts]:
        """Each in its parts."""
        return [parts_of(row.payload) for row in self._rows]

    @cached_property
    def values(self) -> list[dict[str, Any]]:
        """The values of each."""
        return [values_of(each.values) for each in self.parts]

    @cached_property
    def groups(self) -> list[bytes]:
        """The group of each as it stands there, which two columns need."""
        return self.texts("group")

    def texts(self, name: str) -> list[bytes]:
        """A part of each that is JSON, as it stands there."""
        return list(map(bytes, map(attrgetter(name), self.parts)))

    def locations(self) -> list[str | None]:
        """The location of each; most results of a page are of few groups."""
        by_group = {group: location_of(group, b"{}") for group in set(self.groups)}
        locations = list(map(by_group.__getitem__, self.groups))
        if None in by_group.values():
            for place, location in enumerate(locations):
                if location is None:
                    locations[place] = location_of(b"{}", bytes(self.parts[place].values))
        return locations


def _array(pa: Any, values: list[Any], kind: Kind, of_arrow: Any) -> Any:
    """An array of a column. Where a value is not of its kind, each is looked at by itself."""
    given = pa.timestamp("ms", tz="UTC") if kind == "time" else of_arrow
    try:
        whole = pa.array(values, pa.int64() if kind == "time" else given)
    except (pa.ArrowException, TypeError, OverflowError):
        return pa.array([fitted(value, kind) for value in values], given).cast(of_arrow)
    if kind != "time":
        return whole
    # Times are ms in results and µs in a page, so that the cast fails only far from any calendar.
    ends = pa.compute.min_max(whole).as_py().values()
    if any(time is not None and not TIME_MIN_MS <= time <= TIME_MAX_MS for time in ends):
        return pa.array([fitted(value, kind) for value in values], given).cast(of_arrow)
    return whole.cast(given).cast(of_arrow)


def _types(pa: Any) -> Mapping[Kind, Any]:
    kinds: Mapping[Kind, Callable[[], Any]] = {
        "int": pa.int64,
        "float": pa.float64,
        "bool": pa.bool_,
        "text": pa.string,
        "json": pa.string,
    }
    # In µs, as Spark and most databases have it, so that nothing has to be converted on the way.
    return {kind: make() for kind, make in kinds.items()} | {"time": pa.timestamp("us", tz="UTC")}


_MISSING: Final = "pyarrow is not installed beside this broker; ask for format=msgpack or json"


def _library() -> Any:
    try:
        import pyarrow as pa  # type: ignore[import-not-found, import-untyped, unused-ignore]
        import pyarrow.compute  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise MissingLibraryError(_MISSING) from None
    return pa

"""Results on their way from the engine to the sinks: many in one row.

Owns their columns. Must not know states, sinks or how results were found. Invariant: `payload` is
the whole result as JSON, and each other column is what stands in it.

What Spark takes a row at a time from its stateful operator costs more than the result itself did,
and as much again where each column is then looked for in the JSON. Here columns are made where the
result is at hand, and go through Spark as they are. A result becomes JSON once, and its parts are
cut out of that.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]
from msgspec import Raw, Struct, json

from server.source.garbage import look_seldom
from server.source.rows import COLUMNS, SPARK_COLUMNS

RESULTS_MAX: Final = 10_000  # in one row
BYTES_MAX: Final = 4 * 2**20  # of results as JSON in one row, but for one that is larger
NAMES: Final = (
    *("id", "subscription", "subscriber", "actor", "start", "end", "certainty", "location"),
    *("group", "values", "events", "payload"),
)
SHOWN: Final = ", ".join(SPARK_COLUMNS[name] for name in NAMES)
_TIMES: Final = frozenset(("start", "end"))
_NULL: Final = b"null"
_NOTHING: Final = Raw(_NULL)
_CUT: Final = ("group", "values", "events")  # JSON, as it stands in a result
_JSON: Final = frozenset((*_CUT, "payload"))
_encode = json.Encoder().encode


class _Parts(Struct, gc=False):
    """The parts of a result that are columns as they stand in it."""

    group: Raw = _NOTHING
    values: Raw = _NOTHING
    events: Raw = _NOTHING


class _Location(Struct, gc=False):
    location: Any = None


_parts_of = json.Decoder(_Parts).decode
_location_of = json.Decoder(_Location).decode


def packed_results(results: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield results, in the columns of `SHOWN`, as values of limited size."""
    for packed, payloads in _bounded(results):
        yield _stream(_batch(packed, payloads))


def packed_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield rows that are no results as values of limited size: each as JSON in `payload`."""
    for _, payloads in _bounded(rows):
        array = pa.array(payloads, pa.string())
        yield _stream(pa.RecordBatch.from_arrays([array], names=["payload"]))


def unpacked_results(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: takes rows of `results`, and gives the columns of `SHOWN`."""
    look_seldom()
    for batch in batches:
        for value in batch.column(0):
            with pa.ipc.open_stream(value.as_buffer()) as stream:
                yield from stream


def _bounded(
    rows: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[list[Mapping[str, Any]], list[bytes]]]:
    """Yield as many rows as one value may hold, and each of them as JSON."""
    packed: list[Mapping[str, Any]] = []
    payloads: list[bytes] = []
    size = 0
    for row in rows:
        payload = _encode(row)
        size += len(payload)
        if packed and (size > BYTES_MAX or len(packed) == RESULTS_MAX):
            yield packed, payloads
            packed, payloads, size = [], [], len(payload)
        packed.append(row)
        payloads.append(payload)
    if packed:
        yield packed, payloads


def _batch(results: Sequence[Mapping[str, Any]], payloads: Sequence[bytes]) -> pa.RecordBatch:
    parts = list(map(_parts_of, payloads))
    columns: dict[str, Sequence[Any]] = {name: _texts(parts, name) for name in _CUT}
    columns["location"] = _locations(columns["group"], columns["values"])
    columns["payload"] = payloads
    arrays = []
    for name in NAMES:
        values = columns.get(name)
        if values is None:
            values = [result.get(name) for result in results]
        if name in _TIMES:
            values = [value_ms * 1000 for value_ms in values]
        # What was encoded here is UTF-8, and need not be looked at for that.
        array = pa.array(values, pa.binary()).view(pa.string()) if name in _JSON else None
        arrays.append(pa.array(values, COLUMNS[name]) if array is None else array)
    return pa.RecordBatch.from_arrays(arrays, names=list(NAMES))


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def _texts(parts: Sequence[_Parts], name: str) -> Sequence[bytes | None]:
    """Return one part of each result as it stands there; null is none."""
    texts = list(map(bytes, map(attrgetter(name), parts)))
    return [None if text == _NULL else text for text in texts] if _NULL in texts else texts


def _locations(groups: Sequence[bytes | None], values: Sequence[bytes | None]) -> list[str | None]:
    """Return the location of each group, else the one that was assigned; groups are few."""
    remembered: dict[bytes | None, str | None] = {}
    locations = []
    for group, assigned in zip(groups, values, strict=True):
        if group not in remembered:
            remembered[group] = _location(group)
        location = remembered[group]
        locations.append(_location(assigned) if location is None else location)
    return locations


def _location(part: bytes | None) -> str | None:
    if part is None or not part.startswith(b"{"):
        return None
    place = _location_of(part).location
    return place if place is None or isinstance(place, str) else _encode(place).decode()

"""Results on their way from the engine to the sinks: many in one row.

Owns their columns. Must not know states, sinks or how results were found. Invariant: `payload` is
the whole result as JSON, and each other column is what stands in it.

What Spark takes a row at a time from its stateful operator costs more than the result itself did,
and as much again where each column is then looked for in the JSON. Here columns are made where the
result is at hand, and go through Spark as they are.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]
from msgspec import Raw, json

from server.source.rows import COLUMNS, CUT, SPARK_COLUMNS

RESULTS_MAX: Final = 10_000  # in one row
NAMES: Final = (
    *("id", "subscription", "subscriber", "actor", "start", "end", "certainty", "location"),
    *("group", "values", "events", "payload"),
)
SHOWN: Final = ", ".join(SPARK_COLUMNS[name] for name in NAMES)
_TIMES: Final = frozenset(("start", "end"))
_encode = json.Encoder().encode


def packed_results(results: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the results as one value, in the columns of `SHOWN`."""
    parts = {name: [_part(result, name) for result in results] for name in NAMES if name in CUT}
    columns: dict[str, list[Any]] = parts | {
        "location": [_location(result) for result in results],
        "payload": [
            _whole(result, dict(zip(parts, cuts, strict=True)))
            for result, *cuts in zip(results, *parts.values(), strict=True)
        ],
    }
    arrays = []
    for name in NAMES:
        values = columns.get(name)
        if values is None:
            values = [result.get(name) for result in results]
        if name in _TIMES:
            values = [value_ms * 1000 for value_ms in values]
        arrays.append(pa.array(values, COLUMNS[name]))
    return _stream(pa.RecordBatch.from_arrays(arrays, names=list(NAMES)))


def packed_rows(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return rows that are no results as one value: each as JSON in `payload`."""
    payloads = pa.array([_encode(row) for row in rows], pa.string())
    return _stream(pa.RecordBatch.from_arrays([payloads], names=["payload"]))


def unpacked_results(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: takes rows of `results`, and gives the columns of `SHOWN`."""
    for batch in batches:
        for value in batch.column(0):
            with pa.ipc.open_stream(value.as_buffer()) as stream:
                yield from stream


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def _part(result: Mapping[str, Any], name: str) -> bytes | None:
    part = result.get(name)
    return None if part is None else _encode(part)


def _whole(result: Mapping[str, Any], parts: Mapping[str, bytes | None]) -> bytes:
    """Return a result as JSON, whose parts are that already."""
    done = {name: Raw(part) for name, part in parts.items() if part is not None}
    return _encode({**result, **done})


def _location(result: Mapping[str, Any]) -> str | None:
    """Return that of the group, else the one that was assigned."""
    for name in ("group", "values"):
        part = result.get(name)
        place = part.get("location") if isinstance(part, Mapping) else None
        if place is not None:
            return place if isinstance(place, str) else _encode(place).decode()
    return None

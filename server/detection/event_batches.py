"""Events on their way to the engine: many in one row.

Owns their form in Spark's shuffle. Must not know states or watermarks. Invariant: what was packed
comes out as it was, in any order; a row without a time is passed over and told.

A row costs Spark several times what the engine needs for an event: so the rows of a page are one
row for each key. That is done where they are read, in as many processes as there are. Spark then
cannot tell which of them are late: the engine of a key does, from its first run on. Before that
nothing of the key is late, as nothing of it was decided.

The mark of the batch goes along: up to when nothing comes behind it. Spark's watermark is that of
the batch before, so that by it each event would wait in the state for the next batch.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]

from server.detection.firsts import Firsts
from server.detection.mapping import UsedParts, event_of, type_of
from server.detection.program import DetectionProgram
from server.detection.shards import Shards
from server.detection.times import order_of
from server.source.garbage import look_seldom
from server.source.log import tell

PACKED: Final = "_key string, mark_ms bigint, events binary"
_SCHEMA: Final = pa.schema(
    [("_key", pa.string()), ("mark_ms", pa.int64()), ("events", pa.binary())]
)
_decode = msgspec.json.decode
_decode_result = msgspec.json.Decoder(UsedParts).decode
_encode = msgspec.msgpack.Encoder().encode
_events = msgspec.msgpack.Decoder(list[dict[str, Any]]).decode


class Packing:
    """For `mapInArrow`: from rows of `_key`, `payload`, `broker` and `mark_ms` to `PACKED`."""

    def __init__(self, program: DetectionProgram | Firsts) -> None:
        self._program = program

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row for each key of a batch."""
        look_seldom()
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("_key", "payload", "broker"))
            rows: dict[str, list[tuple[str, str | None]]] = {}
            for key, payload, broker in zip(*columns, strict=True):
                rows.setdefault(key, []).append((payload, broker))
            packed = [pack(self._program, pairs) for pairs in rows.values()]
            yield _packed(batch, list(rows), packed)


class ShardPacking:
    """The same for shards, whose keys are in the events: `_key` of the rows does not count."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row for each shard of a batch."""
        look_seldom()
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("payload", "broker"))
            shards: dict[str, list[Mapping[str, Any]]] = {}
            for event in events_of(self._shards.program, zip(*columns, strict=True)):
                for key in self._shards.keys(event):
                    shards.setdefault(key, []).append(event)
            packed = [_encode(events) for events in shards.values()]
            yield _packed(batch, list(shards), packed)


def _packed(batch: pa.RecordBatch, keys: list[str], events: list[bytes]) -> pa.RecordBatch:
    """Return what was packed of a batch, whose rows have one mark."""
    marks = batch.column("mark_ms")
    mark_ms = marks[0].as_py() if len(marks) else None
    arrays = [
        pa.array(keys, pa.string()),
        pa.array([mark_ms] * len(keys), pa.int64()),
        pa.array(events, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def pack(program: DetectionProgram | Firsts, rows: Iterable[tuple[str, str | None]]) -> bytes:
    """The events of (payload, broker) of rows."""
    return _encode(list(events_of(program, rows)))


def events_of(
    program: DetectionProgram | Firsts, rows: Iterable[tuple[str, str | None]]
) -> Iterator[Mapping[str, Any]]:
    """Yield the events of (payload, broker) of rows; one without a time is reported.

    Where the program says what it declares, results of other types are passed over, as an engine
    passes them over, and the rest of it need not be taken along.
    """
    raw, types, declared = program.raw, program.types, program.declared
    for payload, broker in rows:
        event: Mapping[str, Any]
        if raw:
            event = _decode(payload)
        else:
            result = _decode_result(payload)
            kind = type_of(result, types)
            wanted = None
            if declared is not None:
                wanted = declared.get(kind)
                if wanted is None:
                    continue
            event = event_of(result, broker, kind, wanted)
            if type(result.start) is int and type(result.end) is int:
                yield event
                continue
        try:
            order_of(event)
        except (TypeError, ValueError):
            tell(f"an event without a time was passed over: {payload[:200]}")
        else:
            yield event


def unpacked(data: bytes) -> list[dict[str, Any]]:
    """Return the events that were packed."""
    return _events(data)

"""The forms in which a range of the log is handed out.

Owns the three forms. Must not know how the range was read. Invariant: the same rows are the same
bytes, whenever and by whatever version of a library they are written, but for Arrow's.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from broker.store import Row

Render = Callable[[str, int, int, Sequence[Row]], bytes]


class FormatMissingError(Exception):
    """A form needs a library that is not installed; the text says which."""


def as_json(epoch: str, begin: int, end: int, rows: Sequence[Row]) -> bytes:
    """One object; each result is, byte for byte, what was published."""
    return msgspec.json.encode(
        {
            "epoch": epoch,
            "from": begin,
            "to": end,
            "rows": [{"offset": row.offset, "result": msgspec.Raw(row.payload)} for row in rows],
        }
    )


def as_msgpack(epoch: str, begin: int, end: int, rows: Sequence[Row]) -> bytes:
    """The same object in msgpack."""
    decode = msgspec.json.Decoder().decode
    return msgspec.msgpack.encode(
        {
            "epoch": epoch,
            "from": begin,
            "to": end,
            "rows": [{"offset": row.offset, "result": decode(row.payload)} for row in rows],
        }
    )


def as_arrow(epoch: str, begin: int, end: int, rows: Sequence[Row]) -> bytes:
    """A stream of Arrow's IPC: one batch, with the whole result as JSON in `payload`."""
    try:
        import pyarrow as pa  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise FormatMissingError(
            "pyarrow is not installed beside this broker; ask for format=msgpack or json"
        ) from None
    columns: dict[str, tuple[Any, list[Any]]] = {
        "offset": (pa.int64(), [row.offset for row in rows]),
        "id": (pa.string(), [row.id for row in rows]),
        "subscription": (pa.string(), [row.subscription for row in rows]),
        "subscriber": (pa.string(), [row.subscriber for row in rows]),
        "actor": (pa.string(), [row.actor for row in rows]),
        "end": (pa.int64(), [row.end_ms for row in rows]),
        "payload": (pa.string(), [row.payload.decode() for row in rows]),
    }
    told = {"epoch": epoch, "from": str(begin), "to": str(end)}
    schema = pa.schema([(name, kind) for name, (kind, _) in columns.items()], metadata=told)
    arrays = [pa.array(values, kind) for kind, values in columns.values()]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    return bytes(sink.getvalue())


FORMATS: Final[Mapping[str, tuple[str, Render]]] = MappingProxyType(
    {
        "json": ("application/json", as_json),
        "msgpack": ("application/msgpack", as_msgpack),
        "arrow": ("application/vnd.apache.arrow.stream", as_arrow),
    }
)

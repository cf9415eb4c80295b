"""The forms in which a range of the log is handed out.

Owns those of whole results; pages in columns have a room of their own, `pages`. Must not know how
the range was read. Invariant: the same rows are the same bytes, whenever and by whatever version of
a library they are written.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from broker.store import Row

Render = Callable[[str, int, int, Sequence[Row]], bytes]


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


TEXTUAL: Final[Mapping[str, tuple[str, Render]]] = MappingProxyType(
    {
        "json": ("application/json", as_json),
        "msgpack": ("application/msgpack", as_msgpack),
    }
)
ARROW: Final = "arrow"
ARROW_TYPE: Final = "application/vnd.apache.arrow.stream"
FORMATS: Final = (*TEXTUAL, ARROW)

"""From a page of whole results to rows of Spark.

Owns the columns of the source and the forms in which whole results come. Must not know HTTP, nor
pages in columns, which are `columnar`. Invariant: the same page gives the same rows in every form;
`payload`, and the parts of it that are JSON, byte for byte.

`end` is the event time of a result. Times out of the range that Spark can show are null.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]

TIME: Final = pa.timestamp("us", tz="UTC")
COLUMNS: Final[dict[str, pa.DataType]] = {
    "broker": pa.string(),
    "epoch": pa.string(),
    "offset": pa.int64(),
    "id": pa.string(),
    "subscription": pa.string(),
    "subscriber": pa.string(),
    "actor": pa.string(),
    "start": TIME,
    "end": TIME,
    "detected_at": TIME,
    "certainty": pa.string(),
    "location": pa.string(),
    "group": pa.string(),
    "values": pa.string(),
    "events": pa.string(),
    "payload": pa.string(),
}
# Beside these in streams by event time: where the watermark stands behind the batch of a row.
MARK: Final = "settled"
_SPARK: Final = {pa.string(): "string", pa.int64(): "bigint", TIME: "timestamp"}
SPARK_COLUMNS: Final = {
    name: f"`{name}` {_SPARK[kind]}" for name, kind in (COLUMNS | {MARK: TIME}).items()
}
SCHEMA: Final = ", ".join(SPARK_COLUMNS[name] for name in COLUMNS)
MARKED_SCHEMA: Final = f"{SCHEMA}, {SPARK_COLUMNS[MARK]}"

# Of years 1 to 9999, which Python's and Spark's dates can show.
_TIME_MIN_MS: Final = -62_135_596_800_000
_TIME_MAX_MS: Final = 253_402_300_799_999

# Parts of a result that are columns as they stand there.
CUT: Final = frozenset(("group", "values", "events"))
_RAW: Final = "\0"  # before the name of such a part's text; no result has a key like that
_BLANK: Final = re.compile(r"[ \t\r\n]*")


class Page(NamedTuple):
    """Columns of a page: what stands in the log beside each result, and the result as JSON."""

    offsets: Sequence[int]
    subscriptions: Sequence[str]
    payloads: Sequence[str]
    ends_ms: Sequence[int]

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return len(self.offsets)

    def before(self, late_ms: int) -> list[int]:
        """The offsets of what ends before a time."""
        ends = zip(self.offsets, self.ends_ms, strict=True)
        return [offset for offset, end_ms in ends if end_ms < late_ms]

    def moved(self, by: int) -> "Page":
        """The same rows at other offsets."""
        return self._replace(offsets=[offset + by for offset in self.offsets])

    def shown(self, origin: "RowOrigin", columns: Sequence[str]) -> pa.RecordBatch:
        """The rows, of these columns in this order."""
        return batch_of(self, origin, columns)


def page_of(form: str, data: bytes) -> Page:
    """The page that a broker answered in `form`. Raises ValueError where it is none."""
    return _READERS[form](data)


def has_msgpack() -> bool:
    """Tell whether pages in msgpack can be read here: an executor may not have msgspec."""
    try:
        import msgspec  # noqa: F401
    except ImportError:
        return False
    return True


def _from_arrow(data: bytes) -> Page:
    table = pa.ipc.open_stream(data).read_all()
    return Page(
        table.column("offset").to_pylist(),
        table.column("subscription").to_pylist(),
        table.column("payload").to_pylist(),
        table.column("end").to_pylist(),
    )


def _from_msgpack(data: bytes) -> Page:
    import msgspec

    rows = msgspec.msgpack.decode(data)["rows"]
    encode = msgspec.json.encode
    return Page(
        [row["offset"] for row in rows],
        [str(row["result"].get("subscription", "")) for row in rows],
        [encode(row["result"]).decode() for row in rows],
        [row["result"]["end"] for row in rows],
    )


def _from_json(data: bytes) -> Page:
    """Each result is cut out as it stands there: numbers keep the form that the broker gave."""
    text = data.decode()
    offsets: list[int] = []
    subscriptions: list[str] = []
    payloads: list[str] = []
    ends_ms: list[int] = []
    decode = json.JSONDecoder().raw_decode
    index = text.index('"rows":[') + len('"rows":[')
    while text[index] != "]":
        begin = text.index(',"result":', index)
        offsets.append(int(text[text.index(":", index) + 1 : begin]))
        begin += len(',"result":')
        result, stop = decode(text, begin)
        subscriptions.append(str(result.get("subscription", "")))
        payloads.append(text[begin:stop])
        ends_ms.append(result["end"])
        index = stop + 1  # behind the closing brace of the row
        if text[index] == ",":
            index += 1
    return Page(offsets, subscriptions, payloads, ends_ms)


_READERS: Final[dict[str, Callable[[bytes], Page]]] = {
    "arrow": _from_arrow,
    "msgpack": _from_msgpack,
    "json": _from_json,
}


class RowOrigin(NamedTuple):
    """The origin that rows of a batch have in common, whatever they are; `mark_ms`: see `MARK`."""

    broker: str
    epoch: str
    mark_ms: int | None = None


def batch_of(page: Page, origin: RowOrigin, columns: Sequence[str]) -> pa.RecordBatch:
    """The rows of a page, of these columns in this order."""
    results: list[dict[str, Any]] = []
    if any(name in _TOLD or name in CUT for name in columns):
        results = [_taken_apart(payload) for payload in page.payloads]
    arrays = []
    for name in columns:
        values: Sequence[Any]
        if name == "broker":
            values = [origin.broker] * len(page.offsets)
        elif name == "epoch":
            values = [origin.epoch] * len(page.offsets)
        elif name == MARK:
            values = [_micros(origin.mark_ms)] * len(page.offsets)
        elif name == "offset":
            values = page.offsets
        elif name == "subscription":
            values = page.subscriptions
        elif name == "payload":
            values = page.payloads
        elif name in CUT:
            values = [result.get(_RAW + name, "{}") for result in results]
        else:
            value_of = _TOLD[name]
            values = [value_of(result) for result in results]
        arrays.append(pa.array(values, COLUMNS.get(name, TIME)))
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def mark_alone(origin: RowOrigin, columns: Sequence[str]) -> pa.RecordBatch:
    """A row that is no result, as it has no `id`, and takes the mark along.

    What jobs want of each row it has, or Spark would leave it out before it looks at the mark.
    """
    values: dict[str, Any] = dict.fromkeys((MARK, "end"), _micros(origin.mark_ms))
    values |= {"broker": origin.broker, "location": ""}
    arrays = [pa.array([values.get(name)], COLUMNS.get(name, TIME)) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def chosen(page: Page, subscriptions: frozenset[str]) -> Page:
    """The rows of these subscriptions alone; of all where none is named."""
    if not subscriptions or subscriptions.issuperset(page.subscriptions):
        return page
    kept = [index for index, name in enumerate(page.subscriptions) if name in subscriptions]
    return Page(
        [page.offsets[index] for index in kept],
        [page.subscriptions[index] for index in kept],
        [page.payloads[index] for index in kept],
        [page.ends_ms[index] for index in kept],
    )


def _text(name: str) -> Callable[[dict[str, Any]], str | None]:
    def told(result: dict[str, Any]) -> str | None:
        value = result.get(name)
        return value if isinstance(value, str) else None

    return told


def _time(name: str) -> Callable[[dict[str, Any]], int | None]:
    def told(result: dict[str, Any]) -> int | None:
        return _micros(result.get(name))

    return told


def _micros(value: object) -> int | None:
    """As Spark has a time."""
    if not isinstance(value, int) or not _TIME_MIN_MS <= value <= _TIME_MAX_MS:
        return None
    return value * 1000


def _taken_apart(payload: str) -> dict[str, Any]:
    """A result, and of the parts in `CUT` the text as well, as it stands there."""
    decode, skip = json.JSONDecoder().raw_decode, _BLANK.match
    parts: dict[str, Any] = {}

    def behind(place: int) -> int:
        blank = skip(payload, place)
        return place if blank is None else blank.end()

    place = behind(behind(0) + 1)  # the opening brace
    while payload[place] != "}":
        name, place = decode(payload, place)
        begin = behind(behind(place) + 1)  # the colon
        parts[name], place = decode(payload, begin)
        if name in CUT:
            parts[_RAW + name] = payload[begin:place]
        place = behind(place)
        if payload[place] == ",":
            place = behind(place + 1)
    return parts


def _location(result: dict[str, Any]) -> str | None:
    """Of the group, else as the subscription assigned it."""
    for part in ("group", "values"):
        held = result.get(part)
        if isinstance(held, dict) and isinstance(held.get("location"), str):
            return str(held["location"])
    return None


_TOLD: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "id": _text("id"),
    "subscriber": _text("subscriber"),
    "actor": _text("actor"),
    "start": _time("start"),
    "end": _time("end"),
    "detected_at": _time("detected_at"),
    "certainty": _text("certainty"),
    "location": _location,
}

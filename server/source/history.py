"""The rows of brokers' logs that a history has, by broker and offset.

Owns the index of a history, the reading of its files and the notes of its gaps beside them. Must
not know brokers, nor how a batch is planned. Invariant: a range of offsets gives the rows that the
broker's log gave; what is not in the files any more, or never came into them, is known as a gap and
not taken for nothing. Noting a gap again changes nothing, from wherever that is done, so that a
batch which is run again notes what it noted before.

Offsets of a log are left out now and then, so that a hole among rows is no gap by itself: the
stream that wrote the history read on from where it was, always. A gap is what that stream noted, or
a hole while files of the list are gone.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped, import-not-found, unused-ignore]
from pyarrow import parquet  # type: ignore[import-untyped, import-not-found, unused-ignore]

from server.source.columnar import NAMES, ColumnPage
from server.source.log import LogError
from server.source.rows import COLUMNS

GAPS_FOLDER: Final = "_headwater_gaps"  # beside the files of a history
MENDED: Final = (
    "put the file back from a backup, or move it away: `headwater server mend` then says which"
    " results were there, and takes them from brokers and other histories"
)
_NO_TIME: Final = -(10**17)  # of an end that no date can show: nothing waits for it
_PLACED: Final = ("broker", "epoch", "offset")  # by these a row has its place in a log
_INDEXED: Final = (*_PLACED, "end")


class HistoryError(LogError):
    """A history cannot be read as asked."""


class LogHistory:
    """The rows of one log: offsets ascend, `ends_ms` stand beside them. 40 bytes a row."""

    def __init__(self, epoch: str, rows: pa.Table) -> None:
        """`rows` have `offset`, `end` in ms and `file`, in the order of offsets."""
        self.epoch = epoch
        self.offsets: array[int] = array("q", rows.column("offset").to_pylist())
        self.ends_ms = rows.column("end").combine_chunks()
        self._latest_ms: array[int] = array("q", accumulate(self.ends_ms.to_pylist(), max))
        self._files = rows.column("file").combine_chunks()
        self.first = self.offsets[0]
        self.end = self.offsets[-1] + 1
        self.gaps: list[tuple[int, int]] = []

    def holes(self) -> list[tuple[int, int]]:
        """Return the half-open ranges between rows."""
        return [(low + 1, high) for low, high in pairwise(self.offsets) if high - low > 1]

    def contiguous_end(self, offset: int) -> int:
        """Return the offset up to which nothing is missing from `offset` on."""
        if not self.first <= offset < self.end:
            return offset
        ends = [max(begin, offset) for begin, end in self.gaps if end > offset]
        return min([*ends, self.end])

    def latest_end(self, offset: int) -> int | None:
        """Return the latest end, in ms, of all rows up to and with an offset."""
        count = bisect_right(self.offsets, offset)
        return self._latest_ms[count - 1] if count else None

    def first_offset_after(self, ts_ms: int) -> int:
        """Return the first offset whose row ends after a time; the end where there is none."""
        place = bisect_right(self._latest_ms, ts_ms)
        return self.offsets[place] if place < len(self.offsets) else self.end

    def earliest_end(self, offset: int, until: int, after_ms: int) -> int | None:
        """Return the earliest end after a time of the rows from `offset` up to `until`."""
        begin, end = bisect_left(self.offsets, offset), bisect_left(self.offsets, until)
        ends = self.ends_ms.slice(begin, max(0, end - begin))
        least = pc.min(ends.filter(pc.greater(ends, after_ms))).as_py()
        return None if least is None else int(least)

    def files(self, begin: int, end: int) -> list[int]:
        """Return the numbers of the files with rows of a range."""
        first, last = bisect_left(self.offsets, begin), bisect_left(self.offsets, end)
        numbers: list[int] = pc.unique(self._files.slice(first, last - first)).to_pylist()
        return numbers


class History(NamedTuple):
    """The logs of a history by broker and epoch, and its files."""

    folder: Path
    logs: dict[str, dict[str, LogHistory]]
    files: list[Path]

    def log(self, broker: str, epoch: str) -> LogHistory | None:
        """Return what there is of a log."""
        return self.logs.get(broker, {}).get(epoch)

    def paths(self, log: LogHistory, begin: int, end: int) -> tuple[str, ...]:
        """Return the files with rows of a range of a log."""
        return tuple(str(self.files[number]) for number in log.files(begin, end))


def read_history(folder: Path) -> History:
    """Read the index of a history as it is now. Raises HistoryError."""
    # Where batches are planned there is all of Headwater, and where they are read there may not be.
    from server.errors import ServerError
    from server.history import files_of, recorded

    try:
        files, places = files_of(folder), recorded(folder)
    except ServerError as error:
        raise HistoryError(str(error)) from None
    tables = [_indexed(path, number) for number, path in enumerate(files) if path.is_file()]
    gone = len(tables) < len(files)
    logs: dict[str, dict[str, LogHistory]] = {}
    rows: Any = pa.concat_tables(tables) if tables else None
    for broker in sorted(pc.unique(rows.column("broker")).to_pylist()) if tables else ():
        of_broker = rows.filter(pc.equal(rows.column("broker"), broker))
        for epoch in pc.unique(of_broker.column("epoch")).to_pylist():
            of_log = of_broker.filter(pc.equal(of_broker.column("epoch"), epoch))
            log = LogHistory(epoch, of_log.sort_by("offset"))
            logs.setdefault(broker, {})[epoch] = log
            log.gaps = log.holes() if gone else []
    for broker, (epoch, offset) in places.items():
        kept = logs.get(broker, {}).get(epoch)
        if kept is not None and offset > kept.end:
            if gone:  # rows may have stood there
                kept.gaps.append((kept.end, offset))
            kept.end = offset
    for gap in gaps_in(folder):
        kept = logs.get(gap.broker, {}).get(gap.epoch)
        if kept is not None:
            kept.gaps = sorted({*kept.gaps, (gap.begin, gap.end)})
    return History(folder, logs, files)


def page_in(
    paths: Sequence[str],
    log: tuple[str, str],
    span: tuple[int, int],
    columns: Sequence[str],
    subscriptions: frozenset[str],
) -> ColumnPage:
    """Read the rows of a range of (broker, epoch) out of these files. Raises HistoryError."""
    names = [name for name in COLUMNS if name in {*columns, "offset", "end"}]
    asked = [*dict.fromkeys((*names, "broker", "epoch", "subscription"))]
    parts = [_chosen(Path(path), asked, log, span, subscriptions) for path in paths]
    if not parts:
        parts = [pa.schema([(name, COLUMNS[name]) for name in asked]).empty_table()]
    rows = pa.concat_tables(parts).sort_by("offset").select(names).combine_chunks()
    arrays = [
        pa.concat_arrays(chunks) if (chunks := rows.column(name).chunks) else
        pa.array([], COLUMNS[name])
        for name in names
    ]  # fmt: skip
    return ColumnPage(
        pa.RecordBatch.from_arrays(arrays, names=[NAMES.get(name, name) for name in names])
    )


def _chosen(
    path: Path,
    columns: list[str],
    log: tuple[str, str],
    span: tuple[int, int],
    subscriptions: frozenset[str],
) -> pa.Table:
    rows = _read(path, columns)
    kept = pc.and_(pc.equal(rows.column("broker"), log[0]), pc.equal(rows.column("epoch"), log[1]))
    kept = pc.and_(kept, pc.greater_equal(rows.column("offset"), span[0]))
    kept = pc.and_(kept, pc.less(rows.column("offset"), span[1]))
    if subscriptions:
        wanted = pa.array(sorted(subscriptions), pa.string())
        kept = pc.and_(kept, pc.is_in(rows.column("subscription"), value_set=wanted))
    return rows.filter(kept)


def _indexed(path: Path, number: int) -> pa.Table:
    rows = _read(path, [*_INDEXED])
    # Times are whole milliseconds in a result.
    ends_ms = pc.divide(rows.column("end").cast(pa.int64()), 1000)
    ends_ms = pc.fill_null(ends_ms, _NO_TIME)
    files = pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows)
    return rows.set_column(_INDEXED.index("end"), "end", ends_ms).append_column("file", files)


def _read(path: Path, columns: list[str]) -> pa.Table:
    """Read columns of a file as they are in the source. Raises HistoryError."""
    try:
        with parquet.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
            rows = file.read(columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise HistoryError(f"{path} of the history cannot be read: {error}; {MENDED}") from None
    if missing := [name for name in columns if name not in rows.column_names]:
        raise HistoryError(f"{path} is no history of results: it has no {', '.join(missing)}")
    faults = [
        f"column {name} is {kind}, and results have {COLUMNS[name]}"
        for name in columns
        if not _is_like(kind := rows.schema.field(name).type, COLUMNS[name])
    ]
    faults += [f"rows have no {name}" for name in _PLACED if _has_null(rows, name)]
    if faults:
        raise HistoryError(f"{path} is no history of results: {', '.join(faults)}; {MENDED}")
    fields = {name: COLUMNS[name] for name in columns}
    return rows.select(columns).cast(pa.schema(list(fields.items())))


def _is_like(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Tell whether a file's column holds what the source's does, in whichever form."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_timestamp(wanted):
        return bool(pa.types.is_timestamp(kind))
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(kind))
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _has_null(rows: pa.Table, name: str) -> bool:
    return name in rows.column_names and rows.column(name).null_count > 0


# --- gaps: results that retention took before a history had them ---------------------------------


class HistoryGap(NamedTuple):
    """A half-open range of offsets that retention took before the history had it."""

    broker: str
    epoch: str
    begin: int
    end: int


def note_gap(folder: str | None, gap: HistoryGap) -> None:
    """Keep beside a history that these results are not in it; nothing where there is no folder."""
    if folder is None:
        return
    place = Path(folder) / GAPS_FOLDER
    place.mkdir(parents=True, exist_ok=True)
    (place / ":".join(map(str, gap))).touch()


def gaps_in(folder: Path) -> list[HistoryGap]:
    """Return what was noted, in the order of offsets."""
    place = folder / GAPS_FOLDER
    if not place.is_dir():
        return []
    parts = (file.name.split(":") for file in place.iterdir())
    noted = [
        HistoryGap(part[0], part[1], int(part[2]), int(part[3])) for part in parts if len(part) == 4
    ]
    return sorted(noted)

"""From a page in columns to rows of Spark: passed on as it came, nothing looked at row by row.

Owns which columns are asked of a broker, and their names there. Must not know HTTP or results.
Invariant: it gives the rows that the same page gives as whole results, column by column.
"""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped, import-not-found, unused-ignore]

from server.source.rows import COLUMNS, MARK, TIME, RowOrigin

# Where a broker's page has another name for a column: the source's is a keyword of SQL.
NAMES: Final = {"offset": "log_offset", "start": "started_at", "end": "ended_at"}
_OF_ORIGIN: Final = frozenset(("broker", "epoch", MARK))
PUSHED_MAX: Final = 20  # subscriptions that a broker is asked for; of more the choice is made here


class Columns:
    """The question to brokers for certain columns of the source."""

    def __init__(
        self, columns: Sequence[str], subscriptions: frozenset[str], *, timed: bool
    ) -> None:
        names = [name for name in columns if name not in _OF_ORIGIN]
        self.pushed = sorted(subscriptions) if len(subscriptions) <= PUSHED_MAX else []
        self._chosen = [] if self.pushed else sorted(subscriptions)
        # Where the marks of batches count, it is told what comes behind them and at which offset.
        more = [*(["offset", "end"] if timed else []), *(["subscription"] if self._chosen else [])]
        asked = dict.fromkeys(NAMES.get(name, name) for name in (*names, *more))
        self.names = list(asked) or [NAMES["offset"]]  # a page without columns has no rows

    def page_of(self, data: bytes) -> "ColumnPage | None":
        """The page; None where the broker, of an older version, gives other columns."""
        with pa.ipc.open_stream(data) as stream:
            if not set(self.names) <= set(stream.schema.names):
                return None
            batches = list(stream)
        batch = batches[0] if batches else pa.RecordBatch.from_pylist([], stream.schema)
        if self._chosen:
            wanted = pa.array(self._chosen, pa.string())
            batch = batch.filter(pc.is_in(batch.column("subscription"), value_set=wanted))
        return ColumnPage(batch)


class ColumnPage:
    """A page; its methods are those of a page of whole results."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return int(self._batch.num_rows)

    def before(self, late_ms: int) -> list[int]:
        """The offsets of what ends before a time."""
        ends = self._batch.column(NAMES["end"])
        late = pc.less(ends, pa.scalar(late_ms * 1000, pa.int64()).cast(TIME))
        offsets: list[int] = self._batch.column(NAMES["offset"]).filter(late).to_pylist()
        return offsets

    def moved(self, by: int) -> "ColumnPage":
        """The same rows at other offsets."""
        place = self._batch.schema.get_field_index(NAMES["offset"])
        if place < 0:
            return self
        offsets = pc.add(self._batch.column(place), by)
        return ColumnPage(self._batch.set_column(place, NAMES["offset"], offsets))

    def shown(self, origin: RowOrigin, columns: Sequence[str]) -> pa.RecordBatch:
        """The rows, of these columns in this order."""
        mark_us = None if origin.mark_ms is None else origin.mark_ms * 1000
        alike: dict[str, Any] = {"broker": origin.broker, "epoch": origin.epoch, MARK: mark_us}
        arrays = []
        for name in columns:
            if name in alike:
                kind = COLUMNS.get(name, TIME)
                arrays.append(pa.repeat(pa.scalar(alike[name], kind), self.row_count))
            else:
                arrays.append(self._batch.column(NAMES.get(name, name)))
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))

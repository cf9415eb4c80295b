"""The source of jobs that detect: results are packed by the process that reads them.

Owns the rows that such a source gives, and its name. Must not know how results are read or packed.
Invariant: what was read is in the packed rows, each result in every row whose key it has; the mark
of a batch goes along with each, and by itself where nothing was packed.

Rows that Spark takes in, only to hand them to the next process of Python, cost it as much as all
that is detected in them. Of packed rows there are as many as keys in a page.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped, import-not-found, unused-ignore]

from server.detection.event_batches import Packing, ShardPacking
from server.source import HeadwaterSource
from server.source.options import SourceOptions
from server.source.rows import MARK, SPARK_COLUMNS, TIME
from server.source.source import StreamReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

READ: Final = "read"  # what Spark tells with the progress of a batch
COUNT: Final = "results"  # how many were read, in one of the rows that were packed of them
SCHEMA: Final = f"_key string, {SPARK_COLUMNS[MARK]}, events binary, {COUNT} bigint"
_SCHEMA: Final = pa.schema(
    [("_key", pa.string()), (MARK, TIME), ("events", pa.binary()), (COUNT, pa.int64())]
)


class PackedRows:
    """From batches of `columns` to rows of `SCHEMA`; plain data, so that it can be sent anywhere.

    All have the same `key`; without one, that of their location, where they have one.
    """

    def __init__(self, packing: Packing | ShardPacking, key: str | None = None) -> None:
        self._packing = packing
        self._key = key
        self.columns = ("payload", "broker", *(("location",) if key is None else ()), MARK)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what is packed of each batch, whose rows have one mark."""
        for batch in batches:
            results = batch.filter(pc.is_valid(batch.column("payload")))
            keys: list[str | None] = []
            events: list[bytes | None] = []
            for packed in self._packing([self._keyed(results)]):
                keys += packed.column("_key").to_pylist()
                events += packed.column("events").to_pylist()
            mark = batch.column(MARK)[0]
            if not keys and mark.is_valid:
                keys, events = [None], [None]
            counts = [results.num_rows, *([0] * len(keys))][: len(keys)]
            arrays = [
                pa.array(keys, pa.string()),
                pa.repeat(mark, len(keys)),
                pa.array(events, pa.binary()),
                pa.array(counts, pa.int64()),
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)

    def _keyed(self, results: pa.RecordBatch) -> pa.RecordBatch:
        """Return results as they are packed."""
        if self._key is None:
            results = results.filter(pc.is_valid(results.column("location")))
            keys = results.column("location")
        else:
            keys = pa.repeat(pa.scalar(self._key, pa.string()), results.num_rows)
        marks = results.column(MARK).cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64())
        columns = {"_key": keys, "mark_ms": marks}
        columns |= {name: results.column(name) for name in ("payload", "broker")}
        return pa.RecordBatch.from_pydict(columns)


def registered(spark: "SparkSession", packed: PackedRows, consumer: str) -> str:
    """Make the source of a stream known to a session; the name by which it is read."""
    known_as = f"headwater_{sha256(consumer.encode()).hexdigest()[:16]}"

    class PackedSource(HeadwaterSource):
        """Such a source; Spark sends it to where rows are read as it is here."""

        @classmethod
        def name(cls) -> str:
            return known_as

        def schema(self) -> str:
            return SCHEMA

        def streamReader(self, schema: "StructType") -> StreamReader:  # noqa: ARG002, N802
            return StreamReader(SourceOptions.of(self.options), packed.columns, packed)

    spark.dataSource.register(PackedSource)
    return known_as

"""Results into files of Parquet, each batch once, beside other sinks of the same stream.

Owns the way to Spark's own sink of files. Must not know ledgers: Spark's list of files beside them
is one. Invariant: a batch that the list has is passed over, whoever wrote it; and the folder is the
same as where Spark writes it for a stream that has this sink alone.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from server.sinks.rows import BatchRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTITION: Final = "day"
# What differs in nearly each row makes no dictionary: Parquet finds that out only when one is full,
# which it never is of times, and until then looks each value up. That took as long as to detect.
UNLIKE: Final = ("offset", "id", "start", "end", "detected_at", "values", "events", "payload")
OPTIONS: Final = {f"parquet.enable.dictionary#{name}": "false" for name in UNLIKE}
_DAY_US: Final = 86_400_000_000
# Spark's own `to_date` looks the rules of a time zone up for each row.
_DAY: Final = f"""
date_from_unix_date(
    cast((unix_micros(`end`) - pmod(unix_micros(`end`), {_DAY_US}L)) div {_DAY_US}L as int)
)"""
_SINK: Final = "org.apache.spark.sql.execution.streaming.sinks.FileStreamSink"
_FORMAT: Final = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
_UTILS: Final = "org.apache.spark.api.python.PythonUtils"


def by_day(frame: "DataFrame") -> "DataFrame":
    """The rows with the day of UTC on which each ended, by which folders are parted."""
    from pyspark.sql import functions as F  # noqa: N812

    return frame.withColumn(PARTITION, F.expr(_DAY))


def writer_of(frame: "DataFrame", folder: Path, file_rows: int = 0) -> Any:
    """Return the writer of a stream with this sink alone: Spark's own, without Python."""
    writer = by_day(frame).writeStream.format("parquet").partitionBy(PARTITION)
    writer = writer.options(**OPTIONS, maxRecordsPerFile=str(file_rows))
    return writer.option("path", str(folder))


class FilesSink:
    """One folder, filled by one stream."""

    def __init__(self, folder: Path, file_rows: int = 0) -> None:
        self._folder = folder
        self._file_rows = file_rows
        self._sink: Any = None

    def take(self, rows: BatchRows, batch: int) -> None:
        """Put a batch there, unless it is."""
        self._sink = self._sink or _java_sink(self._folder, self._file_rows)
        self._sink.add(batch, by_day(rows.frame))

    def holds(self, batch: int) -> bool:
        """Tell whether Spark's list has a batch: by itself, or in what it has made of many."""
        names = (file.name.partition(".")[0] for file in self._folder.glob("_spark_metadata/*"))
        return any(name.isdigit() and int(name) >= batch for name in names)

    def close(self) -> None:
        """Nothing is open."""


def _java_sink(folder: Path, file_rows: int) -> Any:
    """Spark's own sink of files, which it gives to no program but its own streams.

    What it lists beside the files has no public form, and files that are written otherwise are in
    no list. Spark's wrapper of Java is made for what of Spark Python does not have.
    """
    from pyspark.ml.wrapper import JavaWrapper

    class JavaSink(JavaWrapper):
        """A sink in Java."""

        def __init__(self) -> None:
            made = self._new_java_obj
            options = made("java.util.HashMap")
            for name, value in (OPTIONS | {"maxRecordsPerFile": str(file_rows)}).items():
                options.put(name, value)
            super().__init__(
                made(
                    _SINK,
                    made("org.apache.spark.sql.SparkSession.active"),
                    str(folder),
                    made(_FORMAT),
                    made(f"{_UTILS}.toSeq", [PARTITION]),
                    made(f"{_UTILS}.toScalaMap", options),
                )
            )

        def add(self, batch: int, frame: "DataFrame") -> None:
            """Put a batch into the folder, unless the list beside its files has it."""
            self._call_java("addBatch", batch, frame)

    return JavaSink()

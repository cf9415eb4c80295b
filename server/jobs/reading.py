"""The rows that a job reads.

Owns the translation of a source of the file into Spark's. Must not know what a job does with them.
Invariant: jobs that go by event time read brokers in step, all others each broker as far as it is.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from server.backfill import history_of
from server.config import TIMED, ConfigPart, Jobs
from server.errors import JobsError
from server.jobs.packed_source import COUNT, READ, PackedRows, registered
from server.source.rows import COLUMNS, MARK, SPARK_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# A batch costs Spark a third of a second besides its rows. Jobs by event time keep rows until their
# windows close, and are the sooner behind what brokers promise the smaller batches are.
IN_STEP_ROWS: Final = 50_000
ALONE_ROWS: Final = 200_000
SPREAD_ROWS: Final = 400_000  # where a process has some of the rows, and those of one key at a time
FILE_ROWS: Final = 1_000_000  # where rows go into files alone: no process ever holds them all
POSTPONE_S: Final = 10  # each attempt of a task at a broker that is gone keeps the others waiting
_DELAY: Final = "spark.watermarkDelayMs"  # Spark's own mark; of worth to dropDuplicates… alone


class Postponing(NamedTuple):
    """A folder of notes of what a stream puts off; `whole_first`: of its first batch no more."""

    folder: Path
    whole_first: bool = False


def rows(
    spark: "SparkSession",
    jobs: Jobs,
    job: ConfigPart,
    consumer: str,
    columns: Iterable[str] | None = None,
    *more: str,
    postponing: Postponing | None = None,
    spread: bool = False,
    packed: PackedRows | None = None,
) -> "DataFrame":
    """The results of the job's source as a stream; `more` are subscriptions in place of the job's.

    Of columns these alone are read (and what the watermark needs), in the source's order: what is
    not asked of a broker, it need not take out of results. A name that is no column stands for a
    value. `spread`: no one process has all rows of a batch. With `packed` there are its rows
    instead. Raises JobsError.
    """
    source = jobs.sources[job["source"]]
    if source.kind == "events":
        raise JobsError(f"jobs.{job.name}: a job of kind {job.kind} reads brokers, not events")
    late_ms = job["delay"] if job.kind in TIMED else None
    if job.kind == "dedup" and same_by_id(job):
        late_ms = max(job["delay"], job["within"])
    in_step = job.kind in TIMED
    rows_max = SPREAD_ROWS if spread else _batch_rows(jobs, job)
    options = options_of(source, consumer, rows_max, in_step=in_step, late_ms=late_ms)
    options |= _of_history(jobs, job)
    # By event time what is put off comes late: so only where a broker is not waited for for ever.
    waits = in_step and (source.kind != "brokers" or source["away_timeout"] is None)
    if postponing is not None and not waits:
        whole = str(postponing.whole_first).lower()
        options |= {"postponed": str(postponing.folder), "wholeFirst": whole}
        if not in_step:  # by event time rows that are put off come late: they are waited for
            options.setdefault("readRetry", str(POSTPONE_S))
    subscriptions = more or job["subscriptions"]
    if subscriptions:
        options["subscriptions"] = ",".join(subscriptions)
    # Twice as many tasks as cores: enough to share the work well, where tasks are not alike.
    options.setdefault("tasks", str(2 * max(1, spark.sparkContext.defaultParallelism)))
    source_name = "headwater" if packed is None else registered(spark, packed, consumer)
    reader = spark.readStream.format(source_name).options(**options)
    if columns is not None:
        marked = in_step and late_ms is not None
        reader = reader.schema(schema_of(columns, marked=marked))
    return reader.load()


def schema_of(columns: Iterable[str], *, marked: bool) -> str:
    """These columns of the source as Spark writes them; with the mark, what goes along with it."""
    wanted = {name if name in COLUMNS else "values" for name in columns}
    names = [name for name in COLUMNS if name in wanted or (marked and name in ("id", "end"))]
    return ", ".join(SPARK_COLUMNS[name] for name in (*names, *([MARK] if marked else [])))


def same_by_id(job: ConfigPart) -> bool:
    """Tell whether what a `dedup` job drops is equal to what it keeps, whichever that is."""
    return tuple(job["keys"]) == ("id",)


def options_of(
    source: ConfigPart,
    consumer: str,
    rows_max: int = ALONE_ROWS,
    *,
    in_step: bool,
    late_ms: int | None = None,
) -> dict[str, str]:
    """The options of the data source; results may come so much later than others.

    `rows_max` are those of a batch where the source says nothing.
    """
    batch_rows = source["batch_rows"]
    options = {
        "maxRowsPerBatch": str(rows_max if batch_rows is None else batch_rows),
        "failOnDataLoss": "true" if source["lost"] == "fail" else "false",
        "align": "true" if in_step else "false",
        "consumer": consumer,
    }
    if source.kind == "brokers":
        options |= _of_brokers(source)
    if late_ms is not None:
        options["lateAfter"] = _seconds(late_ms)
    options |= source["options"]
    return options


def _batch_rows(jobs: Jobs, job: ConfigPart) -> int:
    """Return how many rows a batch of a job has, where its source says nothing."""
    if job.kind in TIMED:
        return IN_STEP_ROWS
    kinds = [jobs.sinks[name].kind for name in job["sink"]]
    # Several sinks share a batch, which is kept until the last has it.
    return FILE_ROWS if kinds == ["parquet"] else ALONE_ROWS


def _of_brokers(source: ConfigPart) -> dict[str, str]:
    """The options for what answers at addresses."""
    options = {
        "brokers": ",".join(f"{name}={url}" for name, url in source["brokers"].items()),
        "startingOffsets": source["starting"],
        "onBrokerAway": source["away"],
        "quietWait": _seconds(source["quiet_wait"]),
        "format": source["format"],
    }
    if source["away_timeout"] is not None:
        options["awayTimeout"] = _seconds(source["away_timeout"])
    if source["settled_timeout"] is not None:
        options["settledTimeout"] = _seconds(source["settled_timeout"])
    for key, option in (
        ("user", "user"),
        ("password_env", "passwordEnv"),
        ("password_file", "passwordFile"),
        ("ca_file", "caFile"),
    ):
        if source[key] is not None:
            options[option] = source[key]
    return options


def _of_history(jobs: Jobs, job: ConfigPart) -> dict[str, str]:
    """The options for a history that a job begins with, and for one that it makes."""
    options = {}
    past = history_of(jobs, job)
    if past is not None:
        options["history"] = str(jobs.path(past["path"]))
    since = job["since"]
    if since is not None:
        offsets = since.items() if isinstance(since, dict) else ()
        options["since"] = ",".join(f"{name}={offset}" for name, offset in offsets) or str(since)
    folders = [jobs.sinks[name] for name in job["sink"] if jobs.sinks[name].kind == "parquet"]
    if job.kind == "history" and folders:
        options["noteGaps"] = str(jobs.path(folders[0]["path"]))
    return options


def events(spark: "SparkSession", jobs: Jobs, source: ConfigPart) -> "DataFrame":
    """Events of JSON lines, with the columns that detection takes."""
    lines = (
        spark.readStream.format("text")
        .option("maxFilesPerTrigger", str(source["files"]))
        .load(str(jobs.path(source["path"])))
    )
    return lines.select(
        F.col("value").alias("payload"),
        F.lit(None).cast("string").alias("broker"),
        F.get_json_object("value", "$.location").alias("location"),
        F.coalesce(*(_instant(key) for key in ("end", "timestamp"))).alias("end"),
    ).where("`end` is not null")


def column(frame: "DataFrame", name: str) -> "Column":
    """A column of the source, else the value that a subscription assigned under that name."""
    if name in frame.columns:
        return F.col(f"`{name}`")
    return F.get_json_object("values", f"$['{name}']")


def delayed(frame: "DataFrame", delay_ms: int, *, mark: str | None = None) -> "DataFrame":
    """With a watermark on `end`: that which the source says, else so much behind the latest.

    `mark` names a column that is to tell what the source says, in ms; null where it says nothing.

    Spark takes a watermark from the very column that it is held against, and then in a column that
    was marked so. Here the source's column gives it, and `end` is marked alone.
    """
    if MARK not in frame.columns:
        if mark is not None:
            frame = frame.withColumn(mark, F.lit(None).cast("bigint"))
        return frame.withWatermark("end", f"{delay_ms} milliseconds")
    columns = [
        F.col("end").alias("end", metadata={_DELAY: delay_ms}) if name == "end" else f"`{name}`"
        for name in frame.columns
        if name != MARK
    ]
    columns += [] if mark is None else [F.unix_millis(MARK).alias(mark)]
    frame = frame.withWatermark(MARK, "0 milliseconds")
    # With the mark in the condition, as Spark would not have looked at it otherwise before.
    return frame.where(f"id is not null or {MARK} is null").select(*columns)


def marked_events(frame: "DataFrame") -> "DataFrame":
    """Return packed rows as they are detected in: with the watermark that the source says.

    `mark_ms` is that in ms. How many results were read is counted on the way, as `READ`.
    """
    frame = frame.withWatermark(MARK, "0 milliseconds")
    frame = frame.observe(READ, F.sum(COUNT).alias(COUNT)).where("events is not null")
    return frame.select("_key", F.unix_millis(MARK).alias("mark_ms"), "events")


def _instant(key: str) -> "Column":
    """A time as events write it: milliseconds, or ISO 8601."""
    text = F.get_json_object("value", f"$.{key}")
    return F.coalesce(
        F.timestamp_millis(text.try_cast("bigint")), F.to_timestamp(text.try_cast("timestamp"))
    )


def _seconds(ms: int) -> str:
    return f"{ms / 1000:g}"

"""What each kind of job makes of its rows.

Owns the plans. Must not know where rows come from or go. Invariant: every row that leaves has an
`id` that its input decides, so that whoever gets it twice can tell.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from language.functions import AGGREGATES
from server.config import ConfigPart, Jobs
from server.detection.event_batches import PACKED, Packing, ShardPacking
from server.detection.firsts import KEY, Firsts
from server.detection.processor import OUTPUT, Detector
from server.detection.program import DetectionProgram, checked, needs_one_place, specification_of
from server.detection.result_batches import SHOWN, unpacked_results
from server.detection.shards import Shards, shards_of
from server.errors import JobsError
from server.job_checks import OF_A_SIDE
from server.jobs.packed_source import PackedRows
from server.jobs.reading import (
    Postponing,
    column,
    delayed,
    events,
    marked_events,
    rows,
    same_by_id,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_INSTANTS: Final = frozenset(("start", "end", "detected_at"))
ALL: Final = "all"  # the key of what meets in one place
_PARTS: Final = 8  # into which rows to be told apart are split, by their keys; as in checkpoints
_NUMBER: Final = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"


def frame_of(
    spark: "SparkSession",
    jobs: Jobs,
    job: ConfigPart,
    consumer: str,
    postponed: Path | None = None,
    *,
    whole_first: bool = False,
) -> "DataFrame":
    """Return the job's rows, as a stream. Raises JobsError.

    `postponed` is a folder for what a job that need not wait for brokers puts off; of the first
    batch nothing more is put off with `whole_first`. The sides of a join are read apart, and wait.
    """
    postponing = None if postponed is None else Postponing(postponed, whole_first)
    if job.kind == "history":
        return rows(spark, jobs, job, consumer, postponing=postponing)
    if job.kind == "join":
        return _join(spark, jobs, job, consumer)
    frame: DataFrame = _KINDS[job.kind](spark, jobs, job, consumer, postponing)
    return frame


def _windows(
    spark: "SparkSession", jobs: Jobs, job: ConfigPart, consumer: str, postponing: Postponing | None
) -> "DataFrame":
    """One row per window and group, once the watermark has passed the window."""
    values = (value for function, value in job["values"].values())
    used = ("end", *job["by"], *values)
    frame = rows(spark, jobs, job, consumer, used, postponing=postponing)
    frame = delayed(frame, job["delay"])
    slide = None if job["slide"] is None else f"{job['slide']} milliseconds"
    window = F.window("end", f"{job['window']} milliseconds", slide)
    by = [column(frame, name).alias(name) for name in job["by"]]
    made = [
        F.count("*").alias("count"),
        *(
            _of_spark(function)(_counted(frame, function, value)).alias(name)
            for name, (function, value) in job["values"].items()
        ),
    ]
    windowed = frame.groupBy(window.alias("window"), *by).agg(*made)
    columns = [name for name in windowed.columns if name != "window"]
    parts = [F.coalesce(F.col(f"`{name}`").cast("string"), F.lit("\0")) for name in job["by"]]
    key = F.concat_ws("\1", F.lit(job.name), F.col("window.start").cast("bigint"), *parts)
    return windowed.select(
        F.substring(F.sha2(key, 256), 1, 32).alias("id"),
        F.col("window.start").alias("start"),
        F.col("window.end").alias("end"),
        *(f"`{name}`" for name in columns),
    )


def _of_spark(function: str) -> "Callable[[Column], Column]":
    """Spark's aggregate of that name."""
    aggregate: Callable[[Column], Column] = getattr(F, AGGREGATES[function].spark or "")
    return aggregate


def _counted(frame: "DataFrame", function: str, name: str) -> "Column":
    """Return what an aggregate takes of a row: Count any value, all others a number, else null.

    A text where a number should be must not end the job, which would meet it again for ever.
    """
    value = column(frame, name)
    if AGGREGATES[function].of_events:
        return value
    if name in frame.columns:
        return value.try_cast("double")
    # Spark takes "nan", "infinity" and "1d" for numbers; results hold none that is written so.
    return F.when(value.rlike(_NUMBER), value.try_cast("double"))


def _join(spark: "SparkSession", jobs: Jobs, job: ConfigPart, consumer: str) -> "DataFrame":
    """Pairs of results, the right one later by at most `within`, that agree in `on`."""
    sides = {}
    for name in ("left", "right"):
        wanted = job[name]
        used = (*OF_A_SIDE, *job["on"])
        frame = rows(spark, jobs, job, f"{consumer}.{name}", used, wanted["subscription"])
        frame = delayed(frame, job["delay"])
        if "broker" in wanted:
            frame = frame.where(F.col("broker") == wanted["broker"])
        keys = [column(frame, shared).alias(f"{name}_{shared}") for shared in job["on"]]
        others = [
            F.col(f"`{attribute}`").alias(f"{name}_{attribute}")
            for attribute in OF_A_SIDE
            if attribute not in job["on"]
        ]
        sides[name] = frame.select(*keys, *others)
    within = F.expr(f"interval {job['within']} milliseconds")
    met = (F.col("right_end") > F.col("left_end")) & (
        F.col("right_end") <= F.col("left_end") + within
    )
    for shared in job["on"]:
        met &= F.col(f"`left_{shared}`") == F.col(f"`right_{shared}`")
    joined = sides["left"].join(sides["right"], met)
    key = F.concat_ws("\1", F.lit(job.name), "left_id", "right_id")
    shown = [name for name in joined.columns if name not in {f"right_{on}" for on in job["on"]}]
    return joined.select(
        F.substring(F.sha2(key, 256), 1, 32).alias("id"),
        F.col("left_start").alias("start"),
        F.col("right_end").alias("end"),
        *(
            F.col(f"`{name}`").alias(name.removeprefix("left_") if name[5:] in job["on"] else name)
            for name in shown
        ),
    )


def _dedup(
    spark: "SparkSession", jobs: Jobs, job: ConfigPart, consumer: str, postponing: Postponing | None
) -> "DataFrame":
    """Of results that agree in `keys` the first one, as far apart as `within`."""
    frame = rows(spark, jobs, job, consumer, postponing=postponing)
    if same_by_id(job):
        frame = delayed(frame, max(job["within"], job["delay"]))
        return frame.withColumn("_0", F.col("id")).dropDuplicatesWithinWatermark(["_0"]).drop("_0")
    frame = delayed(frame, job["delay"], mark="mark_ms")
    shown = [(name, kind) for name, kind in frame.dtypes if name != "mark_ms"]
    whole = [
        F.unix_millis(name).alias(name) if name in _INSTANTS else F.col(f"`{name}`")
        for name, _ in shown
    ]
    by = F.to_json(F.array(*(column(frame, name).cast("string") for name in job["keys"])))
    packed = frame.select(
        F.pmod(F.crc32(by), F.lit(_PARTS)).cast("string").alias("_key"),
        F.to_json(F.struct(*whole, by.alias(KEY))).alias("payload"),
        "broker",
        "mark_ms",
    )
    packed = packed.mapInArrow(Packing(firsts_of(job)), PACKED)
    firsts = _run(packed, firsts_of(job), "payload string")
    schema = ", ".join(
        f"`{name}` {'bigint' if name in _INSTANTS else kind}" for name, kind in shown
    )
    row = firsts.select(F.from_json("payload", schema).alias("row"))
    return row.select(
        *(
            (F.timestamp_millis(f"row.{name}") if name in _INSTANTS else F.col(f"row.`{name}`"))
            .alias(name)
            for name, _ in shown
        )
    )  # fmt: skip


def firsts_of(job: ConfigPart) -> Firsts:
    """Return the settings by which a job of kind `dedup` finds them."""
    return Firsts(job["within"])


def _run(
    packed: "DataFrame", program: DetectionProgram | Firsts | Shards, schema: str
) -> "DataFrame":
    """Run a program on packed rows for each `_key`; what comes out has the columns of `schema`."""
    return (
        packed.groupBy("_key")
        .transformWithState(Detector(program), OUTPUT, "Append", "EventTime")
        .mapInArrow(unpacked_results, schema)
    )


def _detect(
    spark: "SparkSession", jobs: Jobs, job: ConfigPart, consumer: str, postponing: Postponing | None
) -> "DataFrame":
    """Return the stream of what a specification detects in the results."""
    source = jobs.sources[job["source"]]
    raw = source.kind == "events"
    program = program_of(jobs, job, raw=raw)
    shards = None
    if job["parted"] and needs_one_place(specification_of(program)) is not None:
        shards = shards_of(program)
    packing = Packing(program) if shards is None else ShardPacking(shards)
    by_location = job["parted"] and shards is None
    if raw:
        frame = delayed(events(spark, jobs, source), job["delay"], mark="mark_ms")
        if by_location:
            # Grouped by location, an event without one is in no group.
            frame = frame.where("location is not null")
        key = F.col("location") if by_location else F.lit(ALL)
        frame = frame.select(key.alias("_key"), "payload", "broker", "mark_ms")
        packed = frame.mapInArrow(packing, PACKED)
    else:
        spread = job["parted"] if shards is None else shards.spread
        made = PackedRows(packing, None if by_location else ALL)
        packed = rows(spark, jobs, job, consumer, postponing=postponing, spread=spread, packed=made)
        packed = marked_events(packed)
    if not job["parted"]:
        # As it is in checkpoints: the one key of all was never null.
        packed = packed.withColumn("_key", F.coalesce("_key", F.lit(ALL)))
    return _run(packed, program if shards is None else shards, SHOWN)


def program_of(jobs: Jobs, job: ConfigPart, *, raw: bool) -> DetectionProgram:
    """The checked program of a job. Raises JobsError."""
    program = checked(
        jobs.path(job["specification"]), types=job["types"], longest_ms=job["longest"], raw=raw
    )
    # By location alone it ran in parts before, a state a location: that stays as it is.
    by_location = not job["parted"] or needs_one_place(specification_of(program)) is None
    if not by_location and not shards_of(program).worthwhile:
        raise JobsError(
            f"jobs.{job.name}: it cannot run in parts: there is nothing by which all of its tasks"
            " are grouped, or in which all events of their patterns agree, and that definitions"
            " assign; leave `parted` out"
        )
    return program


_KINDS: Final[dict[str, Callable[..., Any]]] = {
    "windows": _windows,
    "dedup": _dedup,
    "detect": _detect,
}

"""The server tier's rate and delay: two output logs into Parquet and into detection.

Owns the load and the clock. Must not know how rows are read. Invariant: logs are those of brokers
(a database each, behind the broker's own HTTP face, in processes of their own), and rows count once
they are where they were to go.

    python -m bench.server [--quick] [--repeats N] [--json]

CPU is that of Spark and its Pythons, without the logs': it shows less than rates do of what else
runs on a machine.
"""

import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from bench.report import Options, Report, Table, run
from bench.worked import worked

ROWS, ROWS_QUICK = 250_000, 20_000  # of each log
LIVE_S, LIVE_S_QUICK = 30.0, 10.0
WARM_S, WARM_S_QUICK = 25.0, 5.0
LIVE_ROWS_S = 50  # of each log
# Java compiles what runs often while it runs, each executor for itself: before that is done it is
# what would be measured. A server that runs for days is behind it.
WARM_RUNS, WARM_RUNS_QUICK = 4, 1  # of executors
LOCATIONS = 20
STEP_MS = 10
_STREAM = "sql.streaming.queryId"  # in what Spark tells of a job, where it is of a stream
MANY, MANY_ROWS = 100, 500  # small logs, and the rows of each

NEXT = """
event Frost(n: int)
subscription Pairs seq 1 from bench to bench
detect Frost as a then[..300 ms, next] Frost as b where b.n > a.n
group by location
"""
JOBS = """
[sources.logs]
brokers = {{ {brokers} }}

[jobs.history]
kind = "history"
source = "logs"
sink = "archive"

[jobs.pairs]
kind = "detect"
source = "logs"
specification = "pairs.hw"
parted = true
longest = "1 s"
sink = "archive"

[sinks.archive]
kind = "parquet"
path = "archive"
"""


def result(number: int, end_ms: int) -> bytes:
    """A result as a broker writes it."""
    told = {
        "subscription": "Frost",
        "seq": 1,
        "id": f"{number:032x}",
        "subscriber": "bench",
        "actor": "bench",
        "start": end_ms,
        "end": end_ms,
        "certainty": "yes",
        "group": {"location": f"hall-{number % LOCATIONS}"},
        "values": {"n": number},
        "events": {"t": [f"event-{number}"]},
        "detected_at": time.time_ns() // 1_000_000,
    }
    return json.dumps(told).encode()


# --- a log, in a process of its own --------------------------------------------------------------


async def serve(folder: Path, rows: int) -> None:
    """A log of so many rows; then each number on standard input adds as many, live.

    `renew` instead has a new face take the place of the old one: whatever that kept is gone.
    Garbage is looked for as in a broker's process: by default that takes a fifth of making a page.
    """
    from broker.driver.settled_log import EVERY_S
    from broker.http import HttpOptions, listen, make_app
    from broker.store import RESULTS, Outbox, Settled, Store
    from headwater.cli.brokers.broker import YOUNG_MAX
    from tests.broker.http.fakes import OPEN, FakeBroker
    from tests.broker.rows import row_of

    gc.set_threshold(YOUNG_MAX)
    store = Store.open(f"sqlite:///{folder / 'headwater.db'}", parts=[RESULTS])
    outbox = await Outbox.open(store)
    loop = asyncio.get_running_loop()

    async def settled(_names: frozenset[str], fresh: bool) -> Settled:
        if fresh:
            await asyncio.sleep(EVERY_S)  # as a broker does, whoever asks
        return Settled(1, 10**15, "")

    outbox.promised = settled

    async def add(count: int) -> None:
        first, now_ms = outbox.end, time.time_ns() // 1_000_000
        made = [
            row_of(n, "Frost", "bench", "bench", result(n, 1_000_000_000_000 + n * STEP_MS))
            for n in range(first, first + count)
        ]
        done: asyncio.Future[Any] = loop.create_future()
        outbox.append(made, now_ms, done.set_result)
        if (error := await done) is not None:
            raise error

    async def face(port: int) -> Any:
        app = make_app(FakeBroker(), OPEN, log=outbox)
        return await listen(app, "127.0.0.1", port, HttpOptions())

    for begin in range(0, rows, 10_000):
        await add(min(10_000, rows - begin))
    listener = await face(0)
    gc.collect()
    gc.freeze()
    print(listener.port, flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        if line.strip() == "renew":
            await listener.close()
            listener = await face(listener.port)
            print("renewed", flush=True)
        else:
            await add(int(line))
    await listener.close()
    await store.close()


class Served:
    """Such a process."""

    def __init__(self, folder: Path, rows: int) -> None:
        folder.mkdir()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.server", "--serve", str(folder), str(rows)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = ""

    @property
    def url(self) -> str:
        """Where it answers, once all rows are there."""
        self.port = self.port or self._line()
        return f"http://127.0.0.1:{self.port}"

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def add(self, rows: int) -> None:
        """Some more."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{rows}\n")
        self.process.stdin.flush()

    def renew(self) -> None:
        """Forget what was kept of its pages."""
        assert self.url
        assert self.process.stdin is not None
        self.process.stdin.write("renew\n")
        self.process.stdin.flush()
        assert self._line() == "renewed"

    def end(self) -> None:
        """No more."""
        self.process.kill()
        self.process.communicate()


# --- the measurements ----------------------------------------------------------------------------


def stream(spark: Any, logs: list[Served], **options: str) -> Any:
    """The rows of both logs."""
    brokers = ",".join(f"b{n}={one.url}" for n, one in enumerate(logs))
    return spark.readStream.format("headwater").options(brokers=brokers, **options).load()


def timed(writer: Any, folder: Path) -> tuple[float, int]:
    """Seconds and input rows of all that is there, from the first row on."""
    from server.monitor import rows_read

    running = (
        writer.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    batches = [json.loads(one.json) for one in running.recentProgress]
    rows = sum(map(rows_read, batches))
    took_ms = sum(one["durationMs"]["triggerExecution"] for one in batches if one["numInputRows"])
    return took_ms / 1000, rows


def job_of(name: str, logs: list[Served], folder: Path) -> tuple[Any, Any]:
    """A file of jobs over these logs, and one of its jobs."""
    from server.config import read

    folder.mkdir()
    (folder / "pairs.hw").write_text(NEXT)
    brokers = ", ".join(f'b{n} = "{one.url}"' for n, one in enumerate(logs))
    file = folder / "jobs.toml"
    file.write_text(JOBS.format(brokers=brokers))
    jobs = read(file)
    return jobs, jobs.jobs[name]


class Road(NamedTuple):
    """Rows a second, CPU of each in microseconds, that of Java compiling, and how many came out."""

    rate: float
    cpu_us: float
    compiling_us: float
    came: int


def to_files(spark: Any, name: str, logs: list[Served], folder: Path) -> Road:
    """Run a job into Parquet, as the server does: parted by day."""
    from server.jobs.kinds import frame_of
    from server.sinks.files import writer_of

    jobs, job = job_of(name, logs, folder)
    rows = frame_of(spark, jobs, job, f"bench.{folder.name}")
    before = worked()()
    took_s, count = timed(writer_of(rows, folder / "archive"), folder)
    spent = worked()() - before
    came = spark.read.parquet(str(folder / "archive")).count()
    return Road(count / took_s, *spent.each_us(count), came)


def copied(spark: Any, folder: Path, target: Path) -> Road:
    """Run Spark's own: what was read of the logs, from Parquet to Parquet."""
    began, before = time.monotonic(), worked()()
    spark.read.parquet(str(folder / "archive")).drop("day").write.parquet(str(target))
    took_s, spent = time.monotonic() - began, worked()() - before
    count = spark.read.parquet(str(target)).count()
    return Road(count / took_s, *spent.each_us(count), count)


def planned(folder: Path) -> tuple[float, float, int]:
    """Milliseconds of a plan over many small logs by event time, its CPU of them, and its tasks.

    All are faces of one broker: what it costs is the asking, not the answers' content.
    """
    from pyspark.sql.streaming.datasource import ReadMaxRows

    from server.source.options import SourceOptions
    from server.source.source import StreamReader

    one = Served(folder, MANY_ROWS)
    try:
        brokers = ",".join(f"b{n}={one.url}" for n in range(MANY))
        options = SourceOptions.of({"brokers": brokers, "lateAfter": "10", "tasks": "4"})
        reader = StreamReader(options, ["offset"])
        pinned = reader.latestOffset({}, ReadMaxRows(MANY * MANY_ROWS))
        began, worked = time.monotonic(), time.process_time()
        end = reader.latestOffset(pinned, ReadMaxRows(MANY * MANY_ROWS // 2))
        took_s, worked_s = time.monotonic() - began, time.process_time() - worked
        tasks = reader.partitions(pinned, end)
        reader.stop()
    finally:
        one.end()
    assert end != pinned, "nothing was planned"
    return took_s * 1000, worked_s * 1000, len(tasks)


def latencies(spark: Any, logs: list[Served], folder: Path, options: Options) -> list[float]:
    """Milliseconds from the append at the broker to the driver's hands, once warm."""
    taken: list[tuple[float, float]] = []

    def take(frame: Any, _batch: int) -> None:
        came_at = frame.select("detected_at").toArrow().column(0).to_pylist()
        now = time.time()
        taken.extend((now, (now - one.timestamp()) * 1000) for one in came_at)

    rows = stream(spark, logs, startingOffsets="latest")
    running = (
        rows.writeStream.foreachBatch(take)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )
    began = time.time()
    warm_s = WARM_S_QUICK if options.quick else WARM_S
    live_s = LIVE_S_QUICK if options.quick else LIVE_S
    while time.time() < began + warm_s + live_s:
        for log in logs:
            log.add(LIVE_ROWS_S // 10)
        time.sleep(0.1)
    running.stop()
    return [late_ms for at, late_ms in taken if at > began + warm_s]


def rates(spark: Any, rows: int, folder: Path, repeats: int) -> dict[str, list[Road]]:
    """Go each road over the same rows in each round; the first round warms Spark."""
    logs = [Served(folder / f"log{n}", rows) for n in range(2)]
    found: dict[str, list[Road]] = {"copied": [], "cold": [], "kept": [], "detection": []}
    try:
        for n in range(repeats + 1):
            for one in logs:
                one.renew()
            for name in ("cold", "kept"):
                road = to_files(spark, "history", logs, folder / f"{name}{n}")
                assert road.came == 2 * rows, f"{road.came} rows came"
                found[name].append(road)
            found["copied"].append(copied(spark, folder / f"kept{n}", folder / f"copy{n}"))
            road = to_files(spark, "pairs", logs, folder / f"pairs{n}")
            assert road.came > rows / 2, f"{road.came} pairs were detected"
            found["detection"].append(road)
    finally:
        for one in logs:
            one.end()
    return {name: roads[1:] for name, roads in found.items()}


def spread_out(rows: int, folder: Path, options: Options) -> list[list[str]]:
    """Detect with one executor of one core, and with two: a row of the table for each."""
    table = []
    for executors in (1, 2):
        words = ["--executors", str(executors), str(rows), str(options.times(3))]
        done = subprocess.run(
            [sys.executable, "-m", "bench.server", *words, *(["--quick"] if options.quick else [])],
            stdout=subprocess.PIPE,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)},
            check=True,
        )
        roads, together = json.loads(done.stdout.splitlines()[-1])
        rates_s, each_us, compiling_us, came = zip(*roads, strict=True)
        table.append(
            [
                *(str(executors), f"{2 * rows:,}", f"{median(rates_s):,.0f}"),
                *(f"{median(each_us):.0f}", f"{min(each_us):.0f} to {max(each_us):.0f}"),
                f"{median(compiling_us):.0f}",
                *(f"{together:.0%}", f"{came[0]:,}"),
            ]
        )
    return table


def of_executors(
    executors: int, rows: int, repeats: int, *, quick: bool
) -> tuple[list[Road], float]:
    """Detect with so many executors of one core each, once they are warm.

    Also the part of the time, while any of them was at work, in which all of them were.
    """
    from server.session import SparkSettings, start
    from tests.server.cluster import Cluster

    with tempfile.TemporaryDirectory() as name, Cluster(Path(name)) as cluster:
        folder = Path(name)
        (folder / "events").mkdir()
        more = {
            "spark.executor.cores": "1",
            "spark.cores.max": str(executors),
            "spark.executor.memory": "512m",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": (folder / "events").as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        }
        spark = start(SparkSettings(master=cluster.url, more=more))
        logs = [Served(folder / f"log{n}", rows) for n in range(2)]
        try:
            for n in range(WARM_RUNS_QUICK if quick else WARM_RUNS):
                to_files(spark, "pairs", logs, folder / f"warm{n}")
            began_ms = time.time() * 1000
            roads = [to_files(spark, "pairs", logs, folder / f"pairs{n}") for n in range(repeats)]
        finally:
            spark.stop()
            for one in logs:
                one.end()
        (told,) = (folder / "events").iterdir()
        return roads, together(told, began_ms, executors)


def together(told: Path, began_ms: float, executors: int) -> float:
    """Return that part of the time by what Spark has told of the tasks of streams since then."""
    moves: list[tuple[float, int]] = []
    stages: set[int] = set()
    for line in told.read_text(encoding="utf-8").splitlines():
        if line.startswith('{"Event":"SparkListenerJobStart"'):
            job = json.loads(line)
            stages |= set(job["Stage IDs"]) if _STREAM in job["Properties"] else set()
        elif line.startswith('{"Event":"SparkListenerTaskEnd"'):
            ended = json.loads(line)
            task = ended["Task Info"]
            if ended["Stage ID"] in stages and task["Launch Time"] >= began_ms:
                moves += [(task["Launch Time"], 1), (task["Finish Time"], -1)]
    any_ms = all_ms = at_work = 0.0
    for (at_ms, move), (until_ms, _) in pairwise(sorted(moves)):
        at_work += move
        any_ms += (until_ms - at_ms) * (at_work > 0)
        all_ms += (until_ms - at_ms) * (at_work >= executors)
    return all_ms / any_ms


def report(options: Options) -> Report:
    """Everything, on one Spark."""
    from server.session import SparkSettings, start

    rows = ROWS_QUICK if options.quick else ROWS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.monotonic()
        spark = start(SparkSettings())
        begun_s = time.monotonic() - began
        live = [Served(folder / f"live{n}", 0) for n in range(2)]
        try:
            found = rates(spark, rows, folder, options.times(3))
            late_ms = latencies(spark, live, folder / "live", options)
            plans = [planned(folder / f"many{n}") for n in range(options.times(3))]
        finally:
            spark.stop()
            for one in live:
                one.end()
        apart = spread_out(rows // 2, folder, options)
    cuts = quantiles(late_ms, n=100)
    own_s = median(road.rate for road in found["copied"])
    own_us = median(road.cpu_us for road in found["copied"])
    return Report(
        "server",
        [
            Table(
                "Rows a second, local[2]: from two output logs, and Spark's own copy of the same",
                [
                    "road",
                    "rows",
                    "median",
                    "range",
                    "of Spark's own",
                    "CPU, µs a row",
                    "of Spark's own, by CPU",
                ],
                [
                    [
                        road,
                        f"{2 * rows:,}",
                        f"{median(each.rate for each in found[key]):,.0f}",
                        f"{min(found[key]).rate:,.0f} to {max(found[key]).rate:,.0f}",
                        f"{median(each.rate for each in found[key]) / own_s:.2f}",
                        f"{median(each.cpu_us for each in found[key]):.1f}",
                        f"{own_us / median(each.cpu_us for each in found[key]):.2f}",
                    ]
                    for key, road in (
                        ("copied", "Spark, Parquet to Parquet"),
                        ("cold", "logs to Parquet, nothing kept"),
                        ("kept", "logs to Parquet, pages kept"),
                        ("detection", "logs to detection"),
                    )
                ],
            ),
            Table(
                "Detection with executors of one core each",
                [
                    *("executors", "rows", "rows a second", "CPU, µs a row", "range, µs"),
                    *("of it Java compiling, µs", "all at work", "results"),
                ],
                apart,
            ),
            Table(
                f"A plan by event time over {MANY} brokers",
                ["plans", "median, ms", "range, ms", "of CPU, ms", "tasks"],
                [
                    [
                        str(len(plans)),
                        f"{median(took for took, _, _ in plans):.0f}",
                        f"{min(plans)[0]:.0f} to {max(plans)[0]:.0f}",
                        f"{median(worked for _, worked, _ in plans):.0f}",
                        str(plans[0][2]),
                    ]
                ],
            ),
            Table(
                f"Append at the broker to the driver, ms, {2 * LIVE_ROWS_S} rows/s, warm",
                ["rows", "p50", "p90", "p99", "start of Spark, s"],
                [
                    [
                        f"{len(late_ms):,}",
                        *(f"{cuts[at - 1]:.0f}" for at in (50, 90, 99)),
                        f"{begun_s:.1f}",
                    ]
                ],
            ),
        ],
        [],
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(serve(Path(sys.argv[2]), int(sys.argv[3])))
        sys.exit(0)
    if sys.argv[1:2] == ["--executors"]:
        counts = map(int, sys.argv[2:5])
        json.dump(of_executors(*counts, quick="--quick" in sys.argv), sys.stdout)
        sys.exit(0)
    sys.exit(run(__doc__, report))

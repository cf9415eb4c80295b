"""What the server tier reads and how soon: two output logs into Parquet and into detection.

Owns the load and the clock. Must not know how rows are read. Invariant: logs are those of brokers
(a database each, behind the broker's own HTTP face, in processes of their own), and rows count once
they are where they were to go.

    python -m bench.server [--quick] [--repeats N] [--json]
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench.report import Options, Report, Table, run

ROWS, ROWS_QUICK = 250_000, 20_000  # of each log
DETECTED, DETECTED_QUICK = 20_000, 4_000
LIVE_S, LIVE_S_QUICK = 30.0, 10.0
WARM_S, WARM_S_QUICK = 25.0, 5.0
LIVE_ROWS_S = 50  # of each log
LOCATIONS = 20
STEP_MS = 10

NEXT = """
event Frost(n: int)
subscription Pairs seq 1 from bench to bench
detect Frost as a then[..100 ms, next] Frost as b where b.n > a.n
group by location
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
    """A log of so many rows; then each number on standard input adds as many, live."""
    from broker.http import HttpOptions, listen, make_app
    from broker.store import RESULTS, Outbox, Store, row_of
    from tests.broker.http.fakes import OPEN, FakeBroker

    store = Store.open(f"sqlite:///{folder / 'headwater.db'}", parts=[RESULTS])
    outbox = await Outbox.open(store)
    loop = asyncio.get_running_loop()

    async def add(count: int) -> None:
        at, now_ms = outbox.end, time.time_ns() // 1_000_000
        made = [
            row_of(n, "Frost", "bench", "bench", result(n, 1_000_000_000_000 + n * STEP_MS))
            for n in range(at, at + count)
        ]
        done: asyncio.Future[Any] = loop.create_future()
        outbox.append(made, now_ms, done.set_result)
        if (error := await done) is not None:
            raise error

    for begin in range(0, rows, 10_000):
        await add(min(10_000, rows - begin))
    listener = await listen(
        make_app(FakeBroker(), OPEN, log=outbox),
        "127.0.0.1",
        0,
        HttpOptions(),
    )
    print(listener.port, flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
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
        assert self.process.stdout is not None
        self.port = self.port or self.process.stdout.readline().strip()
        return f"http://127.0.0.1:{self.port}"

    def add(self, rows: int) -> None:
        """Some more."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{rows}\n")
        self.process.stdin.flush()

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
    running = (
        writer.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    batches = [json.loads(one.json) for one in running.recentProgress]
    rows = sum(one["numInputRows"] for one in batches)
    took_ms = sum(one["durationMs"]["triggerExecution"] for one in batches if one["numInputRows"])
    return took_ms / 1000, rows


def to_parquet(spark: Any, logs: list[Served], folder: Path) -> float:
    """Rows a second."""
    rows = stream(spark, logs, align="false", maxRowsPerBatch="100000")
    took_s, count = timed(
        rows.writeStream.format("parquet").option("path", str(folder / "history")), folder
    )
    return count / took_s


def to_detection(spark: Any, logs: list[Served], folder: Path) -> float:
    """Rows a second."""
    from pyspark.sql import functions as F  # noqa: N812

    from server.detection.packing import PACKED, Packing
    from server.detection.processor import OUTPUT, Detector
    from server.detection.program import Program

    rows = stream(spark, logs, maxRowsPerBatch="20000")
    found = (
        rows.withWatermark("end", "0 seconds")
        .select(F.lit("all").alias("_key"), "payload", "broker", "end")
        .mapInArrow(Packing(Program(NEXT)), PACKED)
        .groupBy("_key")
        .transformWithState(Detector(Program(NEXT)), OUTPUT, "Append", "EventTime")
    )
    took_s, count = timed(found.writeStream.format("noop"), folder)
    return count / took_s


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


def report(options: Options) -> Report:
    """Everything, on one Spark."""
    from server.session import SparkSettings, start

    rows = ROWS_QUICK if options.quick else ROWS
    fewer = DETECTED_QUICK if options.quick else DETECTED
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large = [Served(folder / f"large{n}", rows) for n in range(2)]
        small = [Served(folder / f"small{n}", fewer) for n in range(2)]
        began = time.monotonic()
        spark = start(SparkSettings())
        begun_s = time.monotonic() - began
        try:
            found: dict[str, list[float]] = {"parquet": [], "detection": []}
            for n in range(options.times(3) + 1):  # the first one warms up
                found["parquet"].append(to_parquet(spark, large, folder / f"parquet{n}"))
                found["detection"].append(to_detection(spark, small, folder / f"detection{n}"))
            late_ms = latencies(spark, small, folder / "live", options)
        finally:
            spark.stop()
            for one in (*large, *small):
                one.end()
    cuts = quantiles(late_ms, n=100)
    return Report(
        "server",
        [
            Table(
                "Rows a second from two output logs, local[2]",
                ["into", "rows", "first", "median after", "range after"],
                [
                    [
                        into,
                        f"{2 * count:,}",
                        f"{found[into][0]:,.0f}",
                        f"{median(found[into][1:]):,.0f}",
                        f"{min(found[into][1:]):,.0f} to {max(found[into][1:]):,.0f}",
                    ]
                    for into, count in (("parquet", rows), ("detection", fewer))
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
    sys.exit(run(__doc__, report))

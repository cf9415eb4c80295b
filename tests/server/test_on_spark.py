"""On a real Spark: one session for all, few tests; what can be shown without a JVM is elsewhere."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

import headwater
from language import check_text
from server import process
from server.catalogue import name_views
from server.config import read
from server.history import table_of
from server.job_checks import columns_of
from server.jobs.kinds import frame_of
from server.process import streams_of
from tests.oracles.generate import CONSTRUCTS, CONTEXTS, random_case
from tests.oracles.render import text_of
from tests.server.cluster import Cluster, bare_python
from tests.server.logs import FakeLog, event_from, result
from tests.server.test_detection import end_of, on_spark, plain, replayed
from tests.server.test_with_brokers import Site
from tests.simulation.network.spread import ASSIGNED_MS, Spread, moved
from tests.streams import lasted

pytestmark = [pytest.mark.timeout(400), pytest.mark.filterwarnings("default")]

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_S = 180.0
ROWS_MAX = 400  # of each log between two kills
MINUTE_MS = 60_000

JOBS = """
[server]
http = "127.0.0.1:0"
shuffle_partitions = 1
trigger = "100 ms"
[sources.region]
brokers = {{ {brokers} }}
batch_rows = {batch_rows}
[sources.slowly]
brokers = {{ {brokers} }}
batch_rows = 500
[sinks.archive]
kind = "parquet"
path = "history"
[sinks.db]
kind = "database"
url = "sqlite:///{folder}/out.db"
"""

HISTORY = """
[jobs.history]
kind = "history"
source = "region"
sink = ["archive", "db"]
"""

# Spark drops what was late before the batch before: a row can be lost from the third on alone.
MINUTES = """
[jobs.minutes]
kind = "windows"
source = "slowly"
window = "1 min"
by = ["location", "subscription"]
values = { coldest = "Min(n)" }
sink = "db"
"""
OTHERS = """
[jobs.pairs]
kind = "join"
source = "region"
left = { subscription = "Frost", broker = "a" }
right = { subscription = "Heat", broker = "b" }
within = "1 s"
sink = "db"
[jobs.once]
kind = "dedup"
source = "region"
sink = "db"
[jobs.both]
kind = "detect"
source = "region"
specification = "next.hw"
longest = "1 min"
parted = true
sink = "db"
"""

NEXT = """
event Frost(n: int)
event Heat(n: int)
subscription Both seq 1 from team to desk
detect Frost as a then[..1 s, next] Heat as b
group by location
"""


@pytest.fixture
def two():
    with FakeLog("ea") as a, FakeLog("eb") as b:
        yield {"a": a, "b": b}


def jobs_file(folder, logs, text, batch_rows=50_000):
    brokers = ", ".join(f'{name} = "{log.url}"' for name, log in logs.items())
    head = JOBS.format(brokers=brokers, folder=folder, batch_rows=batch_rows)
    (folder / "jobs.toml").write_text(head + text)
    (folder / "next.hw").write_text(NEXT)
    return folder / "jobs.toml"


def run_once(spark, file):
    """All streams of a file, side by side as the server runs them, up to where the logs end."""
    streams = streams_of(read(file))
    for stream in streams:
        stream.start(spark, once=True)
        process._await_begun(stream, threading.Event())
    at_work = [True]
    while any(at_work):
        # On a busy machine Spark gives up on a Python that is slow to start.
        at_work = [stream.look(spark, once=True) for stream in streams]
        assert all(stream.failures < 5 for stream in streams), [one.error for one in streams]
        time.sleep(0.05)
    assert not any(stream.down for stream in streams), [one.error for one in streams]
    for stream in streams:
        stream.stop()


def table(folder, name):
    with sqlite3.connect(folder / "out.db") as database:
        database.row_factory = sqlite3.Row
        rows = [dict(row) for row in database.execute(f'select * from "{name}"')]
    database.close()
    return rows


VALUES = """
[jobs.values]
kind = "windows"
source = "region"
subscriptions = ["Mixed"]
window = "1 min"
values = { seen = "Count(v)", total = "Sum(v)", mean = "Avg(v)", least = "Min(v)", most = "Max(v)" }
sink = "db"
"""

FIRSTS = """
[jobs.firsts]
kind = "dedup"
source = "region"
subscriptions = ["Door"]
keys = ["location", "v"]
within = "1 min"
sink = "db"
"""


def all_rows(logs):
    return sorted((name, at) for name, log in logs.items() for at, _, _ in log.rows)


def said(logs):
    """(broker, result) of every row."""
    return [(name, json.loads(text)) for name, log in logs.items() for _, text, _ in log.rows]


def windows_of(results, until_ms):
    """How many results are in each window of `minutes` that ends by then."""
    return Counter(
        (one["end"] // MINUTE_MS, one["group"]["location"], one["subscription"])
        for _, one in results
        if one["end"] < until_ms
    )


def counted(folder):
    """What `minutes` gave, without the ends that were put there to close it."""
    return {
        (_ms(row["start"]) // MINUTE_MS, row["location"], row["subscription"]): row["count"]
        for row in table(folder, "minutes")
        if row["subscription"] != "End"
    }


def test_a_job_of_two_sinks_reads_each_log_once(spark, two, tmp_path):
    """The files are in Spark's list, as where they are the only sink, and a run later goes on."""
    for log in two.values():
        log.add(*[result(n, 1000 * n + 500) for n in range(30)])
    for _ in range(2):
        run_once(spark, jobs_file(tmp_path, two, HISTORY))
        exact(spark, tmp_path, two)
        for log in two.values():
            asked = [query for path, query in log.asked if path == "/v1/log"]
            assert [(query["from"], query["to"]) for query in asked] in (
                [("0", "30")],
                [("0", "30"), ("30", "33")],
            )
            if log.end == 30:
                log.add(*[result(n, 1000 * n + 500) for n in range(30, 33)])


def test_spark_sql_knows_histories_and_brokers_by_their_names(spark, two, tmp_path):
    for log in two.values():
        log.add(*[result(n, 1000 * n + 500) for n in range(30)])
    file = jobs_file(tmp_path, two, HISTORY)
    assert name_views(spark, file) == ["region", "slowly"]  # nothing was written yet
    run_once(spark, file)
    assert name_views(spark, file) == ["region", "slowly", "history"]
    kept = [dict(log.acks) for log in two.values()]
    for log in two.values():
        log.add(result(99, 99_000))
    counts = "select broker, count(*) as rows from {} group by broker order by broker"
    for name, rows in (("history", 30), ("region", 31)):
        found = spark.sql(counts.format(name)).collect()
        assert list(map(tuple, found)) == [("a", rows), ("b", rows)]
    assert [log.acks for log in two.values()] == kept  # who looks is no consumer


def exact(spark, folder, logs):
    """Each result is in both sinks, once."""
    kept = spark.read.parquet(str(folder / "history")).select("broker", "offset").collect()
    assert sorted(map(tuple, kept)) == all_rows(logs)
    by_list = table_of(folder / "history", ["broker", "offset"]).to_pylist()
    assert sorted((row["broker"], row["offset"]) for row in by_list) == all_rows(logs)
    rows = table(folder, "history")
    assert sorted((row["broker"], row["offset"]) for row in rows) == all_rows(logs)


def test_a_checkpoint_goes_on_whichever_way_its_files_are_written(spark, two, tmp_path):
    """Also one of a server of before: windows are in state, and each row is in both sinks once."""
    key = "spark.sql.streaming.checkpointFileManagerClass"
    ours = spark.conf.get(key)
    usual = "org.apache.spark.sql.execution.streaming.checkpointing"
    usual += ".FileContextBasedCheckpointFileManager"
    assert ours != usual
    file = jobs_file(tmp_path, two, HISTORY + MINUTES)
    try:
        for n, way in enumerate([usual, ours, usual, ours]):
            spark.conf.set(key, way)
            for at, log in enumerate(two.values()):
                ends_ms = range(n * MINUTE_MS + at, (n + 1) * MINUTE_MS, 3000)
                log.add(*[result(end_ms, end_ms, n=n) for end_ms in ends_ms])
            run_once(spark, file)
            exact(spark, tmp_path, two)
    finally:
        spark.conf.set(key, ours)
    done = {window: rows for window, rows in counted(tmp_path).items() if window[0] < 2}
    assert done == windows_of(said(two), 2 * MINUTE_MS)


def test_a_value_that_is_no_number_is_counted_and_ends_no_job(spark, two, tmp_path):
    """Texts, truth values, lists and nulls among numbers, as where a subscription was changed."""
    values = [1, -2.5, "open", True, None, [1, 2], "7", 1e-7, "NaN", "infinity", "1d", "", 3e20]
    draw = random.Random(2)
    rows = [result(n, 1000 * n + 500, "Mixed", v=draw.choice(values)) for n in range(600)]
    for log in two.values():
        log.add(*rows, result(0, 60 * MINUTE_MS, "Mixed", v=0))
        log.promise(10**13)
    run_once(spark, jobs_file(tmp_path, two, VALUES))
    expected = {}
    for one in [*rows, *rows]:
        expected.setdefault(one["end"] // MINUTE_MS, []).append(one["values"]["v"])
    found = {_ms(row["start"]) // MINUTE_MS: row for row in table(tmp_path, "values")}
    assert set(found) >= set(expected)
    for minute, there in expected.items():
        row = found[minute]
        numbers = [
            float(v)
            for v in there
            if v == "7" or (isinstance(v, int | float) and not isinstance(v, bool))
        ]
        assert row["count"] == len(there)
        assert row["seen"] == sum(v is not None for v in there)
        assert row["total"] == pytest.approx(sum(numbers))
        assert row["mean"] == pytest.approx(sum(numbers) / len(numbers))
        assert (row["least"], row["most"]) == (min(numbers), max(numbers))


def firsts_of(rows, within_ms):
    """Those of (broker, result) that follow no kept one of the same keys within this time."""
    found, kept = [], {}
    for broker, one in sorted(rows, key=lambda row: (row[1]["end"], row[1]["start"], row[1]["id"])):
        by = one["group"]["location"], one["values"]["v"]
        if by not in kept or one["end"] - kept[by] > within_ms:
            kept[by] = one["end"]
            found.append((broker, one["id"]))
    return sorted(found)


@pytest.mark.long
def test_of_results_that_agree_the_first_in_event_time_is_kept(spark, two, tmp_path):
    """Whichever log it stands in, and however much is read at once: hours in one batch, or little.

    Where the first is found late its repeats stand before it in the log.
    """
    draw = random.Random(3)
    until_ms = 0
    for part, batch_rows in enumerate((100, 50_000)):
        until_ms += 3_600_000
        for name, log in two.items():
            ends = draw.sample(range(until_ms - 3_600_000, until_ms, 100), 400)  # no two at once
            rows = [
                result(f"{part}{name}{n}", end, "Door", f"hall-{draw.randrange(3)}",
                       v=draw.choice(["open", 'ü "', None, 7]))
                for n, end in enumerate(ends)
            ]  # fmt: skip
            log.add(*sorted(rows, key=lambda one: one["end"] + draw.choice((0, 0, 90_000))))
            log.promise(until_ms if part == 0 else 10**13)
        if part == 1:  # far later, so that everything is decided
            for name, log in two.items():
                log.add(result(f"end-{name}", 9_000_000 + len(name), "Door", name, v=0))
        run_once(spark, jobs_file(tmp_path, two, FIRSTS, batch_rows=batch_rows))
    expected = firsts_of([row for row in said(two) if row[1]["end"] < 9_000_000], 60_000)
    found = [row for row in table(tmp_path, "firsts") if not row["id"].startswith("Door-a-end")]
    found = [row for row in found if not row["id"].startswith("Door-b-end")]
    assert sorted((row["broker"], row["id"]) for row in found) == expected
    assert 100 < len(expected) < 1500
    by_id = {one["id"]: one for _, one in said(two)}
    for row in found:
        one = by_id[row["id"]]
        assert json.loads(row["payload"]) == one
        assert [_ms(row[key]) for key in ("start", "end", "detected_at")] == [
            one[key] for key in ("start", "end", "detected_at")
        ]
        assert row["location"] == one["group"]["location"]
        assert json.loads(row["values"]) == one["values"]


def test_an_error_of_spark_is_raised_and_not_told_on_the_way(spark, capfd):
    from pyspark.errors import NumberFormatException
    from pyspark.sql import functions as F  # noqa: N812

    with pytest.raises(NumberFormatException):
        spark.range(1).select(F.lit("x").cast("double")).collect()
    assert "CAST_INVALID_INPUT" not in capfd.readouterr().err


@pytest.mark.long
def test_every_job_gives_what_its_input_says_with_a_broker_ten_minutes_behind(spark, two, tmp_path):
    """The log of `b` begins ten minutes before that of `a`: still nothing of it is late.

    Nor is what `b` finds minutes later than the rest, as a subscription had to wait: twice `delay`
    is no reason to be in no window. The first run ends when that was found, but nobody knew that it
    was all; in the second this is known, and there is nothing to read.
    """
    found = {
        "a": [result(n, 600_000 + 1000 * n + 700, "Frost", f"hall-{n % 3}") for n in range(600)],
        "b": [result(n, 1000 * n + 1500, "Heat", f"hall-{n % 3}") for n in range(1200)],
    }
    for n in range(605, 1190, 100):  # the same results by both
        for rows in found.values():
            rows.append(result(n, 1000 * n, "Same"))
    draw = random.Random(1)

    def found_ms(one):
        waited_ms = 150_000 if 200_000 < one["end"] < 220_000 else 0
        return one["end"] + draw.uniform(0, 8000) + waited_ms

    for name, log in two.items():
        rows = sorted((found_ms(one), n) for n, one in enumerate(found[name]))
        first = [found[name][n] for at_ms, n in rows if at_ms < 380_000]
        log.add(*first)
        log.promise(215_000)
        found[name] = [found[name][n] for at_ms, n in rows if at_ms >= 380_000]
    run_once(spark, jobs_file(tmp_path, two, MINUTES))
    early = said(two)
    assert min(one["end"] for rows in found.values() for one in rows) > 360_000
    assert counted(tmp_path) == windows_of(early, 180_000)
    for log in two.values():
        log.asked.clear()
        log.promise(360_000)
    run_once(spark, jobs_file(tmp_path, two, MINUTES))
    assert not [path for log in two.values() for path, _ in log.asked if path == "/v1/log"]
    assert counted(tmp_path) == windows_of(early, 360_000)
    for name, log in two.items():
        log.add(*found[name])
        log.promise(10**13)
    for n, log in enumerate(two.values()):  # far later, so that every window is closed
        log.add(result(9999, 60 * MINUTE_MS + n, "End"))
        log.add(result(9998, 90 * MINUTE_MS + n, "End"))
    run_once(spark, jobs_file(tmp_path, two, HISTORY + MINUTES + OTHERS, batch_rows=1000))
    every = said(two)

    history = spark.read.parquet(str(tmp_path / "history"))
    kept = sorted(tuple(row) for row in history.select("broker", "offset").collect())
    assert kept == all_rows(two)
    assert table_of(tmp_path / "history").num_rows == len(kept)  # without Spark
    assert sorted((row["broker"], row["offset"]) for row in table(tmp_path, "history")) == kept

    assert counted(tmp_path) == windows_of(every, 60 * MINUTE_MS)
    rows = table(tmp_path, "minutes")
    assert len({row["id"] for row in rows}) == len(rows)

    frosts = [one for broker, one in every if (broker, one["subscription"]) == ("a", "Frost")]
    heats = [one for broker, one in every if (broker, one["subscription"]) == ("b", "Heat")]
    pairs = sorted(
        (left["id"], right["id"])
        for left in frosts
        for right in heats
        if left["group"] == right["group"] and 0 < right["end"] - left["end"] <= 1000
    )
    assert pairs
    assert sorted((row["left_id"], row["right_id"]) for row in table(tmp_path, "pairs")) == pairs

    ids = [row["id"] for row in table(tmp_path, "once")]
    assert sorted(ids) == sorted({one["id"] for _, one in every})

    assert both(tmp_path) == replay(every)


def both(folder):
    """What `both` found."""
    return sorted(row["payload"] for row in table(folder, "both"))


def replay(results):
    """What it has to find in (broker, result) of all."""
    engine = headwater.Engine(NEXT, lateness_ms=None)
    engine.push([event_from(one, broker) for broker, one in results])
    found = sorted(json.dumps(one, separators=(",", ":")) for one in engine.finish())
    assert found
    return found


@pytest.mark.long
@pytest.mark.parametrize("kind", ["windows", "detect"])
def test_a_stream_goes_on_where_results_never_stand_in_order(spark, tmp_path, kind):
    """While it runs: what is late stands in the log all the time, and in the end no more comes."""
    with FakeLog("ea") as log:
        log.promise(0)
        jobs = MINUTES if kind == "windows" else OTHERS[OTHERS.index("[jobs.both]") :]
        (stream,) = streams_of(read(jobs_file(tmp_path, {"a": log}, jobs)))
        stream.start(spark, once=False)
        for until_s in (*range(100, 701, 100), 2000):
            if until_s <= 600:
                log.add(*[result(n, 1000 * n, "Frost") for n in range(until_s - 100, until_s)])
            late = [n for n in range(until_s - 400, until_s - 300, 20) if 0 <= n < 300]
            log.add(*[result(n, 1000 * n + 500, "Heat") for n in late])
            log.promise(max(0, 1000 * (until_s - 300) - 1))
            deadline = time.monotonic() + PATIENCE_S
            while log.end and str(log.end) not in str(stream.running.lastProgress):
                assert stream.look(spark, once=False)
                assert time.monotonic() < deadline
                time.sleep(0.05)
        every = said({"a": log})
        if kind == "windows":
            ask, wanted = counted, windows_of(every, 540_000)
        else:
            ask, wanted = both, replay(every)
        while not (tmp_path / "out.db").exists() or ask(tmp_path) != wanted:
            assert stream.look(spark, once=False)
            assert time.monotonic() < deadline, ask(tmp_path)
            time.sleep(0.05)
        stream.stop()


KEPT = """
[jobs.kept]
kind = "history"
source = "region"
sink = "archive"
"""


def test_brokers_come_and_go_and_what_retention_took_is_told(spark, two, tmp_path):
    """All with one checkpoint."""
    for log in two.values():
        log.add(*[result(n, 1000 * n) for n in range(30)])
    run_once(spark, jobs_file(tmp_path, two, KEPT))
    with FakeLog("ec") as third:
        third.add(*[result(n, 1000 * n) for n in range(20)])
        two["b"].add(result(30, 30_000))
        later = {"b": two["b"], "c": third}
        run_once(spark, jobs_file(tmp_path, later, KEPT))
        every = {**two, "c": third}
        rows = table_of(tmp_path / "history", ["broker", "offset"]).to_pylist()
        assert sorted((row["broker"], row["offset"]) for row in rows) == all_rows(every)

        two["b"].add(*[result(n, 1000 * n) for n in range(31, 90)])
        two["b"].retain(50)
        (stream,) = streams_of(read(jobs_file(tmp_path, later, KEPT)))
        stream.start(spark, once=True)
        while stream.look(spark, once=True):
            time.sleep(0.05)
        stream.stop()
        assert stream.down
        assert "broker b: offsets 31 to 49 (19 offsets)" in stream.error


COLUMNS = """
[jobs.history]
kind = "history"
source = "region"
sink = "archive"
[jobs.windows]
kind = "windows"
source = "region"
window = "1 min"
by = ["location", "gate"]
values = { most = "Max(x)", all = "Sum(x)" }
sink = "archive"
[jobs.join]
kind = "join"
source = "region"
left = { subscription = "A" }
right = { subscription = "B" }
on = ["location", "gate"]
within = "1 min"
sink = "archive"
[jobs.dedup]
kind = "dedup"
source = "region"
sink = "archive"
[jobs.detect]
kind = "detect"
source = "region"
specification = "text.hw"
sink = "archive"
"""


def test_a_topic_may_name_the_very_columns_that_jobs_give(spark, two, tmp_path):
    (tmp_path / "text.hw").write_text("event A(x: int)\nsubscription S from u to a detect A\n")
    jobs = read(jobs_file(tmp_path, two, COLUMNS))
    for job in jobs.jobs.values():
        assert sorted(frame_of(spark, jobs, job, "check").columns) == sorted(columns_of(job))


def test_the_archive_for_executors_is_not_where_this_process_imports_from(spark):
    assert not [one for one in sys.path if "headwater-" in one and one.endswith(".zip")]


FROM_FILES = """
[server]
http = "127.0.0.1:0"
shuffle_partitions = 1
[sources.recorded]
kind = "events"
path = "events"
[jobs.found]
kind = "detect"
source = "recorded"
specification = "found.hw"
longest = "{longest_ms} ms"
delay = "0 s"
sink = "db"
[sinks.db]
kind = "database"
url = "sqlite:///{folder}/out.db"
"""
FAR_MS = 4_000_000_000_000


def generated(seed, count, usable):
    """(text, events, results) of cases that have some, none of them only at the end of all time.

    `usable` gives the events that are taken of a case.
    """
    draw = random.Random(seed)
    while count:
        spec, events = random_case(
            draw.randrange(10**6), draw.choice([*CONSTRUCTS]), draw.choice([*CONTEXTS])
        )
        text, events = text_of(spec), usable(events)
        refused = not check_text(text).ok or "absent" in text or 'from "' in text
        if refused or not events or any(not 0 < end_of(one) < FAR_MS for one in events):
            continue
        expected = plain(replayed(text, events))
        if expected and plain(on_spark(text, events, draw, finished=False)) == expected:
            count -= 1
            yield text, events, expected


def run_generated(spark, folder, seed, cases):
    for number, (text, events, expected) in enumerate(cases):
        here = folder / f"case{number}"
        (here / "events").mkdir(parents=True)
        (here / "found.hw").write_text(text)
        longest_ms = max([ASSIGNED_MS, *(lasted(one) for one in events)])
        jobs = FROM_FILES.format(folder=here, longest_ms=longest_ms)
        (here / "jobs.toml").write_text(jobs)
        shuffled = random.Random(seed).sample(events, len(events))
        last = {"type": "TheEnd", "id": "end", "timestamp": FAR_MS}
        lines = [json.dumps(one) for one in [*shuffled, last]]
        (here / "events" / "0.jsonl").write_text("\n".join(lines))
        run_once(spark, here / "jobs.toml")
        rows = table(here, "found")
        assert plain(json.loads(row["payload"]) for row in rows) == expected, text


def in_network_too(cases):
    """These cases, of which the results of a network are the same."""
    for number, (text, events, expected) in enumerate(cases):
        run = Spread(number, text, events, faults=15)
        run.run()
        assert plain(run.results) == expected, text
        yield text, events, expected


def test_a_generated_specification_gives_what_a_replay_and_a_network_give(spark, tmp_path):
    run_generated(spark, tmp_path, 11, in_network_too(generated(11, 1, moved)))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_generated_specifications_give_what_a_replay_and_a_network_give(spark, tmp_path):
    run_generated(spark, tmp_path, 12, in_network_too(generated(12, 15, moved)))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_generated_specifications_over_events_that_last_give_what_a_replay_gives(spark, tmp_path):
    run_generated(spark, tmp_path, 13, generated(13, 15, list))


def _ms(text):
    from datetime import UTC, datetime

    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


class Driver:
    """`headwater server run` in a process group of its own, so that all of it can be killed."""

    def __init__(self, folder, file, *flags, command=("run",), **environ):
        self.log = (folder / "driver.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headwater.cli", "server", *command, str(file), *flags],
            cwd=ROOT,
            env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), **environ},
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )

    def kill(self):
        """Driver, Java and whatever they began, at once."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE_S)
        self.log.close()

    def end(self):
        status = self.process.wait(PATIENCE_S)
        self.log.close()
        return status


def until(condition, driver, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert driver.process.poll() is None, f"the driver ended before {what}"
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.05)


def batches_of(folder, job="history"):
    """How many batches a job has; Spark forgets old ones, so the last number counts."""
    commits = [
        max((int(one.name) + 1 for one in place.iterdir() if one.name.isdigit()), default=0)
        for place in (folder / "state").glob(f"{job}-*/spark/commits")
    ]
    return max(commits, default=0)


def kill_and_go_on(folder, logs, times):
    """Kill the driver so often while it works, the last time let it end; both sinks' rows."""
    file = jobs_file(folder, logs, HISTORY, batch_rows=40)
    number = Counter()

    def feed(rows_max):
        for name, log in logs.items():
            for _ in range(20 if number[name] < rows_max else 0):
                number[name] += 1
                log.add(result(number[name], 1000 * number[name]))

    for turn in range(1, times + 1):
        before = batches_of(folder)
        driver = Driver(folder, file)
        try:
            until(
                lambda before=before, rows_max=ROWS_MAX * turn: (
                    feed(rows_max) or batches_of(folder) > before + 2
                ),
                driver,
                "a few batches",
            )
        finally:
            driver.kill()
    jobs_file(folder, logs, HISTORY)  # the rest at once
    last = Driver(folder, file, "--once")
    try:
        assert last.end() == 0, (folder / "driver.log").read_text()[-3000:]
    finally:
        last.kill()


def check_exact(spark, folder, logs):
    found = spark.read.parquet(str(folder / "history")).select("broker", "offset").collect()
    assert sorted(map(tuple, found)) == all_rows(logs)
    rows = table(folder, "history")
    assert sorted((row["broker"], row["offset"]) for row in rows) == all_rows(logs)


def on_cluster(text, cluster):
    """A file of jobs, for a cluster that is slow to see that an executor has gone."""
    settings = '{ "spark.executor.memory" = "512m", "spark.task.maxFailures" = "20" }'
    return text.replace("[server]", f'[server]\nmaster = "{cluster.url}"\nspark = {settings}')


@pytest.mark.long
def test_an_executor_a_broker_and_the_driver_are_killed_and_nothing_is_lost_or_doubled(
    spark, tmp_path
):
    """One after the other, each with rows left to read; then what is left is read here."""
    sites = {name: Site(tmp_path, name).staying() for name in ("north", "south")}
    with ExitStack() as brokers:
        with ExitStack() as cluster_too, ThreadPoolExecutor() as side_by_side:
            cluster = Cluster(tmp_path)
            begun = [side_by_side.submit(brokers.enter_context, one) for one in sites.values()]
            begun.append(side_by_side.submit(cluster_too.enter_context, cluster))
            for one in begun:
                one.result()
            file = jobs_file(tmp_path, sites, HISTORY, batch_rows=20)
            file.write_text(on_cluster(file.read_text(), cluster))
            driver = Driver(tmp_path, file, PYSPARK_PYTHON=str(bare_python(tmp_path)))

            def go_on():
                before = batches_of(tmp_path)
                for site in sites.values():
                    site.feed(80)
                until(lambda: batches_of(tmp_path) > before, driver, "a batch")

            try:
                for site in sites.values():
                    site.submit()
                go_on()
                until(cluster.kill_executor, driver, "an executor to kill")
                go_on()
                sites["south"].kill()
                go_on()
            finally:
                driver.kill()
        run_once(spark, jobs_file(tmp_path, sites, HISTORY))  # what is left in one batch
        expected = sorted((name, one) for name, site in sites.items() for one in site.ids())
        assert len(expected) == 2 * 3 * 40
        kept = spark.read.parquet(str(tmp_path / "history")).select("broker", "id").collect()
        assert sorted(map(tuple, kept)) == expected
        assert sorted((row["broker"], row["id"]) for row in table(tmp_path, "history")) == expected


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_ten_drivers_that_are_killed_lose_and_double_nothing(spark, two, tmp_path):
    kill_and_go_on(tmp_path, two, 10)
    check_exact(spark, tmp_path, two)

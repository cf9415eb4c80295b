"""Executors and brokers that are killed under load: nothing is lost and nothing is twice."""

import json
from collections import Counter

import pytest

import headwater
from tests.server.cluster import Cluster, bare_python
from tests.server.logs import FakeLog, event_from, result
from tests.server.test_on_spark import (
    HISTORY,
    JOBS,
    NEXT,
    Driver,
    all_rows,
    batches_of,
    on_cluster,
    said,
    table,
    until,
)
from tests.server.test_with_brokers import Site

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("default"),
]

DETECT = """
[jobs.both]
kind = "detect"
source = "region"
specification = "next.hw"
longest = "1 min"
delay = "0 s"
sink = "db"
"""


def feed(logs, number, rows_max):
    for name, log in logs.items():
        for _ in range(20 if number[name] < rows_max else 0):
            number[name] += 1
            n = number[name]
            kind = "Frost" if name == "a" else "Heat"
            log.add(result(n, 1000 * n + (600 if name == "b" else 0), kind, f"hall-{n % 3}"))


def exact(spark, folder, logs):
    kept = spark.read.parquet(str(folder / "history")).select("broker", "offset").collect()
    assert sorted(map(tuple, kept)) == all_rows(logs)
    rows = table(folder, "history")
    assert sorted((row["broker"], row["offset"]) for row in rows) == all_rows(logs)


def test_ten_executors_of_a_cluster_are_killed(spark, tmp_path):
    """Master and node are real; executors have neither our packages nor a path to them."""
    number = Counter()
    with FakeLog("ea") as a, FakeLog("eb") as b, Cluster(tmp_path) as cluster:
        logs = {"a": a, "b": b}
        brokers = ", ".join(f'{name} = "{log.url}"' for name, log in logs.items())
        head = JOBS.format(brokers=brokers, folder=tmp_path, batch_rows=40)
        text = on_cluster(head + HISTORY + DETECT, cluster)
        (tmp_path / "jobs.toml").write_text(text)
        (tmp_path / "next.hw").write_text(NEXT)
        bare = str(bare_python(tmp_path))
        driver = Driver(tmp_path, tmp_path / "jobs.toml", PYSPARK_PYTHON=bare)
        try:
            for killed in range(1, 11):
                before = batches_of(tmp_path)
                until(
                    lambda before=before, rows_max=300 * killed: (
                        feed(logs, number, rows_max) or batches_of(tmp_path) > before + 1
                    ),
                    driver,
                    "a few batches",
                )
                until(cluster.kill_executor, driver, "an executor to kill")
        finally:
            driver.kill()
        for log in logs.values():
            log.add(result(0, 36_000_000, "End"))
            log.add(result(0, 72_000_000, "End"))
        (tmp_path / "jobs.toml").write_text(text.replace("batch_rows = 40", "batch_rows = 50000"))
        last = Driver(tmp_path, tmp_path / "jobs.toml", "--once", PYSPARK_PYTHON=bare)
        try:
            assert last.end() == 0, (tmp_path / "driver.log").read_text()[-3000:]
        finally:
            last.kill()
        exact(spark, tmp_path, logs)
        engine = headwater.Engine(NEXT, lateness_ms=None)
        engine.push([event_from(one, broker) for broker, one in said(logs)])
        expected = sorted(one["id"] for one in engine.finish())
        assert expected
        assert sorted(row["id"] for row in table(tmp_path, "both")) == expected


def test_brokers_are_killed_while_they_are_read(spark, tmp_path):
    """Ten times, in turns; each comes back at its address, with its disk."""
    with (
        Site(tmp_path, "north").staying() as north,
        Site(tmp_path, "south").staying() as south,
    ):
        sites = [north, south]
        for site in sites:
            site.submit()
        brokers = ", ".join(f'{site.name} = "{site.url}"' for site in sites)
        head = JOBS.format(brokers=brokers, folder=tmp_path, batch_rows=40)
        (tmp_path / "jobs.toml").write_text(head + HISTORY)
        driver = Driver(tmp_path, tmp_path / "jobs.toml")
        try:
            for n in range(10):
                for site in sites:
                    site.feed(30)
                before = batches_of(tmp_path)
                until(lambda before=before: batches_of(tmp_path) > before, driver, "a batch")
                sites[n % 2].kill()
        finally:
            driver.kill()
        last = Driver(tmp_path, tmp_path / "jobs.toml", "--once")
        try:
            assert last.end() == 0, (tmp_path / "driver.log").read_text()[-3000:]
        finally:
            last.kill()
        expected = sorted((site.name, one) for site in sites for one in site.ids())
        kept = spark.read.parquet(str(tmp_path / "history")).select("broker", "id").collect()
        assert sorted(map(tuple, kept)) == expected
        rows = table(tmp_path, "history")
        assert sorted((row["broker"], row["id"]) for row in rows) == expected
        assert len(expected) == sum(json.loads(row["values"])["value"] < 0 for row in rows)

"""On a real Spark: a job of today begins with the history, and finds what a replay of all finds."""

import json
import random

import pytest

from server.history import table_of
from server.process import check
from tests.server.logs import FakeLog, result
from tests.server.test_on_spark import (
    HISTORY,
    KEPT,
    MINUTE_MS,
    MINUTES,
    OTHERS,
    Driver,
    all_rows,
    batches_of,
    both,
    counted,
    jobs_file,
    replay,
    run_once,
    said,
    table,
    until,
    windows_of,
)

pytestmark = [pytest.mark.timeout(400), pytest.mark.filterwarnings("default")]

PAST = """
[sources.month]
kind = "history"
path = "history"
"""
AFTER_MS = {"a": 30_000, "b": 30_800}  # so that a pair is found
DETECT = OTHERS[OTHERS.index("[jobs.both]") :]


def backfilled(text):
    """These jobs, begun with the history."""
    return PAST + text.replace('sink = "db"', 'sink = "db"\nbackfill = "month"')


def month(logs, days, draw):
    """Each day pairs and what is none of them, found in an order of its own, in the logs."""
    for day in range(days):
        begin_ms = day * 86_400_000
        for name, log in logs.items():
            subscription = {"a": "Frost", "b": "Heat"}[name]
            rows = [
                result(100 * day + n, begin_ms + 60_000 * n + draw.randrange(60_000), subscription,
                       f"hall-{draw.randrange(2)}")
                for n in range(40)
            ]  # fmt: skip
            rows += [
                result(10_000 + 100 * day + n, begin_ms + 60_000 * n + AFTER_MS[name], subscription)
                for n in range(0, 40, 4)
            ]
            log.add(*sorted(rows, key=lambda one: one["end"] + draw.choice((0, 0, 90_000))))
            log.promise(begin_ms + 40 * MINUTE_MS)


def end(logs):
    for n, log in enumerate(logs.values()):
        log.add(result(9999, 90 * 86_400_000 + n, "End"))
        log.promise(10**13)


@pytest.fixture
def two():
    with FakeLog("ea") as a, FakeLog("eb") as b:
        yield {"a": a, "b": b}


def live_after_history(spark, folder, logs, days):
    """The history of these days; then days of which the brokers alone have the last."""
    draw = random.Random(5)
    month(logs, days, draw)
    run_once(spark, jobs_file(folder, logs, KEPT))
    every = said(logs)
    for log in logs.values():
        log.retain(log.end - 5)
    month_later(logs, days, draw, every)
    return every


def month_later(logs, days, draw, every):
    before = {name: log.end for name, log in logs.items()}
    for name, log in logs.items():
        rows = [
            result(20_000 + n, days * 86_400_000 + 30_000 * n + AFTER_MS[name],
                   {"a": "Frost", "b": "Heat"}[name], f"hall-{draw.randrange(2)}")
            for n in range(60)
        ]  # fmt: skip
        log.add(*rows)
    end(logs)
    later = {
        name: [row for row in log.rows if row[0] >= before[name]] for name, log in logs.items()
    }
    every += [(name, json.loads(text)) for name, rows in later.items() for _, text, _ in rows]


def test_a_text_of_today_over_a_history_finds_what_a_replay_of_all_finds(spark, two, tmp_path):
    every = live_after_history(spark, tmp_path, two, days=2)
    file = jobs_file(tmp_path, two, backfilled(DETECT + MINUTES), batch_rows=150)
    check(file)
    run_once(spark, file)
    assert batches_of(tmp_path, "both") > 2  # of the history, of both, and of the brokers
    assert both(tmp_path) == replay(every)
    assert counted(tmp_path) == windows_of(every, 80 * 86_400_000)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_every_kind_of_job_over_a_month(spark, two, tmp_path):
    every = live_after_history(spark, tmp_path, two, days=30)
    run_once(spark, jobs_file(tmp_path, two, backfilled(MINUTES + OTHERS)))
    assert both(tmp_path) == replay(every)
    assert counted(tmp_path) == windows_of(every, 80 * 86_400_000)
    ids = [row["id"] for row in table(tmp_path, "once")]
    assert sorted(ids) == sorted({one["id"] for _, one in every})


ALONE = PAST + HISTORY.replace('"region"', '"month"').replace('["archive", "db"]', '"db"')


def test_a_history_is_a_source_of_its_own(spark, two, tmp_path):
    """The brokers are gone, and their rows are there."""
    month(two, 1, random.Random(6))
    run_once(spark, jobs_file(tmp_path, two, KEPT))
    rows = all_rows(two)
    for log in two.values():
        log.close()
    run_once(spark, jobs_file(tmp_path, two, ALONE))
    assert sorted((row["broker"], row["offset"]) for row in table(tmp_path, "history")) == rows


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_drivers_that_are_killed_in_the_backfill_lose_and_double_nothing(spark, two, tmp_path):
    for name, log in two.items():
        log.add(*[result(n, 1000 * n, location=name) for n in range(2000)])
    run_once(spark, jobs_file(tmp_path, two, KEPT))
    expected = all_rows(two)
    for log in two.values():
        log.retain(1990)
    text = backfilled(HISTORY.replace("history]", "again]").replace('["archive", "db"]', '"db"'))
    file = jobs_file(tmp_path, two, text, batch_rows=60)

    def batches():
        return batches_of(tmp_path, "again")

    for turn in range(4):
        before = batches()
        driver = Driver(tmp_path, file)
        try:
            until(lambda before=before: batches() > before + 2, driver, "a few batches")
        finally:
            driver.kill()
        for name, log in two.items():  # meanwhile the brokers go on
            log.add(*[result(5000 + 10 * turn + n, 3_000_000, location=name) for n in range(5)])
    assert 0 < len(table(tmp_path, "again")) < len(expected)
    last = Driver(tmp_path, jobs_file(tmp_path, two, text), "--once")
    try:
        assert last.end() == 0, (tmp_path / "driver.log").read_text()[-3000:]
    finally:
        last.kill()
    later = [(name, at) for name, log in two.items() for at, _, _ in log.rows if at >= 2000]
    rows = table(tmp_path, "again")
    assert sorted((row["broker"], row["offset"]) for row in rows) == sorted(expected + later)
    assert len(table_of(tmp_path / "history", ["offset"])) == len(expected)

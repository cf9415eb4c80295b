"""What was planned of a broker that is gone when it is read: others go on, and it comes once."""

import json
import random
import socket
import sqlite3
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from aiomqtt import MqttError
from pyspark.errors import AnalysisException

from server.config import read
from server.history import recorded
from server.source.history import HistoryGap, gaps_in
from server.source.log import AwayError
from server.source.places import (
    POSTPONED,
    LogPlace,
    Postponed,
    PostponedRange,
    offset_of,
    places_in,
    places_of,
    unfinished_in,
)
from server.source.planning import LostError
from server.streams import JobStream
from tests.server.logs import FakeLog, result
from tests.server.test_on_spark import (
    HISTORY,
    JOBS,
    Driver,
    table,
    until,
)
from tests.server.test_source import ALL, Stream, numbers, rows_of
from tests.server.test_with_brokers import Site

ROWS = [result(n, 1000 * n + 1000) for n in range(40)]
OPTIONS = {"align": "false", "readRetry": "0"}


@pytest.fixture
def two(tmp_path):
    with FakeLog("ea") as a, FakeLog("eb") as b:
        a.add(*ROWS[:5])
        b.add(*ROWS[:5])
        yield {"a": a, "b": b}


def stream_of(logs, folder, **options):
    return Stream(logs, **{"postponed": str(folder), **OPTIONS, **options})


def begun(stream):
    """Begin both logs, without rows yet."""
    stream.offset = stream.reader.latestOffset(stream.offset, ALL)
    return stream


def gone(stream, name):
    """Wait until it is known that a broker is away."""
    deadline = time.monotonic() + 10
    while stream.reader._look()[name].away is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def seen(stream, name, end):
    """Wait until a broker's log is known to go so far."""
    deadline = time.monotonic() + 10
    while (known := stream.reader._look()[name]).away is not None or known.standing.end < end:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_others_go_on_when_a_broker_goes_between_plan_and_reading(two, tmp_path, capfd):
    with begun(stream_of(two, tmp_path)) as stream:
        end = stream.reader.latestOffset(stream.offset, ALL)
        assert places_of(end)["b"].next == 5
        two["b"].close()
        gone(stream, "b")
        rows = rows_of(stream.reader, stream.reader.partitions(stream.offset, end))
        assert numbers(rows) == [("a", n) for n in range(5)]
        assert "offsets 0 to 4 were to be read of it: others go on" in capfd.readouterr().err
        stream.offset = end
        two["a"].add(*ROWS[5:8])
        seen(stream, "a", 8)
        assert numbers(stream.rest()) == [("a", 5), ("a", 6), ("a", 7)]
        two["b"].add(*ROWS[5:7])
        two["b"].open()
        seen(stream, "b", 7)
        assert numbers(stream.rest()) == [("b", n) for n in range(7)]
        assert stream.rest() == []
        assert not list(tmp_path.iterdir())  # of what is over nothing is kept


def test_a_batch_that_left_something_out_does_so_again_when_the_broker_is_back(two, tmp_path):
    with begun(stream_of(two, tmp_path)) as stream:
        before, end = stream.offset, stream.reader.latestOffset(stream.offset, ALL)
        two["b"].close()
        gone(stream, "b")
        rows = rows_of(stream.reader, stream.reader.partitions(before, end))
    two["b"].open()
    with stream_of(two, tmp_path) as later:  # the driver died: the batch is run again
        assert rows_of(later.reader, later.reader.partitions(before, end)) == rows
        later.offset = end
        assert numbers(later.rest()) == [("b", n) for n in range(5)]


def test_a_batch_that_one_sink_may_have_is_the_same_for_the_next(two, tmp_path):
    with begun(stream_of(two, tmp_path)) as stream:
        end = stream.reader.latestOffset(stream.offset, ALL)
        parts = stream.reader.partitions(stream.offset, end)
        assert len(rows_of(stream.reader, parts)) == 10
        two["b"].close()
        gone(stream, "b")
        with pytest.raises(AwayError, match="broker b cannot be reached"):
            rows_of(stream.reader, stream.reader.partitions(stream.offset, end))


def test_a_batch_that_a_sink_may_have_leaves_out_what_it_did_and_no_more(two, tmp_path):
    """After the death of a driver, when its sink has the batch, or cannot be asked for it."""
    with begun(stream_of(two, tmp_path)) as stream:
        before, end = stream.offset, stream.reader.latestOffset(stream.offset, ALL)
        two["b"].close()
        gone(stream, "b")
        rows = rows_of(stream.reader, stream.reader.partitions(before, end))
        assert numbers(rows) == [("a", n) for n in range(5)]
    two["b"].open()
    with stream_of(two, tmp_path, wholeFirst="true") as later:
        assert rows_of(later.reader, later.reader.partitions(before, end)) == rows
        later.offset = end
        assert numbers(later.rest()) == [("b", n) for n in range(5)]
        assert later.rest() == []


def test_of_a_batch_that_a_sink_may_have_in_full_nothing_is_left_out(two, tmp_path):
    with begun(stream_of(two, tmp_path)) as stream:
        before, end = stream.offset, stream.reader.latestOffset(stream.offset, ALL)
        assert len(rows_of(stream.reader, stream.reader.partitions(before, end))) == 10
    two["b"].close()
    with stream_of(two, tmp_path, wholeFirst="true") as later:
        gone(later, "b")
        with pytest.raises(AwayError, match="broker b cannot be reached"):
            rows_of(later.reader, later.reader.partitions(before, end))
        two["b"].open()
        seen(later, "b", 5)
        assert len(rows_of(later.reader, later.reader.partitions(before, end))) == 10
        later.offset = end
        two["a"].add(*ROWS[5:6])
        two["b"].add(*ROWS[5:6])
        seen(later, "a", 6)
        seen(later, "b", 6)
        end = later.reader.latestOffset(later.offset, ALL)
        two["b"].close()
        gone(later, "b")  # the next batch is in no sink
        assert numbers(rows_of(later.reader, later.reader.partitions(later.offset, end))) == [
            ("a", 5)
        ]


@pytest.mark.parametrize("held", [True, False])
def test_a_stream_keeps_its_notes_whatever_its_sinks_may_have(tmp_path, monkeypatch, held):
    asked = {}

    def reached(spark, jobs, job, consumer, postponed, *, whole_first):
        asked.update(postponed=postponed, whole_first=whole_first)
        raise InterruptedError

    (tmp_path / "jobs.toml").write_text(
        JOBS.format(brokers='a = "http://127.0.0.1:1"', folder=tmp_path, batch_rows=40) + HISTORY
    )
    jobs = read(tmp_path / "jobs.toml")
    job = jobs.jobs["history"]
    names = job["sink"]
    stream = JobStream(jobs, job, tuple(jobs.sinks[name] for name in names), names[0])
    monkeypatch.setattr("server.streams.frame_of", reached)
    monkeypatch.setattr("server.streams.Batches.hold", lambda *_: held)
    with pytest.raises(InterruptedError):
        stream.start(None, once=False)
    stream.stop()
    assert asked["postponed"].name == POSTPONED
    assert asked["whole_first"] is held


@pytest.mark.parametrize("more", [{"align": "true"}, {"onBrokerAway": "fail"}, {"postponed": ""}])
def test_jobs_that_have_to_wait_do(two, tmp_path, more):
    with begun(stream_of(two, tmp_path, **more)) as stream:
        end = stream.reader.latestOffset(stream.offset, ALL)
        two["b"].close()
        gone(stream, "b")
        with pytest.raises(AwayError, match="broker b cannot be reached"):
            rows_of(stream.reader, stream.reader.partitions(stream.offset, end))


@pytest.mark.parametrize("more", [{}, {"lateAfter": "0"}])
def test_a_job_by_event_time_goes_on_once_a_broker_was_waited_for(two, tmp_path, capfd, more):
    """Also where each attempt at the batch has failed, and begun anew."""
    options = {"align": "true", "awayTimeout": "0.4", **more}
    if more:
        for log in two.values():
            log.promise(10**6)
    with begun(stream_of(two, tmp_path, **options)) as stream:
        start, end = stream.offset, stream.reader.latestOffset(stream.offset, ALL)
        two["b"].close()
        gone(stream, "b")
        with pytest.raises(AwayError, match="broker b cannot be reached"):
            rows_of(stream.reader, stream.reader.partitions(start, end))
    time.sleep(0.5)
    with stream_of(two, tmp_path, **options) as stream:
        gone(stream, "b")
        rows = rows_of(stream.reader, stream.reader.partitions(start, end))
        assert numbers(rows) == [("a", n) for n in range(5)]
        assert "offsets 0 to 4 were to be read of it: others go on" in capfd.readouterr().err
        stream.offset = end
        two["a"].add(*ROWS[5:8])
        seen(stream, "a", 8)
        assert numbers(stream.rest()) == [("a", 5), ("a", 6), ("a", 7)]  # not waited for again
        two["b"].add(*ROWS[5:7])
        two["b"].open()
        seen(stream, "b", 7)
        assert numbers(row for row in stream.rest() if row["id"]) == [("b", n) for n in range(7)]
        assert stream.rest() == []
        assert not list(tmp_path.iterdir())
        late = "broker b: 7 results among offsets 0 to 6 come later than the windows"
        assert (late in capfd.readouterr().err) is bool(more)


def test_a_broker_that_went_again_is_waited_for_again(two, tmp_path):
    """Of the time before it was back nothing counts, whichever process has seen it away."""
    options = {"align": "true", "awayTimeout": "0.4"}
    with begun(stream_of(two, tmp_path, **options)) as stream:
        two["b"].close()
        gone(stream, "b")
        stream.batch()
        assert list(tmp_path.iterdir())
        two["b"].open()
        seen(stream, "b", 5)
        start, end = stream.offset, stream.reader.latestOffset(stream.offset, ALL)
        assert not list(tmp_path.iterdir())
        time.sleep(0.5)
        two["b"].close()
        gone(stream, "b")
        with pytest.raises(AwayError, match="broker b cannot be reached"):
            rows_of(stream.reader, stream.reader.partitions(start, end))


def taken_over(two, stream, first=0, end=5, missing=()):
    """The broker a takes b over, with copies of these results but for those `missing`."""
    two["b"].close()
    gone(stream, "b")
    a = two["a"]
    runs = []
    with a._moved:
        for at, payload, end_ms in two["b"].rows:
            if first <= at < end and at not in missing:
                runs.append([at, a.end, 1])
                a.rows.append((a.end, payload, end_ms))
                a.end += 1
        a.inherited = [{"home": "b", "epoch": "eb", "from": first, "to": end, "runs": runs}]
        a._moved.notify_all()
    seen(stream, "a", a.end)


@pytest.mark.parametrize("form", ["arrow", "json"])
@pytest.mark.parametrize("more", [{"align": "false"}, {"lateAfter": "0"}, {"postponed": ""}])
def test_what_was_planned_of_a_broker_that_is_taken_over_is_read_at_its_heir(
    two, tmp_path, form, more
):
    """In the same batch, and as it would have been at the broker itself: nothing is late or twice.

    Of the lost log's offsets 3 was none.
    """
    for log in two.values():
        log.promise(10**6)
    options = {"align": "true", "format": form, "consumer": "c", **more}
    with begun(stream_of(two, tmp_path, **options)) as stream:
        start, end = stream.offset, stream.reader.latestOffset(stream.offset, ALL)
        assert places_of(end)["b"].next == 5
        two["b"].rows = [row for row in two["b"].rows if row[0] != 3]
        whole = rows_of(stream.reader, stream.reader.partitions(start, end))
        taken_over(two, stream)
        with stream_of(two, tmp_path, **options) as later:  # the driver died as well
            assert rows_of(later.reader, later.reader.partitions(start, end)) == whole
            later.offset = end
            two["a"].add(*ROWS[5:7])
            two["a"].promise(10**7)
            seen(later, "a", 11)
            rows = [row for row in later.rest() if row["id"]]
            assert numbers(rows) == [("a", 9), ("a", 10)]
            later.reader.commit(later.offset)
            assert two["a"].acks == {"c": 11}


@pytest.mark.parametrize("lost", ["fail", "skip"])
def test_of_what_was_planned_and_went_with_a_disk_the_range_is_told(two, tmp_path, capfd, lost):
    options = {
        "failOnDataLoss": str(lost == "fail").lower(),
        "postponed": "",
        "noteGaps": str(tmp_path),
    }
    with begun(stream_of(two, tmp_path, **options)) as stream:
        start, end = stream.offset, stream.reader.latestOffset(stream.offset, ALL)
        taken_over(two, stream, first=2, end=4)
        if lost == "fail":
            with pytest.raises(LostError, match=r"offsets 0 to 1 \(2 offsets\) went with its disk"):
                stream.reader.partitions(start, end)
            return
        rows = rows_of(stream.reader, stream.reader.partitions(start, end))
        assert numbers(rows) == [*(("a", n) for n in range(5)), ("b", 2), ("b", 3)]
        told = capfd.readouterr().err
        assert "offsets 0 to 1 (2 offsets) went with its disk" in told
        assert "of offsets 4 to 4 broker a had no copy" in told
        assert gaps_in(tmp_path) == [HistoryGap("b", "eb", 0, 2)]


def test_what_a_lost_broker_found_when_it_was_back_is_asked_of_itself(two, tmp_path):
    with begun(stream_of(two, tmp_path, postponed="")) as stream:
        taken_over(two, stream)
        two["b"].add(*ROWS[5:7])
        two["b"].open()
        seen(stream, "b", 7)
        rows = stream.rest()
        assert numbers(rows) == [*(("a", n) for n in range(10)), ("b", 5), ("b", 6)]
        two["b"].add(*ROWS[7:9])
        seen(stream, "b", 9)
        start, end = stream.offset, stream.reader.latestOffset(stream.offset, ALL)
        assert places_of(end)["b"].next == 9
        two["b"].close()
        gone(stream, "b")
        with pytest.raises(AwayError, match="broker b cannot be reached"):
            rows_of(stream.reader, stream.reader.partitions(start, end))


def test_a_bounded_run_leaves_nothing_out(two, tmp_path):
    with begun(stream_of(two, tmp_path)) as stream:
        stream.reader.prepareForTriggerAvailableNow()
        end = stream.reader.latestOffset(stream.offset, ALL)
        two["b"].close()
        gone(stream, "b")
        with pytest.raises(AwayError, match="broker b cannot be reached"):
            rows_of(stream.reader, stream.reader.partitions(stream.offset, end))


def test_a_broker_keeps_what_was_left_out(two, tmp_path):
    """It is told that a reader is where its rows have come to, whatever the batch was to read."""
    with begun(stream_of(two, tmp_path, consumer="c")) as stream:
        end = stream.reader.latestOffset(stream.offset, ALL)
        two["b"].close()
        gone(stream, "b")
        rows_of(stream.reader, stream.reader.partitions(stream.offset, end))
        two["b"].open()
        seen(stream, "b", 5)
        stream.reader.commit(end)
        assert (two["a"].acks, two["b"].acks) == ({"c": 5}, {"c": 0})
        stream.offset = end
        stream.rest()
        stream.reader.commit(stream.offset)
        assert two["b"].acks == {"c": 5}


def test_how_far_a_stream_is_counts_what_it_left_out_as_not_read(tmp_path):
    spark, postponed = tmp_path / "spark", Postponed(tmp_path / "postponed")
    ends = offset_of({"a": LogPlace("ea", 9), "b": LogPlace("eb", 7, 70, 60, turn=2)})
    for name in ("offsets", "commits"):
        (spark / name).mkdir(parents=True)
    (spark / "offsets" / "3").write_text("v1\n{}\n" + json.dumps(ends))
    assert unfinished_in(spark) == 3
    (spark / "commits" / "3").write_text("v1\n{}")
    assert unfinished_in(spark) is None
    assert places_in(spark) == [places_of(ends)]
    postponed.put(PostponedRange("b", "eb", 4, 7, 1))  # of an earlier turn
    assert places_in(spark) == [places_of(ends)]
    postponed.put(PostponedRange("b", "eb", 4, 7, 2))
    assert places_in(spark)[0]["b"] == LogPlace("eb", 4, 70, 60, turn=3)
    history = tmp_path / "history"
    (history / "_spark_metadata").mkdir(parents=True)
    (history / "_spark_metadata" / "3").touch()
    (history / "_headwater.json").write_text(json.dumps({"state": str(tmp_path)}))
    assert recorded(history) == {"a": ("ea", 9), "b": ("eb", 4)}
    assert LogPlace("eb", 4, turn=3).text() == "eb:4::::3"
    both = LogPlace("eb", 4, first=2, turn=3)  # of another log, and gone back to
    assert places_of({"b": both.text()}) == {"b": both}
    assert places_of({"b": "eb:4::::3"})["b"] == LogPlace("eb", 4, turn=3)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_dies_when_each_row_comes_once(two, tmp_path, seed):
    """As Spark goes about it: what is planned stands before it is read, and is done before more."""
    draw = random.Random(seed)
    found, planned, at = [], None, {}
    stream = stream_of(two, tmp_path)
    stream.reader.latestOffset({}, ALL)
    for _ in range(60):
        log = two[draw.choice("ab")]
        match draw.choice(["rows", "away", "back", "plan", "read", "read", "driver"]):
            case "rows" if log.end < len(ROWS):
                log.add(ROWS[log.end])
            case "away" if log._server is not None:
                log.close()
            case "back" if log._server is None:
                log.open()
            case "plan" if planned is None:
                end = stream.reader.latestOffset(at, ALL)
                planned = end if end != at else None
            case "read" if planned is not None:
                with suppress(AwayError):
                    found += rows_of(stream.reader, stream.reader.partitions(at, planned))
                    at, planned = planned, None
            case "driver":
                stream.__exit__()
                stream = stream_of(two, tmp_path)
    stream.__exit__()
    for log in two.values():
        if log._server is None:
            log.open()
    with stream_of(two, tmp_path) as last:
        if planned is not None:
            found += rows_of(last.reader, last.reader.partitions(at, planned))
            at = planned
        last.offset = at
        found += last.rest()
    expected = sorted((name, at) for name, log in two.items() for at, _, _ in log.rows)
    assert numbers(found) == expected


class Gate:
    """A way to a broker that calls `first` once with the first range that is asked for."""

    def __init__(self, site):
        self.site = site
        self.first = None
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with suppress(OSError):
            while True:
                coming, _ = self._listening.accept()
                threading.Thread(target=self._carry, args=(coming,), daemon=True).start()

    def _carry(self, coming):
        with coming, suppress(OSError):
            port = int(self.site.flags[-1].rpartition("=")[2])
            with socket.create_connection(("127.0.0.1", port)) as going:
                threading.Thread(target=_pump, args=(going, coming), daemon=True).start()
                while data := coming.recv(65536):
                    if self.first is not None and data.startswith(b"GET /v1/log?"):
                        first, self.first = self.first, None
                        first()
                    going.sendall(data)

    def close(self):
        self._listening.close()


def _pump(source, target):
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_RDWR)


@contextmanager
def driver_of(folder, text):
    (folder / "jobs.toml").write_text(text)
    driver = Driver(folder, folder / "jobs.toml")
    try:
        yield driver
    finally:
        driver.kill()


def put(spark, folder, sinks):
    """(broker, id) of all rows, of each sink that has any yet."""
    kept = []
    if "db" in sinks:
        with suppress(sqlite3.OperationalError):
            kept.append(sorted((row["broker"], row["id"]) for row in table(folder, "history")))
    if "archive" in sinks:
        with suppress(AnalysisException):
            frame = spark.read.parquet(str(folder / "history")).select("broker", "id")
            kept.append(sorted(map(tuple, frame.collect())))
    return kept


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("sinks", ['["archive", "db"]', '"archive"', '"db"'])
def test_a_broker_killed_between_plan_and_reading_stops_no_other(spark, tmp_path, sinks):
    """Real brokers and a real driver: the south is killed as the first of its rows is asked for."""
    sites = [Site(tmp_path, name).staying() for name in ("north", "south")]
    for site in sites:  # its readings are not late, however long it has to wait between them
        site.flags[:0] = ["--set", "intake.idle_timeout_ms=3600000"]
    with sites[0] as north, sites[1] as south:
        gate = Gate(south)
        for site in (north, south):
            site.submit()
            site.feed(10)
        brokers = f'north = "{north.url}", south = "{gate.url}"'
        text = JOBS.format(brokers=brokers, folder=tmp_path, batch_rows=40)
        text += HISTORY.replace('["archive", "db"]', sinks)

        def have(*sites):
            names = {site.name for site in sites}
            wanted = sorted((site.name, one) for site in sites for one in site.ids())
            found = [
                [row for row in rows if row[0] in names] for rows in put(spark, tmp_path, sinks)
            ]
            return found == [wanted] * (sinks.count('"') // 2)

        killed = threading.Event()

        def kill():
            south.broker.process.kill()
            south.broker.ended()
            killed.set()

        with driver_of(tmp_path, text) as driver:
            until(lambda: have(north, south), driver, "rows of both")
            was = sorted(one for one in south.ids())
            gate.first = kill
            with suppress(OSError, MqttError):  # it dies on the way
                south.feed(10)
            north.feed(10)
            until(killed.is_set, driver, "the death of a broker")
            until(lambda: have(north), driver, "the north's rows, planned with the south's")
            for _ in range(2):
                north.feed(10)
                until(lambda: have(north), driver, "the north's rows, further on")
            for rows in put(spark, tmp_path, sinks):
                assert [one for name, one in rows if name == "south"] == was
            south.__exit__()
            south.__enter__()
            south.sent = 2 * south.count()  # what it did not get is sent again, under the same ids
            until(lambda: have(north, south), driver, "the south's rows")
            for site in (north, south):
                site.feed(10)
            until(lambda: have(north, south), driver, "what comes later")
        gate.close()

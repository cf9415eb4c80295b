"""The source's reader classes, called as Spark calls them, over real HTTP and without a JVM."""

import json
import operator
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle
from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

import server.source
from server.source import HeadwaterSource, register
from server.source.alignment import BatchBounds, LogSpan, align
from server.source.columnar import PUSHED_MAX
from server.source.fanout import Fanout, ahead
from server.source.log import AwayError, EpochError, FormError, Log, NotYetError
from server.source.options import OptionError, SourceOptions
from server.source.planning import LostError
from server.source.range_reader import (
    LogRange,
    RangeReader,
    ReadTask,
    Stretch,
    ranges_of,
    tasks_of,
)
from server.source.rows import COLUMNS, MARKED_SCHEMA, SCHEMA, SPARK_COLUMNS
from tests.server.logs import FakeLog, result

ALL = ReadAllAvailable()


def source_of(logs, **options):
    brokers = ",".join(f"{name}={log.url}" for name, log in logs.items())
    named = {"brokers": brokers} if logs else {}
    return HeadwaterSource({**named, "readRetry": "5", "longPoll": "0.05", **options})


class Stream:
    """A stream reader, driven by hand."""

    def __init__(self, logs, schema=SCHEMA, **options):
        source = source_of(logs, **options)
        self.reader = source.streamReader(_schema(schema))
        self.offset = self.reader.initialOffset()

    def batch(self, limit=ALL):
        """The rows of one more batch."""
        end = self.reader.latestOffset(self.offset, limit)
        rows = rows_of(self.reader, self.reader.partitions(self.offset, end))
        self.offset = end
        return rows

    def rest(self, limit=ALL):
        """The rows of batches until there are no more."""
        rows = []
        for _ in range(100):
            before = self.offset
            rows += self.batch(limit)
            if self.offset == before:
                break
        return rows

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.reader.stop()


def _schema(text):
    kinds = {"string": StringType(), "bigint": LongType(), "timestamp": TimestampType()}
    parts = [part.replace("`", "").split(" ") for part in text.split(", ")]
    return StructType([StructField(name, kinds[kind]) for name, kind in parts])


def rows_of(reader, parts):
    rows = []
    for part in parts:
        for batch in reader.read(cloudpickle.loads(cloudpickle.dumps(part))):
            assert isinstance(batch, pa.RecordBatch)
            rows += batch.to_pylist()
    return rows


@pytest.fixture
def two():
    with FakeLog("ea") as a, FakeLog("eb") as b:
        a.add(*[result(n, 1000 * n + 1000) for n in range(5)])
        b.add(*[result(n, 1000 * n + 1500, location="yard") for n in range(5)])
        yield {"a": a, "b": b}


def numbers(rows):
    return sorted((row["broker"], row["offset"]) for row in rows)


EVERY = [(name, at) for name in "ab" for at in range(5)]


def test_every_row_comes_once_with_all_its_columns(two):
    with Stream(two) as stream:
        rows = stream.rest()
    assert numbers(rows) == EVERY
    assert list(rows[0]) == list(COLUMNS)
    row = next(row for row in rows if (row["broker"], row["offset"]) == ("b", 2))
    said = result(2, 3500, location="yard")
    assert json.loads(row["payload"]) == said
    for name in ("id", "subscription", "subscriber", "actor", "certainty"):
        assert row[name] == said[name]
    for name in ("group", "values", "events"):
        assert json.loads(row[name]) == said[name]
    for name in ("start", "end", "detected_at"):
        assert row[name].timestamp() * 1000 == said[name]
    assert (row["location"], row["epoch"]) == ("yard", "eb")


def test_batches_hold_no_more_rows_than_asked(two):
    with Stream(two) as stream:
        sizes = [len(stream.batch(ReadMaxRows(4))) for _ in range(9)]
    assert sizes[0] == 0
    assert max(sizes) <= 4
    assert sum(sizes) == 10


def test_the_default_limit_is_the_option(two):
    with Stream(two, maxRowsPerBatch="7") as stream:
        assert stream.reader.getDefaultReadLimit() == ReadMaxRows(7)
    with Stream(two, maxRowsPerBatch="0") as stream:
        assert stream.reader.getDefaultReadLimit() == ALL


@pytest.mark.parametrize("form", ["arrow", "msgpack", "json"])
def test_each_form_gives_the_same_rows(two, form):
    for log in two.values():
        log.add(result(9, 9000, text='a "q", {b} ]é', big=2**53 + 1, small=1e-7, tiny=1.5e300))
    with Stream(two) as stream:
        expected = stream.rest()
    with Stream(two, format=form) as stream:
        assert stream.rest() == expected


@pytest.mark.parametrize("forms", [("msgpack", "json"), ("json",)])
def test_a_broker_without_arrow_is_read_otherwise(two, forms, monkeypatch):
    if forms == ("json",):
        monkeypatch.setattr("server.source.range_reader.has_msgpack", lambda: False)
    for log in two.values():
        log.forms = forms
    with Stream(two) as stream:
        assert numbers(stream.rest()) == EVERY
    with Stream(two, format="arrow") as stream, pytest.raises(FormError, match="arrow"):
        stream.rest()


def test_fewer_columns_in_any_order(two):
    with Stream(two, "`offset` bigint, `broker` string") as stream:
        rows = stream.rest()
    assert list(rows[0]) == ["offset", "broker"]
    with pytest.raises(OptionError, match="there is no column nonsense"):
        source_of(two).reader(_schema("`nonsense` string"))


def test_only_the_subscriptions_that_are_asked_for(two):
    two["a"].add(result(0, 6000, "Smoke"), result(1, 6001, "Smoke"))
    with Stream(two, subscriptions="Smoke, Heat") as stream:
        assert numbers(stream.rest()) == [("a", 5), ("a", 6)]


def test_pages_that_are_too_large_are_read_in_parts(two):
    for log in two.values():
        log.range_rows_max = 2
    with Stream(two) as stream:
        assert numbers(stream.rest()) == EVERY


def test_offsets_that_were_left_out_are_no_loss():
    with FakeLog() as log:
        log.add(result(0, 1000), result(1, 2000), skip=3)
        log.add(result(2, 3000), skip=2)
        with Stream({"a": log}) as stream:
            assert numbers(stream.rest()) == [("a", 3), ("a", 4), ("a", 7)]


def test_a_broker_seen_first_is_begun_with_what_retention_has_left(two):
    """In a batch without rows: planned again after retention went on, it is still the same."""
    with FakeLog("ec") as old:
        old.add(*[result(n, 1000 * n + 1000) for n in range(9)])
        old.retain(6)
        with Stream({**two, "c": old}) as stream:
            assert stream.batch() == []
            assert stream.offset == {"a": "ea:0", "b": "eb:0", "c": "ec:6"}
            assert numbers(stream.rest()) == [*EVERY, ("c", 6), ("c", 7), ("c", 8)]


def test_a_range_is_cut_into_what_one_task_reads(two):
    with Stream(two, splitRows="2") as stream:
        stream.batch()
        end = stream.reader.latestOffset(stream.offset, ALL)
        parts = stream.reader.partitions(stream.offset, end)
        spans = [(part.broker, part.begin, part.end) for task in parts for part in task.ranges]
    assert spans[:2] == [("a", 0, 2), ("a", 2, 4)]
    assert {name for name, _, _ in spans} == {"a", "b"}


def test_a_planned_batch_gives_the_same_rows_again(two):
    """After a crash Spark plans from its own journal what it had planned before."""
    with Stream(two) as stream:
        stream.batch()
        start = stream.offset
        first = stream.batch()
        end = stream.offset
    for log in two.values():
        log.add(result(7, 70_000))
    with Stream(dict(reversed(two.items()))) as again:
        parts = again.reader.partitions(start, end)
        assert sorted(map(str, rows_of(again.reader, parts))) == sorted(map(str, first))


def test_a_broker_added_and_one_taken_out_with_the_same_checkpoint(two):
    with FakeLog("ec") as third:
        third.add(result(0, 100), result(1, 9000))
        with Stream(two) as stream:
            rows = stream.rest()
        with Stream({"c": third, "b": two["b"]}) as later:
            later.offset = stream.offset
            two["b"].add(result(5, 8000))
            rows_later = later.rest()
        assert numbers(rows_later) == [("b", 5), ("c", 0), ("c", 1)]
        two["a"].add(result(5, 9500))
        with Stream(two) as back:
            back.offset = later.offset
            assert numbers(back.rest()) == [("a", 5)]
    assert numbers(rows) == EVERY


def test_a_batch_that_was_planned_wants_its_broker_once_more(two):
    with Stream(two) as stream:
        stream.batch()
        start = stream.offset
        stream.batch()
        end = stream.offset
    del two["b"]
    with Stream(two) as later, pytest.raises(OptionError, match="reads broker b"):
        later.reader.partitions(start, end)


def test_a_moved_broker_goes_on_where_it_was(two):
    with Stream(two) as stream:
        stream.rest()
        for log in two.values():
            log.close()
            log.port = 0
            log.open()
            log.add(result(5, 20_000))
    with Stream(two) as moved:
        moved.offset = stream.offset
        assert numbers(moved.rest()) == [("a", 5), ("b", 5)]


def test_a_broker_that_fails_for_a_moment_is_asked_again(two):
    two["a"].failing = 1
    with Stream(two) as stream:
        assert numbers(stream.rest()) == EVERY


def test_others_are_read_while_one_is_away_and_it_when_it_is_back(two):
    two["b"].close()
    with Stream(two, align="false") as stream:
        assert numbers(stream.rest()) == EVERY[:5]
        two["b"].open()
        stream.reader._watch.until(["b"], 15.0)
        assert numbers(stream.rest()) == EVERY[5:]


def test_a_bounded_run_ends_where_the_logs_ended_when_it_began(two):
    with Stream(two) as stream:
        stream.reader.prepareForTriggerAvailableNow()
        for log in two.values():
            log.add(result(8, 80_000))
        assert numbers(stream.rest(ReadMaxRows(3))) == EVERY


def test_a_bounded_run_says_for_whom_it_waits_and_reads_all_or_nothing(two, capfd):
    two["b"].close()
    with Stream(two, awayTimeout="0.2") as stream:
        with pytest.raises(AwayError, match="broker b cannot be reached"):
            stream.reader.prepareForTriggerAvailableNow()
        assert "it is waited for, 0.2 s at most" in capfd.readouterr().err
        two["b"].open()
        stream.reader._watch.until(["b"], 15.0)
        stream.reader.prepareForTriggerAvailableNow()
        assert numbers(stream.rest()) == EVERY


def test_what_is_left_to_read_is_told(two):
    with Stream(two) as stream:
        stream.rest()
        assert stream.reader.reportLatestOffset() == {"a": "ea:5", "b": "eb:5"}


def test_what_was_committed_is_acknowledged(two):
    with Stream(two, consumer="archive") as stream:
        stream.rest()
        stream.reader.commit(stream.offset)
    assert [log.acks for log in two.values()] == [{"archive": 5}, {"archive": 5}]


def test_brokers_are_told_at_the_same_time_of_what_was_read(two):
    """Each answers only once the other was told as well."""
    with Stream(two, consumer="archive") as stream:
        stream.rest()
        two["a"].meeting = two["b"].meeting = threading.Barrier(2)
        stream.reader.commit(stream.offset)
    assert [log.acks for log in two.values()] == [{"archive": 5}, {"archive": 5}]


def test_a_broker_keeps_results_from_where_its_log_is_begun(two):
    """Also where there is nothing to read yet, or the only batch is the last of a bounded run."""
    with FakeLog("eb") as empty:
        with Stream({"a": two["a"], "b": empty}, consumer="archive") as stream:
            start = stream.reader.initialOffset()
            pinned = stream.reader.latestOffset(start, ReadAllAvailable())
            assert [two["a"].acks, empty.acks] == [{"archive": 0}, {"archive": 0}]
            end = stream.reader.latestOffset(pinned, ReadAllAvailable())
            assert [two["a"].acks, empty.acks] == [{"archive": 0}, {"archive": 0}]
            assert stream.reader.latestOffset(end, ReadAllAvailable()) == end
            assert [two["a"].acks, empty.acks] == [{"archive": 5}, {"archive": 0}]
            asked = len(two["a"].asked)
            stream.reader.commit(end)
            stream.reader.latestOffset(end, ReadAllAvailable())
        assert not [path for path, _ in two["a"].asked[asked:] if path == "/v1/log/ack"]


def test_a_broker_that_is_away_at_the_commit_stops_nothing(two):
    with Stream(two, consumer="archive") as stream:
        stream.rest()
        two["a"].close()
        stream.reader.commit(stream.offset)
    assert two["b"].acks == {"archive": 5}


@pytest.mark.parametrize("form", ["arrow", "msgpack", "json"])
def test_what_was_found_later_than_jobs_wait_for_is_told_with_its_offsets(two, form, capfd):
    """One of a broker's subscriptions waited for its source, while others were found."""
    options = {"lateAfter": "10", "format": form}
    two["a"].add(result(5, 60_000))
    two["b"].add(result(5, 60_500))
    with Stream(two, **options) as stream:
        assert len(stream.rest()) == len(EVERY) + 2
    ends = [50_499, 70_000, 50_500, 20_000]
    two["b"].add(*[result(6 + n, end) for n, end in enumerate(ends)])
    assert "come later" not in capfd.readouterr().err
    with Stream(two, **options) as later:
        later.offset = stream.offset
        assert len(later.rest()) == len(ends)
    said = capfd.readouterr().err
    assert said.count("come later") == 1
    assert (
        "broker b: 2 results among offsets 6 to 9 come later than the windows that they are of"
        in said
    )


def test_the_watermark_goes_along_with_rows_and_by_itself_where_there_are_none(two):
    """Of `a` something stands behind what is far ahead, so that this is read ahead as well."""
    two["a"].add(result(5, 90_000), result(6, 2600))
    offset, seen = {}, []
    for until_ms in (3000, 60_000, 70_000, 70_000, 95_000):
        for log in two.values():
            log.promise(until_ms)
        with Stream(two, MARKED_SCHEMA, lateAfter="0") as stream:
            stream.offset = offset
            rows = stream.rest()
            offset = stream.offset
        marks = {row["settled"].timestamp() for row in rows}
        seen.append(([row["id"] for row in rows if row["id"]], len(rows), marks))
    assert [(len(ids), count, marks) for ids, count, marks in seen] == [
        (9, 9, {3.0}),
        (3, 3, {60.0}),
        (0, 1, {70.0}),
        (0, 0, set()),
        (0, 1, {90.0}),
    ]
    assert sum(len(set(ids)) for ids, _, _ in seen) == 12
    with pytest.raises(OptionError, match="there is no column settled"):
        source_of(two).streamReader(_schema(MARKED_SCHEMA))


def test_results_of_other_subscriptions_take_the_watermark_along(two):
    two["a"].add(result(9, 1100, "Smoke"))
    for log in two.values():
        log.promise(10**9)
    with Stream(two, MARKED_SCHEMA, lateAfter="0", subscriptions="Smoke") as stream:
        rows = [stream.batch(ReadMaxRows(6)) for _ in range(4)]
    assert [[row["id"] for row in batch if row["id"]] for batch in rows] == [
        [],
        [],
        ["Smoke-hall-9"],
        [],
    ]
    marks = [{row["settled"].timestamp() for row in batch} for batch in rows]
    assert marks == [set(), {1.099}, {5.0}, {5.5}]


# --- ranges that cannot be read ------------------------------------------------------------------


def read(log, begin, end, epoch="e1", **options):
    chosen = SourceOptions.of({"brokers": f"a={log.url}", "readRetry": "0.5", **options})
    part = LogRange("a", log.url, epoch, begin, end)
    rows = []
    for batch in RangeReader(chosen, ["offset"]).batches(part):
        rows += batch.column(0).to_pylist()
    return rows


def test_retention_between_plan_and_reading_is_told_exactly(capsys):
    with FakeLog() as log:
        log.add(*[result(n, n) for n in range(30)])
        log.retain(20)
        with pytest.raises(LostError, match=r"offsets 5 to 19 \(15 offsets\)"):
            read(log, 5, 30)
        assert read(log, 5, 30, failOnDataLoss="false") == list(range(20, 30))
        assert "offsets 5 to 19 (15 offsets)" in capsys.readouterr().err
        log.retain(30)
        assert read(log, 5, 10, failOnDataLoss="false") == []


def test_a_range_of_another_log_is_not_read(capsys):
    with FakeLog("new") as log:
        log.add(*[result(n, n) for n in range(9)])
        with pytest.raises(EpochError):
            read(log, 2, 7, "old")
        assert read(log, 2, 7, "old", failOnDataLoss="false") == []
        assert "offsets 2 to 6" in capsys.readouterr().err


def test_a_log_that_is_shorter_than_what_was_planned():
    with FakeLog() as log:
        log.add(result(0, 0))
        with pytest.raises(NotYetError):
            read(log, 0, 2)


# --- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({}, "brokers is needed"),
        ({"brokers": "a"}, "expected name="),
        ({"brokers": "a=ftp://x"}, "expected http"),
        ({"brokers": "a=http://u:p@x"}, "no password"),
        ({"brokers": "a=http://x,a=http://y"}, "named twice"),
        ({"brokers": "a=http://x:99999"}, "out of range"),
        ({"brokers": "a=http://x", "password": "s3cret"}, "passwordEnv"),
        ({"brokers": "a=http://x", "failOnDataloss": "maybe"}, "expected true or false"),
        ({"brokers": "a=http://x", "maxRowsPerBtach": "5"}, "did you mean maxrowsperbatch"),
        ({"brokers": "a=http://x", "splitRows": "0"}, "expected a whole number from 1"),
        ({"brokers": "a=http://x", "longPoll": "-1"}, "expected seconds"),
    ],
)
def test_options_that_are_not_understood_are_refused(said, why):
    with pytest.raises(OptionError, match=why) as refused:
        SourceOptions.of(said)
    assert "s3cret" not in str(refused.value)


def test_a_secret_is_looked_up_where_it_is_used(monkeypatch, tmp_path):
    options = {"brokers": "a=http://127.0.0.1:1", "user": "spark"}
    login = SourceOptions.of({**options, "passwordEnv": "SPARK_LOGIN"}).login
    with pytest.raises(OptionError, match="SPARK_LOGIN is not set"):
        login.password()
    monkeypatch.setenv("SPARK_LOGIN", "one")
    assert login.password() == "one"
    (tmp_path / "secret").write_text("two\n")
    login = SourceOptions.of({**options, "passwordFile": str(tmp_path / "secret")}).login
    assert login.password() == "two"
    log = Log("a", "http://127.0.0.1:1", login)
    assert log._headers() == {"Authorization": "Basic c3Bhcms6dHdv"}


class ToldSession:
    """What a session is told of the source."""

    def __init__(self):
        self.sent = []
        self.dataSource = self
        self.conf = SimpleNamespace(set=lambda *_: None)

    def register(self, source):
        self.sent.append(cloudpickle.dumps(source))


def test_the_source_is_sent_as_a_name_to_those_who_have_it():
    """Made anew for each task, it would take longer than what the task reads."""
    session = ToldSession()
    named = server.source.__name__ in cloudpickle.list_registry_pickle_by_value()
    if named:
        cloudpickle.unregister_pickle_by_value(server.source)
    register(session, by_value=False)
    try:
        register(session)
    finally:
        if not named:
            cloudpickle.unregister_pickle_by_value(server.source)
    name, value = map(len, session.sent)
    assert name < 100
    assert value > 10_000
    assert cloudpickle.loads(session.sent[0]) is HeadwaterSource


def test_the_source_goes_by_value_and_needs_nothing_of_ours_where_it_is_read():
    """A process without this package on its path makes the reader from what was sent."""
    import subprocess
    import sys

    cloudpickle.register_pickle_by_value(server.source)
    try:
        sent = cloudpickle.dumps(HeadwaterSource({"brokers": "a=http://127.0.0.1:1"}))
    finally:
        cloudpickle.unregister_pickle_by_value(server.source)
    script = (
        "import sys\n"
        "sys.path[:] = [p for p in sys.path if p.endswith('site-packages') or 'lib/python' in p]\n"
        "from pyspark import cloudpickle\n"
        "from pyspark.sql.types import StructType\n"
        "source = cloudpickle.loads(sys.stdin.buffer.read())\n"
        "reader = source.streamReader(StructType().add('offset', 'long'))\n"
        "print(reader.initialOffset(), reader.columns, reader.partitions({}, {'a': 'e:0'}))\n"
        "ours = {'server', 'broker', 'headwater', 'language', 'msgspec'} & set(sys.modules)\n"
        "assert not ours, ours\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], input=sent, capture_output=True, check=False
    )
    assert done.stdout.decode() == "{} ['offset'] []\n", done.stderr.decode()


# --- pages in columns ------------------------------------------------------------------------


def test_a_broker_is_asked_for_the_columns_and_subscriptions_that_are_used(two):
    with Stream(two, "`end` timestamp, `broker` string", subscriptions="Frost,Smoke") as stream:
        assert len(stream.rest()) == 10
    asked = [query for path, query in two["a"].asked if path == "/v1/log"]
    assert asked
    for query in asked:
        assert (query["format"], query["columns"]) == ("arrow", "ended_at")
        assert query["subscription"] == "Frost\0Smoke"


@pytest.mark.parametrize("schema", [SCHEMA, "`epoch` string", "`values` string, `end` timestamp"])
def test_a_broker_of_an_older_version_gives_the_same_rows(two, schema):
    two["a"].add(result(5, 6000, "Smoke", tiny=1e-7))
    with Stream(two, schema, subscriptions="Smoke") as stream:
        expected = stream.rest()
    for log in two.values():
        log.former = True
    with Stream(two, schema, subscriptions="Smoke") as stream:
        assert stream.rest() == expected
    assert len(expected) == 1


def test_of_very_many_subscriptions_the_choice_is_made_here(two):
    two["a"].add(result(0, 6000, "Smoke"), result(1, 6001, "Haze"))
    names = ["Smoke", "Haze", *(f"s{n}" for n in range(PUSHED_MAX))]
    with Stream(two, subscriptions=",".join(names)) as stream:
        assert numbers(stream.rest()) == [("a", 5), ("a", 6)]
    assert not any("subscription" in query for _, query in two["a"].asked if "format" in query)


PLAIN = st.characters(exclude_categories=("Cs",))
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.text(PLAIN, max_size=4),
    st.floats(allow_nan=False, allow_infinity=False), st.lists(st.integers(0, 3), max_size=2),
)  # fmt: skip


@settings(max_examples=25)
@given(data=st.data())
def test_columns_and_whole_results_are_the_same_rows(data):
    """Whatever values hold, and whatever is asked of it: Arrow, msgpack and JSON agree."""
    with FakeLog() as log:
        for n in range(data.draw(st.integers(1, 4))):
            values = data.draw(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=2))
            end_ms = data.draw(st.integers(-(10**12), 10**12))
            log.add(result(n, end_ms, location=data.draw(st.text(PLAIN, max_size=3)), **values))
        names = data.draw(st.permutations(list(COLUMNS)))[: data.draw(st.integers(1, 16))]
        schema = ", ".join(SPARK_COLUMNS[name] for name in names)
        found = []
        for form in ("arrow", "msgpack", "json"):
            with Stream({"a": log}, schema, format=form) as stream:
                found.append(stream.rest())
        assert found[1:] == found[:1] * 2


# --- conditions of batch reads ----------------------------------------------------------------


def instant(ms, us=0):
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=ms, microseconds=us)


CONDITIONS = st.one_of(
    st.builds(EqualTo, st.just(("broker",)), st.sampled_from("abx")),
    st.builds(In, st.just(("broker",)), st.sampled_from([("a",), ("a", "b"), ("x",)])),
    st.builds(EqualTo, st.just(("subscription",)), st.sampled_from(("Frost", "Smoke", "Haze"))),
    st.builds(In, st.just(("subscription",)), st.sampled_from([("Frost", "Haze"), ("Haze",)])),
    *(
        st.builds(kind, st.just(("offset",)), st.integers(-1, 9))
        for kind in (EqualTo, LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual)
    ),
    *(
        st.builds(
            kind,
            st.just(("end",)),
            st.builds(instant, st.sampled_from((999, 1000, 2000, 3500, 9000)), st.integers(0, 1)),
        )
        for kind in (EqualTo, LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual)
    ),
    st.builds(EqualTo, st.just(("location",)), st.just("hall")),
)
HOLDS = {
    EqualTo: operator.eq,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    In: lambda value, several: value in several,
}


@settings(max_examples=60)
@given(st.lists(CONDITIONS, max_size=4))
def test_nothing_that_conditions_leave_is_left_out_and_nothing_comes_twice(conditions):
    """Spark looks at each row again; what it then keeps is what a read of everything holds."""

    def kept(rows):
        return [
            row
            for row in rows
            if all(HOLDS[type(one)](row[one.attribute[0]], one.value) for one in conditions)
        ]

    with FakeLog("ea") as a, FakeLog("eb") as b:
        a.add(*[result(n, 1000 * n + 1000, ("Frost", "Smoke")[n % 2]) for n in range(5)])
        b.add(*[result(n, (5 - n) * 1000 + 500, location="yard") for n in range(5)], skip=2)
        everything = source_of({"a": a, "b": b}).reader(_schema(SCHEMA))
        reader = source_of({"a": a, "b": b}).reader(_schema(SCHEMA))
        assert list(reader.pushFilters(conditions)) == conditions
        read = rows_of(reader, reader.partitions())
        assert kept(read) == kept(rows_of(everything, everything.partitions()))


def test_conditions_spare_what_they_exclude(two):
    reader = source_of(two).reader(_schema(SCHEMA))
    reader.pushFilters(
        [
            EqualTo(("broker",), "b"),
            GreaterThanOrEqual(("end",), instant(2500)),
            LessThan(("offset",), 4),
            EqualTo(("subscription",), "Frost"),
        ]
    )
    parts = reader.partitions()
    assert [[(part.broker, part.begin, part.end) for part in task.ranges] for task in parts] == [
        [("b", 1, 4)]
    ]
    assert len(rows_of(reader, parts)) == 3
    assert not two["a"].asked
    assert two["b"].asked[-1][1]["subscription"] == "Frost"


# --- results of lost logs in batch reads -------------------------------------------------------


def read_of(logs, *conditions, **options):
    reader = source_of(logs, **options).reader(_schema(SCHEMA))
    reader.pushFilters(list(conditions))
    return rows_of(reader, reader.partitions())


def heirs(drawn):
    """A lost log of ten results, and two more that each took over some of it, among own ones."""
    logs = {name: FakeLog(f"e{name}") for name in "abc"}
    lost = [result(n, 1000 * n + 1000) for n in range(10)]
    logs["a"].add(*lost)
    for name in "bc":
        log, held = logs[name], sorted(drawn.draw(st.sets(st.integers(0, 9), max_size=6)))
        log.add(result(0, 500, location=name))
        runs = [[at, log.end + n, 1] for n, at in enumerate(held)]
        log.add(*[lost[at] for at in held], result(1, 20_500, location=name))
        if runs and drawn.draw(st.booleans()):
            log.retain(drawn.draw(st.integers(0, 3)))
        first, end = (held[0], held[-1] + 1) if held else (0, 0)
        row = {"home": "a", "epoch": "ea", "from": first, "to": end, "runs": runs}
        log.inherited = [row] if held else []
    return logs


@settings(max_examples=40)
@given(st.data(), st.sampled_from(("there", "away", "new")))
def test_a_batch_read_has_each_result_of_a_lost_log_once(drawn, home):
    """Be its broker back with its log, away, or back with another disk."""
    logs = heirs(drawn)
    try:
        if home == "new":
            logs["a"].epoch = "fresh"
            logs["a"].retain(10)
        elif home == "away" and (logs["b"].inherited or logs["c"].inherited):
            logs["a"].close()
        expected = {
            json.loads(text)["id"]
            for log in logs.values()
            for _, text, _ in log.rows
            if log._server is not None
        }
        accepted = {"failOnDataLoss": "false" if home == "away" else "true"}
        found = read_of(logs, **accepted)
        assert sorted(row["id"] for row in found) == sorted(expected)
        # Whatever conditions leave out, they take no row to another place.
        for name in logs:
            if logs[name]._server is not None:
                alone = read_of(logs, EqualTo(("broker",), name), **accepted)
                assert numbers(alone) == numbers(row for row in found if row["broker"] == name)
        late = read_of(logs, GreaterThanOrEqual(("offset",), 3), **accepted)
        assert [row for row in late if row["offset"] >= 3] == [
            row for row in found if row["offset"] >= 3
        ]
    finally:
        for log in logs.values():
            log.close()


def test_a_batch_read_waits_for_a_lost_broker_only_until_it_is_taken_over(two, capfd):
    two["a"].close()
    with pytest.raises(AwayError, match=r"broker a .* is away: a batch reads all brokers or none"):
        read_of(two)
    runs = [[3, 0, 2]]
    two["b"].inherited = [{"home": "a", "epoch": "ea", "from": 3, "to": 5, "runs": runs}]
    with pytest.raises(LostError, match=r"broker b took over .* failOnDataLoss = false"):
        read_of(two)
    read = read_of(two, failOnDataLoss="false")
    assert numbers(read) == [("b", at) for at in range(5)]
    assert "broker b took over: its results are read there" in capfd.readouterr().err


# --- many brokers ----------------------------------------------------------------------------


SIZES = st.lists(st.integers(0, 30_000), min_size=1, max_size=120)


@given(SIZES, st.integers(1, 8))
def test_ranges_of_many_brokers_are_read_by_few_tasks_and_none_twice(sizes, tasks_max):
    brokers = ",".join(f"b{n}=http://b{n}" for n in range(len(sizes)))
    options = SourceOptions.of({"brokers": brokers, "tasks": str(tasks_max)})
    stretches = [Stretch(f"b{n}", "e", 7, 7 + size) for n, size in enumerate(sizes)]
    tasks = tasks_of(options, ranges_of(options, stretches))
    assert len(tasks) <= tasks_max
    read = [
        (part.broker, offset)
        for task in tasks
        for part in task.ranges
        for offset in range(part.begin, part.end)
    ]
    wanted = [(f"b{n}", 7 + at) for n, size in enumerate(sizes) for at in range(size)]
    assert sorted(read) == sorted(wanted)


def test_one_large_log_is_shared_among_tasks_at_the_edges_of_pages():
    options = SourceOptions.of({"brokers": "a=http://a", "tasks": "4"})
    ranges = ranges_of(options, [Stretch("a", "e", 12_345, 92_345)])
    assert [(part.begin, part.end) for part in ranges] == [
        (12_345, 20_000), (20_000, 40_000), (40_000, 60_000), (60_000, 80_000), (80_000, 92_345),
    ]  # fmt: skip
    assert [len(task.ranges) for task in tasks_of(options, ranges)] == [2, 1, 1, 1]


def test_logs_of_one_size_are_shared_evenly_among_tasks():
    options = SourceOptions.of({"brokers": "a=http://a,b=http://b", "tasks": "4"})
    ranges = ranges_of(options, [Stretch(name, "e", 0, 125_000) for name in ("a", "b")])
    sizes = [
        sum(part.end - part.begin for part in task.ranges) for task in tasks_of(options, ranges)
    ]
    assert sizes == [70_000, 70_000, 55_000, 55_000]


def test_tasks_that_run_together_ask_different_brokers():
    options = SourceOptions.of({"brokers": "a=http://a,b=http://b", "tasks": "4"})
    stretches = [Stretch(name, "e", 0, 40_000) for name in ("a", "b")]
    tasks = tasks_of(options, ranges_of(options, stretches))
    read = [[(part.broker, part.begin) for part in task.ranges] for task in tasks]
    assert read == [[("a", 0)], [("b", 0)], [("a", 20_000)], [("b", 20_000)]]


def test_the_next_page_is_made_while_one_is_used():
    begun = [threading.Event() for _ in range(3)]

    def made():
        for number, event in enumerate(begun):
            event.set()
            yield number

    pages = ahead(made(), threading.Event())
    assert next(pages) == 0
    assert begun[1].wait(10)
    assert not begun[2].is_set()
    assert list(pages) == [1, 2]


def test_what_fails_ahead_is_raised_behind_what_was_made_before():
    ended = threading.Event()

    def made():
        try:
            yield 1
            raise AwayError("it went")
        finally:
            ended.set()

    pages = ahead(made(), threading.Event())
    assert next(pages) == 1
    with pytest.raises(AwayError, match="it went"):
        next(pages)
    assert ended.wait(10)


def test_who_ends_early_has_no_broker_asked_again(two):
    two["a"].add(*[result(n, 1000 * n + 6000) for n in range(20)])
    options = SourceOptions.of({"brokers": f"a={two['a'].url}", "readRetry": "600"})
    reader = RangeReader(replace(options, page_rows=10), list(COLUMNS))
    part = LogRange("a", two["a"].url, "ea", 0, 25)
    rows = reader.task_batches(ReadTask([part]))
    assert next(rows).num_rows == 10
    (making,) = (each for each in threading.enumerate() if "headwater ahead" in each.name)
    two["a"].close()
    rows.close()
    making.join(10)
    assert not making.is_alive()


def test_small_ranges_of_a_task_are_asked_for_at_the_same_time(two):
    """Each broker answers only once the other was asked as well; the rows keep their order."""
    two["a"].meeting = two["b"].meeting = threading.Barrier(2)
    options = SourceOptions.of({"brokers": "a=http://x", "readRetry": "0"})
    parts = [LogRange(name, two[name].url, f"e{name}", 1, 4) for name in ("b", "a")]
    two["a"].forms = two["b"].forms = ("msgpack",)  # each tries both, as the other does
    batches = RangeReader(options, ["broker", "offset"]).task_batches(ReadTask(parts))
    rows = [(row["broker"], row["offset"]) for batch in batches for row in batch.to_pylist()]
    assert rows == [("b", 1), ("b", 2), ("b", 3), ("a", 1), ("a", 2), ("a", 3)]


def test_of_ranges_that_are_asked_for_together_the_first_error_counts(two):
    two["b"].retain(3)
    options = SourceOptions.of({"brokers": "a=http://x", "readRetry": "600"})
    parts = [LogRange(name, two[name].url, f"e{name}", 0, 4) for name in ("a", "b")]
    two["c"] = FakeLog("ec")
    two["c"].close()
    parts.append(LogRange("c", two["c"].url, "ec", 0, 4))
    batches = RangeReader(options, ["offset"]).task_batches(ReadTask(parts))
    assert next(batches).num_rows == 4
    with pytest.raises(LostError, match="broker b: offsets 0 to 2"):
        next(batches)
    waiting = [each for each in threading.enumerate() if "headwater range" in each.name]
    for each in waiting:  # the one that asks a broker that is away gives up, too
        each.join(10)
    assert not any(each.is_alive() for each in waiting)


class SlowTimes:
    """A broker that takes its time to answer, as one does that is far away."""

    def __init__(self, meeting):
        self._meeting = meeting

    def ts_at(self, _epoch, offset):
        self._meeting.wait(10.0)
        return offset


def test_brokers_are_asked_for_event_times_at_the_same_time():
    """Each answers only once all others were asked too: in turn it would never end."""
    names = [f"b{n}" for n in range(8)]
    meeting = threading.Barrier(len(names))
    spans = {name: LogSpan("e", 0, 10, 10, None) for name in names}
    fanout = Fanout()
    align(spans, BatchBounds(None, None), lambda _: SlowTimes(meeting), fanout)
    fanout.close()
    assert [span.reached_ms for span in spans.values()] == [9] * len(names)

"""A stream that begins with a history gives what the whole log would have given, batch by batch."""

import random
import time

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from server.source.history import HistoryGap, note_gap
from server.source.log import EpochError
from server.source.options import OptionError
from server.source.planning import LostError
from server.source.rows import MARKED_SCHEMA, SCHEMA
from tests.server.histories import rows_in, write_history
from tests.server.logs import FakeLog, result
from tests.server.test_source import Stream, numbers


@pytest.fixture
def one():
    """Its first 60 results are in the history, and its last 50 with the broker."""
    with FakeLog("ea") as log:
        log.add(*[result(n, 1000 * n + 500) for n in range(100)])
        yield log


@pytest.fixture
def past(one, tmp_path):
    rows = [row for row in rows_in({"a": one}) if row["offset"] < 60]
    paths = write_history(tmp_path / "history", rows, files=3)
    one.retain(50)
    one.acks.clear()
    one.asked.clear()
    return tmp_path / "history", paths


def read_ranges(log):
    return [(int(q["from"]), int(q["to"])) for path, q in log.asked if path == "/v1/log"]


def test_the_broker_is_asked_for_what_the_history_does_not_have(one, past):
    with Stream({"a": one}, history=str(past[0])) as stream:
        rows = stream.rest(ReadMaxRows(7))
    assert [row["offset"] for row in rows] == list(range(100))
    assert min(read_ranges(one))[0] == 60


def test_a_broker_keeps_results_from_the_end_of_the_history_on_while_that_is_read(one, past):
    with Stream({"a": one}, history=str(past[0]), consumer="c") as stream:
        stream.batch(ReadMaxRows(7))
        stream.batch(ReadMaxRows(7))
        assert stream.offset["a"].startswith("ea:7")
        assert one.acks == {"c": 60}


def test_what_comes_while_the_history_is_read_is_read_behind_it(one, past):
    with Stream({"a": one}, history=str(past[0])) as stream:
        rows = stream.batch(ReadMaxRows(30)) + stream.batch(ReadMaxRows(30))
        one.add(*[result(n, 1000 * n) for n in range(100, 130)])
        one.retain(60)
        for _ in range(200):
            rows += stream.batch(ReadMaxRows(30))
            if stream.offset["a"].startswith("ea:130"):
                break
            time.sleep(0.05)
    assert [row["offset"] for row in rows] == list(range(130))


def test_a_stream_that_begins_again_in_the_history_repeats_nothing(one, past):
    """With the offset that Spark has written down, another process plans and reads."""
    rows, offset = [], {}
    for _ in range(14):
        with Stream({"a": one}, history=str(past[0])) as stream:
            stream.offset = offset
            rows += stream.batch(ReadMaxRows(9))
            offset = stream.offset
    assert [row["offset"] for row in rows] == list(range(100))


@pytest.mark.parametrize(
    ("since", "first"),
    [("a=37", 37), ("a=75", 75), ("20500", 20), ("20501", 21), ("70000", 70), ("10000000", 100)],
)
def test_a_stream_begins_where_it_is_told(one, past, since, first):
    with Stream({"a": one}, history=str(past[0]), since=since) as stream:
        assert [row["offset"] for row in stream.rest()] == list(range(first, 100))


def test_a_time_to_begin_at_needs_no_history(one):
    with Stream({"a": one}, since="70000") as stream:
        assert [row["offset"] for row in stream.rest()] == list(range(70, 100))


def test_an_offset_behind_the_end_is_refused(one, past):
    with (
        Stream({"a": one}, history=str(past[0]), since="a=101") as stream,
        pytest.raises(OptionError, match="ends at offset 100, before 101"),
    ):
        stream.rest()


def test_a_log_that_was_shortened_past_the_history_is_told_with_the_range(one, past):
    one.retain(72)
    with (
        Stream({"a": one}, history=str(past[0])) as stream,
        pytest.raises(LostError, match=r"offsets 60 to 71 \(12 offsets\) are neither in .* backup"),
    ):
        stream.rest()


def test_with_lost_results_skipped_all_others_are_read(one, past, capfd):
    one.retain(72)
    with Stream({"a": one}, history=str(past[0]), failOnDataLoss="false") as stream:
        rows = stream.rest(ReadMaxRows(7))
    assert [row["offset"] for row in rows] == [*range(60), *range(72, 100)]
    assert "offsets 60 to 71 (12 offsets)" in capfd.readouterr().err


def test_a_file_that_is_gone_is_told_with_the_offsets_that_were_in_it(one, past):
    """Each third row was in it; the last of them the broker has still."""
    past[1][1].unlink()
    with (
        Stream({"a": one}, history=str(past[0])) as stream,
        pytest.raises(LostError, match=r"offsets 1 to 1 \(1 offsets\)"),
    ):
        stream.rest()
    one.retain(50)
    with Stream({"a": one}, history=str(past[0]), since="a=50") as stream:
        assert [row["offset"] for row in stream.rest()] == list(range(50, 100))


def test_a_gap_that_the_history_noted_is_told(one, past):
    note_gap(str(past[0]), HistoryGap("a", "ea", 20, 30))
    with (
        Stream({"a": one}, history=str(past[0]), since="a=25") as stream,
        pytest.raises(LostError, match=r"offsets 25 to 29 \(5 offsets\)"),
    ):
        stream.rest()


def test_what_a_history_did_not_get_is_noted_beside_it(one, past):
    """By the stream that makes it, where it goes on without."""
    more = {"failOnDataLoss": "false", "noteGaps": str(past[0])}
    with Stream({"a": one}, **more) as stream:
        stream.offset = {"a": "ea:30"}
        stream.batch(ReadMaxRows(7))
    assert [gap.name for gap in (past[0] / "_headwater_gaps").iterdir()] == ["a:ea:30:50"]


def test_what_a_history_does_not_get_is_told_with_the_command_that_mends_it(one, past):
    with Stream({"a": one}, noteGaps=str(past[0])) as stream:
        stream.offset = {"a": "ea:30"}
        with pytest.raises(LostError, match=r"offsets 30 to 49 \(20 offsets\) .*server mend"):
            stream.batch(ReadMaxRows(7))


def test_a_hole_among_the_rows_is_no_gap(tmp_path):
    """A broker leaves an offset out now and then."""
    with FakeLog("ea") as log:
        log.add(*[result(n, 1000 * n) for n in range(10)])
        log.add(result(10, 10_000), skip=3)
        write_history(tmp_path / "history", rows_in({"a": log}))
        log.retain(14)
        with Stream({"a": log}, history=str(tmp_path / "history")) as stream:
            assert len(stream.rest()) == 11


def test_a_history_of_another_log_is_refused(one, past):
    one.epoch = "eb"
    with (
        Stream({"a": one}, history=str(past[0])) as stream,
        pytest.raises(EpochError, match="its disk was replaced"),
    ):
        stream.rest()
    with Stream({"a": one}, history=str(past[0]), failOnDataLoss="false") as stream:
        assert [row["offset"] for row in stream.rest()] == list(range(50, 100))


def test_a_history_alone_is_read_up_to_its_end(past, one):
    one.close()
    with Stream({}, history=str(past[0])) as stream:
        assert [row["offset"] for row in stream.rest(ReadMaxRows(7))] == list(range(60))


SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 60))]


@pytest.mark.parametrize("seed", SEEDS)
def test_batches_and_marks_are_those_of_the_whole_log(tmp_path, seed):
    """However late results stand in it, where history and broker meet, and what a batch holds."""
    draw = random.Random(seed)
    limit, late = draw.randrange(5, 60), ("", "1", "20")[seed % 3]
    with FakeLog("ea") as a, FakeLog("eb") as b:
        logs = {"a": a, "b": b}
        for log in logs.values():
            for n in range(draw.randrange(1, 80)):
                end_ms = 1000 * n + draw.choice((0, 0, 0, -30_000, 5_000)) + 100_000
                name = draw.choice(["Frost", "Heat"])
                log.add(result(n, end_ms, name), skip=draw.choice((0, 0, 2)) if n else 0)
            log.promise(draw.choice((120_000, 150_000, 10**12)))
        options = {"lateAfter": late} if late else {"align": "false"}
        options |= {"subscriptions": "Heat"} if draw.random() < 0.3 else {}
        schema = MARKED_SCHEMA if late else SCHEMA
        expected = batches(logs, limit, schema, options)
        folder = tmp_path / "history"
        rows, kept = rows_in(logs), {}
        for name, log in logs.items():
            kept[name] = draw.randrange(log.end + 1)
        in_history = [row for row in rows if row["offset"] < kept[row["broker"]]]
        write_history(folder, in_history, files=draw.randrange(1, 4))
        for name, log in logs.items():
            ends = [row["offset"] + 1 for row in in_history if row["broker"] == name]
            log.retain(draw.randrange(max(ends) + 1) if ends else 0)
        options |= {"history": str(folder)}
        found = batches(logs, limit, schema, options)
        assert found == expected


def batches(logs, limit, schema, options):
    """Offset, mark and results of each batch but of the first, which begins each log.

    A row that holds the mark alone is none of a result: it comes where the last range of a batch
    has no row of the subscriptions, and ranges end where the history does.
    """
    made = []
    with Stream(logs, schema, **options) as stream:
        for _ in range(12):
            rows = stream.batch(ReadMaxRows(limit))
            marks = sorted({str(row["settled"]) for row in rows if "settled" in row})
            results = sorted(str(row) for row in rows if row["id"] is not None)
            made.append((stream.offset, marks, results))
    return made


def test_numbers_of_two_brokers(one, past):
    """One that is in no history is read from its log."""
    with FakeLog("eb") as other:
        other.add(*[result(n, 1000 * n) for n in range(10)])
        with Stream({"a": one, "b": other}, history=str(past[0])) as stream:
            rows = stream.rest()
    assert numbers(rows) == [("a", n) for n in range(100)] + [("b", n) for n in range(10)]

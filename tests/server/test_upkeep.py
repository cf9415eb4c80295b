"""Folders that are compacted and mended by command: each row once, wherever that is cut off."""

import json
import shutil
from datetime import UTC, datetime

import pytest

from headwater.cli import main
from server.catalogue import tables
from server.checkpoint import begun_of, hold
from server.config import read
from server.errors import JobsError, ServerError
from server.history import table_of
from server.process import streams_of
from server.source.history import HistoryGap, gaps_in, note_gap, read_history
from server.upkeep import compaction, repair
from server.upkeep.compaction import Compaction, CompactionSettings, compact
from server.upkeep.repair import mend
from tests.server.histories import rows_in, write_history
from tests.server.logs import FakeLog, result
from tests.server.test_on_spark import HISTORY, all_rows, jobs_file, run_once

DAY_MS = 86_400_000
NOW_MS = 100 * DAY_MS
WHOLE = CompactionSettings(grace_ms=DAY_MS)


class KilledError(BaseException):
    """What nothing on the way takes care of."""


def killed(*_):
    raise KilledError


@pytest.fixture
def log():
    with FakeLog("ea") as log:
        log.add(*[result(n, 1000 * n) for n in range(60)])
        log.add(result(60, 60_000), skip=4)
        yield log


@pytest.fixture
def folder(log, tmp_path):
    """A history of six files, all but the last in one compact list."""
    paths = write_history(tmp_path / "history", rows_in({"a": log}), files=6)
    listed = tmp_path / "history" / "_spark_metadata"
    lines = [(listed / str(number)).read_text().splitlines()[1] for number in range(5)]
    (listed / "9.compact").write_text("\n".join(["v1", *lines]))
    (listed / ".9.compact.crc").write_bytes(b"what it was")
    (listed / "5").rename(listed / "10")
    for number in range(5):
        (listed / str(number)).unlink()
    assert all(path.is_file() for path in paths)
    return tmp_path / "history"


@pytest.fixture
def file(log, folder, tmp_path):
    text = HISTORY.replace('["archive", "db"]', '"archive"')
    return jobs_file(tmp_path, {"a": log}, text)


def offsets(folder):
    return sorted(table_of(folder, ["offset"])["offset"].to_pylist())


# --- compaction ----------------------------------------------------------------------------------


def test_small_files_become_one_and_stay_for_who_reads_them(folder, file, log):
    before = read_history(folder)
    assert compact(file, "history", WHOLE, NOW_MS) == Compaction(merged=5, made=1)
    after = read_history(folder)
    assert len(after.files) == 2
    assert after.log("a", "ea").offsets == before.log("a", "ea").offsets
    assert offsets(folder) == [at for at, _, _ in log.rows]
    assert all(path.is_file() for path in before.files)
    assert not (folder / "_spark_metadata" / ".9.compact.crc").exists()
    assert compact(file, "history", WHOLE, NOW_MS + DAY_MS - 1) == Compaction()
    assert compact(file, "history", WHOLE, NOW_MS + DAY_MS) == Compaction(removed=5)
    assert offsets(folder) == [at for at, _, _ in log.rows]


def test_files_are_no_larger_than_is_said(folder, file):
    size = read_history(folder).files[0].stat().st_size
    settings = CompactionSettings(file_bytes=2 * size + size // 2)
    assert compact(file, "history", settings, NOW_MS) == Compaction(merged=4, made=2)


@pytest.mark.parametrize("step", ["write_rows", "_note_replaced", "change_list"])
def test_a_compaction_that_is_cut_off_changes_nothing(folder, file, log, step):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, step, killed)
        with pytest.raises(KilledError):
            compact(file, "history", WHOLE, NOW_MS)
    assert offsets(folder) == [at for at, _, _ in log.rows]
    compact(file, "history", CompactionSettings(grace_ms=0), NOW_MS)
    compact(file, "history", CompactionSettings(grace_ms=0), NOW_MS)
    assert offsets(folder) == [at for at, _, _ in log.rows]


def test_days_that_are_over_for_long_are_dropped(folder, file, log):
    """The rows are of the first of March, but for what Spark listed last."""
    over_ms = round(datetime(2026, 3, 2, tzinfo=UTC).timestamp() * 1000)
    settings = CompactionSettings(keep_ms=10 * DAY_MS)
    assert compact(file, "history", settings, over_ms + 10 * DAY_MS - 1).dropped == 0
    kept = CompactionSettings(keep_ms=10 * DAY_MS, grace_ms=10**15)
    assert compact(file, "history", kept, over_ms + 10 * DAY_MS).dropped == 1
    assert offsets(folder) == [at for at, _, _ in log.rows][5::6]


def test_a_folder_that_is_filled_is_left_alone(folder, file):
    (stream,) = streams_of(read(file))
    stream.begin()
    with pytest.raises(JobsError, match="is run by a process"):
        compact(file, "history", WHOLE, NOW_MS)
    with pytest.raises(JobsError, match="is run by a process"):
        mend(file, "history", ())
    stream.stop()
    with hold(begun_of(read(file), stream.job)[0].folder):
        assert main(["server", "compact", "history", str(file)]) == 2


# --- mending -------------------------------------------------------------------------------------


@pytest.fixture
def torn(folder, log, tmp_path):
    """Two files are gone; of what they had the broker has the end, and a backup all."""
    shutil.copytree(folder, tmp_path / "backup")
    for path in read_history(folder).files[2:4]:
        path.unlink()
    log.retain(30)
    return tmp_path / "backup"


def test_a_history_is_mended_from_its_broker_and_a_backup(folder, file, log, torn, capsys):
    lost = [n for n in range(60) if n % 6 in (2, 3)]
    assert main(["server", "mend", "history", str(file), "--check"]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "broker a: offsets 2 to 3 (2 offsets): missing"
    with pytest.raises(ServerError, match="is gone, as are 1 other files"):
        table_of(folder)
    assert main(["server", "mend", "history", str(file)]) == 1
    said = capsys.readouterr().out
    assert "offsets 32 to 33 (2 offsets): taken from its log" in said
    assert "offsets 26 to 27 (2 offsets): in no log and in no history that was named" in said
    assert offsets(folder) == sorted({*range(60), 64} - {n for n in lost if n < 30})
    ranges = [(gap.begin, gap.end) for gap in gaps_in(folder)]
    assert ranges == [(n, n + 2) for n in range(2, 30, 6)]
    assert main(["server", "mend", "history", str(file), "--from", str(torn)]) == 0
    assert "nothing is missing" in capsys.readouterr().out
    assert offsets(folder) == [*range(60), 64]
    assert gaps_in(folder) == []
    assert mend(file, "history", ()) == ([], True)
    rows = sorted(table_of(folder).to_pylist(), key=lambda row: row["offset"])
    log.earliest = 0
    assert rows == sorted(table_of(torn).to_pylist(), key=lambda row: row["offset"])


@pytest.mark.parametrize("step", ["write_rows", "change_list", "note_gap"])
def test_a_mending_that_is_cut_off_goes_on(folder, file, torn, log, step):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repair, step, killed)
        with pytest.raises(KilledError):
            mend(file, "history", ())
    log.retain(45)  # what was taken by then is not taken otherwise later
    assert mend(file, "history", [torn]).whole
    assert offsets(folder) == [*range(60), 64]


def test_a_note_that_lies_in_a_hole_is_mended_once(folder, file, torn):
    note_gap(str(folder), HistoryGap("a", "ea", 1, 4))
    note_gap(str(folder), HistoryGap("z", "ez", 1, 4))
    assert mend(file, "history", [torn]).whole
    assert offsets(folder) == [*range(60), 64]
    assert [gap.broker for gap in gaps_in(folder)] == ["z"]


def test_a_hole_that_the_broker_left_is_not_missing(folder, file):
    assert mend(file, "history", ()) == ([], True)


def test_a_history_without_a_file_is_told_of_even_where_no_row_is_left(folder, file):
    files = read_history(folder).files
    for path in files:
        path.unlink()
    mended = mend(file, "history", ())
    assert not mended.whole
    assert sorted(sentence.partition(" is gone")[0] for sentence in mended.sentences) == sorted(
        map(str, files)
    )


def test_a_folder_is_listed_with_its_times_or_with_what_mends_it(folder, file):
    (entry,) = tables(file)
    assert (entry["rows"], entry["first"]) == (61, "1970-01-01 00:00:00.000000")
    assert entry["last"] == "1970-01-01 00:01:00.000000"
    read_history(folder).files[0].unlink()
    with pytest.raises(ServerError, match="is gone: `headwater server mend` says"):
        tables(file)


def test_a_history_of_another_log_mends_nothing(folder, file, torn, log, tmp_path):
    log.epoch = "eb"
    other = [row | {"epoch": "ec"} for row in table_of(torn).to_pylist()]
    write_history(tmp_path / "other", [{**row, "day": None} for row in other])
    mended = mend(file, "history", [tmp_path / "other"])
    assert not mended.whole
    assert not any("taken" in sentence for sentence in mended.sentences)
    with pytest.raises(ServerError, match="holds no history"):
        mend(file, "history", [tmp_path])


@pytest.mark.long
@pytest.mark.timeout(600)
def test_spark_goes_on_with_what_was_compacted_and_mended(spark, tmp_path):
    """Its own reader, and its own compaction of the list ten batches later."""
    with FakeLog("ea") as log:
        text = HISTORY.replace('["archive", "db"]', '"archive"')
        file = jobs_file(tmp_path, {"a": log}, text, batch_rows=10)
        log.add(*[result(n, 1000 * n) for n in range(125)])
        run_once(spark, file)
        folder = tmp_path / "history"
        assert compact(file, "history", CompactionSettings(grace_ms=0), NOW_MS).merged > 5
        assert compact(file, "history", CompactionSettings(grace_ms=0), NOW_MS).removed > 5
        files = read_history(folder).files
        files[-1].unlink()
        assert mend(file, "history", ()).whole
        assert exact(spark, folder, log)
        log.add(*[result(n, 1000 * n) for n in range(125, 260)])
        run_once(spark, file)
        assert exact(spark, folder, log)
        names = [one.name for one in (folder / "_spark_metadata").glob("*.compact")]
        assert len(names) > 1
        for one in sorted((folder / "_spark_metadata").glob("[0-9]*")):
            assert all(json.loads(line) for line in one.read_text().splitlines()[1:])


def exact(spark, folder, log):
    kept = spark.read.parquet(str(folder)).select("broker", "offset").collect()
    listed = table_of(folder, ["offset"])["offset"].to_pylist()
    return sorted(map(tuple, kept)) == all_rows({"a": log}) == [("a", n) for n in sorted(listed)]

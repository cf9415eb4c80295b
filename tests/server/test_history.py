"""Which files of a history count, as Spark writes it down, and the picture of a day."""

import importlib.util
import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from server.errors import ServerError
from server.history import files_of, table_of
from server.source.history import HistoryError, page_in, read_history
from server.source.rows import COLUMNS
from tests.server.histories import write_history

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "server" / "plot_day.py"
COLUMNS_OF_TIME = ("start", "end", "detected_at")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TIMES = dict.fromkeys(COLUMNS_OF_TIME, NOON)


class Folder:
    """A history as Spark leaves it."""

    def __init__(self, path):
        self.path = path
        (path / "_spark_metadata").mkdir(parents=True)

    def part(self, name, *minutes, subscription="Frost"):
        path = self.path / "day=2026-03-01" / name
        path.parent.mkdir(exist_ok=True)
        rows = {
            "subscription": [subscription] * len(minutes),
            "end": pa.array(
                [NOON + timedelta(minutes=one) for one in minutes], pa.timestamp("us", tz="UTC")
            ),
        }
        parquet.write_table(pa.table(rows), path)
        return path

    def batch(self, name, *paths, action="add", version="v1"):
        lines = [json.dumps({"path": path.as_uri(), "action": action}) for path in paths]
        (self.path / "_spark_metadata" / name).write_text("\n".join([version, *lines]))


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "history")


def test_files_of_attempts_that_were_killed_do_not_count(folder):
    good = folder.part("a b.parquet", 1, 2)  # the list holds addresses, with escapes
    folder.part("killed.parquet", 1, 2)
    folder.batch("0", good)
    assert files_of(folder.path) == [good]
    assert table_of(folder.path).num_rows == 2


def test_any_time_comes_back_as_it_was_written(folder):
    """Spark writes times as INT96; a clock that was never set may say 1601."""
    years = (1, 1601, 1677, 2026, 2263, 9999)
    ends = [NOON.replace(year=year, microsecond=1000, tzinfo=None) for year in years]
    path = folder.part("times.parquet")
    rows = pa.table({"end": pa.array(ends, pa.timestamp("us"))})
    parquet.write_table(rows, path, use_deprecated_int96_timestamps=True)
    folder.batch("0", path)
    assert table_of(folder.path)["end"].to_pylist() == ends


def test_a_compact_list_stands_for_all_before_it(folder):
    one, two, three = (folder.part(f"{n}.parquet", n) for n in range(3))
    folder.batch("0", one)
    folder.batch("1.compact", one, two)
    folder.batch("2", three)
    assert files_of(folder.path) == [one, two, three]


def test_what_was_taken_back_does_not_count(folder):
    one, two = folder.part("1.parquet", 1), folder.part("2.parquet", 2)
    folder.batch("0", one, two)
    folder.batch("1", one, action="delete")
    assert files_of(folder.path) == [two]


def test_a_history_can_be_moved(folder, tmp_path):
    folder.batch("0", folder.part("1.parquet", 1))
    folder.path.rename(tmp_path / "moved")
    (tmp_path / "moved" / "x").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "moved").rename(tmp_path / "other" / "history")
    assert table_of(tmp_path / "other" / "history").num_rows == 1


def test_what_is_no_history_is_refused(folder, tmp_path):
    with pytest.raises(ServerError, match="holds no history"):
        files_of(tmp_path)
    folder.batch("0", version="v2")
    with pytest.raises(ServerError, match="expected v1"):
        files_of(folder.path)


@pytest.mark.parametrize(
    ("name", "values", "fault"),
    [
        ("offset", ["a", "b"], "column offset is string, and results have int64"),
        ("offset", pa.array([1, None]), "rows have no offset"),
        ("end", [1, 2], "column end is int64, and results have timestamp"),
        ("broker", [1, 2], "column broker is int64, and results have string"),
    ],
)
def test_a_file_of_another_job_is_told_with_its_column_and_what_mends_it(
    tmp_path, name, values, fault
):
    rows = [dict.fromkeys(COLUMNS, "x") | TIMES | {"offset": number} for number in range(2)]
    (path,) = write_history(tmp_path / "history", rows)
    told = rf"part-0.parquet is no history of results: {fault}.*`headwater server mend`"
    assert read_history(tmp_path / "history").log("x", "x").end == 2
    table = parquet.read_table(path)
    column = pa.chunked_array([values])
    parquet.write_table(table.set_column(table.column_names.index(name), name, column), path)
    with pytest.raises(HistoryError, match=told):
        read_history(tmp_path / "history")
    span = ("x", "x"), (0, 2)
    with pytest.raises(HistoryError, match=told):
        page_in([str(path)], *span, list(COLUMNS), frozenset())


def test_files_that_differ_are_told_with_the_column(folder):
    first, other = folder.part("first.parquet", 1), folder.part("other.parquet", 2)
    folder.batch("0", first, other)
    table = parquet.read_table(other)
    parquet.write_table(table.set_column(0, "subscription", pa.array([1])), other)
    unlike = "other.parquet of the history is unlike .*: column subscription is int64 in the place"
    with pytest.raises(ServerError, match=unlike):
        table_of(folder.path)
    other.write_bytes(other.read_bytes()[:-3])
    with pytest.raises(ServerError, match=r"other.parquet of the history cannot be read: .*mend"):
        table_of(folder.path)


def test_an_empty_history_is_one(folder):
    folder.batch("0")
    assert table_of(str(folder.path)).num_rows == 0


def test_the_example_draws_a_day(folder, tmp_path):
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("plot_day", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    folder.batch(
        "0",
        folder.part("1.parquet", 0, 14, 15),
        folder.part("2.parquet", 60, 60 * 24, subscription="Heat"),
    )
    assert example.counts(folder.path, date(2026, 3, 1)) == {
        "Frost": {48: 2, 49: 1},
        "Heat": {52: 1},
    }
    assert example.draw(folder.path, date(2026, 3, 1), tmp_path / "day.png") == 4
    assert (tmp_path / "day.png").read_bytes().startswith(b"\x89PNG")

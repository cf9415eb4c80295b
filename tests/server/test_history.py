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

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "server" / "plot_day.py"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


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

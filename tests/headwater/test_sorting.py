"""Sorting on disk is one stable sort, whatever the limits, and leaves nothing behind."""

import errno
import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.replays import sorter as sorting
from headwater.replays.sorter import ExternalSort, SortingError

Item = tuple[int, int]  # (what is sorted by, when it came)


def by_first(item: Item) -> int:
    return item[0]


def sorter(**limits) -> ExternalSort[Item]:
    return ExternalSort(
        by_first,
        msgspec.msgpack.Encoder().encode,
        msgspec.msgpack.Decoder(Item).decode,
        **limits,
    )


def run(keys: list[int], batch: int, **limits) -> tuple[list[Item], int]:
    items = [(key, index) for index, key in enumerate(keys)]
    with sorter(**limits) as collected:
        for start in range(0, len(items), batch):
            collected.add(items[start : start + batch], size_bytes=100 * batch)
        return list(collected.in_order()), collected.runs_written


@given(
    st.lists(st.integers(-3, 3), max_size=200),
    st.integers(1, 7),
    st.integers(0, 9),
    st.sampled_from([1, 700, 10**9]),
)
def test_any_limit_gives_the_order_of_one_stable_sort(keys, batch, items_max, bytes_max):
    ordered, _ = run(keys, batch, items_max=items_max, bytes_max=bytes_max)
    assert ordered == sorted(enumerate_keys(keys), key=by_first)


def enumerate_keys(keys: list[int]) -> list[Item]:
    return [(key, index) for index, key in enumerate(keys)]


def test_runs_are_merged_in_levels_so_that_few_files_are_open():
    keys = [random.Random(1).randrange(50) for _ in range(sorting.FAN_IN * (sorting.FAN_IN + 3))]
    items = enumerate_keys(keys)
    with sorter(items_max=0) as collected:
        open_most = 0
        for item in items:
            collected.add([item])
            open_most = max(open_most, sum(map(len, collected._levels)))
        assert open_most <= 2 * sorting.FAN_IN
        assert len(collected._levels) == 3
        assert list(collected.in_order()) == sorted(items, key=by_first)


def test_what_fits_into_memory_needs_no_file(monkeypatch):
    def no_file(**_):
        raise AssertionError("a file was made")

    monkeypatch.setattr(sorting.tempfile, "TemporaryFile", no_file)
    ordered, runs = run([3, 1, 2], batch=3, items_max=3)
    assert [key for key, _ in ordered] == [1, 2, 3]
    assert runs == 0


def test_no_file_has_a_name_and_leaving_closes_them_all(tmp_path: Path):
    with sorter(items_max=1, folder=str(tmp_path)) as collected:
        for item in enumerate_keys([5, 4, 3, 2, 1, 0]):
            collected.add([item])
        next(collected.in_order())
        files = [run for level in collected._levels for run in level]
        assert len(files) > 1
        assert list(tmp_path.iterdir()) == []
    assert all(file.closed for file in files)


def test_a_failure_while_sorting_closes_the_files_too(tmp_path: Path):
    files = []

    def sort_and_fail() -> None:
        with sorter(items_max=1, folder=str(tmp_path)) as collected:
            for item in enumerate_keys([5, 4, 3, 2]):
                collected.add([item])
            files.extend(run for level in collected._levels for run in level)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sort_and_fail()
    assert files
    assert all(file.closed for file in files)


def test_a_missing_folder_is_named(tmp_path: Path):
    missing = str(tmp_path / "gone")
    collected = sorter(items_max=0, folder=missing)
    with pytest.raises(SortingError, match="no such file or directory") as caught:
        collected.add([(1, 1)])
    assert missing in str(caught.value)


def test_a_full_disk_is_a_sentence(monkeypatch):
    class FullDisk:
        closed = False

        def write(self, _data: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self) -> None:
            self.closed = True

    disk = FullDisk()
    monkeypatch.setattr(sorting.tempfile, "TemporaryFile", lambda **_: disk)
    collected = sorter(items_max=0)
    with pytest.raises(SortingError, match="no space left on device"):
        collected.add([(1, 1)])
    assert disk.closed

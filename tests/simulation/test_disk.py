"""The simulated disk: what a crash leaves, and what it must not."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulation.disk import SECTOR_BYTES, Disk, DiskFailedError, DiskFullError

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from("ab"), st.binary(min_size=1, max_size=40)),
        st.tuples(st.just("sync"), st.sampled_from("ab"), st.none()),
        st.tuples(st.just("crash"), st.none(), st.none()),
    ),
    max_size=40,
)


@given(STEPS, st.integers(0, 2**32))
def test_what_was_synced_is_there_and_the_rest_is_a_prefix_and_a_torn_end(steps, seed):
    disk = Disk(Random(seed))
    written = {"a": b"", "b": b""}
    synced = {"a": 0, "b": 0}
    for verb, name, data in steps:
        if verb == "append":
            disk.append(name, data)
            written[name] += data
        elif verb == "sync" and name in disk.names():
            disk.sync(name)
            synced[name] = len(written[name])
        elif verb == "crash":
            disk.crash()
            for one, before in written.items():
                left = disk.read(one) if one in disk.names() else b""
                assert left[: synced[one]] == before[: synced[one]]
                assert len(left) <= len(before)
                same = next((i for i, c in enumerate(left) if c != before[i]), len(left))
                assert len(left) - same <= SECTOR_BYTES
                written[one], synced[one] = left, len(left)
        for one in disk.names():
            assert disk.read(one) == written[one]


def test_all_that_may_happen_to_unsynced_bytes_happens_with_some_seed():
    left = set()
    for seed in range(300):
        disk = Disk(Random(seed))
        disk.append("a", b"1234")
        disk.sync("a")
        disk.append("a", b"5678")
        disk.crash()
        left.add(disk.read("a"))
    assert {b"1234", b"12345", b"123456", b"1234567", b"12345678"} <= left
    assert {b"1234\0", b"123456\0\0"} <= left
    assert all(one.startswith(b"1234") and len(one) <= 8 for one in left)
    assert any(set(one) - set(b"12345678\0") for one in left)  # what stood there before


def test_a_file_that_was_never_synced_may_be_gone_and_a_removed_one_back():
    made, removed, settled = set(), set(), set()
    for seed in range(50):
        disk = Disk(Random(seed))
        disk.append("old", b"x")
        disk.append("gone", b"x")
        disk.sync("old")
        disk.sync("gone")
        disk.remove("gone")
        disk.sync_folder()
        disk.append("new", b"x")
        disk.remove("old")
        disk.crash()
        made.add("new" in disk.names())
        removed.add("old" in disk.names())
        settled.add("gone" in disk.names())
    assert made == removed == {True, False}
    assert settled == {False}


def test_a_crash_is_the_same_with_the_same_seed():
    def left(seed):
        disk = Disk(Random(seed))
        for number in range(20):
            disk.append(f"f{number % 3}", bytes([number]) * number)
            if number % 4 == 0:
                disk.sync(f"f{number % 3}")
        disk.crash()
        return [(name, disk.read(name)) for name in disk.names()]

    assert left(7) == left(7)
    assert len({str(left(seed)) for seed in range(20)}) > 5


def test_a_full_disk_takes_no_more_than_fits_until_there_is_room():
    left = set()
    for seed in range(20):
        disk = Disk(Random(seed), size_bytes_max=5)
        disk.append("a", b"123")
        with pytest.raises(DiskFullError):
            disk.append("b", b"456")
        left.add(disk.read("b") if "b" in disk.names() else b"")
        disk.size_bytes_max = 9
        disk.append("c", b"4567")
    assert left == {b"", b"45"}


def test_a_disk_that_fails_does_nothing_and_goes_on_afterwards():
    disk = Disk(Random(0))
    disk.append("a", b"1")
    disk.fail(2)
    with pytest.raises(DiskFailedError):
        disk.append("a", b"2")
    with pytest.raises(DiskFailedError):
        disk.truncate("a", 0)
    disk.sync("a")
    disk.crash()
    assert disk.read("a") == b"1"


def test_what_a_failed_sync_should_have_written_is_gone_whatever_comes_after():
    disk = Disk(Random(0))
    disk.append("a", b"12")
    disk.sync("a")
    disk.append("a", b"34")
    disk.fail(1)
    with pytest.raises(DiskFailedError):
        disk.sync("a")
    disk.append("a", b"56")
    disk.sync("a")
    assert disk.read("a") == b"123456"
    disk.crash()
    assert disk.read("a") == b"12\0\x0056"


def test_a_file_that_was_renamed_has_one_of_its_names_after_a_crash():
    seen, settled = set(), set()
    for seed in range(50):
        disk = Disk(Random(seed))
        for name in ("a", "b"):
            disk.append(name, b"1")
            disk.sync(name)
        disk.rename("b", "settled")
        disk.sync_folder()
        disk.rename("a", "new")
        disk.crash()
        seen.add(tuple(name for name in disk.names() if name in ("a", "new")))
        settled.add("settled" in disk.names())
        assert len(disk.names()) == 2
    assert seen == {("a",), ("new",)}
    assert settled == {True}
    with pytest.raises(FileExistsError):
        disk.rename("settled", disk.names()[0])


def test_a_cut_survives_a_crash():
    disk = Disk(Random(0))
    disk.append("a", b"12345678")
    disk.sync("a")
    disk.truncate("a", 3)
    disk.crash()
    assert disk.read("a") == b"123"

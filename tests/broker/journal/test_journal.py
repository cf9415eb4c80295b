"""The journal on a disk that works: order, groups, segments, snapshots, what a crash leaves."""

import asyncio
from random import Random

import pytest

from broker.core.recovery.records import HEADER_BYTES, RECORD_HEADER_BYTES
from broker.journal import JournalError, read
from tests.broker.journal.faults import FaultyFiles, Kept, crashed, there


def numbered(*datas, first=1):
    return list(enumerate(datas, first))


def segments(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix == ".segment")


def test_what_was_appended_is_read_in_order(tmp_path):
    async def scene():
        kept = Kept(tmp_path / "journal")
        assert kept.before == []
        kept.append(b"one", b"", b"three")
        assert kept.journal.waiting_bytes == 3 * RECORD_HEADER_BYTES + 8
        await kept.all_durable()
        assert kept.journal.waiting_bytes == 0
        kept.append(b"four")
        await kept.journal.close()
        assert kept.durable[-1] == 4

    asyncio.run(scene())
    assert there(tmp_path / "journal") == (None, numbered(b"one", b"", b"three", b"four"))


def test_the_next_start_goes_on_behind_what_is_there(tmp_path):
    async def scene(data):
        kept = Kept(tmp_path)
        kept.append(data)
        await kept.journal.close()
        return kept.before

    parts = [b"a", b"b", b"c"]
    for count, data in enumerate(parts):
        assert asyncio.run(scene(data)) == numbered(*parts[:count])
    assert there(tmp_path) == (None, numbered(*parts))


def test_a_number_is_told_only_after_its_sync_and_a_turn_is_one_group(tmp_path):
    """Whatever gathers while a sync runs goes with the next one."""

    async def scene():
        files = FaultyFiles()
        kept = Kept(tmp_path, files)
        files.gate.clear()
        files.reached.clear()
        kept.append(b"1", b"2", b"3")
        assert await asyncio.to_thread(files.reached.wait, 10)
        for turn in range(20):
            kept.append(b"%d" % turn)
            await asyncio.sleep(0)
        assert kept.durable == []
        files.gate.set()
        await kept.all_durable()
        assert kept.durable == [3, 23]
        assert files.syncs == 2
        await kept.journal.close()

    asyncio.run(scene())


def test_a_large_group_is_written_in_parts_and_each_is_told_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr("broker.journal.journal.GROUP_BYTES_MAX", 10)

    async def scene():
        files = FaultyFiles()
        kept = Kept(tmp_path, files)
        kept.append(*[b"12345"] * 5)
        await kept.all_durable()
        assert kept.durable == [2, 4, 5]
        assert files.syncs == 3
        await kept.journal.close()

    asyncio.run(scene())
    assert there(tmp_path)[1] == numbered(*[b"12345"] * 5)


def test_numbers_are_consecutive_or_refused(tmp_path):
    async def scene():
        kept = Kept(tmp_path)
        with pytest.raises(ValueError, match="record 2 does not follow 0"):
            kept.journal.append(2, b"")
        await kept.journal.close()

    asyncio.run(scene())


def test_a_segment_ends_at_its_size_and_they_are_read_as_one(tmp_path):
    datas = [b"x" * 40 for _ in range(30)]

    async def scene():
        kept = Kept(tmp_path, segment_bytes=300)
        for data in datas:
            kept.append(data)
            await kept.all_durable()
        await kept.journal.close()

    asyncio.run(scene())
    names = segments(tmp_path)
    assert len(names) == 6  # 24 bytes of header and 5 records of 64 are more than 300
    assert names[1].startswith(f"{6:020d}-0000")
    assert there(tmp_path)[1] == numbered(*datas)


def test_each_folder_that_is_made_is_this_users_alone_and_synced_in_the_one_above(tmp_path):
    synced = []

    class Told(FaultyFiles):
        def sync_folder(self, path):
            synced.append(path)
            super().sync_folder(path)

    Told().make_folder(tmp_path / "a" / "b")
    assert synced == [tmp_path, tmp_path / "a"]
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    Told().make_folder(tmp_path / "a" / "b")
    assert len(synced) == 2


# --- snapshots ------------------------------------------------------------------------------


def test_a_snapshot_takes_the_place_of_what_lies_before_it(tmp_path):
    async def scene():
        kept = Kept(tmp_path, segment_bytes=100)
        for number in range(1, 11):
            kept.append(b"%d" % number * 50)
            await kept.all_durable()
        before = segments(tmp_path)
        await kept.journal.write_snapshot(5, b"state")
        assert len(segments(tmp_path)) < len(before)
        size = sum((tmp_path / name).stat().st_size for name in segments(tmp_path))
        assert kept.journal.size_bytes == size
        await kept.journal.write_snapshot(7, b"later")
        await kept.journal.close()
        assert [path.name for path in tmp_path.glob("*.snapshot")] == [f"{7:020d}.snapshot"]

    asyncio.run(scene())
    later = [(number, b"%d" % number * 50) for number in (8, 9, 10)]
    assert there(tmp_path) == ((7, b"later"), later)


def test_at_the_end_a_snapshot_is_all_there_is(tmp_path):
    async def scene(datas, final):
        kept = Kept(tmp_path, segment_bytes=60)
        kept.append(*datas)
        await kept.journal.close(final)
        return kept.before

    asyncio.run(scene([b"a" * 50, b"b" * 50], b"whole"))
    assert [path.name for path in tmp_path.iterdir()] == [f"{2:020d}.snapshot"]
    assert there(tmp_path) == ((2, b"whole"), [])
    assert asyncio.run(scene([b"c"], None)) == []
    assert there(tmp_path) == ((2, b"whole"), [(3, b"c")])
    assert asyncio.run(scene([], None)) == [(3, b"c")]


def test_a_snapshot_ahead_of_the_segments_is_gone_on_from(tmp_path):
    """The state may be on the disk before the records that it stands for."""

    async def scene():
        files = FaultyFiles()
        kept = Kept(tmp_path / "a", files)
        kept.append(b"1")
        await kept.all_durable()
        kept.append(b"2", b"3")
        await kept.journal.write_snapshot(3, b"state")
        crashed(tmp_path / "a", tmp_path / "b")
        await kept.journal.close()
        (segment,) = (tmp_path / "b").glob("*.segment")
        segment.write_bytes(segment.read_bytes()[: HEADER_BYTES + RECORD_HEADER_BYTES + 1])
        again = Kept(tmp_path / "b")
        assert (again.before, again.found.next_number) == ([], 4)
        again.append(b"4")
        await again.journal.close()
        assert there(tmp_path / "b") == ((3, b"state"), [(4, b"4")])

    asyncio.run(scene())


def test_what_a_snapshot_stands_for_goes_also_if_a_crash_came_between(tmp_path):
    async def scene():
        kept = Kept(tmp_path / "a", segment_bytes=1)
        for number in range(1, 6):
            kept.append(b"%d" % number)
            await kept.all_durable()
            if number == 1:
                await kept.journal.write_snapshot(1, b"first")
        before = crashed(tmp_path / "a", tmp_path / "b")
        await kept.journal.write_snapshot(3, b"second")
        (path,) = (tmp_path / "a").glob("*.snapshot")
        (before / path.name).write_bytes(path.read_bytes())
        await kept.journal.close()

    asyncio.run(scene())
    assert there(tmp_path / "b") == ((3, b"second"), [(4, b"4"), (5, b"5")])
    names = [path.name[:20] for path in sorted((tmp_path / "b").iterdir())]
    assert names == [f"{number:020d}" for number in (3, 4, 5)]


# --- what a crash leaves --------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_any_tail_of_the_last_segment_may_be_torn(tmp_path, seed):
    """Runs that end at once, each with a torn tail: whatever was read once is read for ever."""
    random = Random(seed)
    folder = tmp_path / "journal"

    async def scene(datas):
        kept = Kept(folder, segment_bytes=400)
        for data in datas:
            kept.append(data)
            if random.random() < 0.5:
                await kept.all_durable()
        await kept.journal.close()
        return kept.before

    known = []
    for _ in range(6):
        datas = [random.randbytes(random.randint(0, 120)) for _ in range(random.randint(0, 8))]
        assert asyncio.run(scene(datas)) == known
        known += numbered(*datas, first=len(known) + 1)
        names = segments(folder)
        if names and datas:  # tear records that are not known to be durable: those of no later sync
            last = folder / names[-1]
            data = last.read_bytes()
            tail = random.choice([b"", bytes(50), random.randbytes(50)])
            last.write_bytes(data + tail)
    assert there(folder)[1] == known


def test_a_torn_record_is_cut_and_told_of(tmp_path):
    async def scene():
        kept = Kept(tmp_path)
        kept.append(b"one", b"two")
        await kept.journal.close()

    asyncio.run(scene())
    (name,) = segments(tmp_path)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[:-2])
    found = read(tmp_path)
    assert [one.data for one in found.records()] == [b"one"]
    assert (found.cut_bytes, found.next_number) == (RECORD_HEADER_BYTES + 1, 2)
    assert (tmp_path / name).read_bytes() == whole[: -RECORD_HEADER_BYTES - 3]
    assert read(tmp_path).cut_bytes == 0


def test_a_segment_without_a_whole_header_is_gone_on_behind(tmp_path):
    async def scene(data):
        kept = Kept(tmp_path)
        kept.append(data)
        await kept.journal.close()

    asyncio.run(scene(b"one"))
    (tmp_path / f"{2:020d}-0000.segment").write_bytes(b"HWj")
    for number in (2, 3):
        asyncio.run(scene(b"%d" % number))
    assert there(tmp_path)[1] == numbered(b"one", b"2", b"3")
    assert f"{2:020d}-0001.segment" in segments(tmp_path)


def test_files_that_were_not_whole_yet_are_removed(tmp_path):
    (tmp_path / f"{5:020d}.snapshot.new").write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("somebody's")
    assert there(tmp_path) == (None, [])
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


# --- damage, and other formats --------------------------------------------------------------


def test_damage_is_told_with_file_place_and_way_out(tmp_path):
    async def scene():
        kept = Kept(tmp_path, segment_bytes=10)
        for data in (b"one", b"two", b"three"):
            kept.append(data)
            await kept.all_durable()
        await kept.journal.close()

    asyncio.run(scene())
    first = tmp_path / segments(tmp_path)[0]
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    with pytest.raises(JournalError, match=rf"damaged: {first.name}, byte {HEADER_BYTES}: .*copy"):
        list(read(tmp_path).records())
    first.unlink()
    with pytest.raises(JournalError, match="record 1 and all up to 1 are missing"):
        read(tmp_path)


def test_a_damaged_snapshot_is_told_and_not_passed_over(tmp_path):
    async def scene():
        kept = Kept(tmp_path)
        kept.append(b"one")
        await kept.journal.close(b"state")

    asyncio.run(scene())
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(JournalError, match=rf"damaged: {path.name}"):
        read(tmp_path)


def test_what_a_newer_version_wrote_is_refused_and_left_alone(tmp_path, monkeypatch):
    async def scene(final):
        kept = Kept(tmp_path)
        kept.append(b"one")
        await kept.journal.close(final)

    for final in (None, b"state"):
        with monkeypatch.context() as newer:
            newer.setattr("broker.core.recovery.records.VERSION", 7)
            asyncio.run(scene(final))
        (path,) = tmp_path.iterdir()
        before = path.read_bytes()
        with pytest.raises(JournalError, match=r"is of another version: .*format 7.*up to 1"):
            read(tmp_path)
        assert path.read_bytes() == before
        path.unlink()

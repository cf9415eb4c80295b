"""The journal on a disk that fails: each fault is a sentence, and nothing is promised or lost."""

import asyncio
import errno
import re

import pytest

from broker.journal import JournalError, read
from tests.broker.journal.faults import FaultyFiles, Kept, crashed, there

FAULTS = {
    "a full disk": ("write", errno.ENOSPC, "the disk is full; make room"),
    "a used-up share": ("write", errno.EDQUOT, "share of the disk is used up"),
    "a limit on files": ("write", errno.EFBIG, "may not grow as large"),
    "a failing disk": ("write", errno.EIO, "input/output error"),
    "a failed sync": ("sync", errno.EIO, "input/output error"),
    "a full disk at the sync": ("sync", errno.ENOSPC, "the disk is full"),
    "a failed sync of the folder": ("sync_folder", errno.EIO, "input/output error"),
    "a read-only disk": ("create", errno.EROFS, "the file system is read-only"),
    "another's folder": ("create", errno.EACCES, "this user may not write there"),
    "a folder that is gone": ("create", errno.ENOENT, "the folder is gone"),
    "too many files": ("create", errno.EMFILE, "too many open files"),
    "what nobody thought of": ("write", errno.ENOTTY, "inappropriate ioctl"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_while_the_disk_fails_nothing_is_durable_and_after_it_all_is(tmp_path, name):
    operation, number, words = FAULTS[name]
    folder = tmp_path / "journal"

    async def scene():
        files = FaultyFiles()
        # Each record fills a segment, so that the next one needs a file too.
        kept = Kept(folder, files, segment_bytes=1 if operation != "sync" else 10_000)
        kept.append(b"before")
        await kept.all_durable()
        files.failing[operation] = number
        kept.append(b"first", b"second")
        await kept.until(lambda: kept.troubles)
        assert re.fullmatch(
            rf"the journal in {re.escape(str(folder))}: .*{words}.*", kept.troubles[0]
        )
        kept.append(b"third")
        for _ in range(20):
            await asyncio.sleep(0.005)  # it is tried again meanwhile
        assert kept.durable == [1]
        assert len(kept.troubles) == 1
        crashed(folder, tmp_path / "crashed")
        del files.failing[operation]
        await kept.all_durable()
        assert kept.troubles[1:] == [""]
        await kept.journal.close()

    asyncio.run(scene())
    assert there(tmp_path / "crashed")[1][0] == (1, b"before")
    assert there(folder)[1] == list(enumerate((b"before", b"first", b"second", b"third"), 1))


def away(folder, aside):
    folder.rename(aside)


def another(folder, aside):
    """An empty one in its place: what goes there is not behind what was."""
    folder.rename(aside)
    folder.mkdir()


def file_away(folder, aside):
    """And with it all that is in it."""
    aside.mkdir()
    for path in folder.iterdir():
        path.unlink()


@pytest.mark.parametrize("take", [away, another, file_away])
@pytest.mark.parametrize("segment_bytes", [1, 10_000])
def test_nothing_is_durable_in_a_place_that_is_gone(tmp_path, take, segment_bytes):
    """A file that was deleted can be written to and synced, and is lost all the same."""
    folder, aside = tmp_path / "journal", tmp_path / "aside"

    async def scene():
        kept = Kept(folder, segment_bytes=segment_bytes)
        kept.append(b"before")
        await kept.all_durable()
        take(folder, aside)
        kept.append(b"after")
        await kept.until(lambda: kept.troubles)
        words = f"the journal in {folder} was moved or deleted while in use; put it back, or start"
        assert kept.troubles == [f"{words} the broker anew"]
        assert kept.durable == [1]
        if take is not file_away:
            if folder.exists():
                folder.rmdir()
            aside.rename(folder)
            await kept.all_durable()
            assert kept.troubles[1:] == [""]
        await kept.journal.close()
        if take is not file_away:
            assert there(folder)[1] == [(1, b"before"), (2, b"after")]

    asyncio.run(scene())


def test_a_folder_that_cannot_be_written_is_told_at_the_start_already(tmp_path):
    files = FaultyFiles()
    files.failing["create"] = errno.EACCES
    with pytest.raises(JournalError, match="this user may not write there"):
        read(tmp_path, files)
    assert list(tmp_path.iterdir()) == []


def test_after_a_failed_sync_the_segment_is_given_up(tmp_path):
    """The system takes what it could not sync for written, so a second sync says nothing.

    What was in the first segment is therefore written into another one.
    """

    async def scene():
        files = FaultyFiles()
        kept = Kept(tmp_path, files)
        kept.append(b"one")
        await kept.all_durable()
        files.failing["sync"] = errno.EIO
        files.failing["truncate"] = errno.EIO  # so that the void record stays there
        kept.append(b"two")
        await kept.until(lambda: kept.troubles)
        files.failing.clear()
        await kept.all_durable()
        await kept.journal.close()

    asyncio.run(scene())
    first, second = sorted(path for path in tmp_path.iterdir())
    assert second.name == f"{2:020d}-0000.segment"
    assert b"two" in first.read_bytes()
    first.write_bytes(first.read_bytes().replace(b"two", b"zzz"))  # what the disk really has
    assert there(tmp_path)[1] == [(1, b"one"), (2, b"two")]


def test_room_that_a_group_took_in_vain_is_given_back(tmp_path):
    async def scene():
        files = FaultyFiles()
        kept = Kept(tmp_path, files)
        kept.append(b"one")
        await kept.all_durable()
        size = kept.journal.size_bytes
        files.left = 700
        kept.append(b"x" * 1_000)
        await kept.until(lambda: kept.troubles)
        files.left = 0
        for _ in range(10):
            await asyncio.sleep(0.005)
        taken = sum(path.stat().st_size for path in tmp_path.iterdir())
        files.left = None
        await kept.all_durable()
        await kept.journal.close()
        return size, taken

    size, taken = asyncio.run(scene())
    assert taken - size < 100
    assert there(tmp_path)[1] == [(1, b"one"), (2, b"x" * 1_000)]


def test_another_fault_is_told_too(tmp_path):
    async def scene():
        files = FaultyFiles()
        kept = Kept(tmp_path, files)
        files.failing["write"] = errno.ENOSPC
        kept.append(b"one")
        await kept.until(lambda: kept.troubles)
        files.failing["create"] = errno.EROFS
        await kept.until(lambda: len(kept.troubles) == 2)
        assert "read-only" in kept.troubles[1]
        files.failing.clear()
        await kept.all_durable()
        await kept.journal.close()

    asyncio.run(scene())
    assert there(tmp_path)[1] == [(1, b"one")]


def test_a_fault_of_the_program_does_not_end_the_thread(tmp_path, monkeypatch):
    async def scene():
        kept = Kept(tmp_path)
        with monkeypatch.context() as failing:
            failing.setattr("broker.journal.segment.frame", None)
            kept.append(b"one")
            await kept.until(lambda: kept.troubles)
        await kept.all_durable()
        await kept.journal.close()

    asyncio.run(scene())
    assert there(tmp_path)[1] == [(1, b"one")]


def test_a_broker_that_ends_on_a_failing_disk_ends_and_keeps_what_was_durable(tmp_path):
    async def scene():
        files = FaultyFiles()
        kept = Kept(tmp_path, files, retry_s=60)
        kept.append(b"one")
        await kept.all_durable()
        files.failing["sync"] = errno.EIO
        kept.append(b"two")
        await kept.until(lambda: kept.troubles)
        await asyncio.wait_for(kept.journal.close(b"state"), 5)
        assert (kept.journal.durable, kept.journal.last) == (1, 2)

    asyncio.run(scene())
    assert there(tmp_path) == (None, [(1, b"one")])


@pytest.mark.parametrize("operation", ["create", "write", "sync", "replace", "sync_folder"])
def test_a_snapshot_that_fails_takes_nothing_away(tmp_path, operation):
    folder, crash = tmp_path / "journal", tmp_path / "crashed"

    async def scene():
        files = FaultyFiles()
        kept = Kept(folder, files, segment_bytes=1)
        kept.append(b"one")
        await kept.all_durable()
        await kept.journal.write_snapshot(1, b"good")
        kept.append(b"two")
        await kept.all_durable()
        files.failing[operation] = errno.ENOSPC
        with pytest.raises(JournalError, match="the disk is full"):
            await kept.journal.write_snapshot(2, b"bad")
        files.failing.clear()
        crashed(folder, crash)
        await kept.journal.close()

    asyncio.run(scene())
    snapshot, records = there(crash)
    if operation == "sync_folder":  # it is there, only that is not known to outlast a crash
        assert (snapshot, records) == ((2, b"bad"), [])
    else:
        assert (snapshot, records) == ((1, b"good"), [(2, b"two")])
        assert not list(folder.glob("*.new"))


@pytest.mark.parametrize("operation", ["make_folder", "create", "sync", "read"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_start_on_such_a_disk_is_refused_with_a_sentence(tmp_path, operation, number):
    async def before():
        kept = Kept(tmp_path)
        kept.append(b"one")
        await kept.journal.close()

    asyncio.run(before())
    files = FaultyFiles()
    files.failing[operation] = number
    with pytest.raises(JournalError, match=f"the journal in {re.escape(str(tmp_path))}: "):
        read(tmp_path, files)
    assert there(tmp_path)[1] == [(1, b"one")]


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path):
    (tmp_path / "journal").write_text("")
    for path in (tmp_path / "journal", tmp_path / "journal" / "inner"):
        with pytest.raises(JournalError, match="a file stands where a folder has to be"):
            read(path)

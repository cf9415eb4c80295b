"""A backup is whole, of one moment, and goes where it should, or nothing is changed."""

import asyncio
import io
import json
import sqlite3

import pytest

from broker.backup.manifest import MANIFEST, BackupError
from broker.backup.source import Backup
from broker.backup.target import receive, restore
from broker.errors import StartError
from broker.site.data_dir import claimed

SEGMENT = f"{1:020d}-0000.segment"
SNAPSHOT = f"{7:020d}.snapshot"


@pytest.fixture
def data(tmp_path):
    """A data directory with a segment, a database in use, and what is none of a backup's."""
    folder = tmp_path / "data"
    (folder / "journal").mkdir(parents=True)
    (folder / "journal" / SEGMENT).write_bytes(bytes(range(256)) * 3)
    (folder / "journal" / f"{SNAPSHOT}.new").write_bytes(b"half")
    (folder / "secret").write_text("sesame")
    database = sqlite3.connect(folder / "headwater.db", isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE results (x)")
    database.execute("INSERT INTO results VALUES (1)")
    yield folder
    database.close()


async def _all(backup, between=None):
    pieces = []
    async for piece in backup.stream():
        pieces.append(piece)
        if between is not None:
            between()
    return b"".join(pieces)


def taken(folder, between=None):
    return asyncio.run(_all(Backup(folder, "site-1", with_database=True), between))


def restored(backup, data_dir, broker="site-1", *, database=True, replace=False):
    return restore(backup, str(data_dir), broker, database=database, replace=replace)


def rows(folder):
    database = sqlite3.connect(folder / "headwater.db")
    try:
        return database.execute("SELECT x FROM results").fetchall()
    finally:
        database.close()


def test_what_comes_after_the_moment_is_not_in_the_backup(data, tmp_path):
    """A record that is appended meanwhile, a row that is stored, and a segment that is removed."""
    path = data / "journal" / SEGMENT
    before = path.read_bytes()

    def go_on():
        if path.exists():
            with path.open("ab") as file:
                file.write(b"more")
            path.unlink()
        with sqlite3.connect(data / "headwater.db") as database:
            database.execute("INSERT INTO results VALUES (2)")

    receive(io.BytesIO(taken(data, go_on)), tmp_path / "copy")
    assert (tmp_path / "copy/journal" / SEGMENT).read_bytes() == before
    assert rows(tmp_path / "copy") == [(1,)]
    names = {str(p.relative_to(tmp_path / "copy")) for p in (tmp_path / "copy").rglob("*")}
    assert names == {"journal", f"journal/{SEGMENT}", "headwater.db", MANIFEST}
    assert not list(data.glob("backup-*")), "nothing is left behind"


def test_a_snapshot_that_comes_between_has_the_moment_taken_anew(data, tmp_path, monkeypatch):
    """It may stand for results that the database, held before it, does not have."""
    journal = Backup._journal

    def meanwhile(self, stack):
        if not (data / "journal" / SNAPSHOT).exists():
            (data / "journal" / SNAPSHOT).write_bytes(b"state")
            with sqlite3.connect(data / "headwater.db") as database:
                database.execute("INSERT INTO results VALUES (2)")
        return journal(self, stack)

    monkeypatch.setattr(Backup, "_journal", meanwhile)
    receive(io.BytesIO(taken(data)), tmp_path / "copy")
    assert (tmp_path / "copy/journal" / SNAPSHOT).read_bytes() == b"state"
    assert rows(tmp_path / "copy") == [(1,), (2,)]


def test_a_stream_that_is_torn_anywhere_leaves_nothing(data, tmp_path):
    stream = taken(data)
    whole = stream.rindex(b"}") + 1
    for end in [*range(0, whole, 997), whole - 1]:
        with pytest.raises(BackupError):
            receive(io.BytesIO(stream[:end]), tmp_path / "copy")
        assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_bit_that_flips_on_the_way_is_found(data, tmp_path):
    stream = bytearray(taken(data))
    stream[600] ^= 1
    with pytest.raises(BackupError, match="checksum differs"):
        receive(io.BytesIO(stream), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_directory_that_is_not_empty_is_left_alone(data, tmp_path):
    with pytest.raises(BackupError, match="not empty"):
        receive(io.BytesIO(taken(data)), data)


def test_one_backup_at_a_time_and_the_next_after_it(data):
    backup = Backup(data, "site-1", with_database=True)

    async def main():
        first = backup.stream()
        await anext(first)
        with pytest.raises(BackupError, match="another backup"):
            await anext(backup.stream())
        await first.aclose()
        return await _all(backup)

    assert asyncio.run(main())


@pytest.fixture
def copy(data, tmp_path):
    receive(io.BytesIO(taken(data)), tmp_path / "copy")
    return tmp_path / "copy"


def test_restored_is_what_was_copied(copy, tmp_path):
    assert not restored(copy, tmp_path / "new/data")
    assert (tmp_path / "new/data/journal" / SEGMENT).read_bytes() == bytes(range(256)) * 3
    assert rows(tmp_path / "new/data") == [(1,)]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["data"]


def test_with_replace_the_old_directory_is_moved_aside(copy, data):
    with pytest.raises(BackupError, match="--replace"):
        restored(copy, data)
    aside = restored(copy, data, replace=True)
    assert not (data / "secret").exists()
    assert (data.parent / aside / "secret").read_text() == "sesame"


def _newer(copy):
    manifest = json.loads((copy / MANIFEST).read_bytes())
    (copy / MANIFEST).write_text(json.dumps(manifest | {"format": 2, "files": "otherwise"}))


def _changed(copy):
    (copy / "headwater.db").write_bytes(b"other")


def _outside(copy):
    text = (copy / MANIFEST).read_text()
    (copy / MANIFEST).write_text(text.replace("headwater.db", "../headwater.db"))


@pytest.mark.parametrize(
    ("harm", "options", "sentence"),
    [
        (_newer, {}, "format 2.*newer one"),
        (_changed, {}, "checksum differs"),
        (_outside, {}, "none of a broker's"),
        (lambda copy: (copy / MANIFEST).unlink(), {}, "no whole backup"),
        (lambda copy: (copy / "headwater.db").unlink(), {}, "missing"),
        (lambda _: None, {"broker": "site-2"}, "site-1.*site-2.*--config"),
        (lambda _: None, {"database": False}, "data.database"),
    ],
)
def test_a_refusal_says_why_and_changes_nothing(copy, tmp_path, harm, options, sentence):
    harm(copy)
    (tmp_path / "place").mkdir()
    with pytest.raises(BackupError, match=sentence):
        restored(copy, tmp_path / "place", **options)
    assert {path.name for path in tmp_path.iterdir()} == {"data", "copy", "place"}
    assert {path.name for path in (tmp_path / "place").iterdir()} <= {"broker.lock"}


def test_a_directory_in_use_is_refused(copy, data):
    with claimed(str(data)), pytest.raises(StartError, match="in use"):
        restored(copy, data, replace=True)
    assert (data / "secret").exists()


def test_a_row_that_comes_before_the_database_is_copied_is_not_in_the_backup(
    data, tmp_path, monkeypatch
):
    """It may rest on a record that the journal, opened before it, does not have."""
    copied = Backup._copied

    def later(self, database, stack):
        with sqlite3.connect(data / "headwater.db") as other:
            other.execute("INSERT INTO results VALUES (2)")
        return copied(self, database, stack)

    monkeypatch.setattr(Backup, "_copied", later)
    receive(io.BytesIO(taken(data)), tmp_path / "copy")
    assert rows(tmp_path / "copy") == [(1,)]

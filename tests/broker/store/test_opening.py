"""What is wrong with a database is told in a sentence when it is opened, and nothing is changed."""

import asyncio
import contextlib
import fcntl
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from broker.store import Part, Store, StoreError

ROOT = Path(__file__).resolve().parents[3]


def _create(connection: Connection) -> None:
    connection.execute(text("CREATE TABLE kept (number INTEGER PRIMARY KEY, told TEXT)"))


def kept(version: int = 1, **steps) -> Part:
    return Part("kept", version, _create, {int(name[4:]): step for name, step in steps.items()})


def opened_and_closed(path: Path, *parts: Part) -> None:
    async def run() -> None:
        await Store.open(f"sqlite:///{path}", parts=parts or [kept()]).close()

    asyncio.run(run())


def refusal(path: Path, *parts: Part) -> str:
    with pytest.raises(StoreError) as caught:
        opened_and_closed(path, *parts)
    told = str(caught.value)
    assert "\n" not in told
    assert not told.endswith(".")
    return told


def bytes_of(path: Path) -> bytes:
    return path.read_bytes()


def versions(path: Path) -> dict[str, int]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        return dict(database.execute("SELECT part, version FROM headwater_format").fetchall())


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "headwater.db"
    path.write_bytes(b"these are notes, and many of them\n" * 200)
    before = bytes_of(path)
    assert refusal(path) == (
        f"the database {path} is not a database; name another file, or move this one away"
    )
    assert bytes_of(path) == before


def test_another_programs_database(tmp_path):
    path = tmp_path / "headwater.db"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE recipes (name TEXT)")
    before = bytes_of(path)
    assert "is another program's: it has a table recipes" in refusal(path)
    with contextlib.closing(sqlite3.connect(path)) as database:
        names = database.execute("SELECT name FROM sqlite_master").fetchall()
    assert names == [("recipes",)]
    assert len(bytes_of(path)) == len(before)


def test_a_newer_format_is_left_as_it_was(tmp_path):
    """Even where other parts could be brought up: it is all or nothing."""
    path = tmp_path / "headwater.db"
    opened_and_closed(path, kept(3))
    told = refusal(path, Part("also", 1, lambda _: None), kept(2))
    assert "written by a newer Headwater (format 3 of kept, this one knows up to 2)" in told
    assert versions(path) == {"kept": 3}


def test_an_older_format_is_brought_up_step_by_step(tmp_path):
    path = tmp_path / "headwater.db"
    opened_and_closed(path, kept(1))
    taken = []
    opened_and_closed(
        path, kept(3, step1=lambda _: taken.append(1), step2=lambda _: taken.append(2))
    )
    assert taken == [1, 2]
    assert versions(path) == {"kept": 3}


def test_a_step_that_fails_leaves_the_older_format(tmp_path):
    """A power cut in the middle of a migration is the same case: it is one transaction."""
    path = tmp_path / "headwater.db"
    opened_and_closed(path, kept(1))

    def first(connection: Connection) -> None:
        connection.execute(text("ALTER TABLE kept ADD COLUMN more TEXT"))

    def second(_: Connection) -> None:
        raise RuntimeError("a fault of its own")

    with pytest.raises(RuntimeError):
        opened_and_closed(path, kept(3, step1=first, step2=second))
    assert versions(path) == {"kept": 1}
    with contextlib.closing(sqlite3.connect(path)) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(kept)")]
    assert columns == ["number", "told"]


def test_a_format_that_nobody_knows_any_more(tmp_path):
    path = tmp_path / "headwater.db"
    opened_and_closed(path, kept(1))
    told = refusal(path, kept(3, step2=lambda _: None))
    assert "too old (format 1 of kept)" in told
    assert versions(path) == {"kept": 1}


def test_a_second_broker_is_told_of_the_first(tmp_path):
    path = tmp_path / "headwater.db"
    opened_and_closed(path)
    with (tmp_path / "headwater.db.lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert refusal(path) == (
            f"the database {path} is in use by another broker; give each one of its own"
        )
    opened_and_closed(path)


def test_a_file_that_another_program_keeps_locked(tmp_path, monkeypatch):
    monkeypatch.setattr("broker.store.connecting.BUSY_WAIT_S", 0.05)
    path = tmp_path / "headwater.db"
    opened_and_closed(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert "is locked by another process" in refusal(path)
    opened_and_closed(path)


AS_NOBODY = """
import asyncio, os, sys
from broker.store import Store, StoreError
import sqlalchemy.dialects.sqlite.pysqlite, sqlite3  # before the rights to read them are given up
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
async def run():
    await Store.open(f"sqlite:///{sys.argv[1]}").close()
try:
    asyncio.run(run())
except StoreError as error:
    print(error)
"""


def told_to_a_user_without_rights(path: Path) -> str:
    """A process of its own, as nothing is refused to the superuser."""
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        timeout=15,
    )
    return done.stdout.strip()


@pytest.fixture
def open_folder():
    """A directory that an unknown user can reach; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        outer = Path(name)
        outer.chmod(0o755)
        inner = outer / "data"
        inner.mkdir()
        yield inner
        inner.chmod(0o755)


def test_a_directory_that_may_not_be_written(open_folder):
    open_folder.chmod(0o555)
    told = told_to_a_user_without_rights(open_folder / "headwater.db")
    assert told == (
        f"the database {open_folder / 'headwater.db'} cannot be opened: "
        "its directory cannot be written: permission denied"
    )


def test_a_file_that_may_not_be_read(open_folder):
    path = open_folder / "headwater.db"
    opened_and_closed(path)
    open_folder.chmod(0o777)
    (open_folder / "headwater.db.lock").chmod(0o666)
    path.chmod(0o000)
    told = told_to_a_user_without_rights(path)
    assert told == (
        f"the database {path} cannot be opened: it, or its directory, is not there or not writable"
    )


def test_a_file_that_may_only_be_read(open_folder):
    path = open_folder / "headwater.db"
    opened_and_closed(path)
    open_folder.chmod(0o777)
    (open_folder / "headwater.db.lock").chmod(0o666)
    path.chmod(0o444)
    told = told_to_a_user_without_rights(path)
    assert told == (f"the database {path} is read-only; make the file and its directory writable")


def test_a_directory_that_is_not_there(tmp_path):
    assert "its directory cannot be written: no such file" in refusal(tmp_path / "no" / "one.db")


@pytest.mark.parametrize("url", ["", "headwater.db", "nosuch://host/name", "sqlite:///:memory:"])
def test_a_url_that_names_no_database_file(url):
    async def run() -> None:
        with pytest.raises(StoreError, match=r"cannot be read; expected|keeps nothing"):
            Store.open(url)

    asyncio.run(run())


def test_a_password_is_in_no_sentence():
    from broker.store.connecting import parse
    from broker.store.errors import name_of

    called = name_of(parse("postgresql://someone:sesame@db.example/name"))
    assert "sesame" not in called
    assert "db.example" in called


def test_what_sensors_say_is_for_the_owner_alone(tmp_path):
    before = os.umask(0o022)
    try:
        opened_and_closed(tmp_path / "headwater.db")
    finally:
        os.umask(before)
    assert (tmp_path / "headwater.db").stat().st_mode & 0o077 == 0


def test_sqlalchemy_is_loaded_by_opening_alone():
    told = "import sys, broker.store; print('sqlalchemy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "False"

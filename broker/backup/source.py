"""A backup of a running broker, as a stream.

Owns the moment at which it is taken. Must not know who reads it. Invariant: the database is of a
moment at which the journal had all that it rests on, and the snapshot in it stands for nothing that
the database lacks.

The database is held first, by a read transaction, and then the files of the journal are opened. So
the journal may be ahead of the database, as after any crash, and never behind it. A snapshot that
is written meanwhile could stand for more than the database has: then both are held anew. What is
open stays readable when a later snapshot removes it; of a segment that grows, what it had counts.
"""

import asyncio
import hashlib
import os
import sqlite3
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from broker.backup.manifest import BLOCK_BYTES, MANIFEST, BackupError, CopiedFile, Manifest, encode
from broker.journal import naming

ATTEMPTS: Final = 20  # a snapshot is written in moments, and the next one is far off
DATABASE: Final = "headwater.db"
JOURNAL: Final = "journal"
_TEMPORARY: Final = "backup-"
_TAR_BLOCK: Final = 512

Files = list[tuple[str, BinaryIO, int]]
"""Each file's name, the file, and how much of it counts."""


class Backup:
    """Takes backups of a data directory, one at a time. `with_database`: it lies there, too."""

    def __init__(self, folder: Path, broker: str, *, with_database: bool) -> None:
        self._folder = folder
        self._broker = broker
        self._with_database = with_database
        self._busy = False

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Give a tar of the files, whose last is the manifest. Raises BackupError, OSError."""
        if self._busy:
            raise BackupError("another backup is being taken; try again when it is done")
        self._busy = True
        try:
            with ExitStack() as stack:
                files, moment = await asyncio.to_thread(self._hold, stack)
                pieces = self._pieces(files, moment)
                while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
                    yield piece
        finally:
            self._busy = False

    def _hold(self, stack: ExitStack) -> tuple[Files, str]:
        """Open all files as of one moment; `stack` closes them."""
        for _ in range(ATTEMPTS):
            with ExitStack() as held:
                before = self._snapshots()
                moment = datetime.now(UTC).isoformat(timespec="milliseconds")
                database = self._held_database(held) if self._with_database else None
                files = self._journal(held)
                if files is None or self._snapshots() != before:
                    continue
                if database is not None:
                    copy = self._copied(database, held)
                    files.append((DATABASE, copy, os.fstat(copy.fileno()).st_size))
                stack.push(held.pop_all())
                return files, moment
        raise BackupError("the broker writes one snapshot after another; try again later")

    def _snapshots(self) -> list[int]:
        return naming.snapshots(os.listdir(self._folder / JOURNAL))  # noqa: PTH208

    def _held_database(self, stack: ExitStack) -> sqlite3.Connection:
        """Open the database as of now, while others go on writing."""
        url = f"{(self._folder / DATABASE).absolute().as_uri()}?mode=rw"
        database = sqlite3.connect(url, uri=True, isolation_level=None, check_same_thread=False)
        stack.enter_context(closing(database))
        try:
            database.execute("BEGIN")
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            raise BackupError(f"the database cannot be read: {error}; try again later") from None
        return database

    def _journal(self, stack: ExitStack) -> Files | None:
        """Open what the journal has; None where some of it was just removed."""
        folder = self._folder / JOURNAL
        names = os.listdir(folder)  # noqa: PTH208 - names are wanted, not paths
        wanted = [naming.snapshot(number) for number in naming.snapshots(names)]
        wanted += [segment.file for segment in naming.segments(names)]
        files: Files = []
        for name in wanted:
            try:
                file = stack.enter_context((folder / name).open("rb"))
            except FileNotFoundError:
                return None
            files.append((f"{JOURNAL}/{name}", file, os.fstat(file.fileno()).st_size))
        return files

    def _copied(self, database: sqlite3.Connection, stack: ExitStack) -> BinaryIO:
        """Copy the database to a file without a name."""
        for left in self._folder.glob(f"{_TEMPORARY}*"):  # of a broker that was killed over it
            left.unlink(missing_ok=True)
        number, name = tempfile.mkstemp(prefix=_TEMPORARY, dir=self._folder)
        path = Path(name)
        try:
            file = stack.enter_context(os.fdopen(number, "rb"))
            with closing(sqlite3.connect(path)) as copy:
                database.backup(copy)
            database.close()  # its log may shrink again
        except sqlite3.Error as error:
            raise BackupError(f"the database cannot be copied: {error}; try again later") from None
        finally:
            path.unlink()
            for suffix in ("-wal", "-shm", "-journal"):
                Path(name + suffix).unlink(missing_ok=True)
        return file

    def _pieces(self, files: Files, moment: str) -> Iterator[bytes]:
        copied = []
        for name, file, size_bytes in files:
            yield _head(name, size_bytes)
            digest = hashlib.sha256()
            left = size_bytes
            while left:
                data = file.read(min(BLOCK_BYTES, left))
                if not data:
                    raise BackupError(f"{name} became shorter while it was copied")
                digest.update(data)
                left -= len(data)
                yield data
            yield _padding(size_bytes)
            copied.append(CopiedFile(name, size_bytes, digest.hexdigest()))
        manifest = Manifest(
            broker=self._broker, time=moment, database=self._with_database, files=tuple(copied)
        )
        data = encode(manifest)
        yield _head(MANIFEST, len(data)) + data + _padding(len(data)) + bytes(2 * _TAR_BLOCK)


def _head(name: str, size_bytes: int) -> bytes:
    from tarfile import TarInfo  # no broker needs it before

    member = TarInfo(name)
    member.size, member.mode = size_bytes, 0o600
    return member.tobuf()


def _padding(size_bytes: int) -> bytes:
    return bytes(-size_bytes % _TAR_BLOCK)

"""The few operations of the system that the journal is made of.

Owns how a file is made, written, synced and replaced. Must not know what is written. Invariant:
all of them raise OSError and nothing else. A test puts operations of its own in their place.
"""

import errno
import os
import time
from pathlib import Path

_sync_data = getattr(os, "fdatasync", os.fsync)  # not every system has it
SUFFIX = ".new"  # of a file that is not whole yet


class MovedError(OSError):
    """Report that a file written to is no longer in its place: data would be lost with it."""


class Files:
    """The real ones. `sync_delay_s` is added to each sync, to see what a slow disk does."""

    def __init__(self, sync_delay_s: float = 0.0) -> None:
        self.sync_delay_s = sync_delay_s

    def make_folder(self, path: Path) -> None:
        """Make a folder for this user alone, where it is missing, so that it outlasts a crash."""
        if path.is_dir():
            return
        if path.exists():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        self.make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)  # another may be as quick
        self.sync_folder(path.parent)

    def try_to_write(self, path: Path) -> None:
        """Raise OSError where nothing could be written to a folder; changes nothing."""
        fresh = path / f"trial{SUFFIX}"
        self.remove(fresh)
        self.close(self.create(fresh))
        self.remove(fresh)

    def names(self, path: Path) -> list[str]:
        """The files of a folder, in order of their names."""
        return sorted(os.listdir(path))  # noqa: PTH208 - names are wanted, not paths

    def create(self, path: Path) -> int:
        """A new file to write to; it must not be there."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def write(self, file: int, data: bytes) -> None:
        """Write all of it."""
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[os.write(file, remaining) :]

    def sync(self, file: int) -> None:
        """Return once what was written is on the disk."""
        _sync_data(file)
        if self.sync_delay_s:
            time.sleep(self.sync_delay_s)

    def truncate(self, file: int, size_bytes: int) -> None:
        """Cut a file."""
        os.ftruncate(file, size_bytes)

    def close(self, file: int) -> None:
        """Done with it."""
        os.close(file)

    def sync_folder(self, path: Path) -> None:
        """Return once it is on the disk which files the folder has."""
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def read(self, path: Path) -> bytes:
        """All that is in a file."""
        return path.read_bytes()

    def size(self, path: Path) -> int:
        """Return how many bytes are in a file."""
        return path.stat().st_size

    def identity(self, path: Path) -> tuple[int, int] | None:
        """Identify what is at a place; None: nothing, or nobody may see."""
        try:
            status = os.stat(path)  # noqa: PTH116 - each commit asks: no object is made for it
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def has_name(self, file: int) -> bool:
        """Tell whether an open file is still to be found in any folder."""
        return os.fstat(file).st_nlink > 0

    def replace(self, old: Path, new: Path) -> None:
        """Give a file another name, whatever had that name."""
        old.replace(new)

    def remove(self, path: Path) -> None:
        """Remove a file; well where there is none."""
        path.unlink(missing_ok=True)


def put(files: Files, path: Path, data: bytes) -> None:
    """Have a file of this content, durably: before and after a crash it is whole or the old one."""
    fresh = path.with_name(path.name + SUFFIX)
    files.remove(fresh)
    file = files.create(fresh)
    try:
        try:
            files.write(file, data)
            files.sync(file)
        finally:
            files.close(file)
        files.replace(fresh, path)
    except OSError:
        _try_to_remove(files, fresh)  # it takes room that may be what is wanting
        raise
    files.sync_folder(path.parent)


def _try_to_remove(files: Files, path: Path) -> None:
    try:
        files.remove(path)
    except OSError:
        return  # what is left has a name that the next start removes

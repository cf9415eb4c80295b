"""A disk that forgets what was not synced.

Owns the bytes of its files and what a crash leaves of them. Must not know what they mean.
Invariant: what was synced before a crash is there after it; of what was not, a prefix may be, and
the end of that may be torn.

What a crash does to bytes that were appended and not synced follows what file systems do: any
prefix of them survives, or none; where the file's new length survived and its data did not, zeros
or whatever stood on the disk before follow. A file that was never synced may be gone altogether,
one that was removed may be back, and one that was renamed may have its old name, unless the folder
was synced. The end of a process alone loses nothing, and makes nothing safer either.

A sync that fails is not made good by one that does not: what it should have written is still read,
and gone after a crash, even if a later sync succeeds.
"""

from __future__ import annotations

from random import Random

SECTOR_BYTES = 512


class DiskFullError(OSError):
    """There is no room; no more than a part of the append was written."""


class DiskFailedError(OSError):
    """The disk does not do what it is told, as `fail` said; nothing was done."""


class _File:
    """Synced bytes, and those that came after."""

    __slots__ = ("data", "known", "lost", "synced")

    def __init__(self, data: bytes = b"", *, known: bool = False) -> None:
        self.data = bytearray(data)
        self.synced = len(data)
        self.known = known  # whether the folder that survives a crash holds it
        self.lost: list[tuple[int, int]] = []  # what a sync failed to write, from and to


class Disk:
    """Append-only files by name. `size_bytes_max` bounds all of them together."""

    def __init__(self, random: Random, size_bytes_max: int | None = None) -> None:
        self.crashes = 0
        self._random = random
        self.size_bytes_max = size_bytes_max
        self._files: dict[str, _File] = {}
        self._removed: dict[str, _File] = {}  # would be back after a crash now
        self._renamed: dict[str, str] = {}  # new name → the old one, which a crash may bring back
        self._failures = 0

    def names(self) -> list[str]:
        """The files, in order of their names."""
        return sorted(self._files)

    @property
    def size_bytes(self) -> int:
        """Add up the bytes of all files."""
        return sum(len(file.data) for file in self._files.values())

    def append(self, name: str, data: bytes) -> None:
        """Write at the end of a file, which is made where it is missing. Raises OSError."""
        self._obey()
        room = len(data)
        if self.size_bytes_max is not None:
            room = max(0, self.size_bytes_max - self.size_bytes)
        if room < len(data):
            if room and self._random.random() < 0.5:
                self._files.setdefault(name, _File()).data += data[:room]
            raise DiskFullError(f"no room for {len(data)} bytes in {name}")
        self._files.setdefault(name, _File()).data += data

    def sync(self, name: str) -> None:
        """Have the file, as it is now, survive a crash. Raises OSError, KeyError."""
        file = self._files[name]
        try:
            self._obey()
        except DiskFailedError:
            if file.synced < len(file.data):
                file.lost.append((file.synced, len(file.data)))
            raise
        file.synced = len(file.data)
        file.known = True
        self._removed.pop(name, None)

    def sync_folder(self) -> None:
        """Have it survive a crash which files there are. Raises OSError."""
        self._obey()
        self._removed.clear()
        self._renamed.clear()
        for file in self._files.values():
            file.known = True

    def rename(self, name: str, new: str) -> None:
        """Give a file another name, which no file has. Raises OSError, KeyError."""
        self._obey()
        if new in self._files:
            raise FileExistsError(new)
        self._files[new] = self._files.pop(name)
        self._renamed[new] = name

    def read(self, name: str) -> bytes:
        """Read a file, synced or not. Raises KeyError."""
        return bytes(self._files[name].data)

    def truncate(self, name: str, size_bytes: int) -> None:
        """Cut a file; that survives a crash at once. Raises OSError, KeyError."""
        self._obey()
        file = self._files[name]
        del file.data[size_bytes:]
        file.synced = min(file.synced, len(file.data))
        file.lost = [
            (start, min(end, size_bytes)) for start, end in file.lost if start < size_bytes
        ]

    def remove(self, name: str) -> None:
        """Remove a file. Raises OSError, KeyError."""
        self._obey()
        file = self._files.pop(name)
        self._renamed.pop(name, None)
        if file.known:
            self._removed[name] = file

    def fail(self, times: int) -> None:
        """Have the next writes, syncs, cuts and removals fail."""
        self._failures = times

    def crash(self) -> None:
        """Lose power: what was not synced is lost, wholly or in part."""
        self.crashes += 1
        self._failures = 0
        for new, name in sorted(self._renamed.items()):
            if name not in self._files and self._random.random() < 0.5:
                self._files[name] = self._files.pop(new)
        self._renamed.clear()
        for name in sorted(self._removed):
            if name not in self._files and self._random.random() < 0.5:
                self._files[name] = self._removed[name]
        self._removed.clear()
        for name in sorted(self._files):
            file = self._files[name]
            if not file.known and self._random.random() < 0.5:
                del self._files[name]
            else:
                self._files[name] = _File(self._torn(file), known=True)

    def _torn(self, one: _File) -> bytes:
        """Give what a crash leaves of a file."""
        unsynced = len(one.data) - one.synced
        for start, end in one.lost:
            one.data[start:end] = bytes(end - start)
        if not unsynced:
            return bytes(one.data)
        kept = one.synced + self._random.randint(0, unsynced)
        left = bytes(one.data[:kept])
        if kept < len(one.data) and self._random.random() < 0.4:
            size = self._random.randint(1, min(SECTOR_BYTES, len(one.data) - kept))
            left += bytes(size) if self._random.random() < 0.6 else self._random.randbytes(size)
        return left

    def _obey(self) -> None:
        if self._failures:
            self._failures -= 1
            raise DiskFailedError("the disk failed, as it was told to")

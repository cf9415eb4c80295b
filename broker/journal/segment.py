"""The segments of a running journal: the one that grows, and those that are done.

Owns their files and when one is begun, given up or removed. Must not know threads, retries or who
waits. Invariant: records that are durable lie in segments that reached the disk in order, and a
segment that failed once is never written to or trusted again.
"""

import contextlib
import secrets
from pathlib import Path
from threading import Lock

from broker.core.recovery.records import frame, header
from broker.journal import naming
from broker.journal.files import Files, MovedError


class Segments:
    """One journal's. `commit` belongs to one thread; `trim` and `size_bytes` may be another's.

    `done` are those that were found at the start, in order, with `size_bytes` in all.
    """

    def __init__(
        self,
        folder: Path,
        files: Files,
        segment_bytes: int,
        done: list[naming.SegmentName],
        size_bytes: int,
    ) -> None:
        self.folder = folder
        self._files = files
        self._segment_bytes = segment_bytes
        self._lock = Lock()
        self._names = done[:]  # of all, the growing one last
        self._sizes: dict[naming.SegmentName, int] = {}
        self._found_bytes = size_bytes
        self._found = frozenset(done)
        self._file: int | None = None
        self._salt = 0
        self._size = 0
        self._place = files.identity(folder)
        self._fresh = False  # the folder has not been synced since the growing one was made

    @property
    def size_bytes(self) -> int:
        """Estimate the bytes of all segments; those found at the start count until all are gone."""
        with self._lock:
            return self._found_bytes + sum(self._sizes.values())

    def commit(self, records: list[tuple[int, bytes]], durable: int) -> None:
        """Write records behind those that are durable, and return when they are. Raises OSError.

        After an error none of them is; `give_up` comes next. MovedError: what is there is not in
        its place, and there is nothing to give up.
        """
        self._check()
        if self._file is None:
            self._begin(records[0][0])
        assert self._file is not None
        salt = self._salt
        data = b"".join([frame(each, part, salt=salt, synced=durable) for each, part in records])
        self._files.write(self._file, data)
        self._files.sync(self._file)
        if self._fresh:
            self._files.sync_folder(self.folder)
            self._fresh = False
        self._size += len(data)
        with self._lock:
            self._sizes[self._names[-1]] = self._size
        if self._size >= self._segment_bytes:
            self.close()

    def _check(self) -> None:
        """Raise MovedError where somebody took the folder or its newest file away."""
        files = self._files
        if files.identity(self.folder) != self._place:
            raise MovedError
        if self._file is not None:
            if not files.has_name(self._file):
                raise MovedError
        elif self._names and files.identity(self.folder / self._names[-1].file) is None:
            raise MovedError

    def _begin(self, first: int) -> None:
        """Make the file of the next segment, with its header."""
        with self._lock:
            same = [name.turn for name in self._names if name.first == first]
        name = naming.SegmentName(first, max(same, default=-1) + 1)
        self._salt = secrets.randbits(32)
        self._file = self._files.create(self.folder / name.file)
        self._fresh = True
        with self._lock:
            self._names.append(name)
        start = header(first, self._salt)
        self._files.write(self._file, start)
        self._size = len(start)

    def give_up(self, durable: int) -> None:
        """Trust the growing segment no further than the durable records, and begin another.

        What is of no use is cut off or removed where that can be done, for the room that it takes.
        """
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._files.truncate(self._file, self._size)
        self.close()
        with self._lock:
            name = self._names[-1] if self._names else None
        if name is None or name in self._found or name.first <= durable:
            return
        with contextlib.suppress(OSError):
            self._files.remove(self.folder / name.file)
            with self._lock:
                self._names.remove(name)
                self._sizes.pop(name, None)

    def close(self) -> None:
        """The growing segment grows no more."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):  # what counts was synced; else nothing relies on it
                self._files.close(file)

    def trim(self, number: int) -> None:
        """Remove the segments whose records all lie at or below the number. Raises OSError.

        The newest stays, as it may grow.
        """
        with self._lock:
            ends = [name.first - 1 for name in self._names[1:]]
            names = [name for name, end in zip(self._names, ends, strict=False) if end <= number]
        self._remove(names)

    def clear(self) -> None:
        """Remove all segments; for the end, when a snapshot stands for them. Raises OSError."""
        self.close()
        with self._lock:
            names = self._names[:]
        self._remove(names)

    def _remove(self, names: list[naming.SegmentName]) -> None:
        for name in names:
            self._files.remove(self.folder / name.file)
            with self._lock:
                self._names.remove(name)
                self._sizes.pop(name, None)
                if self._found.isdisjoint(self._names):
                    self._found_bytes = 0
        if names:
            self._files.sync_folder(self.folder)

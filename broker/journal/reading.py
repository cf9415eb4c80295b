"""What a journal's folder holds when a broker starts.

Owns the choice of snapshot and the walk over the segments. Must not know what records mean.
Invariant: what is handed out is durable from then on, even if this process ends at once and the
power is lost; what is damaged is an error with file and byte.

After a crash nobody knows which bytes of the last segment the disk has: what can be read may be in
memory only, and after a failed sync the system takes lost bytes for written. So the last segment is
written anew, up to its last whole record, before anything is read of it.
"""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from broker.core.recovery.records import (
    CorruptError,
    Record,
    VersionError,
    read_segment,
    read_snapshot,
)
from broker.journal import naming
from broker.journal.errors import JournalError, sentence
from broker.journal.files import SUFFIX, Files, put

_WAY_OUT = "bring it back from a copy, or move the data directory away to begin anew"


class JournalContent(Struct, frozen=True):
    """Hold what was read: the newest snapshot, and the records after it, segment by segment.

    `next_number` is that of the next record to be written. `cut_bytes` were left by a crash behind
    the last whole record; nothing in them had been promised.
    """

    folder: Path
    snapshot: Record | None
    next_number: int
    size_bytes: int
    cut_bytes: int
    segments: list[naming.SegmentName]
    files: Files

    def records(self) -> Iterator[Record]:
        """The records after the snapshot, in order. Raises JournalError."""
        done = self.snapshot.number if self.snapshot is not None else 0
        for place, name in enumerate(self.segments):
            following = self.segments[place + 1].first if place + 1 < len(self.segments) else None
            path = self.folder / name.file
            try:
                data = self.files.read(path)
                segment = read_segment(data, name.first, following, path.name)
            except OSError as error:
                raise JournalError(sentence(error, self.folder)) from None
            except (CorruptError, VersionError) as error:
                raise _damaged(self.folder, error) from None
            for record in segment.records:
                if record.number > done:
                    yield record


def read(folder: Path, files: Files | None = None) -> JournalContent:
    """Make the folder where it is missing, and look at what is there. Raises JournalError."""
    files = files or Files()
    try:
        files.make_folder(folder)
        files.try_to_write(folder)
        return _read(folder, files)
    except OSError as error:
        raise JournalError(sentence(error, folder)) from None
    except (CorruptError, VersionError) as error:
        raise _damaged(folder, error) from None


def _read(folder: Path, files: Files) -> JournalContent:
    names = files.names(folder)
    for each in names:
        if each.endswith(SUFFIX):
            files.remove(folder / each)
    snapshot = None
    numbers = naming.snapshots(names)
    if numbers:
        path = folder / naming.snapshot(numbers[-1])
        snapshot = read_snapshot(files.read(path), path.name)
    done = snapshot.number if snapshot is not None else 0
    present = naming.segments(names)
    segments = _needed(present, done)
    # A crash may come between a snapshot and the removal of what it stands for.
    for number in numbers[:-1]:
        files.remove(folder / naming.snapshot(number))
    for name in present[: len(present) - len(segments)]:
        files.remove(folder / name.file)
    if segments and segments[0].first > done + 1:
        why = f"record {done + 1} and all up to {segments[0].first - 1} are missing"
        raise CorruptError(segments[0].file, 0, why)
    next_number, cut = done + 1, 0
    if segments:
        following, cut = _settle(folder / segments[-1].file, segments[-1].first, files)
        next_number = max(next_number, following)
    size = sum(files.size(folder / name.file) for name in segments)
    return JournalContent(folder, snapshot, next_number, size, cut, segments, files)


def _needed(names: list[naming.SegmentName], done: int) -> list[naming.SegmentName]:
    """Those that are not covered by a snapshot of that number; the last may be, and stays."""
    for place, following in enumerate(names[1:]):
        if following.first > done + 1:
            return names[place:]
    return names[-1:]


def _settle(path: Path, first: int, files: Files) -> tuple[int, int]:
    """Write the last segment anew; the number after its last record, and the bytes cut off."""
    data = files.read(path)
    segment = read_segment(data, first, None, path.name)
    put(files, path, data[: segment.good_bytes])
    return segment.next_number, len(data) - segment.good_bytes


def _damaged(folder: Path, error: CorruptError | VersionError) -> JournalError:
    if isinstance(error, VersionError):
        return JournalError(f"the journal in {folder} is of another version: {error}")
    return JournalError(f"the journal in {folder} is damaged: {error}; {_WAY_OUT}")

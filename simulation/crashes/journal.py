"""Journal and snapshots on the simulated disk, in the bytes that a real broker writes.

Owns the files' names, what is read after a crash, and what is dropped. Must not know what records
mean or who waits for them. Invariant: `durable` never tells of a record that the next crash may
take; between any two operations of the disk the process may end.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msgspec import Struct

from broker.core.recovery import records
from broker.core.recovery.records import Record
from simulation.disk import Disk

SEGMENT = "journal-"
SNAPSHOT = "snapshot-"
UNFINISHED = "unfinished-"


class JournaledRecords(Struct, frozen=True):
    """Hold what a process finds: the newest snapshot, and the records of the journal."""

    snapshot: bytes | None
    records: list[Record]


class SimulatedJournal:
    """The journal of one process. `step` is called before each operation of the disk."""

    def __init__(
        self, disk: Disk, random: Random, step: Callable[[], None], segment_bytes: int
    ) -> None:
        self.durable = 0
        self._disk = disk
        self._random = random
        self._step = step
        self._segment_bytes = segment_bytes
        self._segments: list[tuple[str, int]] = []  # name and first number, the last one current
        self._salt = 0
        self._behind: list[Record] = []  # not durable yet
        self._written = 0  # how many of these stand in the current segment

    @property
    def waiting(self) -> int:
        """Count the records that are not durable."""
        return len(self._behind)

    # --- the beginning ---------------------------------------------------------------------

    def open(self) -> JournaledRecords:
        """Read all that is there, and have it survive the next crash. Raises CorruptError."""
        disk = self._disk
        for name in self._named(UNFINISHED):
            self._remove(name)
        snapshots = self._named(SNAPSHOT)
        newest = None
        if snapshots:
            newest = records.read_snapshot(disk.read(snapshots[-1]), snapshots[-1])
        number = 0 if newest is None else newest.number
        journaled = self._read(number)
        self.durable = max(number, journaled[-1].number if journaled else 0)
        self._begin(self.durable + 1)
        return JournaledRecords(None if newest is None else newest.data, journaled)

    def _read(self, number: int) -> list[Record]:
        """The records, which are durable from then on; `number` is the snapshot's."""
        readable = []
        for name in self._named(SEGMENT):
            head = records.read_header(self._disk.read(name), name)
            if head is None:
                self._remove(name)  # nothing in it was ever synced
            else:
                readable.append((name, head.first))
        # What was dropped may be back in part.
        needed = [index for index, (_, first) in enumerate(readable) if first <= number + 1]
        readable = readable[needed[-1] if needed else 0 :]
        journaled: list[Record] = []
        expected = None
        for index, (name, first) in enumerate(readable):
            following = readable[index + 1][1] if index + 1 < len(readable) else None
            if expected is None and first > number + 1:
                raise records.CorruptError(name, 0, f"record {number + 1} is missing")
            reading = records.read_segment(self._disk.read(name), expected, following, name)
            journaled += reading.records
            expected = reading.next_number
            self._segments.append((name, first))
            if following is None and reading.records:
                self._settle(name, reading.good_bytes)
        return journaled

    def _settle(self, name: str, good_bytes: int) -> None:
        """Put a copy of what was read into the last segment's place."""
        _, first = self._segments.pop()
        unfinished, copy = UNFINISHED + SEGMENT, self._next_name()
        self._step()
        self._disk.append(unfinished, self._disk.read(name)[:good_bytes])
        self._step()
        self._disk.sync(unfinished)
        self._step()
        self._disk.rename(unfinished, copy)
        self._step()
        self._disk.sync_folder()
        self._segments.append((copy, first))
        self._remove(name)

    def _next_name(self) -> str:
        """A name behind those of all other segments."""
        serial = 1 + max((int(name[len(SEGMENT) :]) for name in self._named(SEGMENT)), default=0)
        return f"{SEGMENT}{serial:08}"

    def _named(self, kind: str) -> list[str]:
        return [name for name in self._disk.names() if name.startswith(kind)]

    # --- records ---------------------------------------------------------------------------

    def append(self, record: Record) -> None:
        """Have a record written with the next `write`."""
        self._behind.append(record)

    def write(self) -> int:
        """Write what was appended; the number up to which it is then to be synced."""
        name, _ = self._segments[-1]
        if self._size(name) > self._segment_bytes and not self._written:
            self._begin(self._behind[0].number)
            name, _ = self._segments[-1]
        frames = [
            records.frame(record.number, record.data, salt=self._salt, synced=self.durable)
            for record in self._behind[self._written :]
        ]
        if frames:
            self._step()
            self._disk.append(name, b"".join(frames))
            self._written = len(self._behind)
        return self._behind[-1].number

    def sync(self, number: int) -> None:
        """Have all up to a number, which is written, survive a crash."""
        self._step()
        self._disk.sync(self._segments[-1][0])
        self.durable = number
        done = sum(record.number <= number for record in self._behind)
        del self._behind[:done]
        self._written -= done

    def give_up(self) -> None:
        """After an error: what is not durable goes into a segment that has had none."""
        self._begin(self.durable + 1)

    def _begin(self, first: int) -> None:
        name = self._next_name()
        self._salt = self._random.getrandbits(32)
        self._step()
        self._disk.append(name, records.header(first, self._salt))
        self._segments.append((name, first))
        self._written = 0

    def _size(self, name: str) -> int:
        return len(self._disk.read(name))

    # --- snapshots -------------------------------------------------------------------------

    def write_snapshot(self, number: int, data: bytes) -> None:
        """Write a snapshot that stands for the records up to a number, and drop these."""
        name, done = f"{UNFINISHED}{number:012}", f"{SNAPSHOT}{number:012}"
        if done in self._disk.names():
            return
        if name in self._disk.names():
            self._remove(name)
        self._step()
        self._disk.append(name, records.frame_snapshot(number, data))
        self._step()
        self._disk.sync(name)
        self._step()
        self._disk.rename(name, done)
        self._step()
        self._disk.sync_folder()
        self.trim(number)

    def trim(self, number: int) -> None:
        """Drop older snapshots, and segments of which no record is needed any more."""
        for name in self._named(SNAPSHOT):
            if int(name[len(SNAPSHOT) :]) < number:
                self._remove(name)
        while len(self._segments) > 1 and self._segments[1][1] <= number + 1:
            name, _ = self._segments.pop(0)
            self._remove(name)

    def _remove(self, name: str) -> None:
        self._step()
        self._disk.remove(name)

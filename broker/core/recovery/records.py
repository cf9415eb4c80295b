"""How the journal's records and the snapshots stand in files.

Owns the bytes: framing, checks, and what a reader makes of a file after a crash. Must not know
files, what records mean, or when anything is synced. Invariant: what is read is what was framed,
in consecutive numbers; the end of what a crash left is found, and damage anywhere else is an error
with its place, never passed over.

The journal is a row of segments. All numbers are little endian:

    segment   header record*
    header    magic 8 | version u16 | flags u16 (0) | salt u32 | first u64 | crc u32
    record    mark 4 | size u32 | number u64 | behind u32 | crc u32 | data (size bytes)
    snapshot  magic 8 | version u16 | flags u16 (0) | crc u32 | number u64 | size u64 | data

`first` is the number that the segment's first record has; numbers are consecutive from 1 over all
segments. `crc` is CRC-32 of all before it (of a record or snapshot also of the data after it), for
records begun with the segment's salt: so no client can write bytes that look like a record, and no
record of another segment is taken for one of this. `behind` is how far the last synced record lay
behind this one when it was framed (0: not known); by it a damaged record that had been synced is
told from one that a crash tore, even in the last segment.

What the writer keeps to, so that the reader can tell:

- A segment may be given up after a failed write or sync, and the next one begins with the first
  record that is not known to be durable. So a reader takes from a segment what lies before the
  next one's first record, and needs exactly that; what follows there is void.
- Two segments may therefore have the same `first`: segments are ordered by a serial of their own.
- What can be read after the end of a process is not durable by that alone: it may still be in
  memory, and where a sync failed, no later sync of that file makes it good. So before anything is
  promised, a copy of the last segment up to `good_bytes` takes its place, as a whole or not at all;
  and nothing is ever appended behind a torn end.
- After a crash segments may be back, not all of them, that were removed since a snapshot stands for
  their records. So reading begins with the last segment that has the first record needed.
"""

from __future__ import annotations

from struct import Struct as Layout
from zlib import crc32

from msgspec import Struct

VERSION = 1
SEGMENT_MAGIC = b"HWjour\r\n"
SNAPSHOT_MAGIC = b"HWsnap\r\n"
MARK = b"\xf7HwR"
RECORD_BYTES_MAX = 2**28  # of a record's data; a message of a batch's size is far below
BEHIND_MAX = 2**32 - 1

_HEADER = Layout("<8sHHIQ")
_RECORD = Layout("<4sIQI")
_SNAPSHOT = Layout("<8sHH")
_SNAPSHOT_BODY = Layout("<QQ")
_CRC = Layout("<I")

HEADER_BYTES = _HEADER.size + _CRC.size
RECORD_HEADER_BYTES = _RECORD.size + _CRC.size
SNAPSHOT_HEADER_BYTES = _SNAPSHOT.size + _CRC.size + _SNAPSHOT_BODY.size


class CorruptError(Exception):
    """A file is damaged where no crash can have damaged it; `name` and `place_bytes` say where."""

    def __init__(self, name: str, place_bytes: int, why: str) -> None:
        super().__init__(f"{name}, byte {place_bytes}: {why}")
        self.name = name
        self.place_bytes = place_bytes


class VersionError(Exception):
    """A file is of a newer format than this program knows."""

    def __init__(self, name: str, version: int) -> None:
        super().__init__(
            f"{name} is of format {version}, and this version of Headwater knows formats up to"
            f" {VERSION}: it was written by a newer one, which has to be used to read it"
        )


class Record(Struct, frozen=True):
    """One record as it was appended."""

    number: int
    data: bytes


class Segment(Struct, frozen=True):
    """Hold what a segment's header says."""

    first: int
    salt: int
    version: int = VERSION


class Reading(Struct, frozen=True):
    """Hold what was read of a segment.

    `good_bytes` is where its last record ends (0: not even the header is there), and `stopped` why
    nothing was read beyond; empty at the end of the file. `next_number` is that of the record that
    would follow. Up to `synced` records were durable when the last of these was framed.
    """

    records: list[Record]
    next_number: int
    good_bytes: int
    stopped: str = ""
    synced: int = 0


# --- writing ----------------------------------------------------------------------------------


def header(first: int, salt: int = 0) -> bytes:
    """The beginning of a segment; `salt` is any number of 32 bits that clients cannot know."""
    head = _HEADER.pack(SEGMENT_MAGIC, VERSION, 0, salt, first)
    return head + _CRC.pack(crc32(head))


def frame(number: int, data: bytes, *, salt: int = 0, synced: int | None = None) -> bytes:
    """A record's bytes in a segment of that salt; `synced` is the last number known to be durable.

    Raises ValueError for data above RECORD_BYTES_MAX.
    """
    if len(data) > RECORD_BYTES_MAX:
        raise ValueError(f"a record of {len(data)} bytes, at most {RECORD_BYTES_MAX} are allowed")
    behind = 0 if synced is None else min(number - synced, BEHIND_MAX)
    head = _RECORD.pack(MARK, len(data), number, behind)
    return b"".join((head, _CRC.pack(crc32(data, crc32(head, salt))), data))


def frame_snapshot(number: int, data: bytes) -> bytes:
    """A whole snapshot file; the snapshot stands for all records up to the number."""
    body = _SNAPSHOT_BODY.pack(number, len(data))
    head = _SNAPSHOT.pack(SNAPSHOT_MAGIC, VERSION, 0)
    crc = crc32(data, crc32(body, crc32(head)))
    return b"".join((head, _CRC.pack(crc), body, data))


# --- reading ----------------------------------------------------------------------------------


def read_header(data: bytes, name: str = "journal") -> Segment | None:
    """Read what a segment's header says; None if it is not there whole.

    Only the first HEADER_BYTES are needed. Raises VersionError.
    """
    if len(data) < HEADER_BYTES:
        return None
    magic, version, _flags, salt, first = _HEADER.unpack_from(data)
    (crc,) = _CRC.unpack_from(data, _HEADER.size)
    if magic != SEGMENT_MAGIC or crc != crc32(data[: _HEADER.size]):
        return None
    if version > VERSION:
        raise VersionError(name, version)
    return Segment(first, salt, version)


def read_segment(
    data: bytes, expected: int | None = None, following: int | None = None, name: str = "journal"
) -> Reading:
    """The records of one segment.

    `expected` is the number that must come first (None: whatever the header says); `following` is
    the first number of the segment after it, None for the last one. Raises CorruptError where a
    record is missing or damaged that must be there, VersionError.
    """
    segment = read_header(data, name)
    if segment is None:
        reading = Reading([], 1 if expected is None else expected, 0, "the header is not whole")
        salt = None
    else:
        if expected is not None and segment.first != expected:
            why = f"begins with record {segment.first}, and {expected} is to come"
            raise CorruptError(name, 0, why)
        reading = _records(data, segment, following)
        salt = segment.salt
    if following is not None:
        if reading.next_number < following:
            why = f"record {reading.next_number}: {reading.stopped or 'missing'}"
            raise CorruptError(name, reading.good_bytes, why)
    elif reading.stopped and salt is not None:
        later = _proof(data, reading.good_bytes, reading.next_number, salt)
        if later is not None:
            why = (
                f"record {reading.next_number}: {reading.stopped}, but it was synced before {later}"
            )
            raise CorruptError(name, reading.good_bytes, why)
    return reading


def read_snapshot(data: bytes, name: str = "snapshot") -> Record:
    """The number that a snapshot stands for, and its data. Raises CorruptError, VersionError."""
    if len(data) < SNAPSHOT_HEADER_BYTES:
        raise CorruptError(name, len(data), "the snapshot's header is not whole")
    magic, version, _flags = _SNAPSHOT.unpack_from(data)
    if magic != SNAPSHOT_MAGIC:
        raise CorruptError(name, 0, "this is no snapshot")
    if version > VERSION:
        raise VersionError(name, version)
    (crc,) = _CRC.unpack_from(data, _SNAPSHOT.size)
    at = _SNAPSHOT.size + _CRC.size
    number, size = _SNAPSHOT_BODY.unpack_from(data, at)
    if len(data) != SNAPSHOT_HEADER_BYTES + size:
        why = f"found {len(data)} bytes, expected {SNAPSHOT_HEADER_BYTES + size}"
        raise CorruptError(name, min(len(data), SNAPSHOT_HEADER_BYTES + size), why)
    if crc != crc32(memoryview(data)[at:], crc32(data[: _SNAPSHOT.size])):
        raise CorruptError(name, 0, "the check sum is wrong")
    return Record(number, data[SNAPSHOT_HEADER_BYTES:])


def _records(data: bytes, segment: Segment, following: int | None) -> Reading:
    view = memoryview(data)
    records: list[Record] = []
    number, at, stopped, synced = segment.first, HEADER_BYTES, "", segment.first - 1
    while at < len(data) and (following is None or number < following):
        found = _record(view, at, segment.salt)
        if isinstance(found, str):
            stopped = found
            break
        said, behind, end = found
        if said != number:
            stopped = f"found number {said}"
            break
        records.append(Record(number, data[at + RECORD_HEADER_BYTES : end]))
        synced = max(synced, number - behind if behind else 0)
        number, at = number + 1, end
    return Reading(records, number, at, stopped, synced)


def _record(view: memoryview, at: int, salt: int) -> tuple[int, int, int] | str:
    """(number, behind, where it ends) of the record at a place, or why there is none."""
    if len(view) - at < RECORD_HEADER_BYTES:
        return "the record's header is not whole"
    mark, size, number, behind = _RECORD.unpack_from(view, at)
    if mark != MARK:
        return "no record begins here"
    if size > RECORD_BYTES_MAX:
        return f"found size {size}, at most {RECORD_BYTES_MAX} can be"
    body = at + RECORD_HEADER_BYTES
    if len(view) - body < size:
        return f"found {len(view) - body} of its {size} bytes"
    (crc,) = _CRC.unpack_from(view, at + _RECORD.size)
    if crc != crc32(view[body : body + size], crc32(view[at : at + _RECORD.size], salt)):
        return "the check sum is wrong"
    return number, behind, body + size


def _proof(data: bytes, at: int, number: int, salt: int) -> int | None:
    """A later record that was framed when the record of the number was durable already."""
    view = memoryview(data)
    at = data.find(MARK, at + 1)
    while at >= 0:
        found = _record(view, at, salt)
        if isinstance(found, str):
            at = data.find(MARK, at + 1)
            continue
        later, behind, end = found
        if behind and later - behind >= number:
            return later
        at = data.find(MARK, end)
    return None

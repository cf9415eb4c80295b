"""Files as lines: opened, unpacked where they are gzip, and cut into lines of bounded length.

Owns how recorded events come off a disk or a pipe. Must not know what a line means.
Invariant: memory is bounded by the chunk and the longest line allowed, whatever the input holds,
and a chunk of lines is passed on as soon as it was read, so that a pipe is never waited for twice.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from language.errors import HeadwaterError

CHUNK_BYTES = 262_144  # one read; large enough that the work for each chunk does not show
LINE_BYTES_MAX = 1_048_576  # the same as a broker's largest payload: what it takes, replay takes

STANDARD_INPUT = "-"
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW_BITS = 31  # zlib's number for gzip with the largest window
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_HEAD_BYTES = 6  # enough to tell a format
_BEGINNING_BYTES = 16  # kept of a line that is too long, to tell JSON from a header row
# What files begin with that hold no lines, and what to do with them.
_STRANGE = {
    b"PK\x03\x04": "packed with zip; unpack it first",
    b"BZh": "packed with bzip2; unpack it first",
    b"\xfd7zXZ\x00": "packed with xz; unpack it first",
    b"\x28\xb5\x2f\xfd": "packed with zstd; unpack it first",
    b"\xff\xfe": "text in UTF-16; save it as UTF-8",
    b"\xfe\xff": "text in UTF-16; save it as UTF-8",
    b"PAR1": "a Parquet file; write it as CSV or JSON lines first",
    b"SQLite": "an SQLite database; write its rows as CSV first",
}


class UnreadableError(HeadwaterError):
    """A file that cannot be read on: it is missing, damaged, or its header makes no sense."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{shown(file)}: {reason}")
        self.file = file
        self.reason = reason


@dataclass(slots=True)
class Lines:
    """Successive lines without their ends, as bytes; the first is number `first_line` from 1.

    A line longer than allowed stands here empty, and its number is in `too_long`; `head` is how the
    first of these begins.
    """

    first_line: int
    lines: list[bytes]
    too_long: list[int] = field(default_factory=list)
    head: bytes = b""


def shown(file: str) -> str:
    """The file's name as messages give it."""
    return "standard input" if file == STANDARD_INPUT else file


def lines_of(
    file: str, *, stdin: BinaryIO | None = None, line_bytes_max: int = LINE_BYTES_MAX
) -> Iterator[Lines]:
    """The lines of a file, plain or gzip (told by its content), in chunks as they are read.

    `-` is standard input, or `stdin` where that is given. Raises UnreadableError.
    """
    try:
        yield from _cut(_unpacked(file, _raw(file, stdin)), line_bytes_max)
    except OSError as error:
        raise UnreadableError(file, (error.strerror or str(error)).lower()) from error


def _raw(file: str, stdin: BinaryIO | None) -> Iterator[bytes]:
    if file == STANDARD_INPUT:
        source = stdin if stdin is not None else sys.stdin.buffer
        # read1 gives what has come; read would wait until a chunk is full
        yield from _reads(getattr(source, "read1", None) or source.read)
        return
    with Path(file).open("rb", buffering=0) as opened:
        yield from _reads(opened.read)


def _reads(read: Callable[[int], bytes | None]) -> Iterator[bytes]:
    while chunk := read(CHUNK_BYTES):
        yield chunk


def _unpacked(file: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= _HEAD_BYTES:
            break
    for magic, what in _STRANGE.items():
        if head.startswith(magic):
            raise UnreadableError(file, what)
    if head.startswith(_GZIP_MAGIC):
        yield from _gunzipped(file, head, chunks)
        return
    if head:
        yield head
    yield from chunks


def _gunzipped(file: str, head: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Unpack members that follow each other, never more than a chunk at a time."""
    unpacker = zlib.decompressobj(_GZIP_WINDOW_BITS)
    packed: bytes | None = head
    begun = False
    while packed is not None:
        begun = begun or bool(packed)
        try:
            unpacked = unpacker.decompress(packed, CHUNK_BYTES)
        except zlib.error as error:
            raise UnreadableError(file, f"the gzip data is damaged ({error})") from error
        if unpacked:
            yield unpacked
        if unpacker.eof:
            # some writers pad the last member with zeros
            packed = unpacker.unused_data.lstrip(b"\0")
            unpacker, begun = zlib.decompressobj(_GZIP_WINDOW_BITS), False
        else:
            packed = unpacker.unconsumed_tail
        if not packed and len(unpacked) < CHUNK_BYTES:
            packed = next(chunks, None)
            if packed is not None and not begun:
                packed = packed.lstrip(b"\0")
    if begun:
        raise UnreadableError(file, "the gzip data ends early")


def _cut(chunks: Iterator[bytes], line_bytes_max: int) -> Iterator[Lines]:
    first_line = 1
    remainder = b""
    overflowed = False  # the line that `remainder` belongs to has been longer than allowed already
    head = b""  # of that line
    at_start = True
    for chunk in chunks:
        parts = (remainder + chunk).split(b"\n")
        remainder = parts.pop()
        if at_start and (parts or len(remainder) >= len(_BYTE_ORDER_MARK)):
            at_start = False
            if parts:
                parts[0] = parts[0].removeprefix(_BYTE_ORDER_MARK)
            else:
                remainder = remainder.removeprefix(_BYTE_ORDER_MARK)
        if parts:
            yield _bounded(first_line, parts, line_bytes_max, head if overflowed else None)
            first_line += len(parts)
            overflowed = False
        if overflowed or len(remainder) > line_bytes_max:
            head = head if overflowed else remainder[:_BEGINNING_BYTES]
            overflowed, remainder = True, b""
    if remainder or overflowed:
        last = [remainder.removeprefix(_BYTE_ORDER_MARK) if at_start else remainder]
        yield _bounded(first_line, last, line_bytes_max, head if overflowed else None)


def _bounded(first_line: int, parts: list[bytes], line_bytes_max: int, head: bytes | None) -> Lines:
    """`head`: the beginning of the first line, where that has been longer than allowed already."""
    too_long = [] if head is None else [0]
    too_long += [
        index
        for index, line in enumerate(parts)
        if len(line) > line_bytes_max and (head is None or index)
    ]
    if head is None:
        head = parts[too_long[0]][:_BEGINNING_BYTES] if too_long else b""
    for index in too_long:
        parts[index] = b""
    return Lines(first_line, parts, [first_line + index for index in too_long], head)

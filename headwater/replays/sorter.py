"""Sorting more than memory holds: sorted runs in temporary files, merged as they are read.

Owns the runs. Must not know what is sorted: the key and the way to bytes and back come in.
Invariant: the outcome is that of one stable sort, whatever the limits; and the files have no names,
so that nothing of them stays behind however the process ends.
"""

from __future__ import annotations

import contextlib
import heapq
import tempfile
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import IO, Any, Generic, TypeVar

import msgspec

from language.errors import HeadwaterError

T = TypeVar("T")

ITEMS_MAX = 500_000  # held in memory; some 200 MB of events, and most recordings need no file
BYTES_MAX = 128 * 2**20  # of what the items were made from, where that is told; for large payloads
FAN_IN = 32  # runs that are open at a time for each level of merging; each is a file descriptor
BLOCK_ITEMS = 512  # read back at a time for each run
BLOCK_BYTES = 262_144  # the same for large items

_LENGTH_BYTES = 4


class SortingError(HeadwaterError):
    """The temporary files could not be written or read."""


class ExternalSort(Generic[T]):
    """Collects items and gives them back in the order of `key`, equal keys as they came.

    `encode` and `decode` carry one item to bytes and back; they are used only once more than
    `items_max` items, or items made from more than `bytes_max` bytes, are held. `folder` is where
    the temporary files are made, by default where the system keeps such files. A context manager;
    leaving it frees the files.
    """

    def __init__(
        self,
        key: Callable[[T], Any],
        encode: Callable[[T], bytes],
        decode: Callable[[bytes], T],
        *,
        items_max: int = ITEMS_MAX,
        bytes_max: int = BYTES_MAX,
        folder: str | None = None,
    ) -> None:
        self._key = key
        self._encode = encode
        self._decode = decode
        self._items_max = items_max
        self._bytes_max = bytes_max
        self._folder = folder
        self._held: list[T] = []
        self._held_bytes = 0
        # levels[n] holds runs made of FAN_IN runs of levels[n - 1], the oldest first
        self._levels: list[list[IO[bytes]]] = []
        self.runs_written = 0

    def __enter__(self) -> ExternalSort[T]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def add(self, items: Iterable[T], size_bytes: int = 0) -> None:
        """Take items in; `size_bytes` is what they were made from. Raises SortingError."""
        self._held.extend(items)
        self._held_bytes += size_bytes
        if len(self._held) > self._items_max or self._held_bytes > self._bytes_max:
            self._spill()

    def in_order(self) -> Iterator[T]:
        """All items in order; to be called once, after the last `add`. Raises SortingError."""
        self._held.sort(key=self._key)
        if not self._levels:
            held, self._held = self._held, []
            yield from held
            return
        runs = [self._read(run) for level in reversed(self._levels) for run in level]
        yield from heapq.merge(*runs, self._held, key=self._key)

    def close(self) -> None:
        """Give the files and the memory back; may be called twice."""
        for level in self._levels:
            for run in level:
                run.close()
        self._levels = []
        self._held = []

    def _spill(self) -> None:
        self._held.sort(key=self._key)
        self._store(0, self._write(self._held))
        self._held = []
        self._held_bytes = 0

    def _store(self, depth: int, run: IO[bytes]) -> None:
        if depth == len(self._levels):
            self._levels.append([])
        level = self._levels[depth]
        level.append(run)
        if len(level) == FAN_IN:
            merged = self._write(heapq.merge(*map(self._read, level), key=self._key))
            for old in level:
                old.close()
            self._levels[depth] = []
            self._store(depth + 1, merged)

    def _write(self, items: Iterable[T]) -> IO[bytes]:
        try:
            run: IO[bytes] = tempfile.TemporaryFile(  # noqa: SIM115  (it outlives this function)
                prefix="headwater-sort-", dir=self._folder
            )
        except OSError as error:
            raise self._failed(error) from error
        try:
            for block in _blocks(map(self._encode, items)):
                packed = msgspec.msgpack.encode(block)
                run.write(len(packed).to_bytes(_LENGTH_BYTES, "big") + packed)
            run.flush()
        except BaseException as error:
            with contextlib.suppress(OSError):  # closing tries once more to write
                run.close()
            if isinstance(error, OSError):
                raise self._failed(error) from error
            raise
        self.runs_written += 1
        return run

    def _read(self, run: IO[bytes]) -> Iterator[T]:
        try:
            run.seek(0)
            while head := run.read(_LENGTH_BYTES):
                block = run.read(int.from_bytes(head, "big"))
                for encoded in msgspec.msgpack.decode(block, type=list[bytes]):
                    yield self._decode(encoded)
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> SortingError:
        folder = self._folder or tempfile.gettempdir()
        reason = (error.strerror or str(error)).lower()
        return SortingError(
            f"sorting needs temporary files in {folder}: {reason} (TMPDIR names another folder)"
        )


def _blocks(encoded_items: Iterable[bytes]) -> Iterator[list[bytes]]:
    block: list[bytes] = []
    size_bytes = 0
    for encoded in encoded_items:
        block.append(encoded)
        size_bytes += len(encoded)
        if len(block) == BLOCK_ITEMS or size_bytes > BLOCK_BYTES:
            yield block
            block, size_bytes = [], 0
    if block:
        yield block

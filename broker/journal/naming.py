"""How the files of a journal's folder are called.

Owns the names. Must not know what is in the files. Invariant: names sort as the files are to be
read, and what has another name is none of the journal's.

    00000000000000000501-0000.segment    begins with record 501; a second such one is -0001
    00000000000000000500.snapshot        stands for all records up to 500
"""

import re

from msgspec import Struct

_SEGMENT = re.compile(r"(\d{20})-(\d{4})\.segment")
_SNAPSHOT = re.compile(r"(\d{20})\.snapshot")


class SegmentName(Struct, frozen=True, order=True):
    """A segment by its first record and, where an earlier one was given up, its turn."""

    first: int
    turn: int = 0

    @property
    def file(self) -> str:
        """The file's name."""
        return f"{self.first:020d}-{self.turn:04d}.segment"


def segments(names: list[str]) -> list[SegmentName]:
    """The segments among the names, in the order in which they are to be read."""
    matches = (_SEGMENT.fullmatch(name) for name in names)
    return sorted(SegmentName(int(match[1]), int(match[2])) for match in matches if match)


def snapshot(number: int) -> str:
    """The name of a snapshot's file."""
    return f"{number:020d}.snapshot"


def snapshots(names: list[str]) -> list[int]:
    """The numbers for which there are snapshots, in ascending order."""
    matches = (_SNAPSHOT.fullmatch(name) for name in names)
    return sorted(int(match[1]) for match in matches if match)

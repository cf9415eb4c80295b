"""CSV records out of lines.

Owns quoting: which lines make one record. Must not know what the cells mean.
Invariant: every line belongs to exactly one record or one reason why it is none; an open quotation
mark never takes more than a bounded number of the lines after it, and gives them back if it fails.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

from headwater.replays.lines import LINE_BYTES_MAX

RECORD_LINES_MAX = 100  # a quoted text of more lines is taken for a stray quotation mark

# A record's cells, or the reason why the line holds none.
Record = list[str] | str


class RecordAssembler:
    """Cuts lines into records as they come; the number with each is that of its first line."""

    def __init__(self, record_bytes_max: int = LINE_BYTES_MAX) -> None:
        """`record_bytes_max` bounds what a quoted text of several lines may hold."""
        self._record_bytes_max = record_bytes_max
        self._held: list[str] = []  # lines of a record whose quotation mark is still open
        self._held_from = 0
        self._held_size = 0
        self._odd = False  # whether the held lines have an odd number of quotation marks

    def take(self, first_line: int, lines: Sequence[bytes]) -> Iterator[tuple[int, Record]]:
        """The records that end within these lines; blank lines are passed over."""
        for number, raw in enumerate(lines, first_line):
            try:
                line = raw.decode()
            except UnicodeDecodeError:
                yield from self.finish()
                yield number, "not UTF-8 text"
                continue
            line = line.removesuffix("\r")
            if self._held or '"' in line:
                yield from self._quoted(number, line)
            elif line and not line.isspace():
                # without quotation marks a comma has but one meaning
                yield number, line.split(",")

    def finish(self) -> Iterator[tuple[int, Record]]:
        """Yield what is left when no more lines come."""
        while self._held:
            yield from self._give_up()

    def _quoted(self, number: int, line: str) -> Iterator[tuple[int, Record]]:
        if not self._held:
            record = _parsed(line)
            if record is not None:
                yield number, record
            elif line.count('"') % 2:
                self._hold(number, line)
            else:
                yield number, _BAD_QUOTES
            return
        self._hold(number, line)
        if not self._odd:
            record = _parsed("\n".join(self._held))
            if record is None:
                yield from self._give_up()
            else:
                self._held = []
                yield self._held_from, record
        elif len(self._held) >= RECORD_LINES_MAX or self._held_size > self._record_bytes_max:
            yield from self._give_up()

    def _hold(self, number: int, line: str) -> None:
        if not self._held:
            self._held_from, self._held_size, self._odd = number, 0, False
        self._held.append(line)
        self._held_size += len(line)
        self._odd ^= bool(line.count('"') % 2)

    def _give_up(self) -> Iterator[tuple[int, Record]]:
        """The first held line is none after all; those behind it stand for themselves."""
        first, others = self._held_from, self._held[1:]
        self._held = []
        yield first, _BAD_QUOTES
        for number, line in enumerate(others, first + 1):
            if self._held or line:
                yield from self._quoted(number, line)


_BAD_QUOTES = "a quotation mark is out of place or is never closed"


def _parsed(text: str) -> list[str] | None:
    """The one record that the text is, or None."""
    try:
        rows = list(csv.reader([text], strict=True))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 else None

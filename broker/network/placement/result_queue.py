"""The results of a cell that its home has not taken, in order.

Owns their numbers, which ascend by one, and what was told of them. Must not know who takes them.
Invariant: results are told in order, and again from the first that was not taken, once somebody
says so; those of one message were found under one revision of the text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

from broker.network.placement.cell_messages import Results, Which
from broker.network.placement.home_records import Row

RESULTS_PART = 256  # results in one message, so that it stays far below what a link takes
RESULTS_BYTES = 256 * 1024


class ResultQueue:
    """Keep results until they are taken; the first one has the number `first`.

    `revision`: of the text under which those are found that come next.
    """

    def __init__(self, first: int, revision: int) -> None:
        self.first = first
        self.revision = revision
        self.next_told = first
        self._rows: deque[tuple[int, Row]] = deque()

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: Row) -> None:
        """Take in the next result."""
        self._rows.append((self.revision, row))

    def take(self, next_: int) -> None:
        """Let go of all before this number."""
        while self._rows and self.first < next_:
            self._rows.popleft()
            self.first += 1

    def tell_again(self) -> None:
        """Begin to tell all again."""
        self.next_told = self.first

    def say(self, which: Which, life: int) -> Iterator[Results]:
        """Yield what the home was not told yet, in parts."""
        self.next_told = max(self.next_told, self.first)
        count = self.first + len(self._rows) - self.next_told
        # What was told stands at the front until it is taken.
        fresh = list(islice(self._rows, len(self._rows) - count, None)) if count else []
        while fresh:
            rows = _part(fresh)
            yield Results(which, life, self.first, self.next_told, rows, fresh[0][0])
            self.next_told += len(rows)
            fresh = fresh[len(rows) :]


def _part(results: list[tuple[int, Row]]) -> list[Row]:
    """As many of the first as go into one message; one at least."""
    size_bytes = 0
    rows: list[Row] = []
    for revision, row in results[:RESULTS_PART]:
        size_bytes += len(row[3])
        # One that is larger by itself goes alone: nothing else could bring it home.
        if rows and (size_bytes > RESULTS_BYTES or revision != results[0][0]):
            break
        rows.append(row)
    return rows

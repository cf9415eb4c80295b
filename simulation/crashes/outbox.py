"""The simulated database of results: transactions that happen as a whole, or not at all.

Owns the rows. Must not know who reads them. Invariant: offsets are consecutive from 0, or whoever
appends is told that they are not.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.core.effects import Emission
from simulation.account import CheckFailedError


class Outbox:
    """Results that are durable, in order."""

    def __init__(self) -> None:
        self.rows: list[Emission] = []

    @property
    def end(self) -> int:
        """The offset of the next result."""
        return len(self.rows)

    def commit(self, rows: Sequence[Emission]) -> None:
        """One transaction."""
        for offset, one in enumerate(rows, self.end):
            if one.offset != offset:
                raise CheckFailedError(f"a result of offset {one.offset} comes to place {offset}")
        self.rows += rows

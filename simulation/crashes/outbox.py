"""The simulated database: results, and the catalogue; transactions happen as a whole or not at all.

Owns the rows. Must not know who reads them. Invariant: offsets are consecutive from 0, or whoever
appends is told that they are not.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from broker.core.effects import Emission, Enlist, Entry
from simulation.account import CheckFailedError


class OutboxGroup(Struct):
    """Hold what one transaction stores."""

    rows: list[Emission] = []
    listing: list[Enlist] = []

    def __bool__(self) -> bool:
        return bool(self.rows or self.listing)


class SimulatedOutbox:
    """Results that are durable, in order, and which subscriptions there are."""

    def __init__(self) -> None:
        self.rows: list[Emission] = []
        self._listed: dict[tuple[str, str], Entry] = {}

    @property
    def listed(self) -> list[Entry]:
        """The catalogue, in the order in which its rows were put."""
        return list(self._listed.values())

    @property
    def end(self) -> int:
        """The offset of the next result."""
        return len(self.rows)

    def commit(self, group: OutboxGroup) -> None:
        """One transaction."""
        for change in group.listing:
            for key in (*change.leaving, *(entry.key for entry in change.coming)):
                self._listed.pop(key, None)
            self._listed.update({entry.key: entry for entry in change.coming})
        self._append(group.rows)

    def _append(self, rows: Sequence[Emission]) -> None:
        for offset, result in enumerate(rows, self.end):
            if result.offset != offset:
                raise CheckFailedError(
                    f"a result of offset {result.offset} comes to place {offset}"
                )
        self.rows += rows

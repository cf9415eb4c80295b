"""Cells that are about to go elsewhere, while their hosts save once more what they hold.

Owns which cells wait for that, where they go, and for how long a home waits. Must not know how a
cell is moved. Invariant: a cell goes to where it was to go last; its host may answer late or never,
without any other effect than delay.

Whatever begins elsewhere begins from the last snapshot that the home has, and is offered all that
came since, once more over every link on the way. Snapshots are seldom where they are paid by what
comes in. So one is asked for before the move, and what is offered then is what comes meanwhile. Of
a large state that would cost more than it saves: it moves as it is.

    stays --placed elsewhere--> leaving --a snapshot, or `LEAVES_MS`--> moved
    leaving --placed where it is, lost, or moved for another reason--> stays
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from broker.network.placement import cell_messages
from broker.network.placement.cell_messages import Which
from broker.network.placement.snapshot_pace import SAVE_BYTES_S

LEAVES_MS = 10_000  # after so long a cell goes with the snapshot that there is
STATE_BYTES_MAX = SAVE_BYTES_S  # of a longer one a snapshot is due more seldom than each second


class _Departure(Struct):
    """Record where a cell goes, and since when its host is asked for its state."""

    to: str
    since: int


class Departures:
    """Have the states of cells saved before they move; `tell` tells a host."""

    def __init__(
        self, tell: Callable[[str, cell_messages.SaveAsked], None], clock: Callable[[], int]
    ) -> None:
        self._tell = tell
        self._clock = clock
        self.leaving: dict[str, _Departure] = {}  # by cell

    def goes_to(self, cell: str) -> str | None:
        """Return where a cell goes as soon as its state is saved; None: it does not leave."""
        departure = self.leaving.get(cell)
        return None if departure is None else departure.to

    def begin(self, which: Which, host: str, to: str) -> None:
        """Have a host save the term that serves there, which is to go elsewhere."""
        self.leaving[which.cell] = _Departure(to, self._clock())
        self._tell(host, cell_messages.SaveAsked(which))

    def end(self, cell: str) -> str | None:
        """Return where a cell was to go, if it was to: its state is saved, or it does not leave."""
        departure = self.leaving.pop(cell, None)
        return None if departure is None else departure.to

    def late(self) -> list[str]:
        """Return the cells whose hosts had their time."""
        now = self._clock()
        leaving = self.leaving.items()
        return [cell for cell, departure in leaving if now - departure.since >= LEAVES_MS]

    def next_wake(self) -> list[int]:
        """Return when a host has had its time."""
        return [departure.since + LEAVES_MS for departure in self.leaving.values()]

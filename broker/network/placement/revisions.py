"""Texts that take the place of a cell's text while it runs, and what is set apart meanwhile.

Owns the revisions that a home has not got a snapshot of, and when a host is asked to take them up.
Must not know tasks or what a text means. Invariant: of what a run finds under a revision nothing is
given out before a snapshot of that revision is stored. So whatever begins from an earlier snapshot
finds under the text before what nobody was given.

    asked for ──Revised──▶ taken up at the host ──its first snapshot──▶ stored: it is in force

A host is asked once it has found again all that was given out since the last snapshot. What it has
yet to find again would else come a second time, under the new text, where no id tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from broker.network.placement import cell_messages
from broker.network.placement.cell_messages import TextRevision, Which
from broker.network.placement.home_records import Row

CATCH_UP_MS = 60_000  # so long a host may take to find again what was given out
JOIN_MS_MAX = 15_000  # what has not joined by then runs apart, and nobody waits for its origins


class RowApart(Struct, array_like=True, frozen=True):
    """A result that is not to be given out yet: of which run and revision, and its number."""

    run: int
    revision: int
    number: int
    row: Row


class RevisedTerm(Protocol):
    """A term: where it runs, and in which life."""

    broker: str
    life: int


class RevisedCell(Protocol):
    """A cell as its home keeps it."""

    @property
    def revisions(self) -> Sequence[TextRevision]:
        """Return those that no stored snapshot has."""

    @property
    def keys(self) -> Sequence[tuple[str, str]]:
        """Return its subscriptions."""

    @property
    def serving(self) -> RevisedTerm:
        """Return the term that serves."""

    @property
    def coming(self) -> object:
        """Return the term that comes, if any."""


class Joinings:
    """Give up what joins a cell and takes too long.

    No snapshot is made of a cell while something in it waits for origins, so that one who joins
    must not hold up the others for long.
    """

    def __init__(self, cells: Mapping[str, RevisedCell], clock: Callable[[], int]) -> None:
        self._cells = cells
        self._clock = clock
        self._since: dict[tuple[str, int], int] = {}  # by cell and revision

    def look(self) -> None:
        """Cells, or their texts, are others."""
        joining = [
            (name, revision.number)
            for name, cell in self._cells.items()
            for revision in cell.revisions
            if revision.joins and not set(cell.keys).isdisjoint(revision.keys)
        ]
        self._since = {place: self._since.get(place, self._clock()) for place in joining}

    def late(self) -> list[tuple[str, int]]:
        """Return the cell and the revision of those that take too long."""
        now = self._clock()
        return [place for place, since in self._since.items() if now - since >= JOIN_MS_MAX]

    def next_wake(self) -> list[int]:
        """Return when one is late."""
        return [since + JOIN_MS_MAX for since in self._since.values()]


class _Serving(Struct):
    """A term as its host stated it last."""

    which: Which
    life: int
    revision: int
    since: int
    asked: int = 0  # the last revision that it was asked to take up


class Reviser:
    """Ask the hosts of a home's cells to take up texts.

    `tell` tells a host; `lacks_results` returns whether a life of a cell has yet to find again what
    was given out.
    """

    def __init__(
        self,
        cells: Mapping[str, RevisedCell],
        tell: Callable[[str, cell_messages.Revised], None],
        clock: Callable[[], int],
        lacks_results: Callable[[str, int], bool],
    ) -> None:
        self._cells = cells
        self._tell = tell
        self._clock = clock
        self._lacks_results = lacks_results
        self._serving: dict[str, _Serving] = {}  # by cell

    def runs(self, which: Which, life: int, revision: int) -> None:
        """Take in that the term that serves runs at a revision, and ask for a later one."""
        before, since = self._serving.get(which.cell), self._clock()
        # The time counts from when this life was first heard of, however often it is heard of.
        if before is not None and (before.which, before.life) == (which, life):
            since = before.since
        self._serving[which.cell] = _Serving(which, life, revision, since)
        self.ask(which.cell)

    def ask(self, name: str) -> None:
        """Ask the host of a cell to take up what it has not, once it can."""
        term = self._waiting(name)
        if term is None:
            return
        # Of events that last another run may find what this one never does: so not for ever.
        is_late = self._clock() - term.since >= CATCH_UP_MS
        if not is_late and self._lacks_results(name, term.life):
            return
        cell = self._cells[name]
        # Texts go one by one, as a host that skipped one would keep other operands than its home
        # has said; what was lost on its way is asked for anew when the host says how it runs.
        term.asked = cell.revisions[-1].number
        for revision in cell.revisions:
            if revision.number > term.revision:
                keys = tuple([key for key in revision.keys if key in cell.keys])
                asked = replace(revision, keys=keys)  # without what was cancelled since
                revised = cell_messages.Revised(term.which, term.life, asked)
                self._tell(cell.serving.broker, revised)

    def _waiting(self, name: str) -> _Serving | None:
        """Return the term that serves, if it was not asked for the last revision yet."""
        term, cell = self._serving.get(name), self._cells.get(name)
        # While a cell moves, what serves may be called off or go on: only one of two may change.
        if term is None or cell is None or not cell.revisions or cell.coming is not None:
            return None
        return term if max(term.revision, term.asked) < cell.revisions[-1].number else None

    def look(self) -> None:
        """Cells, or their texts, are others, or time has passed."""
        for name in list(self._serving):
            if name in self._cells:
                self.ask(name)
            else:
                del self._serving[name]

    def next_wake(self) -> list[int]:
        """Return when a host has had its time."""
        waiting = [self._waiting(name) for name in self._serving]
        return [term.since + CATCH_UP_MS for term in waiting if term is not None]

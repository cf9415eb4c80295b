"""Cells as others see them: what a status shows, and what a coordinator measures by.

Owns the shape. Must not know how a cell runs. Invariant: counts ascend while `life` stays, and
begin anew with another one; so a rate is the difference of two looks at the same life.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct, field

ROWS = "rows of "  # before what stands for a type where an origin sends a cell rows, not events
MARK = "#"  # in the name of a cell's term, and in no broker's name

# waiting: nowhere yet; starting: it has not heard of all origins; moving: it runs, and begins anew
# at another broker, or is about to; unknown: its home is not reached: only its host is known.
CellState: TypeAlias = Literal["waiting", "starting", "active", "moving", "unknown"]


class Load(Struct):
    """Count one kind of events: how many, and their packed bytes."""

    events: int = 0
    size_bytes: int = 0

    def add(self, events: int, size_bytes: int) -> None:
        """So many more."""
        self.events += events
        self.size_bytes += size_bytes


class CellCounts(Struct):
    """Count what went into a cell and came out of it since it began at its host.

    `inputs` by (origin, event type): what came behind the operators, that is after the simple
    filters. `saved`: the snapshots that went to the home, each counted as one event.
    """

    inputs: dict[tuple[str, str], Load] = field(default_factory=dict)
    results: Load = field(default_factory=Load)
    saved: Load = field(default_factory=Load)


class CellView(Struct, frozen=True):
    """One cell as this broker knows it: of its own submissions, and of those that run here.

    `cell` is also the key of its submission: the home's name, a slash and a number. `host` is where
    it runs, "" while it runs nowhere; `moving_to` where it begins anew, "" while it does not.
    `counts` are there where it runs here (`life` then tells one beginning from another), and so is
    `asked`: the operators behind which its inputs come.
    """

    cell: str
    home: str
    host: str
    term: int
    state: CellState
    subscriptions: tuple[tuple[str, str], ...]  # (subscriber, name)
    tasks: tuple[str, ...] = ()  # their keys, each definition before its users
    moving_to: str = ""
    snapshot_bytes: int = 0  # of the last that its home has
    reason: str = ""  # why it did not go where it was placed last
    life: int = 0
    counts: CellCounts | None = None
    asked: tuple[object, ...] = ()
    faults: int = 0  # messages and snapshots on which it failed where it runs here


def is_cell(name: str) -> bool:
    """Tell whether a name is that of a cell's term, and of no broker."""
    return MARK in name


def term_name(cell: str, term: int) -> str:
    """Return what a term of a cell is called among brokers."""
    return f"{cell}{MARK}{term}"


def cell_of(name: str) -> tuple[str, int]:
    """(cell, term) of such a name. Raises ValueError."""
    cell, _, term = name.partition(MARK)
    if not term.isascii() or not term.isdigit():
        raise ValueError(f"{name} is not the name of a term")
    return cell, int(term)


def rows_of(types: Sequence[str], cell: str) -> str:
    """Name the stand-in for types that an origin folds for a cell: no other host has use of it."""
    more = f" and {len(types) - 1} more" if len(types) > 1 else ""
    return f"{ROWS}{types[0]}{more} for {cell}"


def home_of(cell: str) -> str:
    """The home of a cell, by its name or that of a term of it."""
    return cell.partition("/")[0]

"""What a home is told of its cells that has to outlast its process.

Owns these messages; `told` has their bytes. Must not know frames. Invariant: what a home decides of
a cell (where it runs, which results it took, which snapshot is its last) is one of these.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from msgspec import Struct

from broker.network.placement.suspension import Rows

Row: TypeAlias = tuple[str, str, str, bytes]  # subscriber, subscription, actor, result as JSON
Reached: TypeAlias = tuple[str, str, int]  # subscriber, subscription, up to when it is settled


class CellMoved(Struct, array_like=True, frozen=True, tag="cell_moved"):
    """A cell is to run at this broker from now on, as soon as it can."""

    outlasts: ClassVar[bool] = True

    # No term: the book numbers terms, so that the same records give the same numbers.
    cell: str
    broker: str
    reason: str = ""  # why it does not stay where it was to be


class CellParted(Struct, array_like=True, frozen=True, tag="cell_parted"):
    """The subscriptions that were to join a cell with this revision are a cell of their own."""

    outlasts: ClassVar[bool] = True

    cell: str
    revision: int


class CellNamed(Struct, array_like=True, frozen=True, tag="cell_named"):
    """A cell needs these types of these origins, and waits for them from now on."""

    outlasts: ClassVar[bool] = True

    cell: str
    origins: dict[str, tuple[str, ...]]


class CellResults(Struct, array_like=True, frozen=True, tag="cell_results"):
    """Record what a term of a cell found: numbers from `first`; all before `floor` were taken.

    `revision`: of the text under which; -1 in records of an earlier version.
    """

    outlasts: ClassVar[bool] = True

    cell: str
    term: int
    life: int
    floor: int
    first: int
    rows: list[Row]
    revision: int = -1


class CellSaved(Struct, array_like=True, frozen=True, tag="cell_saved"):
    """The state of a term, which is active; its results before `end` are all before it."""

    outlasts: ClassVar[bool] = True

    cell: str
    term: int
    life: int
    floor: int
    end: int
    snapshot: bytes
    revision: int = -1


class CellSettled(Struct, array_like=True, frozen=True, tag="cell_settled"):
    """Record how far a term is settled, behind its results before `next`."""

    outlasts: ClassVar[bool] = True

    cell: str
    term: int
    life: int
    next: int
    reached: list[Reached]


class CellStood(Struct, array_like=True, frozen=True, tag="cell_stood"):
    """The standing of subscriptions of a cell, as its host tells it.

    No `cell`: the home tells its cell, which follows.
    """

    outlasts: ClassVar[bool] = True

    cell: str
    rows: Rows


HomeRecord: TypeAlias = (
    CellMoved | CellParted | CellNamed | CellResults | CellSaved | CellSettled | CellStood
)

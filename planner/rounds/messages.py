"""What brokers tell each other while they plan.

Owns the messages and their size on the wire. Must not know what follows from one. Invariant: a
message of an older epoch than the reader's means nothing any more.
"""

from __future__ import annotations

import msgspec

from planner.rounds.tables import Tables
from planner.rounds.view import Summary


class Tell(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Tell what a broker knows of itself, for all within so many further hops."""

    summary: Summary
    hops: int


class Want(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Somebody who looks farther than usual asks to be told from now on."""


class Reserve(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Asks a member to keep its tables as they are (of that version) for a leader's turn."""

    turn: int
    version: int


class Grant(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The member keeps them until it hears more."""

    turn: int


class Refuse(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """It does not; `stale`: what the leader went by is no longer so, else others were before it."""

    turn: int
    stale: bool


class Commit(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """The member's new tables, and all moves of the turn: piece, from whom, to whom."""

    turn: int
    tables: Tables
    moves: tuple[tuple[int, int, int], ...]


class Cancel(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Nothing came of a turn."""

    turn: int


Body = Tell | Want | Reserve | Grant | Refuse | Commit | Cancel


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """A message on its way; a Tell goes to whoever hears it, all else to `to`."""

    epoch: int
    origin: int
    to: int
    body: Body

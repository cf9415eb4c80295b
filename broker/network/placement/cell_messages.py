"""What a home and a cell's host say to each other, whichever brokers lie between them.

Owns these messages and their bytes. Must not know links or parts. Invariant: what is read back is
what was written, or it is refused. Each of them may be lost with a link and is then said again; so
each may come twice, and none changes anything the second time.

    home → host   Wanted      this term is to run at you; so its subscriptions stand
    host → home   Missing     it does not; say what it is
    home → host   Hosted      this is what it is: begin it
    host → home   Running     it does, and this is its life; so its subscriptions stand there
    home → host   Revised     from now on it has this text
                  Refused     it cannot, and why
                  Named       it is about to ask these origins for these types
                  Results, Saved
    home → host   SaveAsked   it is about to go elsewhere: save it
                  Noted       they are written down: ask them
                  Taken, Stored   up to there
                  Settle      how far is it settled?
    host → home   Settled     so far
                  Ended       this term is over
    origin → home Asked       are these terms over? they are not to be reached
    home → origin Over        these are

A home and its stand-in say theirs (`broker.network.delivery`) by the same way.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import Struct

from broker.network.delivery.messages import (
    HomeChanged,
    HomeEntrusted,
    HomeKept,
    LeaseAsked,
    LeaseGranted,
)
from broker.network.placement.cell_view import term_name
from broker.network.placement.home_records import Reached, Row
from broker.network.placement.suspension import Rows

Keys: TypeAlias = tuple[tuple[str, str], ...]
SPLITS = "split_windows"  # an option of a home: 1 where the windows of a cell are split
Origins: TypeAlias = dict[str, tuple[str, ...]]  # the types that are needed of each


class Which(Struct, array_like=True, frozen=True):
    """A term of a cell; `since` tells it from one of a home that then lost its disk."""

    cell: str
    since: int
    term: int

    @property
    def name(self) -> str:
        """Return what it is called among brokers."""
        return term_name(self.cell, self.term)


class TextRevision(Struct, array_like=True, frozen=True):
    """A text in the place of a cell's last one, and the subscriptions that it changed there.

    `begins`: some task of these begins with nothing, be it but for some operands. `joins`: none of
    these was in the cell; its text stays, and what it had under these names is not theirs.
    """

    number: int
    text: bytes
    keys: Keys
    begins: bool
    joins: bool = False


class Wanted(Struct, array_like=True, frozen=True, tag="wanted"):
    """This term, with these subscriptions and no others, is to run at who hears it.

    `revision`: that of its text; how subscriptions stand is said of that one.
    """

    which: Which
    keys: Keys
    standing: Rows = ()
    revision: int = 0


class Missing(Struct, array_like=True, frozen=True, tag="missing"):
    """It does not run at who says so."""

    which: Which


class Hosted(Struct, array_like=True, frozen=True, tag="hosted"):
    """All that is needed to begin it: its text and tables, or its last snapshot.

    `options` are those of the home that bear on results, `functions` the versions of the user
    functions that the text calls; a home of an earlier version does not say. `revision` is that of
    the snapshot, where there is one.
    """

    which: Which
    keys: Keys
    options: dict[str, int]
    text: bytes
    tables: dict[str, str]
    origins: Origins
    snapshot: bytes
    standing: Rows = ()
    functions: dict[str, str] = {}
    revision: int = 0


class Running(Struct, array_like=True, frozen=True, tag="running"):
    """It runs at who says so, at a revision of its text.

    A host of an earlier version says neither that nor how its parts stand.
    """

    which: Which
    life: int
    standing: Rows | None = None
    revision: int = -1


class Revised(Struct, array_like=True, frozen=True, tag="revised"):
    """It has another text from now on, and keeps its state as far as that allows."""

    which: Which
    life: int
    revision: TextRevision


class Refused(Struct, array_like=True, frozen=True, tag="refused"):
    """It will not run at who says so."""

    which: Which
    reason: str


class Named(Struct, array_like=True, frozen=True, tag="named"):
    """It needs these origins, besides those that its home knows of."""

    which: Which
    life: int
    origins: Origins


class Noted(Struct, array_like=True, frozen=True, tag="noted"):
    """Whatever takes its place will wait for these."""

    which: Which
    life: int
    origins: Origins


class Results(Struct, array_like=True, frozen=True, tag="results"):
    """Carry what it found, numbered from `first`; all before `floor` have been taken.

    `revision`: under which text; a host of an earlier version does not say.
    """

    which: Which
    life: int
    floor: int
    first: int
    rows: list[Row]
    revision: int = -1


class Taken(Struct, array_like=True, frozen=True, tag="results_taken"):
    """All results before this number are the home's."""

    which: Which
    life: int
    next: int


class Saved(Struct, array_like=True, frozen=True, tag="saved"):
    """Its state behind its own record `number`, and behind the results before `end`."""

    which: Which
    life: int
    floor: int
    number: int
    end: int
    snapshot: bytes
    revision: int = -1


class SaveAsked(Struct, array_like=True, frozen=True, tag="save_asked"):
    """It is about to go elsewhere: a snapshot of it is due now."""

    which: Which


class Stored(Struct, array_like=True, frozen=True, tag="snapshot_stored"):
    """The snapshot of that number is on the home's disk."""

    which: Which
    life: int
    number: int


class Settle(Struct, array_like=True, frozen=True, tag="settle"):
    """A reader of the home's results wants to know up to when they are all there."""

    which: Which


class Settled(Struct, array_like=True, frozen=True, tag="settled"):
    """Behind the results before `next`, of a subscription none comes that ends by the time here."""

    which: Which
    life: int
    next: int
    reached: list[Reached]


class Ended(Struct, array_like=True, frozen=True, tag="ended"):
    """This term is over."""

    which: Which


class Asked(Struct, array_like=True, frozen=True, tag="asked"):
    """Something is kept for these terms, which are not to be reached: are they over?"""

    terms: tuple[str, ...]


class Over(Struct, array_like=True, frozen=True, tag="over"):
    """These terms are over: nothing is to be kept for them."""

    terms: tuple[str, ...]


Said: TypeAlias = (
    Wanted
    | Missing
    | Hosted
    | Running
    | Revised
    | Refused
    | Named
    | Noted
    | Results
    | Taken
    | Saved
    | SaveAsked
    | Stored
    | Settle
    | Settled
    | Ended
    | Asked
    | Over
    | HomeEntrusted
    | HomeChanged
    | HomeKept
    | LeaseAsked
    | LeaseGranted
)

# What lets others forget something: a home says it behind what its stand-in has.
RESTING = (Noted, Taken, Stored, Ended, Over)


def line_of(said: Said) -> str:
    """Return a name for those of which each says all that those before it say; "" of any other."""
    if not isinstance(said, Taken | Stored):
        return ""
    return f"{type(said).__name__} {said.which.name} {said.which.since} {said.life}"


encoded = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Said).decode


def decoded(data: bytes) -> Said:
    """Decode what was said. Raises ValueError."""
    try:
        found: Said = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"what was said of a cell cannot be read: {error}") from None
    return found

"""What links are told, and what they want done: the doors of `Links` and `LinkSession`.

Owns these types. Must not know who tells or carries out. Invariant: effects are carried out in the
order given, all before those of anything that is told later. A connection is a number that whoever
owns sockets has chosen and never chooses again; a neighbour is named by its broker's name. `now` is
in milliseconds and never goes back.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from broker.network.session.frames import VERSION

# --- what happened ----------------------------------------------------------------------------


class Opened(Struct, frozen=True):
    """A connection is there. `dialled`: by this broker, else by the other.

    `expected` is the name that the other has to have, "" for any; `certified` the name that its
    certificate was made out to, "" where there is none. `nonce` are 16 random bytes.
    """

    connection: int
    nonce: bytes
    dialled: bool = False
    expected: str = ""
    certified: str = ""


class Received(Struct, frozen=True, gc=False):
    """Bytes came on a connection, cut anyhow."""

    connection: int
    data: bytes


class Closed(Struct, frozen=True):
    """A connection is gone, or could not be held."""

    connection: int
    reason: str = "the connection was lost"


class Choked(Struct, frozen=True):
    """The socket takes no more bytes for now (`on`), or takes some again."""

    connection: int
    on: bool


class Offered(Struct, frozen=True, gc=False):
    """Messages for a neighbour, in order: control, or events of which they hold `events`.

    Control overtakes events; within its class the order stays. A message of the class events that
    holds none (`events` 0) keeps its place among them.
    """

    peer: str
    messages: list[bytes]
    control: bool = False
    events: int = 0


class Held(Struct, frozen=True):
    """Let events that come wait, until their credit is used up; or deliver again. Control goes on.

    `peer` "" means all neighbours.
    """

    on: bool
    peer: str = ""


class Forgotten(Struct, frozen=True):
    """A neighbour is no more: its link is closed and all that was kept for it goes."""

    peer: str


class Woken(Struct, frozen=True):
    """Time has passed; due at `next_wake`."""


Told: TypeAlias = Opened | Received | Closed | Choked | Offered | Held | Forgotten | Woken

# --- what is to be done -----------------------------------------------------------------------


class Write(Struct, frozen=True, gc=False):
    """Write bytes to a connection."""

    connection: int
    data: bytes


class Close(Struct, frozen=True):
    """Close a connection once what was written is out; nothing more is heard of it.

    `fault`: whoever is at the other end, or how the two are configured, is to blame; worth a
    warning. Without it, closing is a matter of course.
    """

    connection: int
    reason: str
    fault: bool = False
    peer: str = ""


class Up(Struct, frozen=True):
    """The link stands. `fresh`: all that was under way to or from the neighbour is gone.

    Not `fresh`: nothing was lost or doubled, it goes on where it was. After a fresh one both sides
    say all anew. `epoch` is of the neighbour's process. `version` is the latest of links, and of
    what their messages hold, that both ends speak.
    """

    peer: str
    epoch: int
    fresh: bool
    version: int = VERSION


class Down(Struct, frozen=True):
    """The link is cut. What is offered meanwhile is kept, within limits.

    `lost`: it will not go on where it was; the next `Up` is certainly a fresh one.
    """

    peer: str
    reason: str
    lost: bool = False


class NameInUse(Struct, frozen=True):
    """A neighbour has a link to another process of this broker's name, which was there before."""

    peer: str
    reason: str


class Delivered(Struct, frozen=True, gc=False):
    """Messages of a neighbour, each once and in order within its class."""

    peer: str
    messages: list[bytes]
    control: bool
    events: int


class Congested(Struct, frozen=True):
    """So much waits for a link that half of what may is used; or (not `on`) a quarter again."""

    peer: str
    on: bool


class Refused(Struct, frozen=True):
    """Messages could not be taken, in whole: why is one of `REFUSALS`. They were counted."""

    peer: str
    why: str
    messages: int
    events: int


REFUSALS = {
    "never_up": "the link has not been up yet, or is to begin anew: its next Up is a fresh one",
    "link_full": "more waits for this link than it may keep",
    "no_neighbour": "there is no such neighbour",
}

Effect: TypeAlias = Write | Close | Up | Down | NameInUse | Delivered | Congested | Refused

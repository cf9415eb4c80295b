"""What a broker among others is told besides what any broker is told.

Owns these types. Must not know sockets. Invariant: frames of one neighbour are told in the order in
which it sent them, each once, from one `LinkUp` that is `fresh` to the next.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct

from broker.network.overlay.calls import CallSent
from broker.network.session.frames import VERSION


class LinkUp(Struct, frozen=True):
    """The link to a neighbour stands; `fresh`: all that was under way is gone.

    Its frames may be those of `version`, see `broker.network.session.frames`.
    """

    peer: str
    fresh: bool  # a link that merely came back goes on where it was
    cost: int = 1  # as configured; the tree takes the cheapest links
    version: int = VERSION  # of the frames' form that both ends understand


class LinkDown(Struct, frozen=True):
    """The link to a neighbour is cut; it may be back soon."""

    peer: str


class LinkRefused(Struct, frozen=True):
    """A frame for a neighbour could not be taken: it is lost."""

    peer: str


class NameRefused(Struct, frozen=True):
    """A neighbour has no link for this process, as it has one to another of the same name."""

    peer: str
    reason: str  # for the log, as the neighbour worded it


class FramesReceived(Struct, frozen=True):
    """Frames of a neighbour came, in order."""

    peer: str
    frames: tuple[bytes, ...]  # bytes as they came: reading them may fail


class ForgetRequested(Struct, frozen=True):
    """Somebody says that a broker will not come back: nobody is to wait for it any longer."""

    broker: str


class DrainRequested(Struct, frozen=True):
    """Somebody wants this broker to be rid of all tasks, or to take some up again."""

    drained: bool  # False: it may take tasks again


class TakeOverRequested(Struct, frozen=True):
    """Somebody wants this broker to take over a home; `is_forced`: although that is reachable."""

    home: str  # whose broker is lost
    client: str = ""  # who asks, for the log
    is_forced: bool = False  # two homes at once are what a person has to rule out
    reply_to: Any = None  # whatever answers the request


class ResultsRead(Struct, frozen=True):
    """All registered readers of the log have read it up to an offset; None: there are none."""

    offset: int | None  # nobody may let go of results beyond it


class ResultsDelivered(Struct, frozen=True):
    """The results before this offset are in the outbox, and were given to whoever listens."""

    offset: int


class CpuUsed(Struct, frozen=True):
    """The process has used so much CPU since it began, and may use so much in a second."""

    used_ms: int  # since the process began: differences survive a lost report
    granted_ms_per_s: int


class CellPlaced(Struct, frozen=True):
    """The tasks of a submission of this broker are to run at another one, or here.

    `cell` is the submission's key (see `cell_view.CellView`). Said again it changes nothing; what
    this broker is not the home of, or does not run as a cell, is passed over and counted.
    """

    cell: str
    broker: str  # may be the home itself


FromNetwork: TypeAlias = (
    LinkUp
    | LinkDown
    | LinkRefused
    | NameRefused
    | FramesReceived
    | ForgetRequested
    | CallSent
    | CellPlaced
    | DrainRequested
    | TakeOverRequested
    | ResultsDelivered
    | ResultsRead
    | CpuUsed
)

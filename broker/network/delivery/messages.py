"""What a home and its stand-in say to each other.

Owns these messages. Must not know what a copy holds. Invariant: each may be lost with a link and is
then said again, and none changes anything the second time. The first two are records of the
stand-in's journal as well, and `StandInChosen` is one of the home's.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class HomeEntrusted(Struct, array_like=True, frozen=True, tag="entrusted"):
    """All that a home has a stand-in for, as of change `number` of its process `run`.

    An empty `state`: this broker stands in for the home no longer.
    """

    outlasts: ClassVar[bool] = True

    home: str
    run: int
    number: int
    state: bytes


class HomeChanged(Struct, array_like=True, frozen=True, tag="entrusted_changed"):
    """The changes `first`, `first + 1`, … of a process `run` of the home."""

    outlasts: ClassVar[bool] = True

    home: str
    run: int
    first: int
    changes: tuple[bytes, ...]

    @property
    def last(self) -> int:
        """Return the number of the last change."""
        return self.first + len(self.changes) - 1


class StandInChosen(Struct, array_like=True, frozen=True, tag="stand_in_chosen"):
    """A home has a broker stand in for it, which may count on a lease; "": none any more."""

    outlasts: ClassVar[bool] = True

    broker: str
    lease_ms: int


class LeaseAsked(Struct, array_like=True, frozen=True, tag="lease_asked"):
    """A process `run` of a home asks for its lease, for the time of it."""

    run: int
    number: int


class LeaseGranted(Struct, array_like=True, frozen=True, tag="lease_granted"):
    """The stand-in takes the home over no sooner than a lease after it has heard the question."""

    run: int
    number: int


class HomeKept(Struct, array_like=True, frozen=True, tag="entrusted_kept"):
    """The stand-in has on its disk all changes of `run` up to `number`.

    `lacks`: what was said to it rests on a change or a state that it does not have.
    """

    run: int
    number: int
    lacks: bool = False

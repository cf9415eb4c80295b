"""What the topology is told, and what it wants done: the doors of `Topology`.

Owns these types. Must not know who tells or carries out. Invariant: effects are carried out in the
order given; `now` is in milliseconds and never goes back.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

# --- what happened ----------------------------------------------------------------------------


class LinkUp(Struct, frozen=True):
    """The link to a neighbour stands; `fresh` as in `broker.network.session.Up`."""

    peer: str
    fresh: bool
    cost: int = 1


class LinkDown(Struct, frozen=True):
    """The link to a neighbour is cut; it may be back soon."""

    peer: str


class StatesReceived(Struct, frozen=True):
    """A neighbour told of links: the bytes of a `Tell` of its own."""

    peer: str
    data: bytes


class ForgetRequested(Struct, frozen=True):
    """Somebody says that a broker will not come back: nobody is to wait for it any longer."""

    broker: str


class Woken(Struct, frozen=True):
    """Time has passed; due at `wake_at`."""


Told: TypeAlias = LinkUp | LinkDown | StatesReceived | ForgetRequested | Woken

# --- what is to be done -----------------------------------------------------------------------


class Tell(Struct, frozen=True):
    """Send a control message to a neighbour."""

    to: str
    data: bytes


class TreeChanged(Struct, frozen=True):
    """The tree, or who can be reached on it, is another one; see `Topology.tree`.

    `neighbours` are those in the tree, `tree` its id: brokers with the same id hold the same tree.
    `unreachable` are brokers that are known and to which there is no way.
    """

    neighbours: tuple[str, ...]
    tree: str
    unreachable: tuple[str, ...]


class KnownChanged(Struct, frozen=True):
    """Brokers were heard of for the first time, or again; others were forgotten."""

    came: tuple[str, ...]
    forgotten: tuple[str, ...]


class Objected(Struct, frozen=True):
    """Report that what a neighbour told was not taken; why, in words. It was counted."""

    peer: str
    reason: str


class NameTaken(Struct, frozen=True):
    """Another broker is called as this one, and tells of links to these again and again.

    `earlier`: its process was announced before this one, which leaves the name to it.
    """

    neighbours: tuple[str, ...]
    earlier: bool = False


class DiskClaimed(Struct, frozen=True):
    """This broker yields its disk to another, which has a copy of it; empty: to nobody any more."""

    by: str


Effect: TypeAlias = Tell | TreeChanged | KnownChanged | Objected | NameTaken | DiskClaimed

"""Which of the brokers that begin on copies of one disk goes on.

Owns the comparison. Must not know links, the tree or how others are told. Invariant: of two that
hear each other tell of one disk, the one announced later yields, and stays so until the other is
forgotten or tells of another disk; one that yields tells of none, so that nobody yields to it.

A card is cloned and begins under another name: both would go on with the same subscriptions, cells
and kept events. The first life of a disk is shared by all copies of it, so it tells them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Protocol


class Claimant(Protocol):
    """A broker as it tells of itself."""

    @property
    def disk(self) -> int:
        """Return the first life of its disk; 0: it does not say."""

    @property
    def run(self) -> int:
        """Return the number of its process; one announced later has a greater one."""

    @property
    def forgotten(self) -> bool:
        """Return whether somebody has said that it will not come back."""


class DiskClaim:
    """Keeps to whom the broker `me` yields its disk; empty: to nobody."""

    def __init__(self, me: str) -> None:
        self.disk = 0  # the first life of this disk; 0: it has none yet
        self.run = 0  # the number of this process; 0: it does not say
        self.yielded_to = ""  # a broker's name
        self._me = me

    @property
    def told(self) -> int:
        """The disk as others are to hear of it; 0 where it is left to another broker."""
        return 0 if self.yielded_to else self.disk

    def look(self, claimants: Mapping[str, Claimant], reachable: Container[str]) -> bool:
        """Judge anew by what is known of others; return whether it yields to another than before.

        One that is not reachable may be a name which this very disk had before: it is no rival. But
        who has yielded already waits for it: it may only have restarted.
        """
        before = self.yielded_to
        # Not by reach: whoever yields has left the tree, and reaches nobody.
        if before and not self._is_rival(claimants.get(before)):
            self.yielded_to = ""
        # Without a number of its process nobody can say who was announced first.
        if self.disk and self.run and not self.yielded_to:
            rivals = [
                (other.run, name)
                for name, other in claimants.items()
                if name != self._me and name in reachable and self._is_rival(other)
            ]
            first = min(rivals, default=(self.run, self._me))
            if first < (self.run, self._me):
                self.yielded_to = first[1]
        return self.yielded_to != before

    def _is_rival(self, other: Claimant | None) -> bool:
        # One that yields tells of no disk: if both do, each sees the other step back, and the
        # earlier one goes on.
        return other is not None and other.disk == self.disk and not other.forgotten

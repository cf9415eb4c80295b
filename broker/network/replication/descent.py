"""The lives of an origin, and which positions of theirs mean the same events.

Owns the present life and the ends of those before it. Must not know events or hosts. Invariant: up
to its end, what a life before has counted is what this disk tells of; behind that end nothing is.

A life is the identity of a disk's counting, drawn at random; the first is that of the disk itself.
Positions go on through all lives of one disk. A disk that went back in time has lost the end of
its life, and other brokers may have seen that: so it begins a new one, and a host that is further
in the life before is served from the end of what both share.
"""

from __future__ import annotations

LIVES_MAX = 1_000  # of an unknown one all is offered that is kept: repeats fall by their id
DRAWN_MIN = 1 << 48  # lives below were times of day: two disks may have begun at the same


class Descent:
    """Keeps the lives of one disk; `life` is the present one, 0 before the first."""

    def __init__(self) -> None:
        self.life = 0
        self._ends: dict[int, int] = {}  # by life: the last position that is shared

    def begin(self, life: int, position: int) -> None:
        """Begin a life that shares all up to this position with the one before."""
        if life == self.life:
            return
        if self.life:
            # A disk that went back twice shares no more of the first life than of the second.
            self._ends = {name: min(end, position) for name, end in self._ends.items()}
            self._ends[self.life] = position
            while len(self._ends) > LIVES_MAX:
                # The first names the disk.
                del self._ends[next(life for life in self._ends if life != self.first)]
        self.life = life

    @property
    def first(self) -> int:
        """The first life that was drawn: all copies of one disk share it; 0: there is none."""
        return next((life for life in (*self._ends, self.life) if life >= DRAWN_MIN), 0)

    def shared(self, life: int, position: int) -> int | None:
        """The position up to which a place of some life is this disk's too; None: nobody knows."""
        if life == self.life:
            return position
        end = self._ends.get(life)
        return None if end is None else min(position, end)

    def state(self) -> list[list[int]]:
        """Return the ends as plain data, the oldest life first."""
        return [[life, end] for life, end in self._ends.items()]

    def restore(self, life: int, ends: list[list[int]]) -> None:
        """Take up what `state` returned, and the present life."""
        self.life = life
        self._ends = {ancestor: end for ancestor, end in ends}  # noqa: C416  # they are lists

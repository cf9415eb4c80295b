"""Messages between any two brokers, in parts that links take.

Owns what is under way to each broker, and the parts that have come. Must not know what messages
say, or ways. Invariant: a message is given out whole or not at all; a long one never has more than
`WINDOW` parts under way, so that no link has to refuse it for its length. What is lost is lost: who
sent it says it again.

A message of one part goes at once, and past a long one that is under way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from msgspec import Struct

PART_BYTES = 512 * 1024  # half of what a link takes as one message
WINDOW = 4  # parts: 2 MB of the 32 that may wait for a link
MESSAGE_BYTES_MAX = 128 * 1024 * 1024  # a state of more cannot be saved, nor moved
LONG_MAX = 64  # long messages that wait for one broker; further ones are lost, and said again


class Parcel(Struct, array_like=True, frozen=True, tag="parcel"):
    """A part of what one broker tells another of cells."""

    sender: str
    to: str
    life: int
    serial: int
    index: int
    count: int
    data: bytes


class PartTaken(Struct, array_like=True, frozen=True, tag="part"):
    """A broker has the parts of that parcel up to this one."""

    sender: str  # of the parcel
    to: str
    life: int
    serial: int
    index: int


class _Long(Struct):
    """A long message to one broker: parts before `sent` are under way or there."""

    serial: int
    data: bytes
    count: int
    sent: int = 0


class _Coming(Struct):
    life: int
    serial: int
    parts: list[bytes]
    size_bytes: int = 0


class Post:
    """Send messages between any two brokers, in parts that links take.

    `life` tells this process from earlier ones of the same broker.
    """

    def __init__(self, me: str, life: int) -> None:
        self.lost = 0
        self._me = me
        self._life = life
        self._serial = 0
        self._long: dict[str, deque[_Long]] = {}
        self._coming: dict[str, _Coming] = {}

    def send(self, to: str, data: bytes) -> list[Parcel]:
        """Return the parcels of a message that are to go now."""
        self._serial += 1
        if len(data) <= PART_BYTES:
            return [Parcel(self._me, to, self._life, self._serial, 0, 1, data)]
        waiting = self._long.setdefault(to, deque())
        if len(data) > MESSAGE_BYTES_MAX or len(waiting) >= LONG_MAX:
            self.lost += 1
            return []
        waiting.append(_Long(self._serial, data, -(-len(data) // PART_BYTES)))
        return list(self._parts(to, -1)) if len(waiting) == 1 else []

    def taken(self, one: PartTaken) -> list[Parcel]:
        """Return the parcels that may go now that this part is there."""
        waiting = self._long.get(one.to)
        if not waiting or (one.life, one.serial) != (self._life, waiting[0].serial):
            return []
        if one.index < waiting[0].count - 1:
            return list(self._parts(one.to, one.index))
        waiting.popleft()
        return list(self._parts(one.to, -1)) if waiting else []

    def lost_way(self, to: str) -> None:
        """Drop what was under way to and from a broker: it may be lost, and will be said again."""
        self._long.pop(to, None)
        self._coming.pop(to, None)

    def _parts(self, to: str, there: int) -> Iterator[Parcel]:
        one = self._long[to][0]
        while one.sent < one.count and one.sent <= there + WINDOW:
            at = one.sent
            one.sent += 1
            data = one.data[at * PART_BYTES : (at + 1) * PART_BYTES]
            yield Parcel(self._me, to, self._life, one.serial, at, one.count, data)

    def came(self, one: Parcel) -> tuple[bytes | None, PartTaken | None]:
        """(the message, if it is whole now; what to tell its sender)."""
        if one.count == 1:
            return one.data, None
        coming = self._coming.get(one.sender)
        if one.index == 0:
            coming = self._coming[one.sender] = _Coming(one.life, one.serial, [])
        if coming is None or (coming.life, coming.serial) != (one.life, one.serial):
            return None, None
        if one.index != len(coming.parts):
            # A part was lost with a link; the sender says the whole message again.
            return None, None
        coming.parts.append(one.data)
        coming.size_bytes += len(one.data)
        if coming.size_bytes > MESSAGE_BYTES_MAX:
            # No broker sends so much: memory is not given to one that says so.
            del self._coming[one.sender]
            return None, None
        taken = PartTaken(one.sender, self._me, one.life, one.serial, one.index)
        if one.index < one.count - 1:
            return None, taken
        del self._coming[one.sender]
        return b"".join(coming.parts), taken

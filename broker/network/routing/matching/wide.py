"""The rows of one event type over many shapes, looked up at once.

Owns where each row belongs. Must not know how events are correlated. Invariant: what is found is
what looking each shape up by itself would find; the cost follows what is found, not the shapes.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from broker.engine.filter.cells import slots_of
from broker.network.routing.matching.rows import Held, Row, RowIndex

Place = TypeVar("Place")


class WideRows(Generic[Place]):
    """Rows by (place, slot); a place is whatever holds slots of its own."""

    def __init__(self) -> None:
        self._index = RowIndex()
        self._where: dict[int, tuple[Place, int]] = {}
        self._number: dict[tuple[Place, int], int] = {}
        self._free: list[int] = []

    def add(self, place: Place, slot: int, row: Row) -> None:
        """Put a row into a place's slot that holds none."""
        number = self._free.pop() if self._free else len(self._number)
        self._index.add(number, row)
        self._where[number] = (place, slot)
        self._number[place, slot] = number

    def remove(self, place: Place, slot: int) -> None:
        """Take the row out of a place's slot."""
        number = self._number.pop((place, slot))
        self._index.remove(number)
        del self._where[number]
        self._free.append(number)

    def lookup(self, held: Held) -> dict[Place, int]:
        """The places that have rows which the event passes, with their slots as set bits."""
        found: dict[Place, int] = {}
        for number in slots_of(self._index.lookup(held)):
            place, slot = self._where[number]
            found[place] = found.get(place, 0) | 1 << slot
        return found

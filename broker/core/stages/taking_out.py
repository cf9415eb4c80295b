"""Taking consumed events out of occurrences that are held.

Owns the question which of them bind such. Must not know stages. Events are named by identity.
"""

from __future__ import annotations

from collections.abc import Collection

from broker.core.occurrence import Occurrence


def holds_any(occurrence: Occurrence, gone: Collection[int]) -> bool:
    """Whether one of the events (by identity) is bound."""
    if occurrence.__class__ is not tuple:
        return id(occurrence) in gone
    for member in occurrence[2:]:
        if member.__class__ is tuple:
            if any(id(event) in gone for event in member):
                return True
        elif id(member) in gone:
            return True
    return False


def without(items: list[Occurrence], gone: Collection[int]) -> list[Occurrence]:
    """The occurrences that bind none of the events."""
    return [item for item in items if not holds_any(item, gone)]

"""Yes, maybe, no: what is known while times are uncertain.

Owns: the three values and their conjunction. Must not know: times.
Invariant: the weakest comes first, so that a conjunction is the least of its parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Certainty(IntEnum):
    """How certainly something holds."""

    NO = 0
    MAYBE = 1
    YES = 2


def certainly(holds: bool) -> Certainty:
    """Of what does not depend on uncertain times."""
    return Certainty.YES if holds else Certainty.NO


def weakest(parts: Iterable[Certainty]) -> Certainty:
    """A conjunction is as weak as its weakest part."""
    return min(parts, default=Certainty.YES)

"""How many: counts over time that may have no limit.

Owns the arithmetic of bounds. Must not know operators. Invariant: what is unbounded stays so in any
sum or product, and carries the reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

# How many occurrences end at most within any closed interval of so many ms; None: no limit.
Flow = Callable[[int], int | None]


def steady(per_s: Fraction) -> Flow:
    """A flow of at most so many a second, evenly: one more than fit into the interval."""
    return lambda span_ms: int(per_s * span_ms / 1000) + 1


def never(_: int) -> int | None:
    """A flow that has no limit."""
    return None


def total(*counts: int | None) -> int | None:
    """The sum."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def product(a: int | None, b: int | None) -> int | None:
    """The product; none of anything is none."""
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else a * b


@dataclass(slots=True)
class Held:
    """What is held at most: over all groups, and besides in each group.

    Matches are partial: occurrences of composite operands, and those that wait for their turn.
    """

    events: int | None = 0
    matches: int | None = 0
    events_each: int = 0
    matches_each: int = 0
    reasons: list[str] = field(default_factory=list)  # why there is no limit, if there is none

    def add(self, count: int | None, *, matches: bool, reason: str) -> None:
        """Count more in; the reason is told where there is no limit."""
        if count is None and reason not in self.reasons:
            self.reasons.append(reason)
        if matches:
            self.matches = total(self.matches, count)
        else:
            self.events = total(self.events, count)

"""Whole units for rates, costs and limits, so that sums are exact and descents well-founded.

Owns the scale and how much a limit is broken. Must not know what is measured. Invariant: equal
numbers give equal units everywhere, and a limit that is broken counts for at least one part.
"""

from planner.problem import Number

SCALE = 10**9  # units of one byte a second, or of one unit of work
PARTS = 10**6  # parts of a limit, in which its violation is told
SLACK = 64  # what the rounding of so many summands may come to


def scaled(value: Number) -> int:
    """A number in whole units."""
    return round(value * SCALE)


def plain(units: int) -> float:
    """Units as a number again."""
    return units / SCALE


def broken(load: int, limit: int) -> int:
    """By how many parts of itself a limit is exceeded; one of 0 is taken as one unit of work."""
    over = load - limit
    if over <= SLACK or over <= limit // SCALE:
        return 0
    return 1 + over * PARTS // (limit if limit > 0 else SCALE)

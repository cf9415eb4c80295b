"""Boxes: what ranges over several axes leave of a space, as numbers that compare exactly.

Owns how open, closed and infinite ends become cuts, and a box made of them. Must not know operators
or how covering is decided. Invariant: a value lies in `low <= value < high` exactly if it lies in
the range that the pair of cuts was made of; only beside integers beyond 2**53 is a range widened.
"""

from __future__ import annotations

from math import inf, isnan, nextafter, prod
from sys import float_info
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

AXES_MAX = 16
"""Of one box; 12 are four keys with a place in the plane each. Nothing grows with 2**axes."""

COARSE_FROM, COARSE_TO = 2.0**53, 2.0**63
"""Between these magnitudes integers, which have 64 bits, lie between neighbouring floats."""
MAY_BE_WIDENED_FROM, MAY_BE_WIDENED_TO = COARSE_FROM - 2, nextafter(COARSE_TO, inf)
"""Where a cut may stand that an end in between was moved to."""

Cuts = tuple[float, float]

ANYTHING: Cuts = (-inf, inf)
"""Where nothing is said of an axis: every value, and events that have none there."""


class Box(NamedTuple):
    """The product of half-open ranges of cuts, one for each axis."""

    lows: tuple[float, ...]  # included
    highs: tuple[float, ...]  # not included, so that boxes can touch without sharing

    @property
    def axes(self) -> int:
        """Count the ranges that it is made of."""
        return len(self.lows)

    @property
    def empty(self) -> bool:
        """Tell whether nothing lies in it."""
        return any(not low < high for low, high in zip(self.lows, self.highs, strict=True))

    def holds(self, point: Sequence[float]) -> bool:
        """Tell whether this point lies in it."""
        ends = zip(self.lows, point, self.highs, strict=True)
        return all(low <= value < high or high == value == inf for low, value, high in ends)

    def surrounds(self, other: Box) -> bool:
        """Tell whether all of the other lies in it, ends taken as they are."""
        return all(map(float.__le__, self.lows, other.lows)) and all(
            map(float.__ge__, self.highs, other.highs)
        )

    def inner(self) -> Box:
        """Return what surely lies in it: as `cuts` gave it, but coarse ends drawn in, not out."""
        return Box(
            tuple(nextafter(end, inf) if _maybe_widened(end) else end for end in self.lows),
            tuple(nextafter(end, -inf) if _maybe_widened(end) else end for end in self.highs),
        )

    def volume(self) -> float:
        """The product of its widths; infinite where an axis is not bounded."""
        return prod(high - low for low, high in zip(self.lows, self.highs, strict=True))


def cuts(
    low: float | None,
    high: float | None,
    *,
    low_open: bool = False,
    high_open: bool = False,
) -> Cuts:
    """The pair of cuts around the values of a range. None: not bounded there.

    An end is open by the next float: no attribute has a value between the two, but for integers
    beyond 2**53. Among those a cut lies outside of the range's end, whether open or not; see
    `Box.inner`. A range that is unbounded on both sides is not ANYTHING: an event that lacks the
    attribute does not lie in it. ValueError: an end is no number.
    """
    below = -float_info.max if low is None else float(low)
    above = inf if high is None else float(high)
    if isnan(below) or isnan(above):
        raise ValueError("a range cannot end at what is no number")
    if low_open and low is not None and not coarse(below):
        below = nextafter(below, inf)
    if high is not None and (not high_open or coarse(above)):
        above = nextafter(above, inf)
    return below, above


def coarse(end: float) -> bool:
    """Tell whether integers that no float equals lie beside this end."""
    return COARSE_FROM <= abs(end) <= COARSE_TO


def _maybe_widened(cut: float) -> bool:
    return MAY_BE_WIDENED_FROM <= abs(cut) <= MAY_BE_WIDENED_TO


def box_of(pairs: Iterable[Cuts]) -> Box:
    """The box with these cuts, axis by axis. ValueError: too many axes."""
    made = tuple(pairs)
    if len(made) > AXES_MAX:
        raise ValueError(f"a box has at most {AXES_MAX} axes, not {len(made)}")
    return Box(tuple(low for low, _ in made), tuple(high for _, high in made))
